"""The shape of the project: imports point one way, the core stays light, examples run."""

import doctest
import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import mtcd

ROOT = Path(__file__).parent.parent
MODULES = [module.name for module in pkgutil.walk_packages(mtcd.__path__, "mtcd.") if module.name != "mtcd.__main__"]


@pytest.mark.parametrize("name", ["mtcd", *MODULES])
def test_examples_in_docstrings(name: str) -> None:
    outcome = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert outcome.failed == 0


def test_there_are_examples_to_run() -> None:
    finder = doctest.DocTestFinder()
    examples = sum(len(t.examples) for name in MODULES for t in finder.find(importlib.import_module(name)))
    assert examples > 15


@pytest.mark.long
@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.name)
def test_examples_run(example: Path, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, str(example)], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


@pytest.mark.long
@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.yaml")), ids=lambda p: p.name)
def test_example_configs_train(example: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mtcd", "train", str(example), "--out", str(tmp_path / "run"), "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_imports_point_one_way() -> None:
    program = Path(sys.executable).parent / "lint-imports"
    done = subprocess.run([program, "--no-cache"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert "3 kept, 0 broken" in done.stdout


def test_the_public_names_exist_and_are_all() -> None:
    assert set(mtcd.__all__) == set(mtcd._HOMES)
    for name in mtcd.__all__:
        assert getattr(mtcd, name).__doc__
    with pytest.raises(AttributeError, match="nothing"):
        _ = mtcd.nothing


def test_the_core_does_not_import_plots_or_yaml_or_the_command_line() -> None:
    script = (
        "import sys, mtcd\n"
        "for name in set(mtcd.__all__) - {'SplitModel', 'load_run', 'sweep', 'Sweep'}: getattr(mtcd, name)\n"
        "print([m for m in ('matplotlib', 'yaml', 'typer', 'rich', 'pydantic', 'torch') if m in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == "[]"
