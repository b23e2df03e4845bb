"""Observes a training through its engine: measures progress, and applies the stop and divergence
rules."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Any, Protocol

import numpy as np

from mtcd.core.errors import MtcdError
from mtcd.models.metrics.metric import Score
from mtcd.protocol.engine import Engine
from mtcd.protocol.ledger.costs import Costs
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.protocol.party import Progress
from mtcd.training.divergence import DIVERGED, Divergence, looks_hopeless
from mtcd.training.history import Measurement, has_begun
from mtcd.training.pace import Growing, Pace
from mtcd.training.plateau import PLATEAU, Plateau, PlateauHistory
from mtcd.training.stop import Stop
from mtcd.training.watchers import Watcher

# Metrics of a token's aggregate: whenever the iterations have grown by this factor, and by one for
# so many samples, as ranking the samples of a large table takes longer than a hop
METRICS_SPACING, METRICS_SAMPLES = 1.1, 2000
# A model this much below the optimum, as a share of it or of 1, is no rounding
BELOW_OPTIMUM = 1e-9
STOPPED, INTERRUPTED = "stopped", "interrupted"

Watch = Callable[[Measurement, float], None]
Keep = Callable[["Observer", bool], None]


class Scored(Protocol):
    """The measurements of a model on data."""

    def score(self, parameters: Sequence[Any]) -> Score:
        """The score, from the parameters of all clients."""

    def read_off(self, aggregate: Any, penalty: float) -> float:
        """f, from the aggregate and the penalty of a token."""

    def metrics(
        self, aggregate: Any, parameters: Callable[[], Sequence[Any]]
    ) -> Mapping[str, float]:
        """The metrics, from the aggregate of a token; those of a test set from the parameters of
        all clients."""


class Observer:
    """Observes a training through its engine: measures it, and ends it at a limit or when it
    diverges.

    Parameters
    ----------
    problem
        The measurements of the model on its data.
    engine
        The engine, which is not running yet.
    costs
        The prices of messages.
    best
        f*, where gaps are asked for.
    worst_end
        See :class:`mtcd.training.divergence.Divergence`.
    pausing
        Whether ``advance`` can return between two messages.
    pace
        How often is measured.
    keep
        Called after every measurement, with whether it is the last.
    watcher
        Who follows the training.
    now
        The clock: of the seconds that are measured, and of the time until which ``advance`` runs.
    """

    def __init__(
        self,
        problem: Scored,
        engine: Engine,
        costs: Costs,
        best: float | None,
        worst_end: float,
        pausing: bool = False,
        pace: Pace | None = None,
        keep: Keep | None = None,
        watcher: Watcher | None = None,
        now: Callable[[], float] = perf_counter,
    ) -> None:
        self.problem = problem
        self.engine = engine
        self.costs = costs
        self.best = best
        self.worst_end = worst_end
        self.pausing = pausing
        self.pace = pace or Growing()
        self.keep = keep
        self.watcher = watcher or Watcher()

        self.rows: list[Measurement] = []
        self.now = now
        self.clock = _Clock(now)
        self._observations: Iterator[Progress | None] | None = None
        self._latest: Progress | None = None
        self._due: float = 0
        self._metrics_at: int | None = None
        self._plateau: PlateauHistory | None = None
        self._syncs = 0
        """The syncs that the watcher has seen."""

    @property
    def slots(self) -> Mapping[str, Any]:
        """What the last token carries; nothing where none was seen."""
        return getattr(self._latest, "slots", {})

    def resume(self, rows: Sequence[Measurement], ledger: Ledger) -> None:
        """Continue an earlier training with these measurements and this ledger."""
        self.rows[:] = rows
        # In place: parties and engine hold this ledger.
        for name, value in ledger.to_dict().items():
            setattr(self.engine.ledger, name, value)
        # The clock goes on from there, so that a limit on seconds counts both parts.
        self.clock.add(rows[-1].seconds)
        # Or metrics would be due again at once, and the history differ from one without a break.
        self._metrics_at = max((row.iteration for row in rows if row.metrics), default=None)
        self._syncs = rows[-1].syncs

    def run(self, stop: Stop, watch: Watch | None) -> str:
        """Run until a limit is reached; returns the status."""
        try:
            status = self.advance(stop, watch)
        except KeyboardInterrupt:
            # Before the first measurement there is nothing to keep: the interrupt goes on.
            if self._latest is None or not self.rows:
                raise
            return self._interrupted(self._latest)
        assert status is not None  # no pause was requested
        return status

    def advance(
        self, stop: Stop, watch: Watch | None = None, until: float = math.inf
    ) -> str | None:
        """Run until a limit is reached, and return the status; or until this time of
        the clock, and return None.

        Called again, it continues. Built with ``pausing``, it checks the time after every message,
        otherwise only at observations.
        """
        limit = self._last_iteration(stop)
        if self._observations is None and self.rows:  # it continues an earlier training
            # Where the earlier training would have measured next, so that both have the same
            # history.
            self._due = self._next(self.rows[-1].iteration, stop)
        self._due = min(self._due, limit)
        if self.rows:
            # Asked before anything runs: one more hop would be another model.
            ended = self._ended(stop)
            if ended is not None:  # the training that it continues had ended
                return ended
        if self.watcher.stopped is not None:
            return STOPPED

        # one iterator for all calls: the engine goes on where it stopped
        if self._observations is None:
            self._observations = self.engine.run(self.pausing)

        # these limits are checked at every observation; for others the engine may run on to the
        # next measurement without making any
        wants_syncs = self.watcher.wants_syncs
        often = stop.seconds is not None or stop.cost is not None or wants_syncs
        if often:
            self.engine.skip_to(0)
        else:
            self.engine.skip_to(self._due)
        # overflows are detected by measurements
        with np.errstate(all="ignore"), self.clock.running():
            for progress in self._observations:
                if progress is not None:
                    self._latest = progress
                    if wants_syncs:
                        self._sync(progress, stop)
                    if progress.hop >= self._due or (often and self._out_of_time_or_money(stop)):
                        status = self._measure(progress, stop, watch)
                        if status is not None:
                            return status
                        self._due = min(self._next(progress.hop, stop), limit)
                        if not often:
                            self.engine.skip_to(self._due)
                if self.now() >= until:
                    return None
            if self.engine.status is not None:
                return self._ended_by_parties(self.engine.status)
        raise MtcdError(
            "No message is under way, but the training has not ended. This is a defect in the "
            "method."
        )

    def _last_iteration(self, stop: Stop) -> float:
        """The iteration at which a limit ends the training, whatever is measured."""
        # without an epoch there is no limit on epochs: stop.epoch() would have made one
        epoch = self.pace.epoch or math.inf
        # Whichever comes first; neither may be set.
        return min(stop.iterations or math.inf, (stop.epochs or math.inf) * epoch)

    def _ended_by_parties(self, status: str) -> str:
        """The parties ended the training by their own stop rules, before the observer did."""
        if status == DIVERGED or self._latest is None:
            return status

        # the history ends with the model that the parties hold
        if self._latest.hop > self.rows[-1].iteration:
            with self.clock.paused():
                self.rows.append(self._model_row(self._latest))
        return status

    def _interrupted(self, progress: Progress) -> str:
        """Measure the model that the clients hold after an interrupt."""
        with self.clock.paused():
            # The clients may be anywhere in an iteration: what they hold is measured, not what was
            # reported.
            held = self._held()
            if self._rule().at_the_end(held.objective):
                return DIVERGED
            row = self._row(progress, held)
            if row.iteration == self.rows[-1].iteration:
                self.rows.pop()  # it was of the token, which the clients do not hold
            self.rows.append(row)
            return INTERRUPTED

    def _out_of_time_or_money(self, stop: Stop) -> bool:
        if self.rows and self._latest is not None and self._latest.hop <= self.rows[-1].iteration:
            return False  # this moment was measured before
        if stop.seconds is not None and self._seconds() >= stop.seconds:
            return True
        return stop.cost is not None and self.costs.total(self.engine.ledger) >= stop.cost

    def _measure(self, progress: Progress, stop: Stop, watch: Watch | None) -> str | None:
        with self.clock.paused():
            score = self._score(progress)
            row = self._row(progress, score)
            # A limit that is reached here goes first: at the end another rule decides on
            # divergence.
            diverged = not stop.reached(row) and self._is_hopeless(score.objective)

            # not a measurement; at the end, there is no model
            if not math.isfinite(score.objective):
                if diverged or stop.reached(row) or not self.rows:
                    return DIVERGED
                return None  # a split network goes on: the loss of its epochs decides
            if diverged:
                self.rows.append(row)
                return DIVERGED

            ends = stop.reached(row) or self._on_plateau(stop, self.rows, row)
            # at the end, measure the model, not the token
            if ends and progress.aggregate is not None:
                row = self._model_row(progress)
            self.rows.append(row)

            fraction, last = stop.fraction(row, self.rows[0].gap), True
            try:
                self.watcher.measured(row, fraction, self.engine.parameters)
                status = self._ended(stop) or self._stopped(progress)
                last = status is not None
            finally:  # after the watcher, whose state is kept too; also if one fails
                # Kept even if the watcher fails: the training can then go on from here.
                if self.keep is not None:
                    self.keep(self, last)
            if watch is not None:
                watch(row, fraction)
            return status

    def _sync(self, progress: Progress, stop: Stop) -> None:
        """Tell the watcher of a sync. A training that it ends is measured once more."""
        # A sync may be reported several times; the watcher hears of each once.
        if progress.t > self._syncs and self.rows:
            self._syncs = progress.t
            with self.clock.paused():
                fraction = stop.fraction(self.rows[-1], self.rows[0].gap)
                self.watcher.synced(
                    lambda: self._model_row(progress), fraction, self.engine.parameters
                )
            if self.watcher.stopped is not None:
                # the next message is measured, whatever was due
                self._due = progress.hop

    def _stopped(self, progress: Progress) -> str | None:
        """The status, if the watcher has ended the training; its last row is then of the model, not
        of the token."""
        if self.watcher.stopped is None:
            return None
        if progress.aggregate is not None:
            self.rows[-1] = self._model_row(progress)
        if self._rule().at_the_end(self.rows[-1].objective):
            return DIVERGED
        return STOPPED

    def _next(self, iteration: int, stop: Stop) -> float:
        """The iteration of the next measurement."""
        usual = self.pace.next(iteration, stop.nearly(self.rows[-1]))
        # Plateaus are compared at fixed iterations, which must be measured whatever the pace.
        return min(usual, stop.next_window(iteration, self.pace.epoch))

    def _on_plateau(
        self, stop: Stop, earlier: Sequence[Measurement], row: Measurement
    ) -> str | None:
        """The status, if this measurement, after the earlier ones, has reached the plateau."""
        rule, epoch, ledger = stop.plateau, self.pace.epoch, self.engine.ledger
        if not isinstance(rule, Plateau) or epoch is None:
            return None
        first = row
        if self.rows:
            first = self.rows[0]
        if ledger.unchanged and not has_begun(first, row):
            return None
        if self._plateau is None or self._plateau.settings != rule:
            # the first, or that of another call of ``advance``
            self._plateau = PlateauHistory(rule, epoch)
        return self._plateau.reached(earlier, row)

    def _ended(self, stop: Stop) -> str | None:
        """The status, if the last measurement ended the training."""
        *earlier, row = self.rows
        status = stop.reached(row) or self._on_plateau(stop, earlier, row)
        if status and self._rule().at_the_end(row.objective):
            return DIVERGED  # a model that is worse than none is not one to keep
        return status

    def _is_hopeless(self, objective: float) -> bool:
        """Whether the training has diverged."""
        # A split network is judged by its batches: f on all samples takes long.
        seen = self.engine.epoch_loss()
        if seen is None:
            return self._rule(objective).on_the_way(objective)
        return looks_hopeless(seen)

    def _rule(self, start: float = math.nan) -> Divergence:
        """Set up the divergence rule with the first measurement; ``start`` is it, if this is the
        first."""
        if self.rows:
            start = self.rows[0].objective
        return Divergence(start, self.worst_end)

    def _score(self, progress: Progress) -> Score:
        if progress.aggregate is None:
            return self._held()

        # the token is enough to know f: no party has to be asked
        objective = self.problem.read_off(progress.aggregate, progress.penalty)
        if not self._metrics_due(progress) or not math.isfinite(objective):
            return Score(objective)
        self._metrics_at = progress.hop
        metrics = self.problem.metrics(progress.aggregate, self.engine.parameters)
        return Score(objective, None, metrics.get("test_accuracy"), metrics)

    def _metrics_due(self, progress: Progress) -> bool:
        """Whether it is time for metrics: a rule that depends on the iterations alone, so that
        reruns agree."""
        last = self._metrics_at
        spacing = 0.0
        if progress.aggregate is not None:  # many samples take longer
            spacing = len(progress.aggregate) / METRICS_SAMPLES

        return last is None or progress.hop >= max(METRICS_SPACING * last, last + spacing)

    def _model_row(self, progress: Progress) -> Measurement:
        """A measurement of the model that the parties hold, and not of the token."""
        return self._row(progress, self._held())

    def _held(self) -> Score:
        """The score of the model that the parties hold; an error if it is better than the
        optimum."""
        score = self.problem.score(self.engine.parameters())
        # f* was computed before; without it, or of a model that diverges, nothing can be compared.
        if self.best is None or not math.isfinite(score.objective):
            return score
        # a gap below 0 would be reported as convergence, to nothing
        if score.objective < self.best - BELOW_OPTIMUM * max(1.0, abs(self.best)):
            raise MtcdError(
                f"The model has an objective of {score.objective:.9g}, which is below the optimum "
                f"of {self.best:.9g} that was computed from the derivatives of the loss. So the "
                "value of the loss does not belong to its gradient and hessian_product: correct "
                "the loss, or stop at a number of iterations instead of a gap."
            )
        return score

    def _seconds(self) -> float:
        """The time spent training, in the simulation if it is one."""
        # simulated time is the engine's to know
        if self.engine.seconds is not None:
            return self.engine.seconds
        return self.clock.seconds()

    def _row(self, progress: Progress, score: Score) -> Measurement:
        account, ledger = self.costs.account, self.engine.ledger
        gap, epoch = None, None
        if self.best is not None:
            gap = (score.objective - self.best) / abs(self.best)
        if self.pace.epoch is not None:
            epoch = progress.hop / self.pace.epoch

        return Measurement(
            iteration=progress.hop,
            hops=ledger.hops,
            syncs=progress.t,
            objective=score.objective,
            gap=gap,
            cost=self.costs.total(ledger),
            messages=ledger.messages(account),
            floats=ledger.floats(account),
            seconds=self._seconds(),
            epoch=epoch,
            accuracy=score.accuracy,
            test_accuracy=score.test_accuracy,
            metrics=dict(score.metrics),
        )


class _Clock:
    """The time spent training, without that of measurements."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._started: float | None = None
        self._before = 0.0

    def seconds(self) -> float:
        """The time so far, with that of the part under way."""
        if self._started is None:
            return self._before
        return self._before + (self._now() - self._started)

    def add(self, seconds: float) -> None:
        """The seconds of the earlier training that this one continues."""
        self._before += seconds

    def _stop(self) -> None:
        self._before, self._started = self.seconds(), None

    @contextmanager
    def running(self) -> Iterator[None]:
        self._started = self._now()
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
            self._started = self._now()


def sentence(status: str, last: Measurement, stopped: str | None = None) -> str:
    """A sentence on the end of a training that did not diverge; ``stopped``: by which callback, and
    why."""
    epochs = ""
    if last.epoch == 1:
        epochs = " (1 epoch)"
    elif last.epoch is not None:
        epochs = f" ({last.epoch:g} epochs)"

    at = (
        f"after {last.iteration} iterations{epochs} and {last.syncs} syncs, at a communication cost "
        f"of {last.cost:.6g}"
    )
    ends = {
        "converged": f"Reached the gap asked for {at}.",
        INTERRUPTED: f"Interrupted {at}; the model is the one the clients held then.",
        PLATEAU: f"Stopped on a plateau {at}.",
        STOPPED: f"Stopped {at}, by {stopped}.",
    }
    return ends.get(status, f"Stopped at the limit of {status} {at}.")
