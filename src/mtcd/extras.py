"""Parts of the library that need more than its core: imported when they are used, or refused with what to install."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from mtcd.errors import NotInstalledError

EXTRAS = {"torch": "torch", "safetensors": "torch"}  # the package that may be missing, and the extra that brings it


def find(module: str) -> ModuleType:
    """A module of this library."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in EXTRAS:
            raise
        raise NotInstalledError(
            f"Split neural networks need {missing}, which is not installed. To install it: "
            f"pip install 'mtcd[{EXTRAS[missing]}]'"
        ) from None
