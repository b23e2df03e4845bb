"""The method that is taken where none is given: one for every kind of model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, cast

from mtcd.core import features
from mtcd.methods.method import Method
from mtcd.methods.mtcd.mtcd import MTCD, STCD
from mtcd.privacy.settings import PLAIN, Privacy

DEFAULTS = "mtcd.default_methods"
"""The group in which a feature names a function that makes a method, by what it is best at."""


class DefaultMethods(Protocol):
    """The defaults of a kind of model. ``model`` is a model, or the section of a config that
    describes it."""

    def default_method(self, model: Any) -> Method:
        """The method for a connected network in one process."""

    def default_summing(self) -> Method | None:
        """The method whose server may only sum what clients upload; None if there is none."""


def registered(best_at: str, otherwise: Callable[[], Method]) -> Method:
    """The method that a feature has registered for this, or ``otherwise``, where it is not
    installed."""
    home = features.parts(DEFAULTS).get(best_at)
    if home is None:
        return otherwise()

    make = cast(Callable[[], Method], features.load(home))
    return make()


def default_method(
    kind: DefaultMethods,
    model: Any,
    connected: bool = True,
    privacy: Privacy | None = None,
    server: bool | None = None,
) -> Method:
    """The method for a model of this kind, where none is given.

    ``connected``: whether every client can reach every other; if not, a server must join the pieces
    of the network. ``server``: of a federation, whether it has one; None: all parties are in one
    process. What ``privacy`` needs comes first: sealed tokens need a tour, masked sums need uploads
    to a server. The method is the one before :func:`mtcd.methods.privacy_modes.with_privacy`.
    """
    privacy = privacy or Privacy()
    # Asked first: with masks the server must get sums, whatever is best otherwise.
    if privacy.aggregation != PLAIN:
        summing = kind.default_summing()
        if summing is not None:
            return summing

    if privacy.sealed:
        # The noise of differential privacy is added at a server.
        if server or privacy.dp is not None:
            return MTCD(walk="tour")
        return STCD(walk="tour")

    # In a federation some parties are down now and then: a plain token goes round them, while for
    # those of an accelerated tour all would wait.
    if server is not None:
        if server:
            return MTCD()
        return STCD()

    if not connected:
        return MTCD()
    return kind.default_method(model)


def default_note(method: Method, connected: bool = True) -> str:
    """What a run says of a method that was taken because none was given."""
    joined = not connected and method.kind == "mtcd"
    why = ", as the network is in pieces, which a server joins" if joined else ""
    return f"No method was given: {method.describe()} was taken{why}."
