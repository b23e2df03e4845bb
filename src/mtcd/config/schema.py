"""The config file, key by key. Every key is checked; an unknown one is an error."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    ModelWrapValidatorHandler,
    SerializeAsAny,
    Tag,
    model_validator,
)

from mtcd.config.keys import Number, Whole, section_of
from mtcd.data.svmlight import is_svmlight
from mtcd.errors import ConfigError, MtcdError
from mtcd.methods.method import METHODS
from mtcd.own_code import is_own
from mtcd.prepare import read_recipe


def _names(value: Any) -> Any:
    """One name is a list of one."""
    names = [value] if isinstance(value, str) else value
    if not names or not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("should be the name of a data set, or a list of names")
    return names


Count = Annotated[Whole, Field(ge=1)]
FromZero = Annotated[Whole, Field(ge=0)]
Fraction = Annotated[Number, Field(gt=0, lt=1)]
Seed = FromZero


class Section(BaseModel):
    """A section of the config: unknown keys are rejected."""

    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True)


def _prepare(value: Any) -> Any:
    """Check a recipe; it stays as it was written."""
    try:
        read_recipe(value)
    except MtcdError as error:
        raise ValueError(str(error)) from None
    return value


def _class(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError(
            "write the class in quotes, such as 'yes': without them, YAML reads yes and no as true and false"
        )
    return value


Prepare = Annotated[Any, AfterValidator(_prepare)]
Class = Annotated[str | int | float, BeforeValidator(_class)]


class OwnTable(Section):
    """A client that brings its own table; without columns, all of them."""

    table: Path
    columns: list[str] | None = None


class TableData(Section):
    """Features and labels from CSV or Parquet."""

    table: Path
    label: str
    id: str | None = None
    weight: str | None = None  # the column with the weights of the samples
    clients: Count | dict[str, list[str] | OwnTable]
    ignore: list[str] = []
    prepare: Prepare | None = None  # 'auto', or {columns: ..., default: ..., on_unseen: ...}: see mtcd.prepare
    positive: Class | None = None  # of two classes: the second in sorted order, unless given
    standardise: bool = False
    test_samples: Count | None = None  # held out
    holdout: Fraction | None = None


class SparseData(TableData):
    """Features and labels from a file in the svmlight (libsvm) format."""

    label: str = Field(default="", exclude=True)
    features: Count | None = None  # where the file does not use the last ones

    @model_validator(mode="before")
    @classmethod
    def _labels_are_inside(cls, given: Any) -> Any:
        if isinstance(given, dict) and (extra := [key for key in ("label", "id", "weight") if given.get(key)]):
            raise ValueError(f"the labels are in an svmlight file, with nothing else: leave out {' and '.join(extra)}")
        if isinstance(given, dict) and given.get("prepare"):
            raise ValueError("an svmlight file holds numbers only: leave out prepare")
        clients = given.get("clients") if isinstance(given, dict) else None
        if isinstance(clients, dict) and any(isinstance(share, dict) for share in clients.values()):
            raise ValueError("an svmlight file cannot be joined with other tables: give lists of columns as clients")
        return given


class SyntheticData(Section):
    """Data made from the seed."""

    synthetic: str
    samples: Count
    features: Count
    clients: Count
    noise: Number = 0.1
    classes: Whole = 3
    standardise: bool = False
    test_samples: Count | None = None  # more of the same
    holdout: Fraction | None = None
    seed: Seed | None = None  # the config's own, unless given


class DatasetData(Section):
    """A public data set, or the first of several that is at hand: see mtcd.load_dataset."""

    dataset: Annotated[list[str], BeforeValidator(_names)]
    clients: Count
    samples: Count | None = None
    features: Count | None = None
    standardise: bool = False
    test_samples: Count | None = None  # a part of the test set; of a table, held out
    holdout: Fraction | None = None
    seed: Seed = 0  # not the config's own: a data set is the same in every run


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
    client_settings: dict[str, Any] = {}
    fusion: str = "linear"
    fusion_settings: dict[str, Any] = {}
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
    leave: Clients = []
    join: Clients = []

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


class ScheduleSection(Section):
    """How the step size changes from epoch to epoch: see mtcd.Schedule."""

    kind: str = "step"
    every: Whole = 20
    factor: Number = 0.5
    warmup: Whole = 0


def _method_kind(kind: str) -> str:
    try:
        METHODS[kind]
    except ConfigError as error:
        raise ValueError(str(error).removeprefix("method.kind: ")) from None
    return kind


class MethodSection(Section):
    """How it is trained: see mtcd.MTCD, mtcd.STCD, mtcd.SVFL, mtcd.DCPA and mtcd.TreeCG.

    A method with other settings has a section with these too: see ``section_of``.
    """

    kind: Annotated[str, AfterValidator(_method_kind)] = "mtcd"
    tokens: Whole | None = None
    hops: Whole = 16
    local_updates: Whole = 1
    stepsize: Number | Literal["auto"] = "auto"
    batch: Whole | None = None
    combine: str | None = None
    walk: str = "lazy"
    clusters: Literal["auto"] | list[list[str | int]] | None = None
    start: str | int | dict[str, Number] | list[str | int | dict[str, Number]] | None = None
    acceleration: str | None = None
    depth: Whole | None = None
    dual_stepsize: Number | None = None
    consensus_stepsize: Number | None = None
    variant: Literal["B", "A"] = "B"
    schedule: ScheduleSection | None = None
    fusion_updates: Whole | None = None
    fusion_client: str | int | None = None
    first_pass: bool = True
    transport: str = "float64"
    local_solver: str = "gradient"

    @model_validator(mode="wrap")
    @classmethod
    def _of_its_kind(cls, given: Any, handler: ModelWrapValidatorHandler[MethodSection]) -> MethodSection:
        section = section_for(given.get("kind")) if isinstance(given, dict) else cls
        return handler(given) if cls is not MethodSection or section is cls else section.model_validate(given)


AnyMethodSection = SerializeAsAny[MethodSection]


def section_for(kind: object) -> type[MethodSection]:
    """The section of a method by its name; the general one where no method has it."""
    if not isinstance(kind, str) or kind not in METHODS:
        return MethodSection
    try:
        return cast(type[MethodSection], section_of(kind, MethodSection))
    except ConfigError as error:
        raise ValueError(str(error)) from None


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


def _data_kind(value: Any) -> str:
    given = value if isinstance(value, dict) else getattr(value, "model_fields_set", ())
    # no words that could be keys
    if "synthetic" in given or "dataset" in given:
        return "<synthetic>" if "synthetic" in given else "<dataset>"
    table = value.get("table", "") if isinstance(value, dict) else getattr(value, "table", "")
    return "<sparse>" if is_svmlight(Path(str(table))) else "<table>"


DataSection = Annotated[
    Annotated[TableData, Tag("<table>")]
    | Annotated[SparseData, Tag("<sparse>")]
    | Annotated[SyntheticData, Tag("<synthetic>")]
    | Annotated[DatasetData, Tag("<dataset>")],
    Discriminator(_data_kind),
]


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
