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
from mtcd.planner.command_machines import Fleet, machines_table, measured
from mtcd.planner.forecast import ROUGH
from mtcd.planner.halving import Watch
from mtcd.planner.interfaces import with_interfaces
from mtcd.planner.links import Links, parse_budget, read_links
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
    _check_together(options)
    machine = Machine.parse(options.machine)

    # all that can be refused is refused before the optimum and the pilots take their minutes
    config = read_config(options.config, options.changes, options.seed)
    out, picture = _outputs(options)

    own_plans = _own_plans(config.model)
    if own_plans is None and not isinstance(kind_of(config.model), LinearKind):
        # before the model is built, which may run code of the user
        raise ConfigError(
            "mtcd plan supports linear models, trees and mixed families, but not split networks."
        )
    if not may_run():
        refuse_code(config, f"plan with it: mtcd plan {options.config} --run-code")

    setup = build(config)
    # a model or a method may have a planner of its own; the model's knows its methods too
    own_plans = own_plans or _own_plans(setup.method)
    if own_plans is not None:
        _plan_with(own_plans, setup, options, budget, out)
        return

    links = _links(options, setup)
    fleet = None
    prefer = None

    if options.machines is not None:
        fleet = Fleet.of(setup, machine, options.machines)
        prefer = fleet.seconds
    with _progress() as watch:
        found = plan(
            setup,
            target=options.target,
            budget=budget,
            ratio=options.ratio,
            links=links,
            watch=watch,
            backend=options.backend,
            prefer=prefer,
        )

    drawn = regions_png(found)  # first: if it fails, no config without its picture is left behind
    write_whole(out, _heading(found, options.config) + found.yaml())
    write_whole(picture, drawn)
    show_notes(found.notes)
    if found.optimum_seconds > REPORTED_SECONDS:
        aside.print(
            f"The optimum took {found.optimum_seconds:.0f} s, outside the budget.", highlight=False
        )

    written = {"out": str(out), "picture": str(picture)}
    if options.as_json:
        summary = found.summary() | _machines_summary(found, fleet) | written
        print(json.dumps(summary, allow_nan=False))  # noqa: T201
        return

    screen.print(candidates_table(found))
    _show_recommendation(found, fleet)
    _say(f"Config to use: {escape(str(out))}  picture: {escape(str(picture))}")


EXCLUSIVE = {
    ("ratio", "links"): "--ratio and --links exclude each other: give --ratio to plan for cost, "
    "--links for time.",
    ("machines", "links"): "--machines and --links exclude each other: --machine latency_ms=... "
    "says what links are like.",
}
"""Pairs of options that contradict each other."""
REQUIRED = {
    ("hosts", "links"): "--hosts says what the hosts at the ends of links can carry: give --links "
    "too.",
    ("machine", "machines"): "--machine describes one of --machines: give their number too.",
}
"""Options that mean nothing without another."""


def _check_together(options: PlanOptions) -> None:
    given = {name for name, value in vars(options).items() if value not in (None, ())}
    for pair, why in EXCLUSIVE.items():
        if given.issuperset(pair):
            raise ConfigError(why)
    for (option, needed), why in REQUIRED.items():
        if option in given and needed not in given:
            raise ConfigError(why)


def _outputs(options: PlanOptions) -> tuple[Path, Path]:
    """The files to write, the config and its picture: they can be written, and hold nothing of the
    user's own."""
    out = _checked(options.out or Path(f"{options.config.stem}.planned.yaml"), options.config)
    if out.suffix == ".png":
        raise ConfigError(f"--out {out} names a picture: choose a file that ends with .yaml.")

    picture = _checked(out.with_suffix(".png"), options.config)
    if not options.force:
        _check_own_plan(out, picture, options.config)
    return out, picture


def _links(options: PlanOptions, setup: Setup) -> Links | None:
    """The links of ``--links``, with the interfaces of ``--hosts``."""
    if options.links is None:
        return None
    return with_interfaces(read_links(options.links, setup.network), options.hosts, setup.network)


def _machines_summary(found: SettingsPlan, fleet: Fleet | None) -> dict[str, Any]:
    """What JSON says of machines, if they were asked about."""
    if fleet is None:
        return {}
    if not measured(found):
        return {"machines": []}
    return {"machines": [best.summary() for best in fleet.bests(found)]}


def _show_recommendation(found: SettingsPlan, fleet: Fleet | None) -> None:
    if fleet is None:
        _say(escape(recommendation(found)))
    elif measured(found):
        screen.print(machines_table(fleet.bests(found)))
        _say(escape(fleet.advice(found)))
    else:
        _say(escape(recommendation(found)))
        _say(fleet.nothing_measured(found))


def _say(text: str) -> None:
    """A sentence on the screen. Lines are broken by the terminal, so that paths can be copied."""
    screen.print(text, highlight=False, soft_wrap=True)


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
    # None where the config already has what is best
    config = found.yaml()
    written: dict[str, str] = {}
    used = "The config is used as it is."
    if config is not None:
        write_whole(out, f"{_planned_from(options.config)}. {found.said()}\n{config}")
        written = {"out": str(out)}
        used = f"Config to use: {out}"

    show_notes(found.notes)
    if options.as_json:
        print(json.dumps(found.summary() | written, allow_nan=False))  # noqa: T201
        return

    screen.print(found.table())
    _say(escape(f"{found.said()} {used}"))


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
    # an earlier plan of this config is the pair of files, so its picture may go too
    if _starts_with(out, _planned_from(config)):
        return
    there = [path for path in (out, picture) if path.exists()]
    if there:
        raise ConfigError(
            f"{there[0]} is not an earlier plan of {config.name}: choose another file with --out, "
            "or replace it with --force."
        )


def _starts_with(path: Path, words: str) -> bool:
    try:
        with path.open(encoding="utf-8") as file:
            return file.read(len(words)) == words
    except (OSError, ValueError):  # not there, or no text: no plan in any case
        return False


@contextmanager
def _progress() -> Iterator[Watch]:
    """A progress bar on standard error: the current stage, and the fraction of its time that has
    passed."""
    # on standard error: standard output may be JSON, for a program
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=24), TimeElapsedColumn())
    with Progress(*columns, console=aside, transient=True, refresh_per_second=8) as bar:
        task = bar.add_task("getting ready", total=1.0)

        def watch(state: str, fraction: float) -> None:
            bar.update(task, description=escape(state), completed=min(fraction, 1.0))

        yield watch


def _heading(found: SettingsPlan, config: Path) -> str:
    # a comment in YAML: the file trains as it is
    return f"{_planned_from(config)} for a gap of {found.target:g}. {recommendation(found)}\n"


def _planned_from(config: Path) -> str:
    """How every plan of a config begins, by which it is known again."""
    return f"# Planned from {config.name!r}"


def best_of_each(found: SettingsPlan, rows: int = ROWS) -> list[Proposal]:
    """The best candidate of each kind, best first; the config's own method is always among them."""
    best: dict[object, Proposal] = {}
    for proposal in found.proposals:
        # candidates that differ in the number of tokens only are one kind
        group: object = kind(proposal.method)[:4]
        if proposal.own:
            group = "own"
        best.setdefault(group, proposal)

    shown = list(best.values())[:rows]
    if found.own is not None and not any(proposal.own for proposal in shown):
        shown[-1:] = [
            found.own
        ]  # in the place of the worst: it is what the others are held against
    return shown


def candidates_table(found: SettingsPlan) -> ScreenTable:
    """The predicted cost of each candidate, and its confidence."""
    titles = ["method", "cost", "hops", "server", "compute"]
    if found.by_time:
        titles.append("wall-clock")
    titles.append("how sure")

    rows = [_row(proposal) for proposal in best_of_each(found)]
    return ScreenTable(titles, rows, words=["method", "how sure"], best=True)


def _row(proposal: Proposal) -> list[str]:
    label = proposal.label()
    if proposal.own:
        label += " (yours)"

    cells = [label, rounded(proposal.cost), *_message_cells(proposal)]
    cells.append(_seconds(proposal.compute_seconds))
    if proposal.wall_seconds is not None:
        cells.append(_seconds(proposal.wall_seconds))
    cells.append(_sure(proposal))
    return cells


def _message_cells(proposal: Proposal) -> list[str]:
    """Messages between clients, and with the server, up to the target."""
    if not proposal.arrives:
        return ["-", "-"]
    messages = proposal.messages
    return [rounded(messages["client_client"]), rounded(messages["uplink"] + messages["downlink"])]


def recommendation(found: SettingsPlan) -> str:
    """The recommendation and its reason, in one or two sentences."""
    best = found.chosen
    if not best.arrives:
        return _none_arrives(found)
    return (
        f"Use {best.label()}: predicted {_predicted(found)} ({best.forecast.sure})"
        f"{_against_own(found)}"
    )


def _none_arrives(found: SettingsPlan) -> str:
    best, reached = found.chosen, "no gap yet"
    if best.gap is not None:
        reached = f"{best.gap:.2g}"
    return (
        f"No candidate reached a gap of {found.target:g} within the budget; {best.label()} "
        f"reached {reached}. Give a larger --budget or --target."
    )


def _predicted(found: SettingsPlan) -> str:
    """What the proposed settings are predicted to take, with its unit."""
    value = _amount(found, found.chosen)
    if found.by_time:
        return f"wall-clock {value}"
    return f"cost {value}{found.per_unit} at R_C = {found.costs.ratio:g}"


def _amount(found: SettingsPlan, proposal: Proposal) -> str:
    if found.by_time:
        return _seconds(proposal.objective)
    return rounded(proposal.objective)


def _against_own(found: SettingsPlan) -> str:
    """How the recommendation ends: what is gained against the config's own method."""
    own = found.own
    if found.chosen.own:
        return ". This is what the config has."
    if own is None:
        return "."
    if not own.arrives:
        return f"; the config's own method does not reach the target ({own.forecast.sure})."
    if found.saving is None:  # both cost nothing
        return f"; against {_amount(found, own)} of the config's own method."

    amount = f"{_amount(found, own)} ({own.forecast.sure})"
    if found.saving < 1:  # no pilot of the own method reached the target
        return (
            f". The config's own method may need only {amount}: a larger --budget would settle it."
        )
    return f"; saves {found.saving:.3g}x against the config's own method, {amount}."


def _seconds(value: float) -> str:
    if not math.isfinite(value):
        return "-"
    if value < 100:
        return f"{value:.3g} s"
    return f"{value:,.0f} s"


def _sure(proposal: Proposal) -> str:
    """The confidence of a forecast; of a rough one, with its range."""
    if proposal.forecast.sure != ROUGH:
        return proposal.forecast.sure

    low, high = proposal.range_of(proposal.objective)
    most = "any"
    if math.isfinite(high):
        most = rounded(high)
    return f"rough, {rounded(low)} to {most}"
