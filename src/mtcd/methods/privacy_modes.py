"""Modes of privacy: each turns a method into one that tells less."""

from __future__ import annotations

from typing import Protocol, cast

from mtcd.core import features
from mtcd.core.errors import ConfigError
from mtcd.methods.method import Method
from mtcd.privacy.settings import Privacy

GROUP = "mtcd.privacy_modes"


class PrivacyMode(Protocol):
    """What a feature does for one of ``Privacy.modes``. It has no state."""

    def method(self, method: Method, privacy: Privacy, split: bool) -> Method:
        """The same training in this mode.

        Parameters
        ----------
        method
            The method without it.
        privacy
            All that the user asks for.
        split
            Whether the model is a split network.

        Raises
        ------
        ConfigError
            If the method, or the model, cannot be trained in this mode.
        """


def privacy_mode(name: str) -> PrivacyMode:
    """The mode with this name."""
    homes = features.parts(GROUP)
    if name not in homes:
        raise ConfigError(f"privacy: {name} is not installed here.")

    make = cast("type[PrivacyMode]", features.load(homes[name]))
    return make()


def with_privacy(method: Method, privacy: Privacy, split: bool) -> Method:
    """The method that trains with this privacy; ``split``: a split network."""
    for name in privacy.modes:
        method = privacy_mode(name).method(method, privacy, split)

    return method
