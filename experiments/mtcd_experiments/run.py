"""Runs experiments: the trainings of all figures share the workers, and each figure is reported
when complete."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mtcd.config.one_training import Unfinished
from mtcd.core.workers import Backend, Failed, QueueStatus, Workers, open_workers
from mtcd_experiments.plan import CurvePlan, FigurePlan
from mtcd_experiments.results import CurveResult, Results
from mtcd_experiments.schedule import TrainingJob, TrainingQueue
from mtcd_experiments.store import Store
from mtcd_experiments.work import CurveJob

MOST_NAMED = 4  # curves in one note
PATIENCE = 0.25  # seconds between two looks at the clock


def reproduce(
    figures: Sequence[FigurePlan],
    store: Store,
    backend: Backend,
    done: Callable[[Results], None],
    progress: Callable[[QueueStatus], None] = lambda status: None,
) -> dict[str, str]:
    """Train whatever the store does not hold, by workers; ``done`` gets every figure as it is
    complete.

    A figure with a training that cannot be done is given up, the others are not. Returns why, by
    figure.
    """
    schedule = TrainingQueue(figures, store)
    pending = list(figures)
    unfinished = Unfinished(store.folder / "unfinished", store.fresh)
    with open_workers(backend) as workers:
        try:
            while True:
                for figure in [one for one in pending if schedule.complete(one)]:
                    done(_results(figure, schedule))
                    pending.remove(figure)
                pending = [figure for figure in pending if figure.name not in schedule.failed]
                if not pending:
                    return schedule.failed
                _give(schedule, workers, unfinished)
                progress(schedule.status(workers.jobs))
                _hear(schedule, workers)
        finally:
            progress(schedule.status(workers.jobs))


def _give(schedule: TrainingQueue, workers: Workers[TrainingJob], unfinished: Unfinished) -> None:
    while workers.free and (task := schedule.next()):
        job, config = task
        workers.give(job, CurveJob(config, unfinished))


def _hear(schedule: TrainingQueue, workers: Workers[TrainingJob]) -> None:
    for job, news in workers.news(PATIENCE):
        if isinstance(news, Failed):
            schedule.fail(job, news.why)
        elif isinstance(news, float):
            schedule.advance(job, news)
        else:
            schedule.finish(job, news)


def _results(figure: FigurePlan, schedule: TrainingQueue) -> Results:
    curves = {(plan.case, plan.curve): _curve(figure, plan, schedule) for plan in figure.curves}
    notes = [
        *figure.notes,
        *(note for curve in curves.values() for one in curve.trained for note in one.notes),
    ]
    titles = {
        key: f"{figure.experiment.cases[key[0]].title}, {curve.label}"
        for key, curve in curves.items()
    }
    edges = [titles[key] for key, curve in curves.items() if curve.at_edge]
    if edges:
        more = [f"{len(edges) - MOST_NAMED} more"] if len(edges) > MOST_NAMED else []
        notes.append(
            f"The best step size is at the edge of the grid: "
            f"{'; '.join(edges[:MOST_NAMED] + more)}."
        )
    for key, curve in curves.items():
        diverged = [one for one in curve.trained if one.status == "diverged"]
        if diverged:
            notes.append(
                f"{titles[key]}: {len(diverged)} of {len(curve.trained)} trainings diverged."
            )
    return Results(
        figure.name,
        figure.experiment,
        curves,
        figure.seeds,
        figure.quick,
        figure.ratio,
        tuple(dict.fromkeys(notes)),
        figure.per,
    )


def _curve(figure: FigurePlan, plan: CurvePlan, schedule: TrainingQueue) -> CurveResult:
    label = figure.experiment.curves[plan.curve].label
    trained = tuple(schedule.finished[TrainingJob(plan, seed)] for seed in plan.seeds)
    choice = schedule.choices.get(plan)
    if choice is None:
        return CurveResult(label, trained)
    return CurveResult(label, trained, choice.tuned, choice.at_edge, choice.seconds)
