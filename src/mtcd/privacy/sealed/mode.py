"""The mode of privacy with encrypted tokens: which methods have it, and what they become."""

from __future__ import annotations

from dataclasses import replace

from mtcd.core.errors import ConfigError
from mtcd.methods.method import Method
from mtcd.methods.mtcd.checks import NEWTON
from mtcd.methods.mtcd.mtcd import MTCD
from mtcd.network.walks import WALKS
from mtcd.privacy.sealed.settings import DEPTH, SealedTours
from mtcd.privacy.settings import Privacy
from mtcd.protocol.transports.transport import DEFAULT


class Sealed:
    """The mode of privacy with encrypted tokens."""

    asked = "privacy.mode: sealed"

    def method(self, method: Method, privacy: Privacy, split: bool) -> Method:
        """Sealed tours of this method: see ``mtcd.methods.privacy_modes.PrivacyMode``."""
        if split:
            raise ConfigError(
                f"{self.asked} is for ridge and logistic models, whose gradients are linear in the "
                "token: a split network cannot be trained under this encryption. Use model.kind: "
                "logistic, or leave privacy out; with svfl, or mtcd with method.batch, privacy: "
                "{aggregation: masked} hides what parties upload from the server."
            )

        tours = self.tours(method, privacy)
        # Either of both may have allowed it: the method or the section `privacy`.
        return replace(
            tours,
            accept_revealed_columns=tours.accept_revealed_columns
            or privacy.accept_revealed_columns,
            accept_revealed_labels=tours.accept_revealed_labels or privacy.accept_revealed_labels,
        )

    def tours(self, method: Method, privacy: Privacy) -> SealedTours:
        """The method as sealed tours."""
        return sealed_tours(method)


def sealed_tours(method: Method) -> SealedTours:
    """The same training with encrypted tokens.

    >>> from mtcd import STCD
    >>> sealed_tours(STCD(walk="tour")).describe()
    'Sealed tours, M=20, key at the label holder'
    """
    if isinstance(method, SealedTours):
        return method

    method = checked(method)
    return SealedTours(server=method.has_server, walk=method.walk, depth=method.depth or DEPTH)


def checked(method: Method) -> MTCD:
    """A method whose settings sealed tours can have.

    Raises
    ------
    ConfigError
        With the setting to leave out.
    """
    if not isinstance(method, MTCD):
        raise ConfigError(
            f"privacy.mode: {method.kind} cannot train with sealed tokens. Use mtcd (the server "
            "keeps the key) or stcd (the label holder does) with walk: tour."
        )

    # Settings that sealed tours do not have; one by one, so that the error names it.
    refused = {
        "tokens": method.tokens not in (None, 1),
        "clusters": method.clusters is not None,
        "batch": method.batch is not None,
        "start": method.start is not None,
        "schedule": method.schedule is not None,
        "transport": method.transport != DEFAULT,
        "stepsize": method.stepsize != "auto",
        "acceleration": method.acceleration not in (None, "conjugate"),
        "local_solver": method.local_solver == NEWTON,
    }
    if given := [name for name, set_ in refused.items() if set_]:
        raise ConfigError(
            "privacy.mode: sealed has one token on tours from the label holder, which are "
            f"accelerated and have no step size: leave method.{given[0]} out."
        )
    # A walk at random has no end at which the token could be opened.
    if WALKS[method.walk] is WALKS["lazy"]:
        raise ConfigError(
            "privacy.mode: sealed needs a walk that is a tour: set method.walk: tour."
        )
    return method
