"""What parties may learn of each other in training: the section ``privacy`` of a config."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from mtcd.errors import ConfigError, did_you_mean

Mode = Literal["open", "sealed"]
OPEN, SEALED = "open", "sealed"


@dataclass(frozen=True)
class Privacy:
    """The privacy of a training, named by what it promises: see docs/privacy.md.

    ``mode``: 'open' (tokens and labels are readable by every party that they visit) or 'sealed' (the token is
    encrypted; a party learns its own gradients only).

    >>> Privacy().mode
    'open'
    """

    mode: Mode = "open"

    def __post_init__(self) -> None:
        known = get_args(Mode)
        if self.mode not in known:
            raise ConfigError(f"privacy.mode: unknown mode {self.mode!r}: {did_you_mean(str(self.mode), known)}")

    @property
    def sealed(self) -> bool:
        """Whether tokens are encrypted."""
        return self.mode == SEALED
