"""Which trainings wait, run and are finished, and how long the rest will take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from statistics import fmean
from time import monotonic

from mtcd.config.schema import Config
from mtcd.core.errors import MtcdError
from mtcd.core.workers import QueueStatus
from mtcd_experiments.plan import CurvePlan, FigurePlan
from mtcd_experiments.results import TrainedCurve
from mtcd_experiments.store import Record, Store
from mtcd_experiments.tuning import ChosenStepsize, choose

TOO_EARLY = 0.02  # a training that is not this far yet says little about its end


@dataclass(frozen=True)
class TrainingJob:
    """One training of a curve: with one of the seeds, or a trial of one of the step sizes."""

    plan: CurvePlan
    seed: int
    trial: float | None = None

    @property
    def first(self) -> bool:
        """Whether this tells how long the curve takes, or others wait for it: these go first."""
        return self.trial is not None or self.seed == self.plan.seeds[0]

    @property
    def which(self) -> str:
        """The part of its name that distinguishes it from others of its curve."""
        if self.trial is None:
            return f"seed {self.seed}"
        return f"step size {self.trial:g}"

    @property
    def what(self) -> str:
        """Its name in messages."""
        return f"{self.plan.where}, {self.which}"

    @property
    def brief(self) -> str:
        """Its name in few words, for the progress bar."""
        return f"{self.plan.figure} {self.plan.case} {self.plan.curve} {self.which}"


class TrainingQueue:
    """All trainings of some figures. What the store holds is finished from the start."""

    def __init__(self, figures: Sequence[FigurePlan], store: Store) -> None:
        self.store = store
        self.jobs: list[TrainingJob] = []
        self.finished: dict[TrainingJob, TrainedCurve] = {}
        self.choices: dict[CurvePlan, ChosenStepsize] = {}
        self.failed: dict[str, str] = {}
        self._waiting: dict[TrainingJob, tuple[Config, Path]] = {}
        # those that wait for a file: the first of them is trained
        self._same: dict[Path, list[TrainingJob]] = {}
        # its file, when it began, how far it is
        self._running: dict[TrainingJob, tuple[Path, float, float]] = {}
        self._seconds: dict[tuple[CurvePlan, bool], list[float]] = {}
        for figure in figures:
            for plan in figure.curves:
                self.jobs += [*_trials(plan), *_finals(plan)]
        for figure in figures:
            for plan in figure.curves:
                # with a step size to choose, the others wait for it
                self._ready(_trials(plan) or _finals(plan))

    def _ready(self, jobs: Sequence[TrainingJob]) -> None:
        """These can be trained now, unless they are kept from before."""
        for job in jobs:
            config = self._config(job)
            path = self.store.path(config)
            kept = self.store.load(path)
            if kept is not None:
                self._finish(job, kept, kept.seconds)
            elif path in self._same:
                self._same[path].append(job)
            else:
                self._same[path] = [job]
                self._waiting[job] = config, path

    def _config(self, job: TrainingJob) -> Config:
        plan = job.plan
        if job.trial is not None:
            return plan.trial(job.trial)
        if plan in self.choices:
            return plan.config(job.seed, self.choices[plan].stepsize)
        return plan.config(job.seed)

    def next(self) -> tuple[TrainingJob, Config] | None:
        """The next to train: what others wait for first, then the longest."""
        open_jobs = [job for job, (_, path) in self._waiting.items() if self._wanted(path)]
        if not open_jobs:
            return None
        job = min(open_jobs, key=lambda job: (not job.first, -(self._expected(job) or 0.0)))
        config, path = self._waiting.pop(job)
        self._running[job] = path, monotonic(), 0.0
        return job, config

    def _wanted(self, path: Path) -> bool:
        """Whether a figure that can still be made waits for this file."""
        return any(job.plan.figure not in self.failed for job in self._same[path])

    def advance(self, job: TrainingJob, fraction: float) -> None:
        """A training is that far."""
        path, began, _ = self._running[job]
        self._running[job] = path, began, fraction

    def finish(self, job: TrainingJob, record: Record) -> None:
        """A training has ended: keep it."""
        path, began, _ = self._running.pop(job)
        trained = self.store.save(path, record)
        for same in self._same.pop(path):
            self._finish(same, trained, monotonic() - began)

    def fail(self, job: TrainingJob, why: str) -> None:
        """A training cannot be done, and so neither can its figure."""
        path, *_ = self._running.pop(job)
        for same in self._same.pop(path):
            self.failed.setdefault(same.plan.figure, f"{same.what}: {why}")

    def _finish(self, job: TrainingJob, trained: TrainedCurve, seconds: float) -> None:
        self.finished[job] = trained
        self._seconds.setdefault((job.plan, job.trial is None), []).append(seconds)
        trials, tune = _trials(job.plan), job.plan.tune
        if job.trial is None or tune is None or not all(trial in self.finished for trial in trials):
            return

        # the last trial of a curve: its step size can be chosen, and its seeds trained
        outcomes = {
            trial.trial: self.finished[trial] for trial in trials if trial.trial is not None
        }
        try:
            self.choices[job.plan] = choose(tune, outcomes, job.plan.where)
        except MtcdError as error:
            self.failed.setdefault(job.plan.figure, str(error))
            return
        self._ready(_finals(job.plan))

    def complete(self, figure: FigurePlan) -> bool:
        """Whether all trainings of a figure are finished."""
        return all(job in self.finished for plan in figure.curves for job in _finals(plan))

    def status(self, workers: int) -> QueueStatus:
        """How far everything is, but for figures that cannot be made."""
        jobs = [job for job in self.jobs if job.plan.figure not in self.failed]
        done = sum(job in self.finished for job in jobs)
        return QueueStatus(
            done, len(jobs), tuple(job.brief for job in self._running), self._left(jobs, workers)
        )

    def _left(self, jobs: Sequence[TrainingJob], workers: int) -> float | None:
        expected = [self._remaining(job) for job in jobs if job not in self.finished]
        known = [seconds for seconds in expected if seconds is not None]
        if len(known) < len(expected):
            return None
        # no sooner than the longest, however many workers there are
        return max(sum(known) / workers, max(known, default=0.0))

    def _remaining(self, job: TrainingJob) -> float | None:
        expected = self._expected(job)
        if expected is None or job not in self._running:
            return expected
        return max(expected - (monotonic() - self._running[job][1]), 0.0)

    def _expected(self, job: TrainingJob) -> float | None:
        """Seconds, from other seeds of the curve, from how far it is, or from what others took."""
        same = self._seconds.get((job.plan, job.trial is None))
        if same:
            return fmean(same)
        _, began, fraction = self._running.get(job, (None, 0.0, 0.0))
        if fraction >= TOO_EARLY:
            return (monotonic() - began) / fraction
        others = list(chain.from_iterable(self._seconds.values()))
        if not others:
            return None
        return fmean(others)


def _trials(plan: CurvePlan) -> tuple[TrainingJob, ...]:
    """The trainings that its step size is chosen from, if any."""
    if plan.tune is None:
        return ()
    stepsizes = dict.fromkeys(plan.tune.stepsizes)
    return tuple(TrainingJob(plan, plan.seeds[0], stepsize) for stepsize in stepsizes)


def _finals(plan: CurvePlan) -> tuple[TrainingJob, ...]:
    """The trainings that are drawn."""
    return tuple(TrainingJob(plan, seed) for seed in plan.seeds)
