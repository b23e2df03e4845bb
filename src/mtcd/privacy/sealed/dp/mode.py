"""The mode of privacy with encrypted tokens and noise on gradients."""

from __future__ import annotations

from mtcd.core.errors import ConfigError
from mtcd.methods.method import Method
from mtcd.privacy.sealed.dp.settings import PrivateTours
from mtcd.privacy.sealed.mode import Sealed, checked
from mtcd.privacy.sealed.settings import SealedTours
from mtcd.privacy.settings import DP, Privacy


class Private(Sealed):
    """The mode of privacy with ``privacy.dp``."""

    asked = "privacy.dp, which needs privacy.mode: sealed,"

    def tours(self, method: Method, privacy: Privacy) -> PrivateTours:
        """The method as private tours."""
        assert privacy.dp is not None
        return private_tours(method, privacy.dp)


def private_tours(method: Method, dp: DP) -> PrivateTours:
    """The same training with encrypted tokens, and noise on the gradients.

    >>> from mtcd import MTCD
    >>> private_tours(MTCD(walk="tour"), DP(epsilon=3)).describe()
    'Private tours, T=40, key at the server'
    """
    # These were made from a method, whose settings cannot be checked any more.
    if isinstance(method, SealedTours):
        raise ConfigError("privacy.dp: give mtcd.MTCD(walk='tour') as the method.")

    method = checked(method)
    if method.depth is not None:
        raise ConfigError("method.depth: with privacy.dp tours are not mixed: leave it out.")
    return PrivateTours(server=method.has_server, walk=method.walk, dp=dp)
