"""What the core does not bring: every such package is known by the extra that brings it, and the
advice works."""

import ast
import importlib.metadata
import re
import sys
import tomllib

import pytest

from mtcd.core import optional as extras
from mtcd.core.errors import NotInstalledError
from project import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
DISTRIBUTIONS = {  # where a package is not called as what is installed
    "yaml": "pyyaml",
    "sklearn": "scikit-learn",
    "PIL": "matplotlib",  # pillow, which it depends on
    "private_set_intersection": "openmined-psi",
    "mlflow": "mlflow-skinny",
    "google": "openmined-psi",  # protobuf, which it depends on
}
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("benchmarks/*.md")]
SOURCES = [*ROOT.glob("src/**/*.py"), *ROOT.glob("examples/*.py")]


def distributions(requirements: list[str]) -> set[str]:
    return {re.split(r"[<>=\[; ]", one)[0].lower() for one in requirements}


def imported() -> set[str]:
    """The top-level packages that the library imports and that do not come with Python."""
    found = set()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                found.add(str(node.module))
            elif isinstance(node, ast.Call) and getattr(node.func, "id", None) == "find":
                found |= {str(one.value) for one in node.args if isinstance(one, ast.Constant)}
    return (
        {name.partition(".")[0] for name in found}
        - set(sys.stdlib_module_names)
        - {"mtcd", "mtcd_experiments"}
    )


def test_every_package_that_is_imported_comes_with_the_core_or_with_a_known_extra() -> None:
    core = distributions(PROJECT["dependencies"])
    optional = {name for name in imported() if DISTRIBUTIONS.get(name, name) not in core}
    assert set(extras.EXTRAS) == optional
    for package, extra in extras.EXTRAS.items():
        assert DISTRIBUTIONS.get(package, package) in distributions(
            PROJECT["optional-dependencies"][extra]
        )


@pytest.mark.parametrize("package", extras.EXTRAS)
def test_a_missing_package_is_told_with_a_command_that_works(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(f"No module named {package!r}", name=f"{package}.inside")

    monkeypatch.setattr(extras, "import_module", missing)
    with pytest.raises(NotInstalledError) as told:
        extras.find("mtcd.anything")
    assert package in str(told.value)
    assert f"in a clone of the mtcd repository: pip install '.[{extras.EXTRAS[package]}]'" in str(
        told.value
    )


def test_nothing_says_to_install_from_an_index_where_the_package_is_not() -> None:
    for path in [*PAGES, *SOURCES]:
        assert "pip install 'mtcd" not in path.read_text(), path


def test_every_extra_that_a_page_names_is_there() -> None:
    told = [found for path in PAGES for found in re.findall(r"'\.\[([\w,]+)\]'", path.read_text())]
    named = {extra for extras in told for extra in extras.split(",")}
    assert {"torch", "federation", "prepare", "sklearn"} <= named
    assert named <= set(PROJECT["optional-dependencies"])
    assert named <= set(importlib.metadata.metadata("mtcd").get_all("Provides-Extra") or ())
