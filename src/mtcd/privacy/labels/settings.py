"""The setting ``labels`` of a training."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mtcd.core.arrays import Array
from mtcd.core.checks import check_number
from mtcd.core.errors import ConfigError, DataError
from mtcd.models.losses import Loss
from mtcd.models.losses.logistic import Logistic
from mtcd.models.losses.multinomial import Multinomial
from mtcd.models.losses.squared import Squared
from mtcd.privacy.labels.corrected import CorrectedLogistic, CorrectedMultinomial
from mtcd.privacy.labels.draws import TableDraws, draws_of, entered
from mtcd.privacy.labels.mechanisms import noisy_values, responses, words
from mtcd.privacy.settings import Labels, LabelSource

MOST_EPSILON = 100.0
CORRECTED: dict[type[Loss], type[CorrectedLogistic] | type[CorrectedMultinomial]] = {
    Logistic: CorrectedLogistic,
    Multinomial: CorrectedMultinomial,
}
OTHERS = (
    "its loss is not linear in the label, so that no correction makes it that of the true labels "
    "in expectation: use logistic, multinomial or ridge (of trees: loss logistic, multinomial or "
    "squared), or leave privacy.labels out."
)


@dataclass(frozen=True)
class LabelDP:
    """Differential privacy of each label, towards everybody but their holder.

    Labels are randomised at their holder, once for a table, before anything leaves it: see
    docs/privacy.md.

    Parameters
    ----------
    epsilon : float
        The budget of each label.
    range : pair of float, optional
        The lowest and the highest label, for labels that are values. It must not be taken from the
        data. Labels beyond it count as its nearest end.
    classes : sequence of str or float, optional
        The classes, which must not be taken from the data either; unless given, those that the
        labels have, which everybody then learns. Labels that are none of them count as the first.
    insecure_seeded_draws : bool, default False
        Whether the draws follow from the labels and these settings instead of being made by the
        operating system, for studies that are to be repeated: **such a training protects nobody**.

    Examples
    --------
    >>> LabelDP(epsilon=2).range is None
    True
    """

    epsilon: float
    range: tuple[float, float] | None = None
    classes: tuple[str | float, ...] | None = None
    insecure_seeded_draws: bool = False
    needs_floor: bool = field(default=False, init=False, repr=False)
    """Whether the loss must not fall below 0, as sealed tours have room for; set by
    ``Privacy``."""

    def __post_init__(self) -> None:
        check_number("privacy.labels.epsilon", self.epsilon, above=0.0)
        if self.epsilon > MOST_EPSILON:
            raise ConfigError(
                f"privacy.labels: an epsilon of {self.epsilon:g} promises nothing: use at most "
                f"{MOST_EPSILON:g}, or leave labels out."
            )
        check_seeded(self.insecure_seeded_draws)
        if self.range is not None:
            object.__setattr__(self, "range", checked_range(self.range))
        if self.classes is not None:
            object.__setattr__(self, "classes", checked_classes(self.classes))

    def within(self, privacy: Any) -> LabelDP:
        """The same for a training with the other settings of :class:`mtcd.Privacy`; those that do
        not go with it are refused."""
        if privacy.dp is not None:
            raise ConfigError(
                "privacy.labels: the noise of privacy.dp is for derivatives of at most 1, and "
                "those of randomised labels are larger: leave one of both out."
            )
        found = copy(self)
        object.__setattr__(found, "needs_floor", privacy.sealed)
        return found

    def corrected(self, loss: Loss, model: Any) -> Loss:
        """The loss for randomised labels: see ``mtcd.models.label_noise.LabelNoise``."""
        check_no_class_weight(model)
        if type(loss) is Squared:
            self._check_range()
            return loss

        kind = CORRECTED.get(type(loss))
        if kind is None:
            raise ConfigError(f"privacy.labels: {type(loss).__name__}: {OTHERS}")

        self._check_no_range()
        check_bounded(model)
        free = bool(getattr(model, "intercept", False))
        more: dict[str, Any] = {}
        if isinstance(loss, Logistic):
            more = {"positive": loss.positive, "has_floor": self.needs_floor}
        return kind(epsilon=self.epsilon, needs_shares=free, **more)

    def corrected_network_loss(self, loss: object) -> Any:
        """The loss of a network for them, if it is linear in the label; others are refused."""
        if loss == "squared" or (loss is None and self.range is not None):
            self._check_range()
            return "squared"
        if loss not in (None, "cross-entropy"):
            raise ConfigError(
                f"privacy.labels: model.loss {loss!r} is not known to be linear in the label: use "
                "cross-entropy, or squared with privacy.labels.range."
            )

        self._check_no_range()
        from mtcd.privacy.labels.networks import CorrectedCrossEntropy

        return CorrectedCrossEntropy(self.epsilon)

    def as_known(self, labels: Labels) -> Labels:
        """See ``mtcd.models.label_noise.LabelNoise``: what is released are labels."""
        return labels

    def released(self, labels: Labels, source: LabelSource) -> Labels:
        """The randomised labels, the same whenever they are asked for; the account has them."""
        classes = self._classes_of(labels)
        seeded = repr(self) if self.insecure_seeded_draws else None
        secret, purpose = entered(labels, source, self._mechanism(classes), self.epsilon, seeded)
        if classes is None:
            return self._noisy(labels, secret, purpose)
        return self._randomised(labels, classes, secret, purpose)

    def _classes_of(self, labels: Labels) -> Labels | None:
        """The classes in sorted order; None of values."""
        if self.range is not None:
            return None

        classes = np.unique(labels if self.classes is None else self.classes)
        if len(classes) < 2:
            raise DataError(
                "All labels are the same: with privacy.labels, name the classes "
                "(privacy.labels.classes), so that this does not depend on the data."
            )
        return classes

    def _mechanism(self, classes: Labels | None) -> str:
        """What happens to a label, in words."""
        if classes is not None:
            return f"randomised response of {classes.tolist()}"
        assert self.range is not None
        return f"Laplace noise on {self.range[0]!r} to {self.range[1]!r}"

    def _randomised(self, labels: Labels, classes: Labels, secret: bytes, purpose: str) -> Labels:
        last = len(classes) - 1
        found = np.minimum(np.searchsorted(classes, labels), last)
        codes = np.where(classes[found] == labels, found, 0)
        drawn = words(secret, purpose, 2 * len(labels))
        released = classes[responses(codes, len(classes), self.epsilon, drawn)]
        if len(np.unique(released)) < len(classes):
            raise DataError(
                f"A class is not among the randomised labels of {len(labels)} samples: train on "
                "more samples, or with a larger privacy.labels.epsilon."
            )
        return np.asarray(released)

    def _noisy(self, labels: Labels, secret: bytes, purpose: str) -> Array:
        assert self.range is not None
        check_numbers(labels)
        values = labels.astype(float)
        return noisy_values(values, *self.range, self.epsilon, secret, purpose)

    def notes(self, source: LabelSource) -> tuple[str, ...]:
        """What was promised, what was spent, and where it is counted."""
        what = (
            f"Labels are randomised at their holder (epsilon {self.epsilon:g} for each), once for "
            "the table: training, metrics and stop rules see randomised labels only."
        )
        return (what, note_on_draws(source, self.insecure_seeded_draws))

    def _check_range(self) -> None:
        if self.range is None:
            raise ConfigError(
                "privacy.labels: labels that are values need a range that does not depend on the "
                "data: privacy: {labels: {epsilon: 2, range: [0, 100]}}."
            )

    def _check_no_range(self) -> None:
        if self.range is not None:
            raise ConfigError(
                "privacy.labels.range is for labels that are values: leave it out for classes."
            )


INSECURE = (
    "insecure_seeded_draws: the draws follow from the labels, so that this training can be "
    "repeated, and protects nobody. Leave it out for labels that others must not learn."
)
IN_MEMORY = (
    "These labels are of no table file: their draws are kept as long as this process runs, and "
    "another one draws anew, which spends the budget again."
)


def note_on_draws(source: LabelSource, seeded: bool) -> str:
    """A note on where draws are kept, and what the table has spent."""
    if seeded:
        return INSECURE

    draws = draws_of(source)
    return IN_MEMORY if draws is None else spent_by(draws)


def spent_by(draws: TableDraws) -> str:
    """A note on what the labels of a table have spent."""
    count = len(draws.releases())
    releases = f"{count} release{'' if count == 1 else 's'}"
    if draws.epsilon is None:
        soft = sum(one.epsilon is None for one in draws.releases())
        return (
            f"The labels of {draws.table.name} have no guarantee ({releases}, {soft} of them "
            f"soft): {draws.path}"
        )
    return (
        f"The labels of {draws.table.name} have spent epsilon {draws.epsilon:.3g} in {releases}: "
        f"{draws.path}"
    )


def checked_range(given: Any) -> tuple[float, float]:
    """The lowest and the highest label, as two finite numbers in order; anything else is
    refused."""
    pair = isinstance(given, Sequence) and not isinstance(given, str) and len(given) == 2
    if not pair or not all(_is_finite(one) for one in given) or not given[0] < given[1]:
        raise ConfigError(
            f"privacy.labels.range must be the lowest and the highest label, but is {given!r}."
        )
    return float(given[0]), float(given[1])


def checked_classes(given: Any) -> tuple[str | float, ...]:
    """The classes in the order in which they were given: two or more, all of them texts or all
    numbers."""
    listed = isinstance(given, Sequence) and not isinstance(given, str)
    if not listed or len(given) < 2 or len(set(given)) < len(given):
        raise ConfigError(
            f"privacy.labels.classes must be a list of two different classes or more, but is "
            f"{given!r}."
        )
    if len({isinstance(one, str) for one in given}) > 1:
        raise ConfigError("privacy.labels.classes must all be texts, or all be numbers.")
    return tuple(given)


def _is_finite(number: Any) -> bool:
    real = isinstance(number, int | float | np.number) and not isinstance(number, bool)
    return real and math.isfinite(number)


def check_no_class_weight(model: Any) -> None:
    """Refuse weights of classes, which would tell true labels."""
    if model.class_weight is not None:
        raise ConfigError(
            "model.class_weight: with privacy.labels the class of a sample is not known: leave it "
            "out."
        )


def check_seeded(given: Any) -> None:
    """Refuse a setting ``insecure_seeded_draws`` that is neither true nor false."""
    if not isinstance(given, bool):
        raise ConfigError(
            f"privacy.labels.insecure_seeded_draws must be true or false, but is {given!r}."
        )


def check_numbers(labels: Labels) -> None:
    """Refuse texts where values are declared."""
    if labels.dtype.kind not in "biuf":
        raise DataError(
            "privacy.labels.range is for labels that are numbers, but these are texts: leave it "
            "out."
        )


def check_bounded(model: Any) -> None:
    """Refuse linear parts without l2: the corrected loss of classes has no lower bound."""
    weights = {"model": getattr(model, "l2_weight", None)}
    families = {**getattr(model, "parties", {}), "default": getattr(model, "default", None)}
    for name, given in families.items():
        if isinstance(given, dict):
            weights[f"model.parties.{name}"] = given.get("l2")

    for place, weight in weights.items():
        if weight is not None and not weight > 0:
            raise ConfigError(
                f"privacy.labels: {place}.l2 must be above 0, as the loss of randomised labels has "
                "no lowest value without it: set l2: 1."
            )
