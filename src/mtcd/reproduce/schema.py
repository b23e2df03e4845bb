"""The experiment file, key by key: data, networks, methods with their settings, and what to draw.

A **case** is a row of panels (a network, a number of hops ...), a **curve** a line in them (a method), a
**panel** an axis to draw the lines against. Every case trains every curve over several seeds.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from mtcd.config.schema import Count, Number, Section

Changes = dict[str, Any]
"""A part of a config (data, model, network, method, stop ...) that is laid over the rest, key by key."""


class Case(Section):
    """One row of panels: what is different here."""

    title: str
    changes: Changes = Field(default_factory=dict)
    curves: list[str] | None = None  # the names of those shown here; all unless given
    optional: bool = False  # left out, with a note, where its data is not there


class Curve(Section):
    """One line: a method with its settings. The stepsize may be 'tune': the best of the grid is then used."""

    label: str
    method: Changes
    changes: Changes = Field(default_factory=dict)


class Panel(Section):
    """An axis: the gap per iteration, per communication cost, or the cost to reach a gap against the ratio R_C."""

    x: Literal["iterations", "cost", "ratio"]
    ratio: Annotated[Number, Field(gt=0)] | None = None  # of x: cost; the config's unless given
    title: str | None = None
    scale: Literal["log", "linear"] = "log"


class Tune(Section):
    """How step sizes are chosen where a curve says 'tune': the first seed is trained with each of the grid.

    The best reaches ``gap`` in the fewest iterations; if none does, it comes closest within ``iterations``.
    """

    stepsizes: Annotated[list[Number], Field(min_length=1)]
    gap: Number
    iterations: Count


class Quick(Section):
    """The same figure at a smaller size: these changes come last, in every case and curve."""

    changes: Changes
    seeds: Count = 2
    tune: Tune | None = None


class Experiment(Section):
    """A whole experiment file."""

    title: str
    about: str
    problem: Changes  # a config as `mtcd train` takes it, but for the method
    cases: Annotated[dict[str, Case], Field(min_length=1)]
    curves: Annotated[dict[str, Curve], Field(min_length=1)]
    panels: Annotated[list[Panel], Field(min_length=1)]
    cases_per_row: Count = 1
    target: Annotated[Number, Field(gt=0)] = 1e-4  # the gap of the table and of x: ratio
    ratios: list[Annotated[Number, Field(gt=0)]] = Field(default=[1, 2, 5, 10, 20, 50, 100, 200, 500, 1000])
    lowest_gap: Annotated[Number, Field(gt=0)] | None = None  # where the axis of gaps ends
    tune: Tune | None = None
    quick: Quick

    @model_validator(mode="after")
    def _names_are_known(self) -> Experiment:
        for name, case in self.cases.items():
            unknown = sorted(set(case.curves or ()) - set(self.curves))
            if unknown:
                raise ValueError(f"cases.{name}.curves names {unknown[0]!r}, but the curves are {list(self.curves)}")
        if self.tune is None and any(curve.method.get("stepsize") == "tune" for curve in self.curves.values()):
            raise ValueError("a curve has stepsize: tune, so tune: must give the grid (stepsizes, gap, iterations)")
        return self

    def shown(self, case: str) -> list[str]:
        """The curves of a case, in the order of the file."""
        chosen = self.cases[case].curves
        return [name for name in self.curves if chosen is None or name in chosen]
