"""The docstrings of the public names: every parameter is there, with the default that it has."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest

import mtcd
from mtcd.core.errors import NotInstalledError

ENTRY = re.compile(r"^(\w+) : (.+)$", re.MULTILINE)
OF_NO_PARAMETERS = {"Callback", "DataWarning", "Moment", "MtcdError", "TreeCG"}
NAMES = sorted(set(mtcd.__all__) - OF_NO_PARAMETERS)


def public(name: str) -> Any:
    """The class or function of this name; a test of one whose package is missing is skipped."""
    try:
        return getattr(mtcd, name)
    except NotInstalledError as missing:
        pytest.skip(str(missing))


def section(name: str, title: str) -> str:
    """The text below a title, up to the next one."""
    text = inspect.getdoc(public(name)) or ""
    parts = re.split(r"^(\w+)\n-+\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True)).get(title, "")


@pytest.mark.parametrize("name", sorted(mtcd.__all__))
def test_every_public_name_has_an_example(name: str) -> None:
    """``test_architecture.py`` runs them."""
    assert ">>> " in section(name, "Examples")


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_is_described_with_its_default(name: str) -> None:
    described = dict(ENTRY.findall(section(name, "Parameters")))
    parameters: dict[str, Any] = dict(inspect.signature(public(name)).parameters)
    assert list(described) == list(parameters)
    for key, kind in described.items():
        _, stated, default = kind.partition(", default ")
        if stated:
            assert default == repr(parameters[key].default)
        if kind.endswith(", optional"):
            assert parameters[key].default is not inspect.Parameter.empty
