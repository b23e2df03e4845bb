"""Tables for a screen of any width: no title and no number is ever cut."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, JustifyMethod, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from mtcd.core.terminal.text import plain_text

INDENT = 2  # of the lines of a block
GAPS = (2, 1)  # spaces between columns: as many as fit
LINES = 6  # a column of words that would need more lines than this is too narrow
LONG_WORD = 24  # longer ones may be broken


@dataclass(frozen=True)
class ScreenTable:
    """Columns side by side where the screen is wide enough, otherwise a block of lines for each
    row.

    Parameters
    ----------
    titles, rows
        The titles of the columns, and the cells row by row.
    words
        The titles of columns that hold text, which may wrap; all others stand on one line, to the
        right.
    caption
        A line above the table.
    grouped
        Leave a first cell blank that repeats the one above.
    best
        Whether the first row is bold.
    alarming
        The numbers of rows that are red.

    Examples
    --------
    >>> from rich.console import Console
    >>> table = ScreenTable(["method", "hops"], [["STCD", "120"], ["MTCD", "80"]], ["method"])
    >>> Console(width=40).print(table)
    method  hops
    STCD     120
    MTCD      80
    """

    titles: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: Sequence[str]
    caption: str | None = None
    grouped: bool = False
    best: bool = False
    alarming: Collection[int] = ()

    def __post_init__(self) -> None:
        rows = [[_one_line(cell) for cell in row] for row in self.rows]
        object.__setattr__(self, "rows", rows)

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        if self.caption is not None:
            yield Text(_one_line(self.caption), style="bold")

        columns = range(len(self.titles))
        # Wide gaps read better; narrow ones are better than a block of lines.
        for gap in GAPS:
            room = options.max_width - gap * (len(columns) - 1)
            if sum(map(self._least, columns)) <= room:
                yield self._side_by_side(self._widths(room), gap)
                return

        for number, row in enumerate(self.rows):
            yield from self._block(number, row, options.max_width)

    def _column(self, j: int) -> list[str]:
        return [self.titles[j], *(row[j] for row in self.rows)]

    def _natural(self, j: int) -> int:
        """The width with which everything in a column stands on one line."""
        return max(map(cell_len, self._column(j)))

    def _least(self, j: int) -> int:
        """The width that a column needs at least."""
        natural = self._natural(j)
        if self.titles[j] not in self.words:
            return natural

        words = " ".join(self._column(j)).split()
        longest_word = max(map(cell_len, words), default=0)
        lines = -(-natural // LINES)  # rounded up
        return max(min(longest_word, LONG_WORD), lines, cell_len(self.titles[j]))

    def _widths(self, room: int) -> list[int]:
        """The widths of the columns: those of words give way, the widest first."""
        columns = range(len(self.titles))
        widths = [self._natural(j) for j in columns]
        least = [self._least(j) for j in columns]
        # One character at a time, so that columns of words end up equally narrow.
        while sum(widths) > room:
            wider = [j for j in columns if widths[j] > least[j]]
            widths[max(wider, key=widths.__getitem__)] -= 1
        return widths

    def _side_by_side(self, widths: Sequence[int], gap: int) -> Table:
        table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, gap, 0, 0))
        for title, width in zip(self.titles, widths, strict=True):
            words = title in self.words
            # Numbers to the right, so that their digits stand below each other.
            justify: JustifyMethod = "right"
            if words:
                justify = "left"
            table.add_column(
                Text(title), width=width, justify=justify, no_wrap=not words, overflow="fold"
            )

        before = None
        for number, (first, *rest) in enumerate(self.rows):
            repeated = self.grouped and first == before
            shown = ["" if repeated else first, *rest]
            table.add_row(*map(Text, shown), style=self._style(number))
            before = first
        return table

    def _block(self, number: int, row: Sequence[str], room: int) -> Iterator[RenderableType]:
        """A row as lines, one for each column that is not empty; two where a number does not fit
        beside its title."""
        if number:
            yield Text()
        yield Text(row[0], style=f"bold {self._style(number)}".strip(), overflow="fold")

        cells = dict(zip(self.titles, row, strict=True))
        indented = max(map(cell_len, self.titles[1:]), default=0) + INDENT
        numbers = [cell_len(cell) for title, cell in cells.items() if title not in self.words]
        stacked = indented + GAPS[0] + max(numbers, default=0) > room

        least = indented
        if stacked:
            least = 0

        lines = Table(box=None, show_header=False, pad_edge=False, padding=(0, GAPS[0], 0, 0))
        lines.add_column(overflow="fold", no_wrap=not stacked, min_width=least)
        lines.add_column(overflow="fold")
        for title, cell in zip(self.titles[1:], row[1:], strict=True):
            if not cell:
                continue
            indented_title = Padding(Text(title), (0, 0, 0, INDENT))
            if stacked:
                lines.add_row(indented_title)
                lines.add_row(Padding(Text(cell), (0, 0, 0, 2 * INDENT)))
            else:
                lines.add_row(indented_title, Text(cell))
        yield lines

    def _style(self, number: int) -> str:
        if number in self.alarming:
            return "red"
        if self.best and number == 0:
            return "bold"
        return ""


def _one_line(text: str) -> str:
    """Text from anywhere, without line breaks and without codes that steer a terminal."""
    return plain_text(text.replace("\n", " ").replace("\t", " "))
