"""The look of every curve of an experiment: what belongs together looks alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from mtcd.plots.styles import COLOURS, DASHES, MARKERS, Style
from mtcd_experiments.schema import Experiment

WIDEST, NARROWEST = 2.6, 1.5


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

    looks: dict[str, Style] = {}
    for names in groups:
        looks.update(zip(names, _looks(experiment, names), strict=True))

    return {(case, name): looks[name] for case, names in shown.items() for name in names}


def _looks(experiment: Experiment, names: Sequence[str]) -> list[Style]:
    """Later curves are narrower, so that one which lies under them still shows at their sides."""
    places = _families([experiment.curves[name].method for name in names])
    widths = np.linspace(WIDEST, NARROWEST, len(names))

    styles = []
    for i, ((colour, dash), width) in enumerate(zip(places, widths, strict=True)):
        style = Style(
            COLOURS[colour % len(COLOURS)],
            DASHES[dash % len(DASHES)],
            MARKERS[i % len(MARKERS)],
            float(width),
        )
        styles.append(style)

    return styles


def _families(methods: Sequence[dict[str, Any]]) -> list[tuple[int, int]]:
    """A colour and a dash for each method.

    If they are pairs, triples ... that differ in one setting (four numbers of tokens, each with two
    ways to combine), that setting is the dash and the rest the colour. Otherwise both are counted
    up.
    """
    best, most = [(i, i) for i in range(len(methods))], 1
    settings = []
    for method in methods:
        # step sizes are tuned: they differ, but are not what a figure is about
        settings.append({key: str(value) for key, value in method.items() if key != "stepsize"})

    for key in sorted({key for method in settings for key in method}):
        rests = []
        for method in settings:
            rest = {other: value for other, value in method.items() if other != key}
            rests.append(str(sorted(rest.items())))

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
