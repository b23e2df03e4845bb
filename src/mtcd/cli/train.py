"""mtcd train."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

from mtcd.cli.replacing import check_same_run
from mtcd.cli.show import live_progress, metrics_table, reading, runs_table
from mtcd.config.build import Setup, build, resolved_yaml
from mtcd.config.read import read_config
from mtcd.config.schema import Config
from mtcd.core import features
from mtcd.core.errors import ConfigError
from mtcd.core.files import check_folder, check_unfinished, check_writable, fresh_folder
from mtcd.core.terminal.options import ConfigOptions
from mtcd.core.terminal.screen import aside, screen, show_notes
from mtcd.core.terminal.text import escape
from mtcd.plots.paper import Paper, parse_style
from mtcd.training.run import Run

RUNS = Path("runs")
EXIT_CODES = {"diverged": 1, "interrupted": 130}


class TrainExtension(Protocol):
    """Options that a feature adds to ``mtcd train``, and what it does around the training.

    Features name a dataclass under ``mtcd.cli.train``; its fields are the options.
    """

    def check(self) -> None:
        """Reject options that do not fit together, before anything is read."""

    def around(self, setup: Setup, name: str) -> AbstractContextManager[Setup]:
        """A context in which the training that is yielded takes place.

        ``name``: that of the config.
        """


@dataclass(frozen=True)
class TrainOptions(ConfigOptions):
    """The options of ``mtcd train``."""

    resume: bool = False
    style: str | None = None
    more: Sequence[TrainExtension] = ()
    force: bool = False


def train_config(options: TrainOptions) -> int:
    """Train, write the run folder, show the outcome; returns the exit code."""
    path = options.config
    for extension in options.more:
        extension.check()

    config = read_config(path, options.changes, options.seed)
    # a slip in --style must not show up after hours of training
    paper = parse_style(options.style)
    _check_folder(config, options)  # before the data is read, which may take long

    with reading(config, options.quiet or options.as_json):
        setup = build(config, sources=True)
    if not options.quiet:
        show_notes(setup.notes)

    # in the order in which features are found; they are closed in the opposite one
    with ExitStack() as contexts:
        for extension in options.more:
            setup = contexts.enter_context(extension.around(setup, path.stem))

        return _train(setup, options, paper)


def _check_folder(config: Config, options: TrainOptions) -> None:
    """Refuse a folder that cannot be written, or that ``--resume`` and ``--force`` do not fit."""
    if options.out:
        check_folder(options.out)
    else:
        check_writable(RUNS)

    if options.resume and not options.out:
        raise ConfigError("--resume needs --out: give the folder of the training to continue.")
    if options.resume and options.force:
        raise ConfigError(
            "--resume continues the training in --out, --force replaces it: give one of them."
        )
    if options.out:
        _check_replaced(options.out, config, options)


def _check_replaced(out: Path, config: Config, options: TrainOptions) -> None:
    """Refuse to lose a training that can be resumed, or a run of another config."""
    if options.force:
        return

    check_unfinished(out, options.resume)
    if not options.resume:  # a checkpoint is compared with the config when it is read
        check_same_run(out, config, options.force)


def _train(setup: Setup, options: TrainOptions, paper: Paper | None) -> int:
    """Train, write and show what was set up; returns the exit code."""
    with _folder_for(options.out, options.config.stem) as folder:
        with live_progress(setup.method.describe(), options.quiet) as watch:
            run = setup.train(watch, folder, options.resume)
        write_run(run, setup, folder, paper)

    if not options.quiet:
        show_notes(run.notes)
    shown = not (options.quiet or options.as_json)
    if shown:
        _show_tables(run, folder)

    # a training that ended badly says so even if nothing is to be shown, beside the output
    if run.status in EXIT_CODES:
        aside.print(escape(run.message), highlight=False, soft_wrap=True)
    elif shown:
        screen.print(escape(run.message), highlight=False, soft_wrap=True)

    if options.as_json:
        print(json.dumps(run.summary() | {"out": str(folder)}, allow_nan=False))  # noqa: T201
    return EXIT_CODES.get(run.status, 0)


def _show_tables(run: Run, folder: Path) -> None:
    """The run in a row, its metrics, and where it is."""
    screen.print(runs_table([run]))
    metrics = metrics_table(run)
    if metrics is not None:
        screen.print(metrics)
    screen.print(f"Run folder: {escape(str(folder))}", highlight=False, soft_wrap=True)


def write_run(run: Run, setup: Setup, folder: Path, paper: Paper | None = None) -> None:
    """Write the run folder atomically."""
    with fresh_folder(folder, run.checkpoints) as writing:
        run.write(writing)
        (writing / "config.yaml").write_text(resolved_yaml(setup.config), encoding="utf-8")
        # inside: a run folder is there with its picture, or not at all
        draw_runs({run.method: run}, writing / "history.png")
        if paper is not None:
            draw_runs({run.method: run}, writing / "history.pdf", paper=paper)


def draw_runs(
    runs: Mapping[str, Run], path: Path, title: str = "", paper: Paper | None = None
) -> None:
    """Have the features that draw runs (``mtcd.run_pictures``) write a picture of them."""
    # without the feature that draws, runs are written without pictures
    for home in features.parts("mtcd.run_pictures").values():
        draw = cast(Callable[..., None], features.load(home))
        draw(runs, path, title, paper)


@contextmanager
def _folder_for(out: Path | None, name: str) -> Iterator[Path]:
    """The folder ``out``; without one, runs/NAME or the first free of runs/NAME-2, ..., created
    atomically."""
    if out is not None:
        yield out
        return

    # mkdir decides which of two trainings that start at once gets a name
    RUNS.mkdir(exist_ok=True)
    for candidate in itertools.chain([name], (f"{name}-{i}" for i in itertools.count(2))):
        with suppress(FileExistsError):
            (RUNS / candidate).mkdir()
            break

    try:
        yield RUNS / candidate
    except BaseException:
        # an interrupted training, too, leaves no empty folder behind
        with suppress(OSError):  # folders with content stay
            (RUNS / candidate).rmdir()
            RUNS.rmdir()
        raise
