"""The styles of curves: colours for colour-blind readers, dashes and markers; short numbers, and names
in any script."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
from matplotlib.font_manager import fontManager

COLOURS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#000000",
    "#882255",
    "#7F7F7F",
)
# 9 colours and 5 dashes have no common factor: counting both up together gives 45 different looks
DASHES: tuple[Any, ...] = (
    "-",
    (0, (5, 1.6)),
    (0, (1.2, 1.2)),
    (0, (6, 1.5, 1.2, 1.5)),
    (0, (9, 2)),
)
MARKERS = ("o", "s", "^", "D", "v", "P", "h", "<", "X", ">")


@dataclass(frozen=True)
class Style:
    """The look of one curve."""

    colour: str
    dash: Any
    marker: str
    width: float

    def line(self) -> dict[str, Any]:
        """As Matplotlib takes it."""
        return {
            "color": self.colour,
            "linestyle": self.dash,
            "linewidth": self.width,
            "marker": self.marker,
            "markersize": 5.0,
            "markeredgecolor": "white",
            "markeredgewidth": 0.5,
            "dash_capstyle": "butt",
        }


def curve_style(number: int) -> dict[str, Any]:
    """Colour and dashes of the curve with this number, as Matplotlib takes them."""
    return {"color": COLOURS[number % len(COLOURS)], "linestyle": DASHES[number % len(DASHES)]}


def plain(text: str) -> str:
    """Text of a user's, in which a dollar is a dollar and not the start of a formula."""
    return text.replace("$", r"\$")


def scientific(value: float | None) -> str:
    """A step size, shortly; a dash where there is none.

    >>> scientific(4e-4), scientific(2.5e-5), scientific(0.020003)
    ('4e-04', '2.5e-05', '2e-02')
    """
    if value is None:
        return "-"
    digits, power = f"{value:.2e}".split("e")
    return f"{digits.rstrip('0').rstrip('.')}e{power}"


OTHER_SCRIPTS = (
    "Noto Sans CJK JP",
    "Noto Sans CJK SC",
    "Hiragino Sans",
    "PingFang SC",
    "Yu Gothic",
    "Microsoft YaHei",
    "Malgun Gothic",
    "Noto Sans Arabic",
    "Noto Sans Hebrew",
    "Noto Sans Devanagari",
    "Noto Sans Thai",
    "Arial Unicode MS",
)


@contextmanager
def any_script() -> Iterator[None]:
    """The context in which names of a user's are drawn.

    Matplotlib's own font lacks many scripts: those of this machine stand in. A letter that none has
    is a box, without a warning for each on the user's screen.
    """
    installed = set(fontManager.get_font_names())
    families = [
        *mpl.rcParams["font.family"],
        *(name for name in OTHER_SCRIPTS if name in installed),
    ]
    with mpl.rc_context({"font.family": families}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph .* missing from font", UserWarning)
        yield
