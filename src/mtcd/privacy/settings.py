"""What parties may learn of each other in training: the section ``privacy`` of a config. Its setting
``labels``, by which labels change before anything leaves their holder, is brought by a feature."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Protocol, cast, get_args

import numpy as np
from numpy.typing import NDArray

from mtcd.core import features
from mtcd.core.checks import check_number, check_whole
from mtcd.core.errors import ConfigError, check_known
from mtcd.models.label_noise import LabelNoise

GROUP = "mtcd.label_privacy"
Labels = NDArray[np.generic]


@dataclass(frozen=True)
class LabelSource:
    """Where labels are from.

    Parameters
    ----------
    table : Path, optional
        The file that holds them; None if they are of no file.
    instead : Path, optional
        A folder for what is kept beside the table, if there is none, or if its folder cannot be
        written.
    holder : str, default ""
        The party of a federation that holds them; empty in one process.
    """

    table: Path | None = None
    instead: Path | None = None
    holder: str = ""


class LabelPrivacy(LabelNoise, Protocol):
    """What changes the labels of a table, once, and corrects the loss for it."""

    def within(self, privacy: Any) -> LabelPrivacy:
        """The same for a training with the other settings of :class:`mtcd.Privacy`; those that do
        not go with it are refused."""

    def released(self, labels: Labels, source: LabelSource) -> Labels:
        """The labels that everybody but their holder sees, the same whenever they are asked for."""

    def notes(self, source: LabelSource) -> tuple[str, ...]:
        """Notes for the user."""


def label_privacy(given: object) -> LabelPrivacy:
    """The settings as an object of the feature.

    Parameters
    ----------
    given
        A mapping, as in a config, or such an object.

    Raises
    ------
    ConfigError
        If the feature is not installed, or does not know a setting.
    """
    home = features.parts(GROUP).get("labels")
    if home is None:
        raise ConfigError("privacy.labels: this installation of mtcd has none: leave it out.")

    make = cast(Callable[[object], LabelPrivacy], features.load(home))
    if isinstance(given, Mapping):
        given = dict(given)
    return make(given)


Mode = Literal["open", "sealed"]
OPEN, SEALED = "open", "sealed"
Aggregation = Literal["plain", "masked", "double-masked"]
PLAIN, MASKED, DOUBLE_MASKED = "plain", "masked", "double-masked"
MOST_EPSILON = 100.0
MOST_CLIP = 1e3


@dataclass(frozen=True)
class DP:
    """Differential privacy of one row of a party's features, towards all parties.

    See docs/differential-privacy.md. The number of gradients that each party receives is fixed
    before training. A step is ``stepsize`` / (N + l2) times the gradient.

    Parameters
    ----------
    epsilon : float
        The budget of every row.
    delta : float, default 1e-05
        The probability with which the budget may be exceeded.
    parties : mapping from str to float
        An epsilon of their own for some parties.
    tours : int, default 40
        The number of gradients that each party receives.
    clip : float, default 1.0
        Rows are clipped to this many times the square root of their number of columns, the length
        that standardised rows have on average.
    stepsize : float, default 1.0
        The step size.
    insecure_seeded_noise : bool, default False
        Whether the noise is computed from the seed, the data and these settings instead of being
        drawn from the operating system, for studies in one process that are to be repeated: **such
        a training protects nobody**.

    Examples
    --------
    >>> DP(epsilon=3, parties={"bank": 1}).of("bank")
    1.0
    """

    epsilon: float
    delta: float = 1e-5
    parties: Mapping[str, float] = field(default_factory=dict, hash=False)
    tours: int = 40
    clip: float = 1.0
    stepsize: float = 1.0
    insecure_seeded_noise: bool = False

    def __post_init__(self) -> None:
        for name in ("epsilon", "clip", "stepsize"):
            check_number(f"privacy.dp.{name}", getattr(self, name), above=0.0)
        check_number("privacy.dp.delta", self.delta, above=0.0)
        if self.delta >= 1:
            raise ConfigError(
                f"privacy.dp.delta must be below 1, but is {self.delta}: use less than 1 / samples."
            )
        # Beyond these clipping does nothing, or takes nearly all of a row away: most likely a
        # mistake of units.
        if not 1 / MOST_CLIP <= self.clip <= MOST_CLIP:
            raise ConfigError(
                f"privacy.dp.clip is {self.clip:g} times the length of standardised rows, where 1 "
                f"suits most tables: choose one from {1 / MOST_CLIP:g} to {MOST_CLIP:g}."
            )
        check_whole("privacy.dp.tours", self.tours)
        if not isinstance(self.insecure_seeded_noise, bool):
            raise ConfigError(
                "privacy.dp.insecure_seeded_noise must be true or false, but is "
                f"{self.insecure_seeded_noise!r}."
            )
        if not isinstance(self.parties, Mapping):
            raise ConfigError(
                "privacy.dp.parties must map names of parties to their epsilon, but is "
                f"{self.parties!r}."
            )
        for party, epsilon in self.parties.items():
            check_number(f"privacy.dp.parties: the epsilon of {party!r}", epsilon, above=0.0)
        # The formula of the accounting holds for any epsilon, but e^100 bounds no odds.
        if (largest := max(self.epsilon, *self.parties.values(), 0.0)) > MOST_EPSILON:
            raise ConfigError(
                f"privacy.dp: an epsilon of {largest:g} promises nothing: use at most "
                f"{MOST_EPSILON:g}, or no dp."
            )

    def of(self, party: str) -> float:
        """The epsilon of a party's rows."""
        return float(self.parties.get(party, self.epsilon))

    def check_parties(self, names: tuple[str, ...]) -> None:
        """Reject names of parties that do not exist."""
        for name in self.parties:
            check_known(name, names, f"privacy.dp.parties: no party is called {name!r}:")


@dataclass(frozen=True)
class Privacy:
    """The privacy of a training, named by what it promises: see docs/privacy.md.

    Parameters
    ----------
    mode : 'open' or 'sealed', default 'open'
        'open': tokens and labels are readable by every party that they visit. 'sealed': the token
        is encrypted; a party learns its own gradients only.
    aggregation : 'plain', 'masked' or 'double-masked', default 'plain'
        'plain': the server reads every upload. 'masked': it learns only the sum of all uploads.
        'double-masked': the same, and a federation goes on without parties that are down.
    dp : DP, optional
        Noise on the gradients of a sealed training, for differential privacy.
    accept_revealed_columns : bool, default False
        Whether to allow a sealed training without a server in which a party has one column: the
        label holder learns that column.
    accept_revealed_labels : bool, default False
        Whether to allow a sealed training in which a party has half as many columns as there are
        samples, or more: it learns labels.
    labels : LabelPrivacy or mapping, optional
        How labels change before anything leaves their holder: ``{"epsilon": 2}`` for randomised
        response; ``{"soft": 0.125}`` for noise in a sealed training, without a guarantee.

    Examples
    --------
    >>> Privacy().mode
    'open'
    """

    mode: Mode = "open"
    aggregation: Aggregation = "plain"
    dp: DP | None = None
    accept_revealed_columns: bool = False
    accept_revealed_labels: bool = False
    labels: Any = None

    def __post_init__(self) -> None:
        for name in ("accept_revealed_columns", "accept_revealed_labels"):
            given_flag = getattr(self, name)
            if not isinstance(given_flag, bool):
                raise ConfigError(f"privacy.{name} must be true or false, but is {given_flag!r}.")
            if given_flag and not self.sealed:
                raise ConfigError(f"privacy.{name} is for privacy.mode: sealed: leave it out.")
        # From the types, so that a choice is listed once.
        for name, given, choices in (
            ("mode", self.mode, Mode),
            ("aggregation", self.aggregation, Aggregation),
        ):
            known = get_args(choices)
            check_known(given, known, f"privacy.{name}: unknown {name} {given!r}:")
        if self.sealed and self.aggregation != PLAIN:
            raise ConfigError(
                "privacy: sealed tokens have no plain sums at the server that could be masked: "
                "leave aggregation out."
            )
        if self.dp is not None and not isinstance(self.dp, DP):
            raise ConfigError(f"privacy.dp must be mtcd.DP(epsilon=...), but is {self.dp!r}.")
        if self.dp is not None and not self.sealed:
            raise ConfigError(
                "privacy.dp: an open token carries a number for every sample, and with enough "
                "noise to hide each of them (epsilon of 3 or less) the model is no better than if "
                "each party trained alone and the scores were summed. Set privacy.mode: sealed, "
                "where noise is on the gradients."
            )
        if self.labels is not None:
            # After the other settings were checked: the feature refuses combinations with them.
            object.__setattr__(self, "labels", label_privacy(self.labels).within(self))

    @property
    def without_labels(self) -> Privacy:
        """The same for labels that have been released already."""
        return replace(self, labels=None)

    @property
    def sealed(self) -> bool:
        """Whether tokens are encrypted."""
        return self.mode == SEALED

    @property
    def modes(self) -> tuple[str, ...]:
        """The modes of privacy that a training needs: see ``mtcd.methods.privacy_modes``."""
        if self.dp is not None:
            return ("dp",)
        if self.sealed:
            return (SEALED,)
        if self.aggregation == PLAIN:
            return ()
        return (self.aggregation,)
