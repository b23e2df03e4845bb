"""mtcd reproduce."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from mtcd.core.errors import ConfigError, DataError, NotInstalledError
from mtcd.core.files import check_writable
from mtcd.core.terminal.progress import trainings_progress
from mtcd.core.terminal.screen import aside, screen, show_notes
from mtcd.core.terminal.table import ScreenTable
from mtcd.core.terminal.text import escape, span
from mtcd.core.workers import Backend
from mtcd.plots.paper import Paper, parse_style
from mtcd_experiments.claims import check_claims
from mtcd_experiments.figures import write_figure
from mtcd_experiments.page import write_page
from mtcd_experiments.plan import FigurePlan, plan_figure
from mtcd_experiments.read import ALL, find_experiments, known_experiments, read_experiment
from mtcd_experiments.results import Results
from mtcd_experiments.run import reproduce
from mtcd_experiments.schedule import TrainingQueue
from mtcd_experiments.store import Store
from mtcd_experiments.tables import results_table

CACHE = "curves"
PAGE = "reproduction.md"


@dataclass(frozen=True)
class ReproduceOptions:
    """The options of ``mtcd reproduce``."""

    figure: str
    quick: bool
    seeds: int | None
    backend: Backend
    out: Path
    fresh: bool
    page: Path | None
    style: str | None = None


def list_experiments() -> None:
    """Print the built-in experiments."""
    rows = []
    for name, path in known_experiments().items():
        experiment = read_experiment(path)
        data = experiment.problem.get("data", {})
        title = experiment.title.replace("{clients}", str(data.get("clients", "some")))
        rows.append([name, title, experiment.about])
    titles = ["name", "title", "about"]
    screen.print(ScreenTable(titles, rows, words=titles))


def run_experiments(options: ReproduceOptions) -> int:
    """Train, plot, and for 'all' write the page; returns the exit code."""
    began, paper = monotonic(), parse_style(options.style)
    check_writable(options.out)
    page = _page(options)
    figures, missing, left_out = _plans(options)
    store = Store(options.out / CACHE, options.fresh)
    results: dict[str, Results] = {}
    with trainings_progress() as (show, pause):

        def done(result: Results) -> None:
            results[result.name] = result
            with pause():
                _show_figure(result, options.out, monotonic() - began, paper)

        try:
            missing |= reproduce(figures, store, options.backend, done, show)
        except KeyboardInterrupt:
            aside.print(_interrupted(figures, store.folder), highlight=False, soft_wrap=True)
            return 130
    if page is not None:
        made = {figure.name: results[figure.name] for figure in figures if figure.name in results}
        write_page(made, check_claims(made), page, options.out, missing | left_out)
        screen.print(f"Page: {escape(str(page))}", highlight=False, soft_wrap=True)
    screen.print(f"Time: {span(monotonic() - began)}.", highlight=False)
    show_notes(f"{name} is left out. {why}" for name, why in left_out.items())
    for name, why in missing.items():
        aside.print(
            f"[bold red]Error:[/] {escape(name)} was not made. {escape(why)}",
            highlight=False,
            soft_wrap=True,
        )
    if missing:
        return 2
    return 0


def _page(options: ReproduceOptions) -> Path | None:
    """The path of the page, if one is written."""
    page = options.page or (options.out / PAGE if options.figure == ALL else None)
    if page is None:
        return None
    if page.is_dir():
        raise ConfigError(f"{page} is a folder: give --page the name of a file.")
    check_writable(page.parent)
    return page


def _plans(options: ReproduceOptions) -> tuple[list[FigurePlan], dict[str, str], dict[str, str]]:
    """The figures to train; with 'all', also those that cannot be made, as missing or, if optional,
    as left out."""
    figures: list[FigurePlan] = []
    missing: dict[str, str] = {}
    left_out: dict[str, str] = {}
    for path in find_experiments(options.figure):
        experiment = read_experiment(path)
        try:
            figures.append(
                plan_figure(
                    path.stem, experiment, path.resolve().parent, options.seeds, options.quick
                )
            )
        except (DataError, NotInstalledError) as error:
            if options.figure != ALL:
                raise
            (left_out if experiment.optional else missing)[path.stem] = str(error)
    return figures, missing, left_out


def _show_figure(result: Results, out: Path, seconds: float, paper: Paper | None) -> None:
    files = write_figure(result, out, paper)
    show_notes(f"{result.name}: {note}" for note in result.notes)
    if not aside.is_terminal:
        aside.print(
            f"{escape(result.name)}: done after {span(seconds)}.", highlight=False, soft_wrap=True
        )
    screen.print(results_table(result))
    screen.print(f"Files: {escape(', '.join(map(str, files)))}", highlight=False, soft_wrap=True)


def _interrupted(figures: Sequence[FigurePlan], folder: Path) -> str:
    """The state of the cache, read from disk: a training may have been written during the
    interrupt."""
    status = TrainingQueue(figures, Store(folder)).status(workers=1)
    kept = f"{status.done} of {status.total} trainings are kept in {escape(str(folder))}"
    return f"Interrupted: {kept}. Run the same command again, without --fresh, to continue."
