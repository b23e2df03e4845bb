"""The command ``mtcd plan``: it races candidates for a config, and writes the config to use."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from mtcd.config.build import Setup, build
from mtcd.config.read import read_config, refuse_code
from mtcd.core import features
from mtcd.core.errors import ConfigError
from mtcd.core.files import check_writable, write_whole
from mtcd.core.own_code import may_run
from mtcd.core.terminal.screen import aside, screen, show_notes
from mtcd.core.terminal.table import ScreenTable
from mtcd.core.terminal.text import escape, rounded
from mtcd.core.workers import Backend
from mtcd.models.glm.kind import LinearKind
from mtcd.planner.command_machines import (
    advice,
    machines_table,
    measured,
    nothing_measured,
    seconds_on,
    work_of,
)
from mtcd.planner.forecast import ROUGH
from mtcd.planner.halving import Watch
from mtcd.planner.interfaces import with_interfaces
from mtcd.planner.links import parse_budget, read_links
from mtcd.planner.planning import SettingsPlan, plan
from mtcd.planner.proposal import Proposal
from mtcd.planner.regions import regions_png
from mtcd.planner.scaling import Machine
from mtcd.planner.screening import kind
from mtcd.training.kinds import kind_of

ROWS = 8
REPORTED_SECONDS = 5.0  # an optimum that takes longer is reported


PLANS = "mtcd.plans"
"""The group in which a feature names its own kind of plan, by the class of a section ``model`` in
configs, or of a method."""
OPTION_NAMES = {"backend": "workers and --ray"}
"""The options of ``PlanOptions`` that are called otherwise in the command line."""


class OwnPlan(Protocol):
    """A plan, as far as the command shows it."""

    @property
    def notes(self) -> Sequence[str]:
        """Notes for the user."""

    def said(self) -> str:
        """The recommendation, as sentences for the user."""

    def table(self) -> ScreenTable:
        """The candidates that were compared, a row for each."""

    def summary(self) -> dict[str, Any]:
        """Plain values, for JSON."""

    def yaml(self) -> str | None:
        """The config to use; None if it is the one that was given."""


class OwnPlans(Protocol):
    """Plans what the search over linear models cannot: a feature implements it, without importing
    it."""

    refused: Mapping[str, str]
    """The options of ``mtcd plan`` that it does not have, with the end of a sentence that says
    why."""

    def plan(
        self, setup: Setup, budget: float, ratio: float | None, watch: Watch | None
    ) -> OwnPlan:
        """The plan; ``ratio`` replaces that of the config."""


@dataclass(frozen=True)
class PlanOptions:
    """The options of ``mtcd plan``."""

    config: Path
    ratio: float | None
    links: Path | None
    target: float | None
    budget: str
    out: Path | None
    changes: list[str]
    seed: int | None
    as_json: bool
    machines: int | None = None
    machine: tuple[str, ...] = ()
    backend: Backend | None = None
    force: bool = False
    hosts: Path | None = None


def plan_config(options: PlanOptions) -> None:
    """Plan, show the candidates, write the proposed config and the plot."""
    budget = parse_budget(options.budget)
    if options.ratio is not None and options.links is not None:
        raise ConfigError(
            "--ratio and --links exclude each other: give --ratio to plan for cost, --links for "
            "time."
        )
    if options.hosts is not None and options.links is None:
        raise ConfigError(
            "--hosts says what the hosts at the ends of links can carry: give --links too."
        )
    machine = Machine.parse(options.machine)
    if options.machines is None and options.machine:
        raise ConfigError("--machine describes one of --machines: give their number too.")
    if options.machines is not None and options.links is not None:
        raise ConfigError(
            "--machines and --links exclude each other: --machine latency_ms=... says what links "
            "are like."
        )
    config = read_config(options.config, options.changes, options.seed)
    out = _checked(options.out or Path(f"{options.config.stem}.planned.yaml"), options.config)
    if out.suffix == ".png":
        raise ConfigError(f"--out {out} names a picture: choose a file that ends with .yaml.")
    picture = _checked(out.with_suffix(".png"), options.config)
    if not options.force:
        _check_own_plan(out, picture, options.config)
    own_plans = _own_plans(config.model)
    if own_plans is None and not isinstance(kind_of(config.model), LinearKind):
        # before the model is built, which may run code of the user
        raise ConfigError(
            "mtcd plan supports linear models, trees and mixed families, but not split networks."
        )
    if not may_run():
        refuse_code(config, f"plan with it: mtcd plan {options.config} --run-code")
    setup = build(config)
    own_plans = own_plans or _own_plans(setup.method)
    if own_plans is not None:
        _plan_with(own_plans, setup, options, budget, out)
        return

    links = None
    if options.links is not None:
        links = with_interfaces(
            read_links(options.links, setup.network), options.hosts, setup.network
        )
    work = None if options.machines is None else work_of(setup)
    with _progress() as watch:
        found = plan(
            setup,
            target=options.target,
            budget=budget,
            ratio=options.ratio,
            links=links,
            watch=watch,
            backend=options.backend,
            prefer=None
            if work is None
            else lambda one: seconds_on(one, work, machine, options.machines or 1),
        )
    drawn = regions_png(found)
    write_whole(out, _heading(found, options.config) + found.yaml())
    write_whole(picture, drawn)
    show_notes(found.notes)
    if found.optimum_seconds > REPORTED_SECONDS:
        aside.print(
            f"The optimum took {found.optimum_seconds:.0f} s, outside the budget.", highlight=False
        )
    told = None
    if work is not None and measured(found):
        told = machines_table(found, work, machine, options.machines or 1)
    if options.as_json:
        rows = [] if told is None else told[1]
        scaling = {} if work is None else {"machines": rows}
        summary = found.summary() | scaling | {"out": str(out), "picture": str(picture)}
        print(json.dumps(summary, allow_nan=False))  # noqa: T201
        return
    screen.print(candidates_table(found))
    if told is not None and work is not None:
        screen.print(told[0])
        screen.print(
            escape(advice(found, work, machine, options.machines or 1)),
            highlight=False,
            soft_wrap=True,
        )
    else:
        screen.print(escape(recommendation(found)), highlight=False, soft_wrap=True)
        if work is not None:
            screen.print(
                nothing_measured(found, options.machines or 1), highlight=False, soft_wrap=True
            )
    screen.print(
        f"Config to use: {escape(str(out))}  picture: {escape(str(picture))}",
        highlight=False,
        soft_wrap=True,
    )


def _own_plans(planned: object) -> OwnPlans | None:
    """How a model (or its section of a config) or a method is planned, if by a feature."""
    return cast("OwnPlans | None", features.of_class(PLANS, type(planned)))


def _plan_with(
    plans: OwnPlans, setup: Setup, options: PlanOptions, budget: float, out: Path
) -> None:
    """Plan as a feature does, show it, and write the config that it proposes."""
    for name, why in plans.refused.items():
        if getattr(options, name) is not None:
            raise ConfigError(f"--{OPTION_NAMES.get(name, name)} {why}")

    with _progress() as watch:
        found = plans.plan(setup, budget, options.ratio, watch)
    config = found.yaml()
    if config is not None:
        write_whole(out, f"{_planned_from(options.config)}. {found.said()}\n{config}")

    show_notes(found.notes)
    if options.as_json:
        written = {} if config is None else {"out": str(out)}
        print(json.dumps(found.summary() | written, allow_nan=False))  # noqa: T201
        return

    screen.print(found.table())
    used = "The config is used as it is." if config is None else f"Config to use: {out}"
    screen.print(escape(f"{found.said()} {used}"), highlight=False, soft_wrap=True)


def _checked(path: Path, config: Path) -> Path:
    """Refuse a path that cannot be written, or the config itself, before any work is done."""
    if path.exists() and path.resolve() == config.resolve():
        raise ConfigError(
            f"{path} is the config itself: choose another file for the plan with --out."
        )
    if path.exists() and not (path.is_file() and os.access(path, os.W_OK)):
        raise ConfigError(f"{path} is not a file that can be written: choose another with --out.")
    check_writable(path.parent)
    return path


def _check_own_plan(out: Path, picture: Path, config: Path) -> None:
    """Refuse to replace anything but an earlier plan of this config: a config written by hand would
    be lost."""
    if _starts_with(out, _planned_from(config)):
        return
    there = [path for path in (out, picture) if path.exists()]
    if there:
        raise ConfigError(
            f"{there[0]} is not an earlier plan of {config.name}: choose another file with --out, "
            f"or replace it with "
            "--force."
        )


def _starts_with(path: Path, words: str) -> bool:
    try:
        with path.open(encoding="utf-8") as file:
            return file.read(len(words)) == words
    except (OSError, ValueError):
        return False


@contextmanager
def _progress() -> Iterator[Watch]:
    """A progress bar on standard error: the current stage, and the fraction of its time that has
    passed."""
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=24), TimeElapsedColumn())
    with Progress(*columns, console=aside, transient=True, refresh_per_second=8) as bar:
        task = bar.add_task("getting ready", total=1.0)

        def watch(state: str, fraction: float) -> None:
            bar.update(task, description=escape(state), completed=min(fraction, 1.0))

        yield watch


def _heading(found: SettingsPlan, config: Path) -> str:
    return f"{_planned_from(config)} for a gap of {found.target:g}. {recommendation(found)}\n"


def _planned_from(config: Path) -> str:
    """How every plan of a config begins, by which it is known again."""
    return f"# Planned from {config.name!r}"


def best_of_each(found: SettingsPlan, rows: int = ROWS) -> list[Proposal]:
    """The best candidate of each kind, best first; the config's own method is always among them."""
    best: dict[object, Proposal] = {}
    for proposal in found.proposals:
        # candidates that differ in the number of tokens only are one kind
        best.setdefault("own" if proposal.own else kind(proposal.method)[:4], proposal)
    shown = list(best.values())[:rows]
    if found.own is not None and not any(proposal.own for proposal in shown):
        shown[-1:] = [found.own]
    return shown


def candidates_table(found: SettingsPlan) -> ScreenTable:
    """The predicted cost of each candidate, and its confidence."""
    titles = [
        "method",
        "cost",
        "hops",
        "server",
        "compute",
        *(["wall-clock"] if found.by_time else []),
        "how sure",
    ]
    rows = []
    for proposal in best_of_each(found):
        messages = proposal.messages
        counts = (messages["client_client"], messages["uplink"] + messages["downlink"])
        known = proposal.arrives
        cells = [rounded(proposal.cost)]
        cells += [rounded(count) if known else "-" for count in counts]
        cells.append(_seconds(proposal.compute_seconds))
        cells += [_seconds(proposal.wall_seconds)] if proposal.wall_seconds is not None else []
        rows.append(
            [proposal.label() + (" (yours)" if proposal.own else ""), *cells, _sure(proposal)]
        )
    return ScreenTable(titles, rows, words=["method", "how sure"], best=True)


def recommendation(found: SettingsPlan) -> str:
    """The recommendation and its reason, in one or two sentences."""
    best = found.chosen
    if not best.arrives:
        return (
            f"No candidate reached a gap of {found.target:g} within the budget; {best.label()} "
            f"reached "
            f"{'no gap yet' if best.gap is None else f'{best.gap:.2g}'}. Give a larger --budget or "
            f"--target."
        )
    value = _seconds if found.by_time else rounded
    what = (
        f"wall-clock {value(best.objective)}" if found.by_time else f"cost {value(best.objective)}"
    )
    per = "" if found.costs.per == "message" else f" per {found.costs.per}"
    at = "" if found.by_time else f"{per} at R_C = {found.costs.ratio:g}"
    advice = f"Use {best.label()}: predicted {what}{at} ({best.forecast.sure})"
    if best.own:
        return f"{advice}. This is what the config has."
    if found.own is None:
        return f"{advice}."
    if not found.own.arrives:
        return f"{advice}; the config's own method does not reach the target ({found.own.forecast.sure})."
    if found.saving is None:  # both cost nothing
        return f"{advice}; against {value(found.own.objective)} of the config's own method."
    own = f"{value(found.own.objective)} ({found.own.forecast.sure})"
    if found.saving < 1:  # no pilot of the own method reached the target
        return f"{advice}. The config's own method may need only {own}: a larger --budget would settle it."
    return f"{advice}; saves {found.saving:.3g}x against the config's own method, {own}."


def _seconds(value: float) -> str:
    return (
        "-" if not math.isfinite(value) else f"{value:.3g} s" if value < 100 else f"{value:,.0f} s"
    )


def _sure(proposal: Proposal) -> str:
    """The confidence of a forecast; of a rough one, with its range."""
    if proposal.forecast.sure != ROUGH:
        return proposal.forecast.sure
    low, high = proposal.range_of(proposal.objective)
    return f"rough, {rounded(low)} to {rounded(high) if math.isfinite(high) else 'any'}"
