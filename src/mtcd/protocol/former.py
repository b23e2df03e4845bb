"""Tokens in checkpoints of earlier versions, up to protocol 8.

A token then had attributes for all features, and the classes ``GainToken`` and ``SplitToken`` for
some. Each feature reads its slot from them (``Extension.former``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from mtcd.core.arrays import Array
from mtcd.protocol.codec.extensions import EXTENSIONS
from mtcd.protocol.token import Token

ATTRIBUTES = (
    "index",
    "t",
    "hop",
    "aggregate",
    "penalty",
    "sync_penalty",
    "sync_change",
    "previous",
    "instruction",
    "past",
    "tally",
    "extra",
    "windows",
)
KEPT = ("index", "t", "hop", "aggregate", "penalty", "sync_penalty", "previous")
MORE = {"Token": (), "GainToken": ("gains",)}
"""The further attributes of each class."""


class FormerTally(NamedTuple):
    """Sums that a token collected for accelerated tours, or for optimal sync."""

    products: Array
    slope: float
    visited: set[int]


class FormerInstruction(NamedTuple):
    """The instruction of a tour, in a checkpoint of a method without tours: nothing is in it."""

    tour: int
    weights: tuple[float, ...]
    keep: int
    starts: bool
    trial: bool
    stepsize: float
    survey: bool


RECORDS = {"Tally": FormerTally, "Instruction": FormerInstruction}
"""Classes that checkpoints name, and that this version need not have imported, or has no more."""


def is_former(kind: str, values: Sequence[Any]) -> bool:
    """Whether these are the attributes of a token of an earlier version."""
    # By the number of attributes: a token of this version has slots in place of most of them.
    return kind in MORE and len(values) == len(ATTRIBUTES) + len(MORE[kind])


def former_token(kind: str, values: Sequence[Any]) -> Token:
    """The token, with what features carried on it in their slots."""
    attributes = dict(zip((*ATTRIBUTES, *MORE[kind]), values, strict=True))
    slots = {}
    # Every feature is asked: which of them the training used, only the attributes say.
    for name, extension in EXTENSIONS.items():
        value = extension.former(attributes)
        if value is not None:
            slots[name] = value
    return Token(**{name: attributes[name] for name in KEPT}, slots=slots)
