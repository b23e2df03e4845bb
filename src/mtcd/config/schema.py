"""The config file, key by key. Every key is checked; an unknown one is an error."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from mtcd.config.costs_schema import CostsSection
from mtcd.config.data_schema import (
    AnyDataSection,
    Class,
    DataSection,
    FileData,
    OwnTable,
    Prepare,
    SparseData,
    SyntheticData,
    TableData,
)
from mtcd.config.method_schema import (
    AnyMethodSection,
    MethodSection,
    ScheduleSection,
    default_section,
    section_for,
)
from mtcd.config.model_schema import AnyModelSection, ModelSection, default_model_section
from mtcd.config.section import Count, Fraction, FromZero, Number, Positive, Section, Seed, Whole
from mtcd.config.stop_schema import PlateauSection, StopSection
from mtcd.core.errors import ConfigError
from mtcd.core.own_code import is_own
from mtcd.network.topology import DRAWN
from mtcd.privacy.settings import DP, LabelPrivacy, Privacy


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


__all__ = [
    "AnyDataSection",
    "AnyMethodSection",
    "AnyModelSection",
    "CallbackSection",
    "ChangeSection",
    "Class",
    "ComputeSection",
    "Config",
    "CostsSection",
    "Count",
    "DataSection",
    "DpSection",
    "EngineSection",
    "FileData",
    "Fraction",
    "FromZero",
    "MethodSection",
    "ModelSection",
    "NetworkSection",
    "OwnTable",
    "PlateauSection",
    "Prepare",
    "PrivacySection",
    "ScheduleSection",
    "Section",
    "Seed",
    "SparseData",
    "StopSection",
    "SyntheticData",
    "TableData",
    "default_model_section",
    "section_for",
]


def _clients(value: Any) -> Any:
    """One client is a list of one."""
    if isinstance(value, str | int):
        return [value]
    return value


Clients = Annotated[list[str], BeforeValidator(_clients)]


class ChangeSection(Section):
    """Clients that leave and join at an iteration: see mtcd.Change."""

    iteration: FromZero
    """when: counted in hops per token (rounds of svfl)"""
    leave: Clients = Field(default_factory=list)
    """the clients that leave"""
    join: Clients = Field(default_factory=list)
    """the clients that join; one whose first change is to join is absent before"""

    @model_validator(mode="after")
    def _some_client(self) -> ChangeSection:
        if not self.leave and not self.join:
            raise ValueError("name the clients that leave or join")
        return self


class NetworkSection(Section):
    """A kind of network, or a file of edges."""

    kind: str | None = None
    """`complete`, `cycle`, `path`, `grid` (as square as possible), `star` (the first client in the
    middle), `erdos-renyi`, `random-geometric`, `empty`; `complete` if there is no `network`"""
    p: Number | None = None
    """of `erdos-renyi`: the probability of a link"""
    rows: Whole | None = None
    """of `grid`: the number of rows"""
    radius: Number | None = None
    """of `random-geometric`: clients at random places in a square of side 1 are linked up to this
    distance"""
    edges: Path | None = None
    """instead of `kind`: a CSV file with the columns `source` and `target`, names of clients or
    numbers from 0"""
    seed: Seed | None = None
    """draws the links of `erdos-renyi` and `random-geometric`; the config's own unless given"""
    changes: list[ChangeSection] | None = None
    """clients that leave and join while the model is trained, a list such as `[{iteration: 5000,
    leave: [c7]}, {iteration: 9000, join: [c7]}]`"""

    @model_validator(mode="after")
    def _one_of_both(self) -> NetworkSection:
        if (self.kind is None) == (self.edges is None):
            raise ValueError("give either a kind (path, cycle, complete, ...) or a file of edges")
        sizes = (self.p, self.rows, self.radius)
        if self.edges is not None and any(value is not None for value in sizes):
            raise ValueError(
                "p, rows and radius belong to a kind of network, not to a file of edges"
            )
        if self.seed is not None and self.kind not in DRAWN:
            raise ValueError(
                f"seed is for the kinds {' and '.join(DRAWN)} only, as nothing else is drawn: "
                f"leave it out"
            )
        return self


class ComputeSection(Section):
    """Where and how split networks run: see mtcd.Compute."""

    device: str = "auto"
    """`auto`, `cpu`, `cuda`, `cuda:1`"""
    precision: str = "full"
    """`full`, or `mixed`: networks run in bfloat16"""
    graphs: bool | Literal["auto"] = "auto"
    """CUDA graphs"""
    threads: Whole | None = None
    """of the CPU for one operation; 1 for small networks and PyTorch's choice for others, unless
    given"""


def _listed(value: Any) -> Any:
    """One metric is a list of one."""
    if isinstance(value, str):
        return [value]
    return value


class CallbackSection(Section):
    """A callback by its kind; other keys are its settings: see mtcd.training.callbacks."""

    model_config = ConfigDict(extra="allow", frozen=True)

    kind: str


class EngineSection(Section):
    """Where the parties run, by its kind; other keys are its settings: see mtcd.Ray."""

    model_config = ConfigDict(extra="allow", frozen=True)

    kind: str

    @model_validator(mode="after")
    def _installed(self) -> EngineSection:
        if is_own(self.kind):
            raise ValueError("an engine is one that is installed: give its name, such as ray")
        return self


class Config(Section):
    """A whole config file."""

    data: AnyDataSection
    """the samples, and who holds which columns"""
    model: AnyModelSection = Field(default_factory=default_model_section)
    """the model that is trained"""
    network: NetworkSection = NetworkSection(kind="complete")
    """who can talk to whom"""
    method: AnyMethodSection = MethodSection()
    """how it is trained. Without this section by `stcd` with `walk: tour`: for linear models with
    `acceleration: conjugate` and `local_solver: majorise`, with l1 `acceleration: momentum` and
    `local_updates: 10`. Split networks need one, with a `stepsize`. Where that cannot work another
    method is taken: `mtcd` if the network is in pieces or with `privacy.dp` (which needs a tour),
    `svfl` for masked sums, for trees `mtcd` with two tokens. The run says which it was. A section
    that is given stands as it is: `kind` is then `mtcd` unless given"""
    stop: StopSection = StopSection()
    """when the training ends: at the first limit that is reached"""
    costs: CostsSection = CostsSection()
    """the prices of messages"""
    privacy: PrivacySection = PrivacySection()
    """what parties may learn of each other in training ([privacy.md](privacy.md))"""
    compute: ComputeSection | None = None
    """where and how split networks run"""
    metrics: Annotated[list[str], BeforeValidator(_listed)] | None = None
    """what is computed on the training samples and on the test set while training, and at the end
    ([metrics.md](metrics.md) has the list and the defaults). `[]` for none"""
    code: Path | None = None
    """the folder of modules that names such as `module:Class` are in; that of the config unless
    given"""
    callbacks: list[CallbackSection] | None = None
    """callbacks, each with its `kind` and settings ([callbacks.md](callbacks.md)). Not in
    federations"""
    engine: EngineSection | None = None
    """where the parties run: in this process unless given; `{kind: ray, address: auto}` for
    processes and machines of one owner ([ray.md](ray.md)). Not in federations"""
    seed: Seed = 0
    """one number for everything random: data, network, walks, starts, batches, and of split
    networks the start, dropout and transforms. `data.seed` and `network.seed` fix the data and the
    graph alone, so that runs with different seeds differ in the walks only"""

    @model_validator(mode="after")
    def _default_method(self) -> Config:
        """Take the default method for the model, where none is given; ``method_given`` still
        tells."""
        if not self.method_given:
            # not a part of the fields that were set: a network in pieces changes the method later
            self.__dict__["method"] = default_section(self.model, self.privacy.settled())
        return self

    @property
    def method_given(self) -> bool:
        """Whether the file has a section ``method``."""
        return "method" in self.model_fields_set

    @property
    def own_parts(self) -> dict[str, str]:
        """The parts that are code of the user's own, by their keys; networks have a folder of their
        own."""
        named = {}
        for key in ("kind", "walk", "combine", "acceleration", "transport"):
            named[f"method.{key}"] = getattr(self.method, key)

        for key, name in self.model.own_parts.items():
            named[f"model.{key}"] = name

        for i, name in enumerate(self.metrics or ()):
            named[f"metrics.{i}"] = name

        for i, callback in enumerate(self.callbacks or ()):
            named[f"callbacks.{i}.kind"] = callback.kind

        return {key: name for key, name in named.items() if is_own(name)}
