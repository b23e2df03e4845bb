"""From an experiment to its trainings: which curves, with which config, over which seeds."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from mtcd.config.build import build_network
from mtcd.config.data_schema import client_names
from mtcd.config.read import check_config, locate
from mtcd.config.schema import Config, FileData, SyntheticData
from mtcd.config.settings import build_settings
from mtcd.core.errors import ConfigError, DataError, MtcdError, NotInstalledError
from mtcd.core.own_code import look_in
from mtcd.network.spectrum import algebraic_connectivity
from mtcd.network.topology import DRAWN
from mtcd.protocol.ledger.costs import Per
from mtcd_experiments.datasets.catalogue import first_present, is_present
from mtcd_experiments.datasets.config import DatasetData
from mtcd_experiments.merge import laid_over
from mtcd_experiments.schema import Changes, Experiment, Measure, Tune

# methods that draw nothing themselves, on the full batch
STEADY = frozenset({"svfl", "dcpa", "tree-cg"})


@dataclass(frozen=True, eq=False)
class CurvePlan:
    """One curve in one case: its config but for the seed, and the seeds."""

    figure: str
    case: str
    curve: str
    content: Changes
    folder: Path
    """Paths in the config are looked for here first."""
    seeds: tuple[int, ...]
    tune: Tune | None
    """The step sizes to choose from, where one is to be chosen."""
    measure: Measure = "gap"

    @property
    def where(self) -> str:
        """The curve's name in messages."""
        return f"{self.figure}, case {self.case}, curve {self.curve}"

    def config(self, seed: int, stepsize: float | None = None) -> Config:
        """The config of the training with this seed; ``stepsize`` is the one chosen, where it is
        tuned."""
        chosen: Changes = {"seed": seed}
        if stepsize is not None:
            chosen["method"] = {"stepsize": stepsize}
        return self._checked(laid_over(self.content, chosen))

    def trial(self, stepsize: float) -> Config:
        """The config with which a step size is tried out: the first seed, up to the gap of the
        grid."""
        assert self.tune is not None
        stop = {"gap": self.tune.gap, "iterations": self.tune.iterations}
        content = laid_over(self.content, {"method": {"stepsize": stepsize}, "seed": self.seeds[0]})
        return self._checked({**content, "stop": stop})

    @cached_property
    def sample(self) -> Config:
        """The config of the first seed, with the first step size of the grid: all but the step size
        is final."""
        if self.tune is None:
            return self.config(self.seeds[0])
        return self.config(self.seeds[0], self.tune.stepsizes[0])

    def _checked(self, content: Changes) -> Config:
        look_in(self.folder / str(content.get("code") or "."))
        config = locate(check_config(content, self.where), self.folder)
        try:
            build_settings(config)  # what cannot work is refused before anything is trained
        except NotInstalledError as error:
            raise NotInstalledError(f"{self.where}: {error}") from None
        except MtcdError as error:
            raise ConfigError(f"{self.where}: {error}") from None
        self._check_end(config)
        return config

    def _check_end(self, config: Config) -> None:
        gap, epochs = config.stop.gap, config.stop.epochs
        if self.measure == "gap" and gap is None:
            raise ConfigError(
                f"{self.where}: stop.gap is missing; figures show the gap, so say how far down to "
                "go."
            )
        if self.measure == "accuracy" and (gap is not None or epochs is None):
            raise ConfigError(f"{self.where}: with measure: accuracy, stop has epochs and no gap.")


@dataclass(frozen=True, eq=False)
class FigurePlan:
    """A figure: its curves in order, and notes on it."""

    name: str
    experiment: Experiment
    curves: tuple[CurvePlan, ...]
    seeds: int
    quick: bool
    ratio: float
    notes: tuple[str, ...]
    per: Per = "message"


def plan_figure(
    name: str, experiment: Experiment, folder: Path, seeds: int | None = None, quick: bool = False
) -> FigurePlan:
    """Every training of an experiment, all configs checked.

    Without ``seeds``, a figure has those of its file, a quick one those of its quick version.
    """
    if seeds is None:
        seeds = experiment.seeds
        if quick:
            seeds = min(seeds, experiment.quick.seeds)

    curves: list[CurvePlan] = []
    notes: list[str] = []
    for case, settings in experiment.cases.items():
        if quick and not settings.quick:
            continue

        # all configs of a case before any is used: a slip in the last must not cost the others' time
        shown = experiment.shown(case)
        planned = [_curve(name, experiment, case, curve, folder, quick) for curve in shown]
        if settings.optional and not all(_at_hand(plan.sample) for plan in planned):
            notes.append(f"The case {settings.title!r} is left out: its data is not at hand.")
            continue
        for plan in planned:
            resolved, note = _with_data(plan)
            curves.append(_with_seeds(resolved, seeds))
            notes += note
    if not curves:
        raise DataError(f"{name}: no case can be run, the data of none is at hand.")

    notes += [*_stand_in_notes(experiment, curves), *_steady_notes(experiment, curves, seeds)]
    titled = _titled(experiment, curves)
    costs = curves[0].sample.costs  # all curves share them
    return FigurePlan(
        name,
        titled,
        tuple(curves),
        seeds,
        quick,
        float(costs.ratio),
        tuple(dict.fromkeys(notes)),
        costs.per,
    )


def _curve(
    name: str, experiment: Experiment, case: str, curve: str, folder: Path, quick: bool
) -> CurvePlan:
    """The curve with its first seed only; a case's own method settings win over the curve's."""
    own, line = experiment.cases[case].changes, experiment.curves[curve]
    case_method: Changes = {}
    if "method" in own:
        case_method["method"] = own["method"]
    tune = line.tune or experiment.tune
    smaller: tuple[Changes, ...] = ()
    if quick:
        tune = experiment.quick.tune or tune
        smaller = (experiment.quick.changes, line.quick)

    # each layer wins over those before it
    content = laid_over(
        experiment.problem, own, {"method": line.method}, line.changes, case_method, *smaller
    )
    plan = CurvePlan(name, case, curve, content, folder, (0,), tune, experiment.measure)
    for place in (own, line.changes, *smaller):
        if "costs" in place:
            raise ConfigError(
                f"{plan.where}: give costs in problem, where all curves share them; panels have "
                "ratios."
            )
    if "seed" in content:
        raise ConfigError(
            f"{plan.where}: take the key seed out; the seeds are 0, 1, ..., as many as --seeds "
            "says."
        )

    method = content["method"]
    if not isinstance(method, dict) or method.get("stepsize") != "tune":
        return replace(plan, tune=None)
    if experiment.measure == "accuracy":
        raise ConfigError(f"{plan.where}: step sizes are tuned for the gap only: give a number.")
    if tune is None:
        raise ConfigError(
            f"{plan.where}: with stepsize: tune, tune: must give the grid (stepsizes, gap, "
            "iterations)."
        )
    for stepsize in tune.stepsizes:
        plan.trial(stepsize)
    return plan


def _titled(experiment: Experiment, curves: Sequence[CurvePlan]) -> Experiment:
    """The experiment with the facts that its titles ask for, so that they are those of what is
    trained."""
    first = {plan.case: plan.sample for plan in reversed(curves)}
    cases = dict(experiment.cases)
    for name, config in first.items():
        case = experiment.cases[name]
        cases[name] = case.model_copy(update={"title": _told(case.title, config)})
    title = _told(experiment.title, curves[0].sample)
    return experiment.model_copy(update={"cases": cases, "title": title})


def _told(title: str, config: Config) -> str:
    clients = client_names(config.data.clients)
    title = title.replace("{clients}", str(len(clients))).replace("{data}", _data_name(config))
    if "{connectivity}" not in title:
        return title
    try:
        connectivity = algebraic_connectivity(build_network(config, clients))
    except MtcdError as error:
        raise ConfigError(f"{title}: {error}") from None
    return title.replace("{connectivity}", f"{connectivity:.2g}")


def _data_name(config: Config) -> str:
    data = config.data
    if isinstance(data, DatasetData):
        return " or ".join(data.dataset)
    if isinstance(data, FileData):
        return data.table.stem
    return "made-up data"


def _at_hand(config: Config) -> bool:
    """Whether the data is there; an unknown data set is an error even where it may be missing."""
    data = config.data
    if isinstance(data, FileData):
        return os.path.exists(data.table)
    return not isinstance(data, DatasetData) or any(is_present(name) for name in data.dataset)


def _with_data(plan: CurvePlan) -> tuple[CurvePlan, list[str]]:
    """The plan with the one data set that is used, so that kept trainings are never those of
    another."""
    data = plan.sample.data
    if not isinstance(data, DatasetData):
        return plan, []
    try:
        used = first_present(data.dataset)
    except DataError as error:
        raise DataError(f"{plan.where}: {error}") from None
    notes = []
    if used != data.dataset[0]:
        notes.append(f"{data.dataset[0]} is not at hand: {used} takes its place.")
    return replace(plan, content=laid_over(plan.content, {"data": {"dataset": used}})), notes


def _with_seeds(plan: CurvePlan, seeds: int) -> CurvePlan:
    """All seeds, or one where they would all give the same."""
    if not _draws(plan.sample):
        seeds = 1
    return replace(plan, seeds=tuple(range(seeds)))


def _draws(config: Config) -> bool:
    """Whether anything in this training is drawn from its seed."""
    data, network, method = config.data, config.network, config.method
    return (
        method.kind not in STEADY
        or method.batch is not None
        or config.model.kind == "split"  # how the networks start
        or (isinstance(data, SyntheticData) and data.seed is None)
        or (network.kind in DRAWN and network.seed is None)
    )


def _stand_in_notes(experiment: Experiment, curves: Sequence[CurvePlan]) -> list[str]:
    """A title for the quick version, if it uses other data."""
    asked, names = experiment.problem.get("data"), None
    if isinstance(asked, dict):
        names = asked.get("dataset")
    if names is None or not any(isinstance(plan.sample.data, SyntheticData) for plan in curves):
        return []
    if not isinstance(names, str):
        names = names[0]
    return [f"Made-up data in place of {names}."]


def _steady_notes(experiment: Experiment, curves: list[CurvePlan], seeds: int) -> list[str]:
    once = [experiment.curves[plan.curve].label for plan in curves if len(plan.seeds) < seeds]
    if not once:
        return []
    labels = ", ".join(dict.fromkeys(once))
    return [f"Trained once, since every seed would give the same: {labels}."]
