"""The method that is taken where none is given: one for every kind of model."""

from __future__ import annotations

from typing import Literal

from mtcd.methods.method import Method
from mtcd.methods.mtcd.mtcd import MTCD, STCD
from mtcd.methods.mtcd.token_settings import MAJORISE
from mtcd.methods.svfl.svfl import SVFL
from mtcd.models.glm.model import Glm
from mtcd.models.trees.model import Additive
from mtcd.privacy.settings import PLAIN, Privacy

ModelKind = Literal["smooth", "l1", "additive", "split"]
"""What a default depends on: a linear model without or with an l1 penalty, trees and mixed
families, networks."""

SMOOTH: ModelKind = "smooth"
WITH_L1: ModelKind = "l1"
ADDITIVE: ModelKind = "additive"
SPLIT: ModelKind = "split"


def kind_of(model: object) -> ModelKind:
    """The kind of a model: a :class:`Glm` (None stands for ridge), trees, mixed families or a split
    network."""
    if model is None:
        return SMOOTH
    if isinstance(model, Glm):
        return linear_kind(model.l1)
    return ADDITIVE if isinstance(model, Additive) else SPLIT


def linear_kind(l1: float) -> ModelKind:
    """The kind of a linear model with this l1 penalty."""
    return WITH_L1 if l1 else SMOOTH


def default_method(
    model: ModelKind,
    connected: bool = True,
    privacy: Privacy | None = None,
    server: bool | None = None,
) -> Method:
    """The method for a kind of model, where none is given.

    ``connected``: whether every client can reach every other; if not, a server must join the pieces
    of the network. ``server``: of a federation, whether it has one; None: all parties are in one
    process. What ``privacy`` needs comes first: sealed tokens need a tour, masked sums need uploads
    to a server. The method is the one before :func:`mtcd.methods.privacy_modes.with_privacy`.

    >>> default_method("l1").describe()
    'STCD, Q=10, tour, momentum'
    """
    privacy = privacy or Privacy()

    if privacy.aggregation != PLAIN and model != SPLIT:
        # a single token is no sum, and trees need tokens
        return MTCD(tokens=2) if model == ADDITIVE else SVFL()
    if privacy.sealed:  # noise for differential privacy is added at a server
        return MTCD(walk="tour") if server or privacy.dp is not None else STCD(walk="tour")

    if server is not None:
        # a plain token goes round parties that are down; for those of an accelerated tour all would
        # wait
        return MTCD() if server else STCD()
    # the step size of a network cannot be guessed: mtcd asks for one
    if model == SPLIT or not connected:
        return MTCD()

    if model == ADDITIVE:
        return STCD(walk="tour")
    if model == WITH_L1:
        return STCD(local_updates=10, walk="tour", acceleration="momentum")
    return STCD(walk="tour", acceleration="conjugate", local_solver=MAJORISE)


def default_note(method: Method, connected: bool = True) -> str:
    """What a run says of a method that was taken because none was given."""
    joined = not connected and method.kind == "mtcd"
    why = ", as the network is in pieces, which a server joins" if joined else ""
    return f"No method was given: {method.describe()} was taken{why}."
