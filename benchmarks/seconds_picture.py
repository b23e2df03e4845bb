"""The picture of `benchmarks.seconds`: who is fastest, over K and the price of the server's link.

Clients have interfaces of 10 Mb/s and links of 1 ms. The price is how long a message takes over the
server's link, alone, against one between two clients: 10 is a server of 1 Mb/s, which all its links
share.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import Patch, Rectangle

from benchmarks.seconds import KINDS, Contender, Counts, Place, contenders, seconds

SIZES = (8, 20, 40, 200)
PRICES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
CLIENT_MBPS, LATENCY_MS = 10.0, 1.0
# light enough for black numbers on them, and apart for colour-blind readers
FILLS = dict(zip(KINDS, ("#7FB2D8", "#F2C14E", "#66C2A0"), strict=True))
PANELS = {
    "by the paper's methods": ("the paper's",),
    "by ours, and by conjugate gradients on a tree (*)": ("ours", "textbook"),
}


@dataclass(frozen=True)
class Winner:
    """The quickest of some methods in one cell."""

    took: float
    contender: Contender


def times(clients: int, price: float, counts: Counts) -> list[Winner]:
    """Every method that reaches the gap, the quickest first."""
    links = Place(LATENCY_MS, CLIENT_MBPS, CLIENT_MBPS / price).links(clients)
    found = []
    for contender in contenders(clients):
        count = counts.of(clients, contender)
        if count.reached:
            found.append(Winner(seconds(clients, contender, count, links), contender))
    return sorted(found, key=lambda one: one.took)


def best(found: Iterable[Winner], whose: tuple[str, ...]) -> Winner:
    """The quickest of theirs."""
    return next(one for one in found if one.contender.whose in whose)


def draw(path: Path, counts: Counts) -> None:
    """Draw both panels; prints the cells as a table."""
    cells = {(K, price): times(K, price, counts) for K in SIZES for price in PRICES}
    figure, panels = plt.subplots(1, 2, figsize=(9.6, 4.5), sharey=True, facecolor="white")
    for axes, (title, whose) in zip(panels, PANELS.items(), strict=True):
        winners = {cell: best(found, whose) for cell, found in cells.items()}
        _panel(axes, title, winners)
        _print(title, winners)

    panels[0].set_ylabel("price of the server's link\n(1: as between clients)", fontsize=11)
    handles = [Patch(facecolor=FILLS[kind], edgecolor="white", label=kind) for kind in KINDS]
    figure.legend(handles=handles, loc="lower center", ncols=3, frameon=False, fontsize=11)
    figure.suptitle("Fastest to a gap of 1e-4, in seconds", fontsize=13)
    figure.tight_layout(rect=(0, 0.07, 1, 1))
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=170)
    plt.close(figure)


def _panel(axes: Axes, title: str, winners: dict[tuple[int, float], Winner]) -> None:
    for (clients, price), winner in winners.items():
        x, y = SIZES.index(clients), PRICES.index(price)
        fill = FILLS[winner.contender.kind]
        axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=fill, edgecolor="white"))
        star = "*" if winner.contender.whose == "textbook" else ""
        axes.text(x, y, f"{_short(winner.took)}{star}", ha="center", va="center", fontsize=10.5)

    axes.set_title(title, fontsize=11)
    axes.set_xlim(-0.5, len(SIZES) - 0.5)
    axes.set_ylim(-0.5, len(PRICES) - 0.5)
    axes.set_xticks(range(len(SIZES)), [str(size) for size in SIZES], fontsize=10.5)
    axes.set_yticks(range(len(PRICES)), [f"{price:g}" for price in PRICES], fontsize=10.5)
    axes.set_xlabel("number of clients K", fontsize=11)
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_visible(False)


def _short(value: float) -> str:
    """Two figures, and no more digits than it takes.

    >>> _short(0.123), _short(1234.0)
    ('0.12', '1,200')
    """
    rounded = float(f"{value:.1e}")
    digits = 1 - math.floor(math.log10(rounded))
    return f"{round(value, digits):,.{max(digits, 0)}f}"


def _print(title: str, winners: dict[tuple[int, float], Winner]) -> None:
    print(f"| {title} | {' | '.join(f'K = {size}' for size in SIZES)} |")
    print("|---" * (1 + len(SIZES)) + "|")
    for price in PRICES:
        row = []
        for size in SIZES:
            winner = winners[size, price]
            row.append(f"{_short(winner.took)} s, {winner.contender.name}")
        print(f"| price {price:g} | {' | '.join(row)} |")
    print()
