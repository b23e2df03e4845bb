"""The plan of an additive model: candidates train for as many trees each, and the cheapest to a
held-out loss wins.

There is no optimum to measure a gap from, and a lower training loss may be overfitting. So the
target is the best held-out loss of all candidates but for a small share, and each candidate is
charged what it cost to get there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mtcd.config.build import Setup, resolved_yaml
from mtcd.config.method_schema import method_section
from mtcd.config.schema import Config
from mtcd.core.checks import check_number
from mtcd.core.errors import ConfigError, MtcdError
from mtcd.core.terminal.table import ScreenTable
from mtcd.core.terminal.text import rounded
from mtcd.data.vertical import VerticalData
from mtcd.methods.method import Method
from mtcd.methods.mtcd.mtcd import MTCD, STCD
from mtcd.models.trees.model import Additive
from mtcd.network.topology import Network
from mtcd.training.stop import Stop
from mtcd.training.train import train

HOLDOUT = 0.25
SLACK = 0.01  # the target is the best held-out loss, and this share of it
TREES = 200  # of a candidate, unless the config says how many

Watch = Callable[[str, float], None]
"""Called with the method that is tried next, and the share of the candidates that are done."""


@dataclass(frozen=True)
class Curve:
    """How the held-out loss of a method fell: (loss, cost, iteration) of each measurement."""

    method: Method
    points: Sequence[tuple[float, float, int]]
    seconds: float


@dataclass(frozen=True)
class AdditiveCandidate:
    """What a method achieved: its best held-out loss, and its cost to the target (infinite if it
    was not reached)."""

    method: Method
    own: bool
    """Whether it is the method of the config."""
    best: float
    cost: float
    iterations: int
    """The iteration at which the target was reached, or else of the best loss."""
    seconds: float

    @property
    def label(self) -> str:
        """The method in a few words."""
        return self.method.describe()


@dataclass(frozen=True)
class AdditivePlan:
    """The candidates, best first, and the config with the best one."""

    candidates: tuple[AdditiveCandidate, ...]
    metric: str
    target: float
    config: Config
    notes: tuple[str, ...]

    def yaml(self) -> str:
        """The config to use, as YAML."""
        return resolved_yaml(self.config)

    def said(self) -> str:
        """The sentence that recommends the best candidate, with its cost and the held-out loss."""
        best = self.candidates[0]
        return (
            f"Use {best.label}: cost {rounded(best.cost)} to a held-out {self.metric} of "
            f"{self.target:.4g}."
        )

    def table(self) -> ScreenTable:
        """The candidates as a table for the screen, best first."""
        rows = []
        for one in self.candidates:
            yours = " (yours)" if one.own else ""
            cells = [rounded(one.cost), f"{one.best:.4g}", f"{one.iterations}"]
            rows.append([one.label + yours, *cells])

        titles = ["method", "cost", f"best held-out {self.metric}", "iterations"]
        return ScreenTable(titles, rows, words=["method"], best=True)

    def summary(self) -> dict[str, Any]:
        """The plan as plain values, for JSON."""
        shown = []
        for one in self.candidates:
            cost = one.cost if math.isfinite(one.cost) else None  # JSON has no infinity
            row = {"method": one.label, "yours": one.own, self.metric: one.best, "cost": cost}
            shown.append({**row, "iterations": one.iterations})
        return {
            "metric": self.metric,
            "target": self.target,
            "candidates": shown,
            "notes": list(self.notes),
        }


class AdditivePlans:
    """The plans of trees and mixed families in ``mtcd plan``."""

    refused: Mapping[str, str] = {
        "machines": "is for linear models: leave it out for this one.",
        "backend": "are for linear models: leave them out for this one.",
        "links": "is for linear models: trees are planned by cost and held-out loss.",
        "target": "is for linear models: trees are planned by cost and held-out loss.",
    }

    def plan(
        self, setup: Setup, budget: float, ratio: float | None, watch: Watch | None
    ) -> AdditivePlan:
        """Plan an additive model: the interface of ``mtcd plan`` to :func:`plan_additive`."""
        return plan_additive(setup, budget, ratio, watch)


PLANS = AdditivePlans()


def plan_additive(
    setup: Setup, budget: float = 60.0, ratio: float | None = None, watch: Watch | None = None
) -> AdditivePlan:
    """Train all candidates on a part of the samples, and choose by their cost to a loss on the
    others.

    Parameters
    ----------
    setup : Setup
        The parts of a config.
    budget : float, default 60
        Seconds for all candidates together.
    ratio : float, optional
        The price of a message with the server in messages between clients; as in the config unless
        given.
    watch : callable, optional
        Told of the progress.

    Returns
    -------
    AdditivePlan
        The candidates, best first, and the config with the best one.

    Raises
    ------
    ConfigError
        If the model is not additive, or no candidate can train it.
    """
    check_number("budget", budget, above=0)
    data = setup.data
    model = setup.model
    if not isinstance(data, VerticalData) or not isinstance(model, Additive):
        raise ConfigError("This plan is for trees and mixed families.")
    # A test set of the user is kept, so that plan and training judge by the same rows.
    if data.test is None:
        data = data.holdout(HOLDOUT, setup.config.seed)
    costs = setup.costs
    if ratio is not None:
        costs = replace(costs, ratio=ratio)
    metric = _metric(model)

    methods = candidates(setup.method, setup.network)
    notes = []
    curves: list[Curve] = []
    for number, method in enumerate(methods):
        if watch is not None:
            watch(method.describe(), number / len(methods))
        stop = Stop(iterations=_iterations(setup, method), seconds=budget / len(methods))
        try:
            run = train(
                data,
                model,
                setup.network,
                method,
                stop,
                costs,
                setup.config.seed,
                metrics=(metric,),
            )
        except MtcdError as error:
            notes.append(f"{method.describe()} cannot work here. {error}")
            continue

        name = f"test_{metric}"
        points = []
        for row in run.history.rows:
            if name in row.metrics:
                points.append((row.metrics[name], row.cost, row.iteration))
        curves.append(Curve(method, points, run.final.seconds))
    if not curves:
        raise ConfigError(f"No method can work here. {' '.join(notes)}")

    # The target comes from the candidates themselves, as the best loss of this data is not known.
    lowest = min(min(curve.points)[0] for curve in curves)
    target = lowest * (1 + SLACK)
    # candidates that miss the target cost infinitely much: among them, the lowest loss wins
    found = sorted(
        (_candidate(setup, curve, target) for curve in curves),
        key=lambda one: (one.cost, one.best),
    )
    config = _with_method(setup.config, found[0], ratio)
    return AdditivePlan(tuple(found), metric, target, config, tuple(notes))


def _metric(model: Additive) -> str:
    """The held-out loss by which methods are compared: one that all losses of this task share."""
    if model.plain_loss.gives_probabilities:
        return "log_loss"
    if model.loss == "quantile":
        return "mae"
    return "rmse"


def _with_method(config: Config, chosen: AdditiveCandidate, ratio: float | None) -> Config:
    # Further iterations would overfit: that is what the held-out loss has shown.
    """The config with this method, stopped where it had reached the target."""
    stop = config.stop.model_copy(update={"iterations": chosen.iterations})
    update: dict[str, Any] = {"method": method_section(chosen.method), "stop": stop}
    if ratio is not None:
        update["costs"] = config.costs.model_copy(update={"ratio": ratio})
    return config.model_copy(update=update)


def candidates(own: Method, network: Network) -> Sequence[Method]:
    """The config's own method, lone tokens, and tokens per cluster that sync with optimal
    weights."""
    found: list[Method] = [own, STCD(walk="tour"), STCD(walk="tour", local_updates=3), STCD()]
    if network.size > 2:
        clusters = max(2, round(math.sqrt(network.size)))
        found.append(
            MTCD(
                tokens=clusters,
                clusters="auto",
                # Rounded up: the hops of all tokens together visit every party of their clusters.
                hops=-(-network.size // clusters),
                combine="optimal",
            )
        )
        found.append(MTCD(tokens=clusters, hops=network.size, combine="optimal"))
    # The config's own method may be one of these; the first mention stays.
    return list(dict.fromkeys(found))


def _iterations(setup: Setup, method: Method) -> int:
    """The iterations in which this method grows as many trees as all other candidates, if each
    visit grows Q of them."""
    if setup.stop.iterations is None:
        trees = TREES
    else:
        trees = setup.stop.iterations * _trees(setup.method, setup)
    return max(1, trees // _trees(method, setup))


def _trees(method: Method, setup: Setup) -> int:
    """The trees of an iteration: a hop of a lone token, or S hops of every token up to the sync."""
    if not isinstance(method, MTCD):
        return method.local_updates
    clusters = method.token_clusters(setup.network, setup.config.seed)
    tokens = (method.tokens or 1) if clusters is None else len(clusters)
    return tokens * (method.hops or 1) * method.local_updates


def _candidate(setup: Setup, curve: Curve, target: float) -> AdditiveCandidate:
    """What the method of this curve achieved."""
    # Smallest loss first: `points` are tuples that begin with it.
    best, _, iterations = min(curve.points)
    cost = math.inf
    for loss, cost_so_far, iteration in curve.points:
        if loss <= target:
            cost = cost_so_far
            iterations = iteration
            break

    own = curve.method == setup.method
    return AdditiveCandidate(curve.method, own, best, cost, max(1, iterations), curve.seconds)
