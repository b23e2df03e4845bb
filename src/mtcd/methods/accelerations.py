"""The accelerations by name."""

from __future__ import annotations

from mtcd.methods.anderson import Anderson
from mtcd.methods.conjugate import Conjugate
from mtcd.methods.momentum import Momentum

ACCELERATIONS: dict[str, type[Anderson] | type[Conjugate] | type[Momentum]] = {
    "anderson": Anderson,
    "conjugate": Conjugate,
    "momentum": Momentum,
}
