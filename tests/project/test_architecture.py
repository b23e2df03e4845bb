"""The shape of the project: imports point one way, the core stays light, examples run."""

import ast
import doctest
import importlib
import pkgutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest
from benchmarks.contract import CoreBelowFeatures, judged
from benchmarks.deletable import features as deletable_features
from benchmarks.deletable import joins
from benchmarks.seams import Architecture, counted, sources
from benchmarks.seams import imported as imported_by
from documentation.stub import STUB, stub
from grimp import ImportGraph

import mtcd
from mtcd.core.optional import EXTRAS
from project import ROOT

MODULES = [
    module.name
    for module in pkgutil.walk_packages(mtcd.__path__, "mtcd.")
    if module.name != "mtcd.__main__"
]


def imported(name: str) -> ModuleType | None:
    """A module of the library; None where it needs an optional package that is not installed."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in EXTRAS:
            raise
        return None


@pytest.mark.parametrize("name", ["mtcd", *MODULES])
def test_examples_in_docstrings(name: str) -> None:
    module = imported(name)
    if module is None:
        pytest.skip("needs an optional package")
    outcome = doctest.testmod(module, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert outcome.failed == 0


def test_there_are_examples_to_run() -> None:
    finder = doctest.DocTestFinder()
    modules = [module for module in map(imported, MODULES) if module is not None]
    assert sum(len(test.examples) for module in modules for test in finder.find(module)) > 15


@pytest.mark.long
@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.name)
def test_examples_run(example: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(example)], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


@pytest.mark.long
@pytest.mark.parametrize(
    "example", sorted((ROOT / "examples").glob("*.yaml")), ids=lambda p: p.name
)
def test_example_configs_train(example: Path, tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "mtcd",
        "train",
        str(example),
        "--out",
        str(tmp_path / "run"),
        "--json",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_imports_point_one_way() -> None:
    program = Path(sys.executable).parent / "lint-imports"
    done = subprocess.run([program, "--no-cache"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert "3 kept, 0 broken" in done.stdout


def test_the_public_names_exist_and_are_all() -> None:
    assert {"train", "MTCD", "load_dataset"} <= set(mtcd.__all__)
    pytest.importorskip("torch")
    for name in mtcd.__all__:
        assert getattr(mtcd, name).__doc__
    with pytest.raises(AttributeError, match="nothing"):
        _ = mtcd.nothing


def test_the_stub_has_the_public_names_of_the_core_and_of_every_feature() -> None:
    # the test with mypy below takes a minute
    assert STUB.read_text() == stub(), "python -m documentation writes it again"


def test_the_algorithm_is_read_in_four_files_of_a_thousand_lines() -> None:
    """What is read beside the paper (docs/architecture.md)."""
    folder = ROOT / "src" / "mtcd" / "methods" / "mtcd"
    path = [folder / f"{name}.py" for name in ("mtcd", "plan", "client", "server")]
    assert sum(len(file.read_text().splitlines()) for file in path) <= 1_000


def test_imports_against_the_architecture_only_become_fewer() -> None:
    counts = {kind: len(imports) for kind, imports in counted(ROOT).items()}
    assert counts == {"seam": 0, "upward": 0, "side": 0}, "python -m benchmarks.seams --list"
    assert counts == Architecture.read(ROOT).budget


@pytest.mark.parametrize(
    ("source", "target", "what"),
    [
        ("mtcd.config.schema", "mtcd.models.trees.model", "seam"),
        ("mtcd.models.losses.loss", "mtcd.models.glm.model", "seam"),
        ("mtcd.core.files", "mtcd.network.edges", "upward"),
        ("mtcd.planner.planning", "mtcd.ray.settings", "side"),
        ("mtcd.privacy.sealed.mode", "mtcd.privacy.sealed.dp.mode", "side"),
        ("mtcd.models.trees.model", "mtcd.estimators.base", "side"),
        ("mtcd.models.trees.estimators.trees", "mtcd.estimators.base", "allowed"),
        ("mtcd.privacy.sealed.dp.mode", "mtcd.privacy.sealed.mode", "allowed"),
        ("mtcd.planner.planning", "mtcd.models.glm.model", "allowed"),
        ("mtcd.planner.planning", "mtcd.cli.show", "allowed"),
        ("mtcd.network.edges", "mtcd.core.files", "allowed"),
        ("mtcd.config.schema", "mtcd.config.build", "allowed"),
        ("mtcd", "mtcd.models.trees.model", "allowed"),
    ],
)
def test_what_an_import_is_in_the_contract_and_in_the_count(
    source: str, target: str, what: str
) -> None:
    assert judged(source, target, Architecture.read(ROOT)) == what


def test_the_contract_finds_an_import_of_a_feature_and_names_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    graph = ImportGraph()
    graph.add_import(
        importer="mtcd.config.schema",
        imported="mtcd.models.trees.model",
        line_number=7,
        line_contents="from mtcd.models.trees.model import Trees",
    )
    contract = CoreBelowFeatures("core", {}, {})
    check = contract.check(graph, verbose=False)
    assert not check.kept

    contract.render_broken_contract(check)
    said = "mtcd.config.schema imports mtcd.models.trees.model (line 7): seam"
    assert said in capsys.readouterr().out


def test_no_constant_is_defined_twice() -> None:
    """The second would take the place of the first, as after a rename to a name that is taken."""
    for path in [*(ROOT / "src").rglob("*.py"), *(ROOT / "experiments").rglob("*.py")]:
        body = ast.parse(path.read_text(encoding="utf-8")).body
        targets = [node.targets[0] for node in body if isinstance(node, ast.Assign)]
        names = Counter(target.id for target in targets if isinstance(target, ast.Name))
        assert [name for name, count in names.items() if count > 1] == [], path


def test_every_feature_must_be_deletable() -> None:
    listed, required = deletable_features(ROOT)
    assert set(listed) <= set(required)


def test_what_is_deleted_with_a_feature_needs_it() -> None:
    """A module that works without the feature would hide what breaks."""
    modules = sources(ROOT)
    for feature, joined in joins(ROOT).items():
        for name in joined:
            inside = [one for one in modules if one == name or one.startswith(f"{name}.")]
            assert inside, f"{name} is not there: correct joins in pyproject.toml"
            needed = {target for one in inside for target in imported_by(modules[one], modules)}
            assert any(target.startswith(f"{feature}.") for target in needed), (name, feature)


@pytest.mark.long
def test_type_checkers_know_every_public_name(tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="of the extra lint, which CI installs")
    revealed = "".join(f"reveal_type(mtcd.{name})\n" for name in mtcd.__all__)
    script = tmp_path / "names.py"
    script.write_text(f"import mtcd\n{revealed}mtcd.Tres\n")
    command = [sys.executable, "-m", "mypy", "--no-error-summary", str(script)]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.splitlines()
    found = [
        line.partition(" note: Revealed type is ")[2] for line in shown if "Revealed type" in line
    ]
    assert len(found) == len(mtcd.__all__)
    for name, kind in zip(mtcd.__all__, found, strict=True):
        assert kind.strip('"') != "Any", f"mtcd.{name} is Any to type checkers"
    errors = [line for line in shown if ": error: " in line]
    assert len(errors) == 1
    assert 'no attribute "Tres"' in errors[0]


def test_the_core_does_not_import_plots_or_yaml_or_the_command_line() -> None:
    script = (
        "import sys, mtcd\n"
        "for name in set(mtcd.__all__) - {'SplitModel', 'load_run', 'sweep', 'Sweep'}: "
        "getattr(mtcd, name)\n"
        "print([m for m in ('matplotlib', 'yaml', 'typer', 'rich', 'pydantic', 'torch') if m in "
        "sys.modules])"
    )
    shown = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout
    assert shown.strip() == "[]"
