"""The section ``model`` of a config for additive models: boosted trees, and a family of its own at
every party."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from mtcd.config.model_schema import ModelSection
from mtcd.config.section import Number, Whole
from mtcd.config.stop_schema import StopSection
from mtcd.core.errors import ConfigError
from mtcd.models.label_noise import with_noise
from mtcd.models.trees.model import Additive, Mixed, Trees

if TYPE_CHECKING:
    from mtcd.config.schema import Config
    from mtcd.data.dataset import VerticalDataset
    from mtcd.data.vertical import VerticalData
    from mtcd.methods.method import Method

FEW_HOPS = 100  # unless a limit is given: each hop grows trees


class AdditiveSection(ModelSection):
    """The keys that all additive models have."""

    loss: str = "squared"
    """`squared`, `logistic`, `multinomial`, `huber`, `quantile`, `poisson`, `squared-hinge`, or
    [one of your own](own-parts.md)"""
    delta: Number = 1.0
    """where `huber` turns from a parabola into a line"""
    quantile: Number = 0.5
    """which quantile the loss `quantile` predicts, between 0 and 1"""
    class_weight: Literal["balanced"] | dict[str, Number] | None = None
    """`balanced` gives all classes the same total weight, `{0: 1, 1: 5}` each its own (1 unless
    given); it multiplies `data.weight`"""

    def model(self, positive: str | float | None = None) -> Additive:
        """The model with these settings."""
        raise NotImplementedError

    @property
    def own_parts(self) -> dict[str, str]:
        return {"kind": self.kind, "loss": self.loss}

    def check(self, config: Config) -> None:
        """Make the model once, which checks it, and refuse what only other kinds have."""
        # Made and thrown away: the model checks which settings go together.
        with_noise(self.model(), config.privacy.label_privacy)
        self.refuse_compute(config)
        if config.data.standardise:
            raise ConfigError(
                "data.standardise: trees need no scaling, other families scale by themselves: "
                "leave it out."
            )

    def stop(self, config: Config, method: Method) -> StopSection:
        """Few hops, where nothing is said."""
        if "stop" in config.model_fields_set:
            return config.stop
        return StopSection(iterations=FEW_HOPS)

    def recipes(self, clients: Sequence[str]) -> dict[str, str]:
        """As the family of each client takes its columns."""
        return self.model().recipes(clients)

    def build(self, config: Config, data: VerticalData | VerticalDataset) -> Additive:
        return self.model(config.data.positive_class)


class TreesSection(AdditiveSection):
    """Gradient-boosted trees; the parameters are explained at :class:`mtcd.Trees`."""

    kind: Literal["trees"]
    """`trees`: a visit grows `method.local_updates` trees on the party's own columns
    ([trees.md](trees.md))"""
    learning_rate: Number = Trees.learning_rate
    """by which each tree is multiplied"""
    depth: Whole = Trees.depth
    """the most levels of a tree; 0 for no limit"""
    leaves: Whole = Trees.leaves
    """the most leaves of a tree"""
    l2: Number = Trees.l2
    """added to the second derivatives of a leaf: larger values shrink its value"""
    min_samples: Whole = Trees.min_samples
    """the fewest samples of a leaf"""
    columns: Number = Trees.columns
    """the share of its columns that a party grows a tree on, drawn anew for each"""
    rows: Number = Trees.rows
    """the share of samples that a tree is grown on, drawn anew for each"""
    adaptive: bool = Trees.adaptive
    """whether parties compare their gains: a visit grows no tree where others gain far more, and up
    to 8 times `method.local_updates` while it gains most"""
    bins: Whole = Trees.bins
    """the most thresholds of a column"""
    threads: Whole = Trees.threads
    """threads of a party; the trees do not depend on it"""

    def model(self, positive: str | float | None = None) -> Trees:
        """The model with these settings."""
        return Trees(**self.model_dump(exclude={"kind"}), positive=positive)


class MixedSection(AdditiveSection):
    """A model of another family at every party; see :class:`mtcd.Mixed`."""

    kind: Literal["mixed"] = "mixed"
    """`mixed`, which `parties` imply"""
    parties: dict[str, str | dict[str, Any]]
    """the family of each party: `trees`, `linear` or `net`, or with settings, `{kind: trees, depth:
    3}`. `linear`: `l1` (0), `l2` (1). `net`: `hidden` ([16]), `l2` (1e-3)"""
    default: str | dict[str, Any] | None = Field(default=None)
    """the family of parties that `parties` does not name"""

    def model(self, positive: str | float | None = None) -> Mixed:
        """The model with these settings."""
        return Mixed(**self.model_dump(exclude={"kind"}), positive=positive)
