"""Soft labels: normal noise on the labels that the loss of a sealed training sees.

There is no guarantee. A label beside its noise is read by rounding; sums over many labels, which
are all that leaves the holder in a sealed training, are no equations of integers any more.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from mtcd.core.checks import check_number
from mtcd.core.errors import ConfigError, DataError, check_known
from mtcd.models.losses import Loss
from mtcd.models.losses.logistic import Logistic
from mtcd.models.losses.squared import Squared
from mtcd.privacy.labels.corrected import SoftLogistic
from mtcd.privacy.labels.draws import entered
from mtcd.privacy.labels.mechanisms import soft_values
from mtcd.privacy.labels.settings import (
    LabelDP,
    check_bounded,
    check_no_class_weight,
    check_numbers,
    check_seeded,
    checked_classes,
    checked_range,
    note_on_draws,
)
from mtcd.privacy.settings import Labels, LabelSource

MOST_SOFT = 1.0


@dataclass(frozen=True)
class SoftLabels:
    """Normal noise on labels in a sealed training, **without a guarantee**.

    It only makes exact reading of labels from sums over them harder: see docs/privacy.md. Noise is
    drawn once for a table, as with :class:`mtcd.LabelDP`.

    Parameters
    ----------
    soft : float
        The standard deviation of the noise: of two classes, on 0 and 1; of values, in widths of
        the range.
    range : pair of float, optional
        The lowest and the highest label, for labels that are values. Labels beyond it count as its
        nearest end.
    classes : pair of str or float, optional
        The class that counts as 0 and the one that counts as 1; unless given, labels are 0 and 1.
    insecure_seeded_draws : bool, default False
        Whether the draws follow from the labels and these settings instead of being made by the
        operating system, for studies that are to be repeated: **such a training protects nobody**.

    Examples
    --------
    >>> SoftLabels(soft=0.125, classes=("no", "yes")).classes
    ('no', 'yes')
    """

    soft: float
    range: tuple[float, float] | None = None
    classes: tuple[str | float, ...] | None = None
    insecure_seeded_draws: bool = False

    def __post_init__(self) -> None:
        check_number("privacy.labels.soft", self.soft, above=0.0)
        if self.soft > MOST_SOFT:
            raise ConfigError(
                f"privacy.labels.soft: noise of {self.soft:g} times the distance of two classes "
                f"leaves little to learn: use at most {MOST_SOFT:g}, such as 0.125."
            )
        check_seeded(self.insecure_seeded_draws)
        if self.range is not None:
            object.__setattr__(self, "range", checked_range(self.range))
        if self.classes is not None:
            object.__setattr__(self, "classes", checked_classes(self.classes))
        if self.classes is not None and len(self.classes) != 2:
            raise ConfigError(
                "privacy.labels.classes: soft labels are of two classes, the one that counts as 0 "
                "and the one that counts as 1."
            )

    def within(self, privacy: Any) -> SoftLabels:
        """The same for a training with the other settings of :class:`mtcd.Privacy`; those that do
        not go with it are refused."""
        if not privacy.sealed:
            raise ConfigError(
                "privacy.labels.soft: in an open or masked training others see the labels one by "
                "one, and rounding takes the noise off: use privacy.labels.epsilon, or "
                "privacy.mode: sealed, where only sums over labels leave their holder."
            )
        if privacy.dp is not None:
            raise ConfigError(
                "privacy.labels: the noise of privacy.dp is for derivatives of at most 1, and "
                "those of soft labels are larger: leave one of both out."
            )
        return self

    def corrected(self, loss: Loss, model: Any) -> Loss:
        """The loss for numbers in place of classes: see ``mtcd.models.label_noise.LabelNoise``."""
        check_no_class_weight(model)
        if type(loss) is Squared:
            if self.range is None:
                raise ConfigError(
                    "privacy.labels: labels that are values need a range, of which the noise is a "
                    "share: privacy: {labels: {soft: 0.125, range: [0, 100]}}."
                )
            return loss
        if type(loss) is not Logistic:
            raise ConfigError(
                f"privacy.labels.soft: {type(loss).__name__}: soft labels are for logistic, ridge "
                "and linear, the models of sealed training: use one of them, or leave "
                "privacy.labels out."
            )
        if self.range is not None:
            raise ConfigError(
                "privacy.labels.range is for labels that are values: leave it out for classes."
            )

        check_bounded(model)
        if loss.positive is not None and not _is_same(loss.positive, self._classes[1]):
            raise ConfigError(
                f"privacy.labels.classes must name the positive class, {loss.positive!r}, second: "
                "classes: [no, yes]."
            )
        return SoftLogistic(
            soft=self.soft,
            names=self._classes,
            needs_shares=bool(getattr(model, "intercept", False)),
            has_floor=True,
        )

    def corrected_network_loss(self, loss: object) -> Any:
        """Refused, whatever the loss: soft labels are for sealed trainings."""
        raise ConfigError(
            "privacy.labels.soft: split networks train in the open, where rounding takes the noise "
            "off: use privacy.labels.epsilon."
        )

    def released(self, labels: Labels, source: LabelSource) -> Labels:
        """Numbers in place of the labels, the same whenever they are asked for; the account has
        them."""
        if self.range is None:
            low, high = 0.0, 1.0
            values = self._codes(labels)
            where = f"0 and 1 for {list(self._classes)!r}"
        else:
            check_numbers(labels)
            low, high = self.range
            values = labels.astype(float)
            where = f"{low!r} to {high!r}"

        mechanism = f"normal noise of {self.soft!r} on {where}"
        seeded = repr(self) if self.insecure_seeded_draws else None
        secret, purpose = entered(labels, source, mechanism, None, seeded)
        return soft_values(values, low, high, self.soft, secret, purpose)

    def as_known(self, labels: Labels) -> Labels:
        """See ``mtcd.models.label_noise.LabelNoise``: the nearest classes, which are the true ones
        but for a few."""
        if self.range is not None:
            return labels
        return np.where(labels.astype(float) > 0.5, self._classes[1], self._classes[0])

    def notes(self, source: LabelSource) -> tuple[str, ...]:
        """That nothing is promised, and where it is counted."""
        what = (
            f"Soft labels (noise of {self.soft:g}, drawn once for the table) give no guarantee: "
            "they only make it harder to read labels exactly from sums. For a guarantee, use "
            "privacy.labels.epsilon."
        )
        return (what, note_on_draws(source, self.insecure_seeded_draws))

    @property
    def _classes(self) -> tuple[str | float, ...]:
        return (0.0, 1.0) if self.classes is None else self.classes

    def _codes(self, labels: Labels) -> Any:
        """0 and 1 for the classes."""
        wanted = [np.asarray(one) for one in self._classes]
        is_class = [labels == one for one in wanted]
        if not np.logical_or(*is_class).all():
            raise DataError(
                f"Labels are not all {self._classes[0]!r} or {self._classes[1]!r}: with "
                "privacy.labels.soft, name the two classes, the positive one second: "
                "privacy: {labels: {soft: 0.125, classes: [no, yes]}}."
            )
        return np.asarray(is_class[1], dtype=float)


def _is_same(one: str | float, other: str | float) -> bool:
    """Whether two classes are one; a config may write a number as a text."""
    try:
        return float(one) == float(other)
    except ValueError:
        return str(one) == str(other)


def read_label_privacy(given: Any) -> LabelDP | SoftLabels:
    """The setting from a mapping, as configs have it; one that was read as it is."""
    if isinstance(given, LabelDP | SoftLabels):
        return given
    if not isinstance(given, dict):
        raise ConfigError(f"privacy.labels must be {{epsilon: 2}} or the like, but is {given!r}.")
    if "epsilon" in given and "soft" in given:
        raise ConfigError(
            "privacy.labels: epsilon has a guarantee and soft has none: give one of them."
        )

    kind = SoftLabels if "soft" in given else LabelDP
    known = [one.name for one in fields(kind) if one.init]
    for name in given:
        check_known(name, known, f"privacy.labels: no setting is called {name!r}:")
    if kind is LabelDP and "epsilon" not in given:
        raise ConfigError("privacy.labels: give the epsilon of each label: {epsilon: 2}.")
    return kind(**given)
