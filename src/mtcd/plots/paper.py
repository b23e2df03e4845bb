"""Figures for papers: a given width and font size, no title inside, fonts that journals take."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from mtcd.core.errors import ConfigError

SCREEN_POINTS = 10.0  # the size of text that widths of lines and lengths of legends were chosen for
NARROW_PANEL = 2.2  # inches: panels that would be narrower stand below each other


@dataclass(frozen=True)
class Paper:
    """The width of a figure in inches, and the size of its text in points; the default is a column
    of two."""

    width: float = 3.5
    points: float = 8.0

    @property
    def scale(self) -> float:
        """The size of the text, against that of figures for the screen."""
        return self.points / SCREEN_POINTS

    def stacked(self, panels: int) -> bool:
        """Whether so many panels side by side would be too narrow."""
        return self.width / panels < NARROW_PANEL

    @contextmanager
    def fonts(self) -> Iterator[None]:
        """The context in which a figure is drawn: a serif font that comes with Matplotlib, embedded
        as Type 42."""
        settings: Any = {
            "font.family": ["STIXGeneral", "DejaVu Sans"],
            "mathtext.fontset": "stix",
            "font.size": self.points,
            "axes.linewidth": 0.8 * self.scale,
            # Type 3, the default, is refused by many journals
            "pdf.fonttype": 42,
            "ps.fonttype": 42,
        }
        with mpl.rc_context(settings):
            yield

    def shrink(self, figure: Figure) -> None:
        """Lines and markers as much smaller as the text is."""
        for axes in figure.findobj(mpl.axes.Axes):
            assert isinstance(axes, mpl.axes.Axes)
            for line in axes.get_lines():
                line.set_linewidth(line.get_linewidth() * self.scale * 0.8)
                line.set_markersize(line.get_markersize() * self.scale * 0.8)


def parse_style(text: str | None) -> Paper | None:
    """The style of ``--style``: None, 'screen', or 'paper[:WIDTH[,POINTS]]'.

    >>> parse_style("paper:7.16,9")
    Paper(width=7.16, points=9.0)
    """
    name, _, sizes = (text or "screen").partition(":")
    if name == "screen" and not sizes:
        return None

    paper = None
    if name == "paper":
        with suppress(TypeError, ValueError):  # too many sizes, or no numbers
            paper = Paper(*(float(size) for size in sizes.split(",") if size))
    if paper is None:
        raise ConfigError(
            f"--style {text}: give screen, paper, or paper:WIDTH,POINTS, such as paper:3.5,8."
        )
    if not (1 <= paper.width <= 20 and 4 <= paper.points <= 30):
        raise ConfigError(
            f"--style {text}: the width is 1 to 20 inches, the size of the text 4 to 30 points."
        )
    return paper
