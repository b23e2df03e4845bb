"""``mtcd.report``, and ``mtcd report RUN...``: one HTML file about one or more runs."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, TypeAlias

from mtcd.core.errors import ConfigError
from mtcd.core.files import write_whole
from mtcd.core.optional import find
from mtcd.core.version import VERSION
from mtcd.training.run import Run

if TYPE_CHECKING:
    from mtcd.reporting.record import RunRecord

MARK = b'<meta name="generator" content="mtcd report">'
"""What tells a report from other pages, in its first lines."""

Reported: TypeAlias = Run | str | Path
"""A run, or the folder of one."""


def report(
    runs: Reported | Iterable[Reported] | Mapping[str, Reported],
    out: str | Path = "report.html",
) -> Path:
    """Write a page about runs: one HTML file, which needs no network.

    Parameters
    ----------
    runs : Run, str or Path, several of them, or a mapping of names to them
        The runs, or their folders. Without names, a folder is called as it is, and a run by its
        method.
    out : str or Path, default 'report.html'
        The file. An earlier report is replaced; any other file is refused.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    MtcdError
        If the file cannot be written, or a folder is not that of a run. Nothing is written then.

    Examples
    --------
    >>> import mtcd
    >>> data = mtcd.synthetic("ridge", samples=40, features=6, clients=3)
    >>> stop = mtcd.Stop(iterations=20)
    >>> one = mtcd.train(data, mtcd.Glm("ridge"), "path", mtcd.STCD(), stop)
    >>> two = mtcd.train(data, mtcd.Glm("ridge"), "path", mtcd.MTCD(2, hops=4), stop)
    >>> mtcd.report({"one token": one, "two tokens": two}, "page.html")  # doctest: +SKIP
    PosixPath('page.html')
    """
    out = Path(out)
    _check_out(out)
    # before any folder is read: without bokeh nothing can be written
    render = find("mtcd.reporting.render").render
    find("bokeh")  # raises with installation advice

    # here, so that importing the name needs neither configs nor the command line
    from mtcd.cli.run_folder import check_run
    from mtcd.reporting.document import make_report

    named = _named(runs)
    for _, run in named:
        if not isinstance(run, Run):
            check_run(Path(run))

    records = [_record(run, name) for name, run in named]
    title = f"mtcd: {len(records)} runs"
    if len(records) == 1:
        title = f"mtcd: {records[0].name}"
    write_whole(out, render(make_report(records, "file", title, VERSION)))
    return out


def _named(
    runs: Reported | Iterable[Reported] | Mapping[str, Reported],
) -> list[tuple[str, Reported]]:
    """The runs with names that differ."""
    if isinstance(runs, Run | str | Path):
        runs = [runs]
    if isinstance(runs, Mapping):
        named = list(runs.items())
    else:
        listed = list(runs)
        named = list(zip(_names(listed), listed, strict=True))

    if not named:
        raise ConfigError("report needs at least one run.")

    return named


def _names(runs: Sequence[Reported]) -> list[str]:
    """The name of each run: that of its folder, or of its method."""
    folders = [Path(run) for run in runs if not isinstance(run, Run)]
    of_folders = iter(unique_names(folders))

    names = []
    for run in runs:
        if isinstance(run, Run):
            names.append(run.method)
        else:
            names.append(next(of_folders))
    return _numbered(names)


def _numbered(names: Sequence[str]) -> list[str]:
    """The names, with a number behind each that was there before."""
    seen: Counter[str] = Counter()
    numbered = []
    for name in names:
        seen[name] += 1
        if seen[name] > 1:
            name = f"{name} ({seen[name]})"
        numbered.append(name)
    return numbered


def _record(run: Reported, name: str) -> RunRecord:
    """What the page tells of a run."""
    from mtcd.reporting.record import read_record

    if not isinstance(run, Run):
        return read_record(Path(run), name)

    # by way of its files, so that the page is the same, whether the run was saved or not
    with TemporaryDirectory() as folder:
        run.write(Path(folder))
        return read_record(Path(folder), name)


def unique_names(folders: Sequence[Path]) -> list[str]:
    """Names of folders that differ: those that are the same get the folders they are in, and a
    folder that is given twice gets a number.

    >>> unique_names([Path("a/run"), Path("b/run"), Path("c"), Path("c")])
    ['a/run', 'b/run', 'c', 'c (2)']
    """
    whole = [Path(os.path.abspath(folder)) for folder in folders]
    names = {path: path.name for path in whole}
    times = Counter(names.values())

    depth = 1
    while max(times.values(), default=1) > 1:
        depth += 1
        # only those that are still alike get longer
        for path, name in list(names.items()):
            if times[name] > 1:
                names[path] = str(Path(*path.parts[-depth:]))

        times = Counter(names.values())

    # different folders have different names by now: only one that is given twice gets a number
    return _numbered([names[path] for path in whole])


def _check_out(out: Path) -> None:
    """Refuse a place that cannot be written, and a file that is no report."""
    if out.is_dir() or not out.absolute().parent.is_dir():
        raise ConfigError(f"{out} cannot be written: give a file in a folder that exists (--out).")

    try:
        # a name may be misspelt: nothing but an earlier report is replaced
        other = out.exists() and not _is_report(out)
    except OSError as error:
        raise ConfigError(
            f"{out} cannot be used ({error.strerror}): choose another file (--out)."
        ) from None
    if other:
        raise ConfigError(
            f"{out} exists, and is no report of mtcd: choose another file (--out), or remove it."
        )


def _is_report(path: Path) -> bool:
    with path.open("rb") as file:
        return MARK in file.read(500)
