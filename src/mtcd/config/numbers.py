"""Numbers in a config."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator


def no_bool(value: Any) -> Any:
    """YAML's true is no number, though Python's is."""
    if isinstance(value, bool):
        raise ValueError("should be a number")
    return value


Number = Annotated[float, BeforeValidator(no_bool)]
Whole = Annotated[int, BeforeValidator(no_bool)]
