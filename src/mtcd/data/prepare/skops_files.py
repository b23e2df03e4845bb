"""Fitted transformers of scikit-learn as bytes, by skops: without pickle, and only of types that
are trusted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from skops import io  # type: ignore[import-untyped,unused-ignore]

from mtcd.core.errors import MtcdError, listing

HARMLESS = ("numpy.dtype",)
"""A type that every imputer of scikit-learn holds, and that is read from an array without
pickle."""


def to_bytes(transformer: Any) -> bytes:
    """The transformer as bytes."""
    stored: bytes = io.dumps(transformer)
    return stored


def from_bytes(content: bytes, trusted: Sequence[str]) -> Any:
    """The transformer, if all its types are known to skops as harmless, or trusted by name."""
    allowed = {*HARMLESS, *trusted}
    unknown = sorted(set(io.get_untrusted_types(data=content)) - allowed)
    if unknown:
        raise MtcdError(
            "The preparation of a client holds types that skops does not know to be harmless: "
            f"{listing(unknown, 20)}. If you trust who wrote it, name them: trusted={unknown!r}."
        )
    return io.loads(content, trusted=sorted(allowed))
