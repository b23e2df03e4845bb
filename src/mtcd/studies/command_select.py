"""mtcd path and mtcd cv: model selection from a config."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mtcd.cli.replacing import check_same_config
from mtcd.cli.show import live_progress, reading
from mtcd.cli.train import RUNS, write_run
from mtcd.config.build import Setup, build, resolved_yaml
from mtcd.config.method_schema import method_section
from mtcd.config.read import read_config
from mtcd.config.runs import CONFIG
from mtcd.config.schema import Config, PrivacySection
from mtcd.core.errors import ConfigError, check_known, listing
from mtcd.core.files import check_writable
from mtcd.core.rows import Rows
from mtcd.core.terminal.options import ConfigOptions
from mtcd.core.terminal.screen import screen, show_notes
from mtcd.core.terminal.table import ScreenTable
from mtcd.core.terminal.text import escape
from mtcd.methods.default import default_note
from mtcd.models.glm.config import linear_parts
from mtcd.studies.cross_validation import CrossValidation, cross_validate
from mtcd.studies.outcomes import names_in, write_rows
from mtcd.studies.path import Over, RegularisationPath, path, path_method
from mtcd.training.history import PARTS

ROOM = 72  # letters for the names of metrics beside each other
FILES = {"path.csv", "coefficients.csv", "config.yaml", "path.png", "best"}
FOLDS = "fold,"  # how the table of a cross-validation begins
KEYS: dict[str, Over] = {"model.l1": "l1", "model.l2": "l2", "model.alpha": "l2"}


def _setup(options: ConfigOptions, over: Over | None = None) -> Setup:
    """The parts of the config.

    Parameters
    ----------
    options
        The options of the command.
    over
        The penalty of a path, which decides on a method that is not given.
    """
    config = read_config(options.config, options.changes, options.seed)
    with reading(config, options.quiet or options.as_json):
        setup = build(config)

    # a mode of privacy has chosen a method that it can work with
    open_ = not setup.method_given and config.privacy == PrivacySection()
    if over is not None and open_:
        method = path_method(linear_parts(setup)[1], over, setup.network)
        # in the config too, which is written beside the path
        config = setup.config.model_copy(update={"method": method_section(method)})
        setup = replace(setup, method=method, config=config)
    if not options.quiet:
        show_notes(_notes(setup))
    return setup


def _notes(setup: Setup) -> list[str]:
    """What is said before anything is trained."""
    notes = [*setup.notes, *setup.data.notes]
    if not setup.method_given:
        notes.insert(0, default_note(setup.method, setup.network.connected))
    if setup.callbacks:
        notes.append("The callbacks of the config take no part here.")
    return notes


def path_config(options: ConfigOptions, over: str, metric: str | None, force: bool = False) -> int:
    """Train along a penalty; write and show the outcome."""
    name, values = parsed(over)
    out = options.out or RUNS / f"{options.config.stem}-path"
    check_path_folder(out)
    if (out / CONFIG).is_file():  # before the data is read, which may take long
        config = read_config(options.config, options.changes, options.seed)
        check_same_config(out, config, force, "a path")

    setup = _setup(options, name)
    # a path needs coefficients: other models are refused here
    data, model = linear_parts(setup)
    with live_progress(setup.method.describe(), options.quiet) as watch:
        found = path(
            data,
            model,
            setup.network,
            setup.method,
            **{name: values},
            stop=setup.stop,
            costs=setup.costs,
            seed=setup.config.seed,
            standardise=setup.config.data.standardise,
            metrics=setup.config.metrics,
            metric=metric,
            watch=watch,
        )

    write_path(found, setup, out)

    rows = found.rows()
    chosen: dict[str, Any] = {}
    best = ""
    if found.metric is not None:
        chosen = {"best": found.best_value, "metric": found.metric}
        best = f"Best {found.metric}: {name} = {found.best_value:.6g}. "
    if options.as_json:
        print(json.dumps({"over": name, "rows": plain_rows(rows), **chosen, "out": str(out)}))  # noqa: T201
    elif not options.quiet:
        screen.print(metrics_rows(rows, [name, "nonzero", "iterations"]))
        screen.print(escape(f"{best}Folder: {out}"), highlight=False, soft_wrap=True)
    return 0


def cv_config(options: ConfigOptions, folds: int, force: bool = False) -> int:
    """Cross-validate; write and show the outcome."""
    out = options.out or RUNS / f"{options.config.stem}-cv.csv"
    check_writable(out.parent)
    if not force:
        check_folds_file(out)
    setup = _setup(options)
    config = setup.config
    with live_progress(setup.method.describe(), options.quiet) as watch:
        found = cross_validate(
            setup.samples,
            lambda part: config.model.build(config, part),
            setup.network,
            setup.method,
            folds,
            stop=setup.stop,
            costs=setup.costs,
            seed=config.seed,
            standardise=setup.standardise,
            compute=setup.compute,
            metrics=config.metrics,
            watch=watch,
        )
    out.parent.mkdir(parents=True, exist_ok=True)
    found.write(out)
    if options.as_json:
        said = {
            "rows": plain_rows(found.rows()),
            "mean": plain_row(found.mean),
            "sd": plain_row(found.sd),
            "out": str(out),
        }
        print(json.dumps(said))  # noqa: T201
    elif not options.quiet:
        screen.print(cv_table(found))
        screen.print(escape(f"Written: {out}"), highlight=False, soft_wrap=True)
    return 0


def parsed(over: str) -> tuple[Over, int | list[float]]:
    """The penalty and its values of '--over model.l1=0.1,1,10', or a number of points, 'model.l1=20
    points'."""
    key, _, text = over.partition("=")
    check_known(key, KEYS, f"--over: {key!r} is no penalty;")
    text = text.strip()
    try:
        # their values follow from the data, from the strongest that makes a difference
        if text.endswith("points"):
            return KEYS[key], int(text.removesuffix("points"))
        return KEYS[key], [float(one) for one in text.split(",")]
    except ValueError:
        raise ConfigError(
            f"--over: {text!r} is not a list of values: write {key}=0.1,1,10, or '{key}=20 points'."
        ) from None


def metrics_rows(rows: Sequence[Mapping[str, Any]], about: Sequence[str]) -> ScreenTable:
    """A row for each training: these keys, and its metrics on the test set, or without one on the
    training samples."""
    measured = [name for name in rows[-1] if name.partition("_")[0] in PARTS]
    tested = [name for name in measured if name.startswith("test_")]
    names = [*about, *(tested or measured)]

    cells = []
    for row in rows:
        cells.append([shown(row[name]) for name in names])

    return ScreenTable([name.replace("_", " ") for name in names], cells, words=[])


def cv_table(found: CrossValidation) -> ScreenTable:
    """A row for each fold, then mean and standard deviation; a row for each metric, if there are
    many."""
    tested = {name: mean for name, mean in found.mean.items() if name.startswith("test_")}
    # as columns while they fit on a screen
    if sum(len(name) + 2 for name in tested) <= ROOM:
        ends = [{"fold": "mean", **found.mean}, {"fold": "sd", **found.sd}]
        return metrics_rows([*found.rows(), *ends], ["fold"])

    rows = []
    for name, mean in tested.items():
        values = [one[name] for one in found.metrics]
        numbers = (mean, found.sd[name], min(values), max(values))
        rows.append([name.replace("_", " "), *map(shown, numbers)])

    return ScreenTable(["metric", "mean", "sd", "least", "most"], rows, words=["metric"])


def check_path_folder(out: Path) -> None:
    """Reject a folder that holds anything but an earlier path."""
    others = sorted(set(names_in(out)) - FILES)
    if others:
        raise ConfigError(
            f"{out} holds other files ({listing(others, 3)}): choose an empty or a new folder."
        )
    check_writable(out)


def check_folds_file(out: Path) -> None:
    """Reject a file that is not the table of an earlier cross-validation: it may be somebody's
    data."""
    if not out.exists():
        return
    try:
        with out.open(encoding="utf-8") as file:
            # the start is enough: the file may be somebody's table of gigabytes
            begins = file.read(len(FOLDS))
    except (OSError, ValueError):
        begins = ""
    if begins != FOLDS:
        raise ConfigError(
            f"{out} is not the table of a cross-validation: choose another file, or give --force."
        )


def write_path(found: RegularisationPath, setup: Setup, out: Path) -> None:
    """The tables, the picture and the best run, into a folder."""
    found.write(out / "path.csv")
    write_rows(out / "coefficients.csv", coefficient_rows(found))
    (out / "config.yaml").write_text(resolved_yaml(setup.config), encoding="utf-8")
    found.plot(out / "path.png")
    if found.metric is not None:
        write_run(found.best, replace(setup, config=_config_of_best(setup, found)), out / "best")


def _config_of_best(setup: Setup, found: RegularisationPath) -> Config:
    """The config that trains the best run by itself."""
    changed: dict[str, Any] = {found.over: found.best_value}
    if found.over == "l2":  # of which alpha is another name
        # given both, the model would be refused
        changed["alpha"] = None

    model = setup.config.model.model_copy(update=changed)
    return setup.config.model_copy(update={"model": model, "callbacks": None})


def shown(value: Any) -> str:
    """A number in four digits; whole numbers and texts as they are."""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, int):
        return f"{value:,}"
    return str(value)


def plain_rows(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows of a table as JSON has them: null for what is not a number."""
    return [plain_row(row) for row in rows]


def plain_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row for JSON: null for what is not a number."""
    plain = dict(row)
    for name, value in row.items():
        if value != value:  # only NaN differs from itself
            plain[name] = None
    return plain


def coefficient_rows(found: RegularisationPath) -> Rows:
    """A row for each value of the penalty and column (and class)."""
    rows = Rows()
    classes = found.runs[0].classes
    for value, coefficients in zip(found.values.tolist(), found.coefficients, strict=True):
        for name, own in zip(found.column_names, coefficients.tolist(), strict=True):
            about = {found.over: value, "column": name}
            if not isinstance(own, list):
                rows.append({**about, "coefficient": own})
                continue

            for one, number in zip(classes, own, strict=True):
                rows.append({**about, "class": one, "coefficient": number})

    return rows
