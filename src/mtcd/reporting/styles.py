"""The styles of curves: colours for colour-blind readers, dashes and markers; and short numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mtcd_experiments.schema import Experiment

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
WIDEST, NARROWEST = 2.6, 1.5


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


def curve_styles(experiment: Experiment, cases: Sequence[str]) -> dict[tuple[str, str], Style]:
    """The look of every (case, curve).

    A curve that several cases show looks the same in all. Where no curve is shown twice, each case
    starts from the first colour, so that cases built alike look alike.
    """
    shown = {case: experiment.shown(case) for case in cases}
    used = Counter(name for names in shown.values() for name in names)
    groups = list(shown.values())
    if any(count > 1 for count in used.values()):
        groups = [[name for name in experiment.curves if name in used]]
    looks = {
        name: look
        for names in groups
        for name, look in zip(names, _looks(experiment, names), strict=True)
    }
    return {(case, name): looks[name] for case, names in shown.items() for name in names}


def _looks(experiment: Experiment, names: Sequence[str]) -> list[Style]:
    """Later curves are narrower, so that one which lies under them still shows at their sides."""
    places = _families([experiment.curves[name].method for name in names])
    widths = np.linspace(WIDEST, NARROWEST, len(names))
    return [
        Style(
            COLOURS[colour % len(COLOURS)],
            DASHES[dash % len(DASHES)],
            MARKERS[i % len(MARKERS)],
            float(width),
        )
        for i, ((colour, dash), width) in enumerate(zip(places, widths, strict=True))
    ]


def _families(methods: Sequence[dict[str, Any]]) -> list[tuple[int, int]]:
    """A colour and a dash for each method.

    If they are pairs, triples ... that differ in one setting (four numbers of tokens, each with two
    ways to combine), that setting is the dash and the rest the colour. Otherwise both are counted
    up.
    """
    best, most = [(i, i) for i in range(len(methods))], 1
    settings = [
        {key: str(value) for key, value in method.items() if key != "stepsize"}
        for method in methods
    ]
    for key in sorted({key for method in settings for key in method}):
        rests = [
            str(sorted((other, value) for other, value in method.items() if other != key))
            for method in settings
        ]
        values = [method.get(key, "") for method in settings]
        families = sum(count > 1 for count in Counter(rests).values())
        pairs = list(zip(_numbered(rests), _numbered(values), strict=True))
        if families > most and len(set(pairs)) == len(pairs):
            best, most = pairs, families
    return best


def _numbered(values: Sequence[str]) -> list[int]:
    """0 for the first value and all that equal it, 1 for the next ..."""
    order = list(dict.fromkeys(values))
    return [order.index(value) for value in values]


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
