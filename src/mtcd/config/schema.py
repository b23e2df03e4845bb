"""The config file, key by key. Every key is checked; an unknown one is an error."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Discriminator, Field, Tag, model_validator

from mtcd.config.data_schema import (
    Class,
    DataSection,
    DatasetData,
    FileData,
    OwnTable,
    Prepare,
    SparseData,
    SyntheticData,
    TableData,
)
from mtcd.config.keys import Number, Whole
from mtcd.config.method_schema import AnyMethodSection, MethodSection, ScheduleSection, section_for
from mtcd.config.section import Count, Fraction, FromZero, Section, Seed
from mtcd.own_code import is_own

__all__ = [
    "AnyMethodSection",
    "CallbackSection",
    "ChangeSection",
    "Class",
    "ComputeSection",
    "Config",
    "CostsSection",
    "Count",
    "DataSection",
    "DatasetData",
    "FileData",
    "Fraction",
    "FromZero",
    "GlmSection",
    "MethodSection",
    "ModelSection",
    "NetworkSection",
    "OptimiserSection",
    "OwnTable",
    "PlateauSection",
    "Prepare",
    "ScheduleSection",
    "Section",
    "Seed",
    "SparseData",
    "SplitSection",
    "StopSection",
    "SyntheticData",
    "TableData",
    "section_for",
]


class GlmSection(Section):
    """A linear model: see mtcd.Glm."""

    kind: str = "ridge"
    alpha: Number | None = None
    l1: Number = 0.0
    l2: Number | None = None
    intercept: bool = False
    delta: Number = 1.0
    class_weight: Literal["balanced"] | dict[str, Number] | None = None


class OptimiserSection(Section):
    """An optimiser of torch.optim by its name; other keys are its settings."""

    model_config = ConfigDict(extra="allow", frozen=True)

    kind: str = "SGD"


class SplitSection(Section):
    """A split network: see mtcd.SplitModel. Makers are names of built-in ones, or 'package.module:function'."""

    kind: Literal["split"]
    code: Path | None = None  # the folder of such packages; where the config is, unless given
    client: str
    client_settings: dict[str, Any] = Field(default_factory=dict)
    fusion: str = "linear"
    fusion_settings: dict[str, Any] = Field(default_factory=dict)
    aggregation: str = "concat"
    loss: str | None = None
    optimiser: OptimiserSection = OptimiserSection()

    @property
    def own_networks(self) -> dict[str, str]:
        """The networks that are not built in, by their keys: making them runs the user's code."""
        return {key: name for key, name in (("client", self.client), ("fusion", self.fusion)) if ":" in name}


def _model_kind(value: Any) -> str:
    kind = value.get("kind") if isinstance(value, dict) else getattr(value, "kind", None)
    networks = isinstance(value, dict) and "client" in value  # whatever its kind is misspelt as
    return "<split>" if kind == "split" or networks else "<glm>"


ModelSection = Annotated[
    Annotated[GlmSection, Tag("<glm>")] | Annotated[SplitSection, Tag("<split>")], Discriminator(_model_kind)
]


def _clients(value: Any) -> Any:
    """One client is a list of one."""
    return [value] if isinstance(value, str | int) else value


Clients = Annotated[list[str], BeforeValidator(_clients)]


class ChangeSection(Section):
    """Clients that leave and join at an iteration: see mtcd.Change."""

    iteration: FromZero
    leave: Clients = Field(default_factory=list)
    join: Clients = Field(default_factory=list)

    @model_validator(mode="after")
    def _some_client(self) -> ChangeSection:
        if not self.leave and not self.join:
            raise ValueError("name the clients that leave or join")
        return self


class NetworkSection(Section):
    """A kind of network, or a file of edges."""

    kind: str | None = None
    p: Number | None = None
    rows: Whole | None = None
    edges: Path | None = None
    seed: Seed | None = None  # the config's own, unless given
    changes: list[ChangeSection] | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> NetworkSection:
        if (self.kind is None) == (self.edges is None):
            raise ValueError("give either a kind (path, cycle, complete, ...) or a file of edges")
        if self.edges is not None and (self.p is not None or self.rows is not None):
            raise ValueError("p and rows belong to a kind of network, not to a file of edges")
        if self.seed is not None and self.kind != "erdos-renyi":
            raise ValueError("seed is for the kind 'erdos-renyi' only, as nothing else is drawn: leave it out")
        return self


class PlateauSection(Section):
    """Ends a training that has stopped improving: see mtcd.plateau.Plateau."""

    on: str = "objective"
    patience: Count = 10
    min_improvement: Number = 1e-4


class StopSection(Section):
    """When to stop: the first limit that is reached."""

    gap: Number | None = None
    iterations: Whole | None = None
    seconds: Number | None = None
    cost: Number | None = None
    epochs: Whole | None = None
    plateau: PlateauSection | Number | None = None

    @model_validator(mode="before")
    @classmethod
    def _some_limit(cls, given: Any) -> Any:
        nothing = isinstance(given, dict) and all(value is None for value in given.values())
        return {**given, "iterations": 10_000} if nothing else given


class CostsSection(Section):
    """The prices of messages, or of the numbers in them: see mtcd.Costs."""

    ratio: Number = 100.0
    account: Literal["charged", "sent"] = "charged"
    per: Literal["message", "float"] = "message"


class ComputeSection(Section):
    """Where and how split networks run: see mtcd.Compute."""

    device: str = "auto"
    precision: str = "full"
    graphs: bool | Literal["auto"] = "auto"
    threads: Whole | None = None


def _listed(value: Any) -> Any:
    """One metric is a list of one."""
    return [value] if isinstance(value, str) else value


class CallbackSection(Section):
    """A callback by its kind; other keys are its settings: see mtcd.callbacks."""

    model_config = ConfigDict(extra="allow", frozen=True)

    kind: str


class Config(Section):
    """A whole config file."""

    data: DataSection
    model: ModelSection = GlmSection()
    network: NetworkSection = NetworkSection(kind="complete")
    method: AnyMethodSection = MethodSection()
    stop: StopSection = StopSection()
    costs: CostsSection = CostsSection()
    compute: ComputeSection | None = None
    metrics: Annotated[list[str], BeforeValidator(_listed)] | None = None
    code: Path | None = None  # the folder of modules that names such as 'module:Class' are in; that of the config
    callbacks: list[CallbackSection] | None = None
    seed: Seed = 0

    @property
    def own_parts(self) -> dict[str, str]:
        """The parts that are code of the user's own, by their keys; networks have a folder of their own."""
        keys = ("kind", "walk", "combine", "acceleration", "transport")
        named = {f"method.{key}": getattr(self.method, key) for key in keys} | {"model.kind": self.model.kind}
        named |= {f"metrics.{number}": name for number, name in enumerate(self.metrics or ())}
        named |= {f"callbacks.{i}.kind": one.kind for i, one in enumerate(self.callbacks or ())}
        return {key: name for key, name in named.items() if is_own(name)}
