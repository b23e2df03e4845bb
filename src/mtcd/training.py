"""train(): joins data, model, network and method, runs them in this process, and measures on the way."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from time import perf_counter

import networkx as nx
import numpy as np

from mtcd.checks import check_whole
from mtcd.data.scaling import standardise as standardised
from mtcd.data.vertical import VerticalData
from mtcd.engines.local import LocalEngine
from mtcd.engines.lockstep import LockstepEngine
from mtcd.errors import ConfigError, MtcdError
from mtcd.history import History, Measurement
from mtcd.ledger.costs import Costs
from mtcd.ledger.ledger import Ledger
from mtcd.methods.method import Method
from mtcd.model.linear import Glm, LinearProblem
from mtcd.model.trained import TrainedModel
from mtcd.network.edges import network_from_edges
from mtcd.network.topology import Network, make_network
from mtcd.objective.cache import cached_optimum
from mtcd.objective.optimum import optimum
from mtcd.protocol.party import Cast, Progress
from mtcd.run import Run
from mtcd.stop import Stop
from mtcd.theory.stepsize import Smoothness, stability_limit

Watch = Callable[[Measurement, float], None]
# measure again when the iterations have grown by this much: a million hops need a thousand measurements
SPACING = 1.01
NEAR = 1.001  # close to the gap asked for, look more often
# a training whose objective is this many times that of the start has diverged ...
HOPELESS = 1e3
# ... and at the end it must not be above the start at all; mini-batches are noisy, and may be a little
WORST_END, WORST_NOISY_END = 1.0, 10.0


def train(
    data: VerticalData,
    model: Glm | None = None,
    network: Network | nx.Graph | Iterable[tuple[str | int, str | int]] | str = "complete",
    method: Method | None = None,
    stop: Stop | None = None,
    costs: Costs | None = None,
    seed: int = 0,
    standardise: bool = False,
    watch: Watch | None = None,
) -> Run:
    """Train a model on vertically split data over a network, and return the :class:`Run`.

    f(theta) = sum_n l(sum_k x_nk . theta_k, y_n) + sum_k r(theta_k)

    ``network`` is a kind by name, a networkx graph over the clients, pairs of clients, or a :class:`Network`;
    ``method`` is MTCD(...), STCD(...), SVFL(...) or DCPA(...). ``watch`` is called with every measurement and how far
    along it is.

    >>> import mtcd
    >>> data = mtcd.synthetic("ridge", samples=50, features=12, clients=4)
    >>> run = mtcd.train(data, mtcd.Glm("ridge", alpha=1.0), "path", mtcd.STCD(local_updates=5), mtcd.Stop(gap=1e-6))
    >>> run.status, run.coefficients.shape
    ('converged', (12,))
    """
    if not isinstance(method, Method):
        raise ConfigError(f"train needs a method, MTCD(...), STCD(...), SVFL(...) or DCPA(...), but got {method!r}.")
    model, stop, costs = model or Glm(), stop or Stop(iterations=10_000), costs or Costs()
    for given, kind in ((data, VerticalData), (model, Glm), (stop, Stop), (costs, Costs)):
        if not isinstance(given, kind):
            raise ConfigError(f"train wants a {kind.__name__}, but got {given!r}.")
    check_whole("seed", seed, least=0)
    data, scaling = standardised(data) if standardise else (data, None)
    problem = model.problem(data)
    smoothness = Smoothness(problem)
    method, notes = settle_stepsize(method, smoothness)
    over = as_network(network, data.clients, seed)
    cast = method.cast(problem, over, seed)
    best = best_objective(data, model, problem) if stop.gap is not None else None
    training = Training(problem, cast, costs, best, WORST_END if method.batch is None else WORST_NOISY_END)
    status = training.follow(stop, watch)
    thetas = cast.parameters()
    if status != "diverged" and not all(np.isfinite(theta).all() for theta in thetas):
        status = "diverged"
    return Run(
        status=status,
        message=_sentence(status, method, smoothness, training.rows[-1]),
        method=method.describe(),
        stepsize=method.settled_stepsize(),
        history=History(training.rows),
        ledger=training.ledger,
        costs=costs,
        model=None if status == "diverged" else TrainedModel.assemble(model, data, problem.classes, thetas, scaling),
        notes=(*data.notes, *notes, *method.notes(over)),
    )


def as_network(
    network: Network | nx.Graph | Iterable[tuple[str | int, str | int]] | str, clients: tuple[str, ...], seed: int
) -> Network:
    """A network from whatever describes it, checked against the clients."""
    if isinstance(network, str):
        return make_network(network, clients, seed=seed)
    if isinstance(network, Network):
        if network.clients != clients:
            raise ConfigError("The network and the data do not have the same clients in the same order.")
        return network
    if not isinstance(network, nx.Graph | Iterable):
        raise ConfigError(f"network must be a name, a graph, edges or a Network, but is {network!r}.")
    return network_from_edges(network, clients)


def settle_stepsize(method: Method, smoothness: Smoothness) -> tuple[Method, tuple[str, ...]]:
    """The method with 'auto' replaced by a number, and a note that says which."""
    if method.stepsize != "auto":
        return method, ()
    rule = method.auto_stepsize(smoothness)
    return method.with_stepsize(rule.value), (f"stepsize auto: {rule.value:.4g}, which is {rule.reason}.",)


def best_objective(data: VerticalData, model: Glm, problem: LinearProblem) -> float:
    """f*, from the cache if this data and model have been seen before."""
    key = f"1 {data.fingerprint} {model}"  # count up when the solver changes
    return cached_optimum(key, lambda: optimum(problem.blocks, problem.labels, problem.loss, problem.penalties).value)


class Training:
    """Follows the parties in this process, and measures on the way."""

    def __init__(
        self,
        problem: LinearProblem,
        cast: Cast,
        costs: Costs,
        best: float | None,
        worst_end: float,
        pausing: bool = False,
    ) -> None:
        self.problem, self.cast, self.costs, self.best, self.worst_end = problem, cast, costs, best, worst_end
        self.ledger = Ledger()
        self.rows: list[Measurement] = []
        self.clock = _Clock()
        engine: LocalEngine | LockstepEngine = LocalEngine(cast, self.ledger)
        if cast.rounds is not None:
            engine = LockstepEngine(cast.rounds, self.ledger)
        self._moments: Iterator[Progress | None] = engine.deliveries() if pausing else engine.run()
        self._latest: Progress | None = None
        self._due: float = 0

    def follow(self, stop: Stop, watch: Watch | None) -> str:
        """Run until a limit is reached; returns the status."""
        try:
            status = self.advance(stop, watch)
        except KeyboardInterrupt:
            if self._latest is None or not self.rows:
                raise
            return self._interrupted(self._latest)
        assert status is not None  # it was not told to pause
        return status

    def advance(self, stop: Stop, watch: Watch | None = None, until: float = math.inf) -> str | None:
        """Run until a limit is reached, and return the status; or until this time of ``perf_counter``, and return None.

        It can then be called again, and goes on where it was. Built with ``pausing``, it looks at the time after every
        message, otherwise only when the parties hold one model.
        """
        limit = math.inf if stop.iterations is None else stop.iterations
        with np.errstate(all="ignore"), self.clock.running():  # overflows are seen when measuring
            for progress in self._moments:
                if progress is not None:
                    self._latest = progress
                    if progress.hop >= self._due or self._out_of_time_or_money(stop):
                        status = self._measure(progress, stop, watch)
                        if status is not None:
                            return status
                        spacing = NEAR if stop.nearly(self.rows[-1]) else SPACING
                        self._due = min(max(progress.hop + 1, math.ceil(progress.hop * spacing)), limit)
                if perf_counter() >= until:
                    return None
        raise MtcdError("The parties fell silent: no message was under way. This is a defect in the method.")

    def _interrupted(self, progress: Progress) -> str:
        """Whatever was under way, the clients hold a model: measure that one."""
        with self.clock.paused():
            held = self.problem.evaluate(self.cast.parameters())
            if not held <= self.worst_end * self.rows[0].objective:
                return "diverged"
            row = self._row(progress, held)
            if row.iteration == self.rows[-1].iteration:
                self.rows.pop()
            self.rows.append(row)
            return "interrupted"

    def _out_of_time_or_money(self, stop: Stop) -> bool:
        if stop.seconds is not None and self.clock.seconds() >= stop.seconds:
            return True
        return stop.cost is not None and self.costs.total(self.ledger) >= stop.cost

    def _measure(self, progress: Progress, stop: Stop, watch: Watch | None) -> str | None:
        with self.clock.paused():
            objective = self._objective(progress)
            first = self.rows[0] if self.rows else None
            if not math.isfinite(objective) or (first and objective > HOPELESS * first.objective):
                return "diverged"
            row = self._row(progress, objective)
            if stop.reached(row) and progress.aggregate is not None:  # the last word has the model, not the token
                objective = self.problem.evaluate(self.cast.parameters())
                row = self._row(progress, objective)
            self.rows.append(row)
            if watch is not None:
                watch(row, stop.fraction(row, self.rows[0].gap))
            status = stop.reached(row)
            return "diverged" if status and objective > self.worst_end * self.rows[0].objective else status

    def _objective(self, progress: Progress) -> float:
        if progress.aggregate is not None:
            return self.problem.fit.objective(progress.aggregate, progress.penalty)
        return self.problem.evaluate(progress.parameters or self.cast.parameters())

    def _row(self, progress: Progress, objective: float) -> Measurement:
        account = self.costs.account
        return Measurement(
            iteration=progress.hop,
            hops=self.ledger.hops,
            syncs=progress.t,
            objective=objective,
            gap=None if self.best is None else (objective - self.best) / abs(self.best),
            cost=self.costs.total(self.ledger),
            messages=self.ledger.messages(account),
            floats=self.ledger.floats(account),
            seconds=self.clock.seconds(),
        )


class _Clock:
    """Time spent training: it stands still before and after, and while something is measured."""

    def __init__(self) -> None:
        self._started: float | None = None
        self._before = 0.0

    def seconds(self) -> float:
        return self._before + (0.0 if self._started is None else perf_counter() - self._started)

    def _stop(self) -> None:
        self._before, self._started = self.seconds(), None

    @contextmanager
    def running(self) -> Iterator[None]:
        self._started = perf_counter()
        try:
            yield
        finally:
            self._stop()

    @contextmanager
    def paused(self) -> Iterator[None]:
        self._stop()
        try:
            yield
        finally:
            self._started = perf_counter()


def _sentence(status: str, method: Method, smoothness: Smoothness, last: Measurement) -> str:
    at = f"after {last.iteration} iterations and {last.syncs} syncs, at a communication cost of {last.cost:.6g}"
    if status == "converged":
        return f"Reached the gap asked for {at}."
    if status == "interrupted":
        return f"Interrupted {at}; the model is the one the clients held then."
    if status == "diverged":
        return _divergence(method, smoothness)
    return f"Stopped at the limit of {status} {at}."


def _divergence(method: Method, smoothness: Smoothness) -> str:
    limit = method.stepsize_limit(smoothness)
    said = f"Diverged: the objective grew beyond where it started, with a stepsize of {method.stepsize:.4g}"
    if method.batch is not None and method.settled_stepsize() <= limit.value:
        return f"{said}. Mini-batches of {method.batch} are too noisy for it: set a larger batch or a smaller stepsize."
    alone = ""
    if method.gradient_steps:
        alone = f"; above {stability_limit(smoothness):.4g} a client alone can diverge"
    return (
        f"{said}, which is too large. It is {'guaranteed' if limit.proven else 'likely'} to work up to "
        f"{limit.value:.4g} ({limit.reason}){alone}. "
        "Set a smaller stepsize, or stepsize: auto."
    )
