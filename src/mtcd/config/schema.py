"""The config file, key by key. Every key is checked; an unknown one is an error."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag, model_validator


def _no_bool(value: Any) -> Any:
    """YAML's true is no number, though Python's is."""
    if isinstance(value, bool):
        raise ValueError("should be a number")
    return value


Number = Annotated[float, BeforeValidator(_no_bool)]
Whole = Annotated[int, BeforeValidator(_no_bool)]
Count = Annotated[Whole, Field(ge=1)]


class Section(BaseModel):
    """A part of the config: unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True)


class OwnTable(Section):
    """A client that brings its own table; without columns, all of them."""

    table: Path
    columns: list[str] | None = None


class TableData(Section):
    """Features and labels from CSV or Parquet."""

    table: Path
    label: str
    id: str | None = None
    clients: Count | dict[str, list[str] | OwnTable]
    ignore: list[str] = []
    standardise: bool = False


class SyntheticData(Section):
    """Data made from the seed."""

    synthetic: str
    samples: Count
    features: Count
    clients: Count
    noise: Number = 0.1
    classes: Whole = 3
    standardise: bool = False


class ModelSection(Section):
    """What is trained: see mtcd.Glm."""

    kind: str = "ridge"
    alpha: Number | None = None
    l1: Number = 0.0
    l2: Number | None = None
    intercept: bool = False
    delta: Number = 1.0


class NetworkSection(Section):
    """A kind of network, or a file of edges."""

    kind: str | None = None
    p: Number | None = None
    rows: Whole | None = None
    edges: Path | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> NetworkSection:
        if (self.kind is None) == (self.edges is None):
            raise ValueError("give either a kind (path, cycle, complete, ...) or a file of edges")
        if self.edges is not None and (self.p is not None or self.rows is not None):
            raise ValueError("p and rows belong to a kind of network, not to a file of edges")
        return self


class MethodSection(Section):
    """How it is trained: see mtcd.MTCD, mtcd.STCD and mtcd.SVFL."""

    kind: Literal["mtcd", "stcd", "svfl"] = "mtcd"
    tokens: Whole | None = None
    hops: Whole = 16
    local_updates: Whole = 1
    stepsize: Number | Literal["auto"] = "auto"
    batch: Whole | None = None
    combine: str | None = None
    walk: str = "lazy"
    clusters: Literal["auto"] | list[list[str | int]] | None = None
    start: str | int | dict[str, Number] | list[str | int | dict[str, Number]] | None = None


class StopSection(Section):
    """When to stop: the first limit that is reached."""

    gap: Number | None = None
    iterations: Whole | None = None
    seconds: Number | None = None
    cost: Number | None = None

    @model_validator(mode="before")
    @classmethod
    def _some_limit(cls, given: Any) -> Any:
        nothing = isinstance(given, dict) and all(value is None for value in given.values())
        return {**given, "iterations": 10_000} if nothing else given


class CostsSection(Section):
    """What messages cost."""

    ratio: Number = 100.0
    account: Literal["charged", "sent"] = "charged"


def _data_kind(value: Any) -> str:
    given = value if isinstance(value, dict) else getattr(value, "model_fields_set", ())
    return "<synthetic>" if "synthetic" in given else "<table>"  # no words that could be keys


DataSection = Annotated[
    Annotated[TableData, Tag("<table>")] | Annotated[SyntheticData, Tag("<synthetic>")], Discriminator(_data_kind)
]


class Config(Section):
    """A whole config file."""

    data: DataSection
    model: ModelSection = ModelSection()
    network: NetworkSection = NetworkSection(kind="complete")
    method: MethodSection = MethodSection()
    stop: StopSection = StopSection()
    costs: CostsSection = CostsSection()
    seed: Annotated[Whole, Field(ge=0)] = 0
