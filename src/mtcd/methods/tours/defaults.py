"""The methods that linear models are trained with where none is given."""

from __future__ import annotations

from mtcd.methods.method import Method
from mtcd.methods.mtcd.checks import MAJORISE
from mtcd.methods.mtcd.mtcd import STCD


def smooth_method() -> Method:
    """Conjugate tours, for a smooth objective."""
    return STCD(walk="tour", acceleration="conjugate", local_solver=MAJORISE)


def l1_method() -> Method:
    """Tours with momentum, for an objective with an l1 penalty."""
    return STCD(local_updates=10, walk="tour", acceleration="momentum")
