"""A regularisation path: trainings along l1 or l2, from strong to weak, each from the end of the
one before."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike

from mtcd.core.arrays import Array
from mtcd.core.checks import check_number, check_whole
from mtcd.core.errors import ConfigError, did_you_mean
from mtcd.core.optional import find
from mtcd.core.rows import Rows
from mtcd.data.standardise import standardise as standardised
from mtcd.data.vertical import VerticalData
from mtcd.methods.default import default_method, default_note
from mtcd.methods.method import Method
from mtcd.models.glm.model import Glm
from mtcd.models.glm.optimum.optimum import optimum
from mtcd.models.glm.penalty import Penalty
from mtcd.models.glm.smoothness import overall_smoothness
from mtcd.models.metrics import find_metric
from mtcd.network.topology import Network
from mtcd.protocol.ledger.costs import Costs
from mtcd.studies.outcomes import Outcomes, check_trained, final_metrics
from mtcd.training.kinds import as_network, kind_of
from mtcd.training.observer import Watch
from mtcd.training.run import Run
from mtcd.training.stop import Stop
from mtcd.training.train import train

Over = Literal["l1", "l2"]
LEAST = {"l1": 1e-3, "l2": 1e-5}
"""The weakest penalty of a number of points, as a share of the strongest."""


@dataclass(frozen=True, eq=False)
class RegularisationPath(Outcomes):
    """The result of :func:`path`: a run for every value of the penalty, from strong to weak.

    Parameters
    ----------
    over : 'l1' or 'l2'
        The penalty.
    values : array
        Its values.
    runs : tuple of Run
        A run for each.
    metrics : tuple of mappings
        The metrics of each run.
    metric : str or None
        The one by which ``best`` is chosen, such as 'test_auc'; None without a test set.

    Examples
    --------
    >>> import mtcd
    >>> data = mtcd.synthetic("linear", samples=60, features=8, clients=4)
    >>> found = mtcd.path(data, mtcd.Glm("linear"), l1=3, stop=mtcd.Stop(iterations=40))
    >>> found.over, len(found.values), len(found.runs)
    ('l1', 3, 3)
    """

    over: Over
    values: Array
    runs: tuple[Run, ...]
    metrics: tuple[dict[str, float], ...]
    metric: str | None

    def __repr__(self) -> str:
        ends = f"{self.values[0]:.4g} to {self.values[-1]:.4g}"
        best = ""
        if self.metric is not None:
            value = self.metrics[self.best_index][self.metric]
            best = f", best {self.metric} {value:.4g} at {self.best_value:.4g}"
        return f"RegularisationPath({len(self.runs)} runs, {self.over} from {ends}{best})"

    @property
    def coefficients(self) -> Array:
        """The coefficients of all runs, on the columns as given: (runs, d), or (runs, d,
        classes)."""
        return np.stack([run.coefficients for run in self.runs])

    @property
    def column_names(self) -> tuple[str, ...]:
        """The columns in the order of ``coefficients``."""
        names: tuple[str, ...] = self.runs[0].column_names
        return names

    @property
    def best(self) -> Run:
        """The run with the best ``metric`` on the test set; of equal ones, that with the strongest
        penalty."""
        return self.runs[self.best_index]

    @property
    def best_value(self) -> float:
        """The penalty of ``best``."""
        return float(self.values[self.best_index])

    @property
    def best_index(self) -> int:
        """The position of ``best``."""
        return int(np.nanargmax(self._chosen()))

    def _chosen(self) -> Array:
        """The metric of all runs, turned such that more is better."""
        if self.metric is None:
            raise ConfigError(
                "Which run is best is decided on a test set: make one with data.holdout(0.2)."
            )
        # NaN where a metric is not defined, which nanargmax passes over
        found = np.array([one[self.metric] for one in self.metrics])
        if find_metric(self.metric.partition("_")[2]).higher_is_better:
            return found
        return -found

    def rows(self) -> Rows:
        rows = Rows()
        for value, run, metrics in zip(self.values.tolist(), self.runs, self.metrics, strict=True):
            last, kept = run.final, int(np.count_nonzero(run.coefficients))
            about = {
                self.over: value,
                "nonzero": kept,
                "objective": last.objective,
                "status": run.status,
            }
            rows.append({**about, "iterations": last.iteration, "cost": last.cost, **metrics})
        return rows

    def plot(self, file: str | Path) -> None:
        """Draw the coefficients, and the metric if there is a test set, against the penalty."""
        find("mtcd.studies.plots").plot_path(self, Path(file))


def path(
    data: VerticalData,
    model: Glm | None = None,
    network: Network | nx.Graph | Iterable[tuple[str | int, str | int]] | str = "complete",
    method: Method | None = None,
    l1: int | ArrayLike | None = None,
    l2: int | ArrayLike | None = None,
    stop: Stop | None = None,
    costs: Costs | None = None,
    seed: int = 0,
    standardise: bool = False,
    metrics: Sequence[str] | None = None,
    metric: str | None = None,
    watch: Watch | None = None,
) -> RegularisationPath:
    """Train along ``l1`` or ``l2``, from strong to weak, each run from the end of the one before.

    For a number of points, the values are evenly spaced in the logarithm: from the least l1 with
    which all coefficients are 0 down to a thousandth of it, or from l2 = L, the smoothness of the
    loss, down to 1e-5 L. The other penalty stays that of the model. Methods that start at 0 (dcpa,
    tree-cg) do so at every point.

    Parameters
    ----------
    data : VerticalData
        As in :func:`train`.
    model : Glm, optional
        As in :func:`train`.
    network : str, Network or links, default 'complete'
        As in :func:`train`.
    method : Method, optional
        As in :func:`train`.
    l1 : int or array, optional
        The values of l1, or their number.
    l2 : int or array, optional
        The values of l2, or their number.
    stop : Stop, optional
        As in :func:`train`.
    costs : Costs, optional
        As in :func:`train`.
    seed : int, default 0
        As in :func:`train`.
    standardise : bool, default False
        As in :func:`train`.
    metrics : sequence of str, optional
        As in :func:`train`.
    metric : str, optional
        Decides which run is best on the test set of the data: the first of ``metrics`` unless
        given.
    watch : callable, optional
        As in :func:`train`.

    Returns
    -------
    RegularisationPath
        A run for every value.

    Examples
    --------
    >>> import mtcd
    >>> data = mtcd.synthetic("ridge", samples=60, features=6, clients=3).holdout(0.3)
    >>> found = path(data, mtcd.Glm("linear"), "path", mtcd.STCD(5), l1=4, stop=mtcd.Stop(iterations=200))
    >>> found.coefficients.shape, [row["nonzero"] for row in found.rows()][0], found.metric
    ((4, 6), 0, 'test_rmse')
    """
    model = model or Glm()
    if not isinstance(model, Glm) or not isinstance(data, VerticalData):
        raise ConfigError("path is for linear models: give a Glm and VerticalData.")
    if (l1 is None) == (l2 is None):
        raise ConfigError(
            "path goes along l1 or l2: give a list of values, or the number of points, of one of "
            "them."
        )
    over: Over = "l1"
    given = l1
    if l1 is None:
        over, given = "l2", l2
    assert given is not None
    values = penalties(over, given, model, data, standardise)

    network = as_network(network, data.clients, seed)
    notes: tuple[str, ...] = ()
    if method is None:  # one for all points, also for an l1 of 0 at the end
        method = path_method(model, over, network)
        notes = (default_note(method, network.connected),)

    # from strong to weak: the sparse models of strong penalties are found quickly, and each is a
    # good start for the next; where clients come and go, they start without what others have
    runs: list[Run] = []
    found: list[dict[str, float]] = []
    for value in values.tolist():
        start = None
        if runs and method.warm_starts and not network.changes:
            start = runs[-1]

        run = train(
            data,
            with_penalty(model, over, value),
            network,
            method,
            stop,
            costs,
            seed,
            standardise,
            watch,
            metrics=metrics,
            start=start,
        )

        # every run says which method was taken for all of them
        run = replace(run, notes=(*notes, *run.notes))
        runs.append(check_trained(run, f"{over} = {value:g}"))
        found.append(final_metrics(run, data, metrics))
        deciding = _deciding(metric, found[0])  # refused after the first training, not after all
    return RegularisationPath(over, values, tuple(runs), tuple(found), deciding)


def path_method(model: Glm, over: Over, network: Network) -> Method:
    """The method for all points of a path, where none is given."""
    # with a penalty in any case: with l1 other methods are possible than without
    penalised = with_penalty(model, over, 1.0)
    return default_method(kind_of(penalised), penalised, network.connected)


def with_penalty(model: Glm, over: Over, value: float) -> Glm:
    """The model with this l1 or l2."""
    if over == "l1":
        return replace(model, l1=value)
    return replace(model, l2=value, alpha=None)  # alpha is another name of l2


def penalties(
    over: Over, given: int | ArrayLike, model: Glm, data: VerticalData, standardise: bool
) -> Array:
    """The values of a path, from strong to weak.

    Parameters
    ----------
    over
        The penalty.
    given
        The values, or how many: these are spaced evenly on a logarithmic scale.
    model
        The model.
    data
        The samples, which tell the strongest value that makes a difference.
    standardise
        Whether the columns are scaled before training.
    """
    if isinstance(given, int | np.integer) and not isinstance(given, bool):
        check_whole(f"the number of points of {over}", given, least=2)
        if standardise:
            data = standardised(data)[0]

        most = strongest(over, model, data)
        return np.geomspace(most, LEAST[over] * most, int(given))
    try:
        values = np.atleast_1d(np.asarray(given, dtype=float))
    except (TypeError, ValueError):
        values = np.zeros(0)
    if values.ndim != 1 or not values.size:
        raise ConfigError(f"{over} must be a list of numbers, or the number of points.")
    for value in values.tolist():
        check_number(over, value)
    # from strong to weak, each value once
    return np.unique(values)[::-1]


def strongest(over: Over, model: Glm, data: VerticalData) -> float:
    """The least l1 with which all coefficients are 0; of l2, the smoothness L of the loss."""
    problem = model.problem(data)
    blocks = []
    for X, penalty in zip(problem.blocks, problem.penalties, strict=True):
        blocks.append(X[:, : X.shape[1] - penalty.free])  # without the column of the intercept

    if over == "l2":
        return overall_smoothness(blocks, problem.loss)

    z = np.zeros(problem.labels.shape)
    if model.intercept:  # which is then fitted alone
        ones = np.ones((problem.samples, 1))
        z += optimum([ones], problem.labels, problem.loss, [Penalty(free=1)]).parameters[0]

    # 0 is optimal where the gradient of the loss is within the subdifferential of l1 |theta|_1
    slope = problem.loss.gradient(z, problem.labels)
    return max(float(np.abs(X.T @ slope).max()) for X in blocks)


def _deciding(metric: str | None, found: dict[str, float]) -> str | None:
    """The name of the metric by which the best run is chosen: one that is defined on the test
    set."""
    tested = []
    for name, value in found.items():
        if name.startswith("test_") and not math.isnan(value):
            tested.append(name)

    if metric is None:
        return next(iter(tested), None)

    name = metric
    if not metric.startswith("test_"):
        name = f"test_{metric}"
    if name in found and name not in tested:
        raise ConfigError(
            f"metric: {metric!r} is not defined on this test set: choose another, or hold out more "
            f"samples."
        )
    if name not in tested:
        hint = "there is no test set: make one with data.holdout(0.2)."
        if tested:
            hint = did_you_mean(metric, [one.removeprefix("test_") for one in tested])

        raise ConfigError(f"metric: {metric!r} is not computed here; {hint}")
    return name
