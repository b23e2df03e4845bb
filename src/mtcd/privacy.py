"""What parties may learn of each other in training: the section ``privacy`` of a config."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from mtcd.errors import ConfigError, did_you_mean

Mode = Literal["open", "sealed"]
OPEN, SEALED = "open", "sealed"
Aggregation = Literal["plain", "masked"]
PLAIN, MASKED = "plain", "masked"


@dataclass(frozen=True)
class Privacy:
    """The privacy of a training, named by what it promises: see docs/privacy.md.

    ``mode``: 'open' (tokens and labels are readable by every party that they visit) or 'sealed' (the token is
    encrypted; a party learns its own gradients only). ``aggregation``: 'plain' (the server reads every upload), or
    'masked' (it learns the sum of all uploads only).

    >>> Privacy().mode
    'open'
    """

    mode: Mode = "open"
    aggregation: Aggregation = "plain"

    def __post_init__(self) -> None:
        for name, given, choices in (("mode", self.mode, Mode), ("aggregation", self.aggregation, Aggregation)):
            known = get_args(choices)
            if given not in known:
                raise ConfigError(f"privacy.{name}: unknown {name} {given!r}: {did_you_mean(str(given), known)}")
        if self.sealed and self.aggregation == MASKED:
            raise ConfigError(
                "privacy: sealed tokens have no plain sums at the server that could be masked: leave aggregation out."
            )

    @property
    def sealed(self) -> bool:
        """Whether tokens are encrypted."""
        return self.mode == SEALED
