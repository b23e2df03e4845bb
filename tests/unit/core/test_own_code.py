"""Code of the user's own: where it is looked for, and what stays behind."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mtcd.core.errors import ConfigError
from mtcd.core.own_code import load, running_code


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, Path]]:
    """Two studies, each with a package of the same name."""
    for name in ("one", "two"):
        package = tmp_path / name / "ownmodel"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("from ownmodel.part import WHOSE\n")
        (package / "part.py").write_text(f"WHOSE = {name!r}\n")
    monkeypatch.chdir(tmp_path)
    yield tmp_path / "one", tmp_path / "two"
    for module in [name for name in sys.modules if name.partition(".")[0] == "ownmodel"]:
        del sys.modules[module]


def test_each_study_has_its_own_module(folders: tuple[Path, Path]) -> None:
    for folder in (*folders, folders[0]):
        before = list(sys.path)
        with running_code(folder):
            assert load("ownmodel:WHOSE", "walk") == folder.name
            assert load("ownmodel.part:WHOSE", "walk") == folder.name
        assert sys.path == before


def test_outside_of_the_context_nothing_is_loaded(folders: tuple[Path, Path]) -> None:
    with running_code(folders[0]):
        pass
    with pytest.raises(ConfigError, match="does not run here"):
        load("ownmodel:WHOSE", "walk")
