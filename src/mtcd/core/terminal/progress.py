"""The progress of many trainings, in one line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from mtcd.core.terminal.screen import aside
from mtcd.core.terminal.text import escape, span
from mtcd.core.workers import QueueStatus

PROGRESS_CHARACTERS = 75  # of the line, before the names of the running trainings


@contextmanager
def trainings_progress(
    quiet: bool = False,
) -> Iterator[tuple[Callable[[QueueStatus], None], Callable[[], AbstractContextManager[None]]]]:
    """A progress line on standard error, and a context manager that hides it.

    Parameters
    ----------
    quiet
        Whether nothing is shown.
    """
    columns = (
        TextColumn("{task.completed} of {task.total} trainings"),
        BarColumn(bar_width=16),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
        TextColumn("{task.description}"),
    )
    bar = Progress(*columns, console=aside, transient=True, refresh_per_second=4)
    bar.disable = quiet or not aside.is_terminal
    task = bar.add_task("", total=0, left="")

    def show(status: QueueStatus) -> None:
        left = ""
        if status.left is not None:
            left = f"about {span(status.left)} left"
        # one line, however many there are
        room = max(aside.width - PROGRESS_CHARACTERS, 0)
        running = "; ".join(status.running)[:room]
        bar.update(
            task, completed=status.done, total=status.total, left=left, description=escape(running)
        )

    @contextmanager
    def pause() -> Iterator[None]:
        bar.stop()
        try:
            yield
        finally:
            bar.start()

    with bar:
        yield show, pause
