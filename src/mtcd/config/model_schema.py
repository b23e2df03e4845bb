"""The section ``model`` of a config: linear models, additive models and split networks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Discriminator, Field, Tag

from mtcd.config.numbers import Number
from mtcd.config.section import Section
from mtcd.models.trees.config import MixedSection, TreesSection


class GlmSection(Section):
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


class OptimiserSection(Section):
    """An optimiser of torch.optim by its name; other keys are its settings."""

    model_config = ConfigDict(extra="allow", frozen=True)

    kind: str = "SGD"


class SplitSection(Section):
    """A split network: see mtcd.SplitModel. Makers are names of built-in ones, or
    'package.module:function'."""

    kind: Literal["split"]
    """`split`: a network for every client and one that joins them"""
    code: Path | None = None
    """the folder of your functions; that of the config unless given, then the current one. Not in a
    [federation](federation.md#split-networks), where each party names its own code"""
    client: str
    """the clients' network. Built in: `mlp` (samples of any shape, taken as rows), `resnet18`
    (pictures; 3 x 3 stem, no max-pool), `mvcnn` (views). Or a function of yours,
    `package.module:function`, that makes an `nn.Module`; it may ask for `client`, `index`, `shape`
    and `clients` by name"""
    client_settings: dict[str, Any] = Field(default_factory=dict)
    """what else it is called with. `mlp`: `width` (16), `hidden` ([64]), `dropout` (0). `resnet18`:
    `width` (16).
    `mvcnn`: `width` (64)"""
    fusion: str = "linear"
    """from the aggregate to the outputs. Built in: `linear`, `mlp`. Or a function of yours, which
    may ask for `width` and `outputs`"""
    fusion_settings: dict[str, Any] = Field(default_factory=dict)
    """`mlp`: `hidden` ([64]), `dropout` (0)"""
    aggregation: str = "concat"
    """`concat`, `sum` or `mean` of what the clients' networks give; the latter two need the same
    `width` from all"""
    loss: str | None = None
    """`cross-entropy` or `squared`; what the labels ask for unless given: numbers with fractions
    are values, all else classes"""
    optimiser: OptimiserSection = OptimiserSection()
    """`{kind: SGD}` unless given: any class of `torch.optim` that needs no closure, spelt as there,
    and its settings, such as `{kind: SGD, momentum: 0.9, weight_decay: 5e-4}`. The learning rate is
    `method.stepsize`"""

    @property
    def own_networks(self) -> dict[str, str]:
        """The networks that are not built in, by their keys: making them runs the user's code."""
        return {
            key: name
            for key, name in (("client", self.client), ("fusion", self.fusion))
            if ":" in name
        }


def _model_kind(value: Any) -> str:
    kind = value.get("kind") if isinstance(value, dict) else getattr(value, "kind", None)
    networks = isinstance(value, dict) and "client" in value  # whatever its kind is misspelt as
    if kind == "mixed" or (isinstance(value, dict) and "parties" in value):
        return "<mixed>"
    if kind == "trees":
        return "<trees>"
    return "<split>" if kind == "split" or networks else "<glm>"


ModelSection = Annotated[
    Annotated[GlmSection, Tag("<glm>")]
    | Annotated[TreesSection, Tag("<trees>")]
    | Annotated[MixedSection, Tag("<mixed>")]
    | Annotated[SplitSection, Tag("<split>")],
    Discriminator(_model_kind),
]
