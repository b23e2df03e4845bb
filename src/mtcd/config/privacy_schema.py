"""The section ``privacy`` of a config."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Literal

from pydantic import Field

from mtcd.config.section import Count, Fraction, Positive, Section
from mtcd.core.errors import ConfigError
from mtcd.privacy.label_privacy import LabelPrivacy
from mtcd.privacy.settings import DP, Privacy


class DpSection(Section):
    """Differential privacy of one row of a party's features: see mtcd.DP."""

    epsilon: Positive
    """the budget of every party's rows"""
    delta: Fraction = 1e-5
    """the probability with which epsilon may be exceeded: less than 1 / samples"""
    parties: dict[str, Positive] = Field(default_factory=dict)
    """parties with an epsilon of their own, by name: `{bank: 1.0}`. Every gradient depends on every
    party's rows, so a small one makes all gradients noisier"""
    tours: Count = 40
    """the tours that are planned: each party receives so many gradients with noise, then the
    training ends"""
    clip: Positive = 1.0
    """rows are clipped to so many times the square root of their number of columns, the length that
    standardised rows have on average"""
    stepsize: Positive = 1.0
    """steps are so many times gradient / (samples + l2): smaller ones for columns that are strongly
    correlated"""
    insecure_seeded_noise: bool = False
    """`true`: noise follows from the seed, the data and these settings, so that a training can be
    repeated. **It then protects nobody.** In one process only; by default noise is from the
    operating system"""


class PrivacySection(Section):
    """What parties may learn of each other in training: see mtcd.Privacy."""

    mode: Literal["open", "sealed"] = "open"
    """`open`: every party reads the tokens that visit it, and the labels. `sealed`: the token is
    encrypted, and a party learns its own gradients only; `mtcd` (the server keeps the key) or
    `stcd` (the label holder does) with `walk: tour`, for `ridge`, `linear` and `logistic` without
    l1"""
    aggregation: Literal["plain", "masked", "double-masked"] = "plain"
    """`plain`: the server reads what each client uploads at a sync. `masked`: it learns the sum
    only; `svfl`, and `mtcd` with `batch`, `combine: average` or `combine: cluster`, with 3 clients
    or more ([privacy.md](privacy.md#masked-aggregation)). `double-masked`: the same for `svfl` and
    `mtcd` with `batch`, with 4 clients or more, and a federation goes on without parties that are
    down, for one more message from and to each client per sync
    ([privacy.md](privacy.md#double-masks))"""
    dp: DpSection | None = None
    """differential privacy: noise on the gradients of a sealed training, for `mtcd` and `logistic`
    ([differential-privacy.md](differential-privacy.md)). Not for `mode: open`: noise on open tokens
    helps nobody"""

    accept_revealed_columns: bool = False
    """`true`: in a sealed training without a server, a party other than the label holder may have
    one column. **The label holder learns it**, up to a factor. By default such a training is
    refused"""
    accept_revealed_labels: bool = False
    """`true`: in a sealed training, a party may have half as many columns as there are samples, or
    more. **It can learn labels**. By default such a training is refused"""

    labels: dict[str, Any] | None = None
    """`{epsilon: 2}`: label differential privacy. The label holder randomises its labels, once for
    a table, before anything leaves it; for `mode: open`, masked and sealed training alike
    ([privacy.md](privacy.md#labels)). `range: [low, high]`, which must not depend on the data, for
    labels that are values. `{soft: 0.125}`: noise on the labels of a sealed training, **without a
    guarantee** ([privacy.md](privacy.md#soft-labels))"""

    @property
    def label_privacy(self) -> LabelPrivacy | None:
        """The setting ``labels``, read by the feature that brings it."""
        found: LabelPrivacy | None = None if self.labels is None else self.privacy().labels
        return found

    def settled(self) -> Privacy | None:
        """The settings; None where they are refused, which is said when the method is made."""
        with suppress(ConfigError):
            return self.privacy()
        return None

    def privacy(self) -> Privacy:
        """The settings, as methods and parties take them."""
        dp = None
        if self.dp is not None:
            dp = DP(**self.dp.model_dump())

        return Privacy(
            self.mode,
            self.aggregation,
            dp,
            self.accept_revealed_columns,
            self.accept_revealed_labels,
            self.labels,
        )
