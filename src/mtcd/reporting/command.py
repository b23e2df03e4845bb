"""mtcd report RUN...: one HTML file about one or more runs."""

from __future__ import annotations

import os
import webbrowser
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from mtcd.cli.run_folder import check_run
from mtcd.core.errors import ConfigError
from mtcd.core.files import write_whole
from mtcd.core.optional import find
from mtcd.core.terminal.screen import screen
from mtcd.core.terminal.text import escape
from mtcd.core.version import VERSION
from mtcd.reporting.document import make_report
from mtcd.reporting.record import read_record

MARK = b'<meta name="generator" content="mtcd report">'
"""What tells a report from other pages, in its first lines."""


def write_report(folders: Sequence[Path], out: Path, opens: bool) -> None:
    """Write the page about these runs, and open it if asked to."""
    _check_out(out)
    render = find("mtcd.reporting.render").render
    find("bokeh")
    for folder in folders:
        check_run(folder)
    records = [
        read_record(folder, name)
        for folder, name in zip(folders, unique_names(folders), strict=True)
    ]
    title = f"mtcd: {records[0].name}" if len(records) == 1 else f"mtcd: {len(records)} runs"
    write_whole(out, render(make_report(records, "file", title, VERSION)))
    screen.print(f"Report: {escape(str(out))}", highlight=False, soft_wrap=True)
    if opens:
        webbrowser.open(out.resolve().as_uri())


def unique_names(folders: Sequence[Path]) -> list[str]:
    """The names of the folders; where some are the same, with the folders they are in; of one
    twice, with a number.

    >>> unique_names([Path("a/run"), Path("b/run"), Path("c"), Path("c")])
    ['a/run', 'b/run', 'c', 'c (2)']
    """
    whole = [Path(os.path.abspath(folder)) for folder in folders]
    names = {path: path.name for path in whole}
    depth = 1
    while max((times := Counter(names.values())).values()) > 1:
        depth += 1
        longer = {path: str(Path(*path.parts[-depth:])) for path in names}
        names = {path: longer[path] if times[name] > 1 else name for path, name in names.items()}
    seen: Counter[Path] = Counter()
    found = []
    for path in whole:
        seen[path] += 1
        found.append(names[path] if seen[path] == 1 else f"{names[path]} ({seen[path]})")
    return found


def _check_out(out: Path) -> None:
    """Refuse a place that cannot be written, and a file that is no report."""
    if out.is_dir() or not out.absolute().parent.is_dir():
        raise ConfigError(f"{out} cannot be written: give a file in a folder that exists (--out).")
    try:
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
