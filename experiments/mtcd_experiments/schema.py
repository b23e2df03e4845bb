"""The experiment file, key by key: data, networks, methods with their settings, and what to draw.

A **case** is a row of panels (a network, a number of hops ...), a **curve** a line in them (a
method), a **panel** an axis to draw the lines against. Every case trains every curve over several
seeds.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from mtcd.config.schema import Count, Section
from mtcd.config.section import Number
from mtcd.protocol.ledger.costs import Per

Positive = Annotated[Number, Field(gt=0, allow_inf_nan=False)]
Measure = Literal["gap", "accuracy"]
SEEDS = 5
# the axes, and the keys of an experiment, that mean something for one measure only
AXES: dict[Measure, tuple[str, ...]] = {
    "gap": ("iterations", "messages", "floats", "cost", "ratio"),
    "accuracy": ("epochs", "floats", "bytes", "cost"),
}
GAP_KEYS = frozenset(
    {"layout", "target", "further_targets", "messages", "floats", "ratios", "lowest_gap", "tune"}
)
Changes = dict[str, Any]
"""A part of a config (data, model, network, method, stop ...) that is laid over the rest, key by
key."""


class Tune(Section):
    """How step sizes are chosen where a curve says 'tune': the first seed is trained with each of
    the grid.

    The best reaches ``gap`` in the fewest iterations; if none does, it comes closest within
    ``iterations``.
    """

    stepsizes: Annotated[list[Positive], Field(min_length=1)]
    gap: Positive
    iterations: Count


class Case(Section):
    """One row of panels: what is different here.

    Titles may hold {clients}, {data} and {connectivity}, the algebraic connectivity of the network.
    """

    title: str
    changes: Changes = Field(default_factory=dict)
    # the names of those shown here; all unless given
    curves: Annotated[list[str], Field(min_length=1)] | None = None
    optional: bool = False  # left out, with a note, where its data is not there
    quick: bool = True  # whether --quick shows it too


class Curve(Section):
    """One line: a method with its settings. The stepsize may be 'tune': the best of the grid is
    then used."""

    # Matplotlib keeps names that start with _ to itself
    label: Annotated[str, Field(pattern="^[^_]")]
    method: Changes
    changes: Changes = Field(default_factory=dict)
    quick: Changes = Field(default_factory=dict)  # the last word with --quick
    tune: Tune | None = None  # its own grid; the experiment's unless given


class Panel(Section):
    """An axis: the gap per iteration, message between clients, number sent or communication cost;
    or the cost to reach a gap against the ratio R_C. Of the accuracy: per epoch, number or byte
    sent, or communication cost."""

    x: Literal["iterations", "messages", "floats", "cost", "ratio", "epochs", "bytes"]
    ratio: Positive | None = None  # of x: cost; the config's unless given
    per: Per | None = None  # of x: cost and x: ratio: what is priced; the config's unless given
    title: str | None = None
    # of the axis; log for the gap, linear for the accuracy
    scale: Literal["log", "linear"] | None = None

    @model_validator(mode="after")
    def _only_costs_are_priced(self) -> Panel:
        if self.per is not None and self.x not in ("cost", "ratio"):
            raise ValueError(f"per is for x: cost and x: ratio, not for x: {self.x}; take it out")
        return self


class Quick(Section):
    """The same figure at a smaller size: changes for every case and curve; a curve's own ``quick``
    comes after."""

    changes: Changes
    seeds: Count = 2
    tune: Tune | None = None


class Experiment(Section):
    """A whole experiment file."""

    title: str
    about: str
    measure: Measure = "gap"  # what is drawn
    problem: Changes  # a config as `mtcd train` takes it, but for the method
    cases: Annotated[dict[str, Case], Field(min_length=1)]
    curves: Annotated[dict[str, Curve], Field(min_length=1)]
    panels: Annotated[list[Panel], Field(min_length=1)]
    cases_per_row: Count = 1
    layout: Literal["lines", "dots"] = "lines"  # dots: what it takes to the target, a row per case
    target: Positive = 1e-4  # the gap of the table, of the dots and of x: ratio
    further_targets: list[Positive] = Field(default=[])  # gaps for which the table has columns too
    messages: bool = False  # whether the table counts messages between clients
    floats: bool = False  # whether the table counts the numbers sent between all parties
    ratios: list[Positive] = Field(default=[1, 2, 5, 10, 20, 50, 100, 200, 500, 1000], min_length=1)
    lowest_gap: Positive | None = None  # where the axis of gaps ends
    # the table then says what it costs
    target_accuracy: Annotated[Number, Field(gt=0, le=1)] | None = None
    seeds: Count = SEEDS  # unless --seeds says otherwise
    # `all` goes on without it, with a note, where its data or PyTorch is not at hand
    optional: bool = False
    tune: Tune | None = None
    quick: Quick

    @model_validator(mode="after")
    def _keys_fit_the_measure(self) -> Experiment:
        axes = AXES[self.measure]
        for panel in self.panels:
            if panel.x not in axes:
                raise ValueError(
                    f"with measure: {self.measure}, the panels are of x: {', '.join(axes)}"
                )
        if self.measure == "gap":
            if self.target_accuracy is not None:
                raise ValueError(
                    "target_accuracy is for measure: accuracy; of the gap it is target"
                )
            return self
        own = [
            curve
            for curve in self.curves.values()
            if curve.tune or curve.method.get("stepsize") == "tune"
        ]
        if own or self.tune or self.quick.tune:
            raise ValueError(
                "step sizes are tuned for the gap only: with measure: accuracy, give each curve "
                "its own"
            )
        if unused := sorted(GAP_KEYS & self.model_fields_set):
            raise ValueError(f"{unused[0]} is for measure: gap; take it out")
        return self

    @model_validator(mode="after")
    def _names_are_known(self) -> Experiment:
        for name, case in self.cases.items():
            unknown = sorted(set(case.curves or ()) - set(self.curves))
            if unknown:
                raise ValueError(
                    f"cases.{name}.curves names {unknown[0]!r}, but the curves are "
                    f"{list(self.curves)}"
                )
        tuned = [curve for curve in self.curves.values() if curve.method.get("stepsize") == "tune"]
        if not all(curve.tune or self.tune for curve in tuned):
            raise ValueError(
                "a curve has stepsize: tune, so tune: must give the grid (stepsizes, gap, "
                "iterations)"
            )
        if self.layout == "dots" and any(panel.x == "ratio" for panel in self.panels):
            raise ValueError(
                "with layout: dots, the panels are of x: iterations, messages, floats or cost"
            )
        return self

    def shown(self, case: str) -> list[str]:
        """The curves of a case, in the order of the file."""
        chosen = self.cases[case].curves
        return [name for name in self.curves if chosen is None or name in chosen]
