"""The section ``model`` of a config for generalised linear models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from mtcd.config.model_schema import ModelSection
from mtcd.config.section import Number
from mtcd.core.errors import ConfigError
from mtcd.data.vertical import VerticalData
from mtcd.models.glm.model import Glm
from mtcd.models.label_noise import with_noise

if TYPE_CHECKING:
    from mtcd.config.build import Setup
    from mtcd.config.schema import Config
    from mtcd.data.dataset import VerticalDataset


class GlmSection(ModelSection):
    """A linear model: see mtcd.Glm."""

    kind: str = "ridge"
    """the loss: `ridge`, `linear`, `logistic`, `multinomial`, `huber`, `squared-hinge`, or [one of
    your own](own-parts.md)"""
    alpha: Number | None = None
    """the l2 of `ridge`; 1 unless given"""
    l1: Number = 0.0
    """weight of the l1 penalty"""
    l2: Number | None = None
    """weight of the l2 penalty; 0 unless given"""
    intercept: bool = False
    """`true` adds one unpenalised column of ones at the first client"""
    delta: Number = 1.0
    """where `huber` turns from a parabola into a line"""
    class_weight: Literal["balanced"] | dict[str, Number] | None = None
    """`balanced` gives all classes the same total weight, `{0: 1, 1: 5}` each its own (1 unless
    given); it multiplies `data.weight`"""

    train_standardises: ClassVar[bool] = True

    def check(self, config: Config) -> None:
        """Make the model once, which checks it, and refuse what only networks have."""
        # Made and thrown away: `Glm` knows which of its settings exclude each other.
        with_noise(Glm(**self.model_dump()), config.privacy.label_privacy)
        self.refuse_compute(config)

    def build(self, config: Config, data: VerticalData | VerticalDataset) -> Glm:
        return Glm(**self.model_dump(), positive=config.data.positive_class)

    def resolved(self) -> dict[str, Any]:
        """The penalty of ridge regression, which is not 0 unless given."""
        if self.kind != "ridge" or self.l2 is not None:
            return {}
        return {"alpha": Glm(**self.model_dump()).l2_weight}


def linear_parts(setup: Setup) -> tuple[VerticalData, Glm]:
    """Data and model of a config, for what is about linear models only.

    Parameters
    ----------
    setup
        What was built from the config.

    Raises
    ------
    ConfigError
        If the config is about another model.
    """
    if not isinstance(setup.data, VerticalData) or not isinstance(setup.model, Glm):
        raise ConfigError("This is for linear models: the config is about another one.")
    return setup.data, setup.model
