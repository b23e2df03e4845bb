"""Pictures of how well a model predicts: ROC, precision-recall, calibration and lift; or values
against predictions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mtcd.core.errors import DataError, raised_as
from mtcd.models.metrics import Outputs, find_metric
from mtcd.models.metrics.ranking import Auc, AveragePrecision, Ranks, ranks
from mtcd.models.predicted import class_name
from mtcd.plots.styles import COLOURS, any_script, curve_style, plain
from mtcd.training.run import Run

BINS = 10
CLASSES = 9  # more curves cannot be told apart

Draw = Callable[[Axes, Outputs], None]


def plot_run_evaluation(run: Run, X: Any, y: Any, folder: str | Path) -> list[Path]:
    """Draw ROC, precision-recall, calibration and lift curves, or predictions against values, into
    a folder.

    Returns the files. ``X`` and ``y`` as in ``run.evaluate``.
    """
    return plot_evaluation(run.outputs(X, y), Path(folder))


def plot_evaluation(outputs: Outputs, folder: Path) -> list[Path]:
    """Draw what such outputs allow into a folder; returns the files."""
    if not outputs.finite:
        raise DataError(
            "The outputs of the model are not finite numbers: there is nothing to draw."
        )

    pictures: dict[str, Draw] = {"values": _values}
    if outputs.classes:
        pictures = {"roc": _roc, "precision_recall": _precision_recall, "lift": _lift}
        if outputs.has_probabilities:
            pictures["calibration"] = _calibration
        if not _curves(outputs):
            raise DataError("All labels are of one class: curves need samples of two.")
    with raised_as(f"The pictures could not be written to {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
        return [_drawn(draw, outputs, folder / f"{name}.png") for name, draw in pictures.items()]


@any_script()
def _drawn(draw: Draw, outputs: Outputs, path: Path) -> Path:
    figure = Figure(figsize=(5.2, 4.6), layout="constrained")
    axes = figure.subplots()
    draw(axes, outputs)
    axes.grid(alpha=0.25)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, fontsize=9)
    figure.savefig(path, dpi=150)
    return path


def _curves(outputs: Outputs) -> list[tuple[str, Ranks]]:
    """The ranks of each class against the rest, of two classes the second; without classes that
    have no sample."""
    found = []
    names = outputs.classes[_first_drawn(outputs) :]
    for name, ranking in zip(names, outputs.rankings(), strict=False):
        one = ranks(*ranking)
        if one.positive[-1] and one.negative[-1]:
            found.append((class_name(name), one))
    return found[:CLASSES]


def _first_drawn(outputs: Outputs) -> int:
    """The number of the first class with a curve: of two classes, the first has that of the second
    turned round."""
    if len(outputs.classes) == 2:
        return 1
    return 0


def _look(number: int) -> dict[str, Any]:
    return {**curve_style(number), "linewidth": 1.8}


def _roc(axes: Axes, outputs: Outputs) -> None:
    for number, (name, one) in enumerate(_curves(outputs)):
        up = np.append(0.0, one.positive)
        # from (0, 0): above the highest score nothing is found, and nothing is wrong
        right = np.append(0.0, one.negative)
        # as the metric computes it, so that picture and table agree
        area = Auc().of_ranks(one)
        label = plain(f"{name}: AUC {area:.3f}")
        axes.plot(right / right[-1], up / up[-1], label=label, **_look(number))
    axes.plot([0, 1], [0, 1], color="0.6", linewidth=1, linestyle=":")
    axes.set(xlabel="false positive rate", ylabel="true positive rate", xlim=(0, 1), ylim=(0, 1.01))


def _precision_recall(axes: Axes, outputs: Outputs) -> None:
    for number, (name, one) in enumerate(_curves(outputs)):
        precision = one.positive / (one.positive + one.negative)
        recall = one.positive / one.positive[-1]
        mean = AveragePrecision().of_ranks(one)
        share = one.positive[-1] / (one.positive[-1] + one.negative[-1])
        axes.step(
            np.append(0.0, recall), np.append(precision[0], precision), where="pre",
            label=plain(f"{name}: average precision {mean:.3f}"), **_look(number),
        )  # fmt: skip
        axes.axhline(share, color=COLOURS[number % len(COLOURS)], linewidth=0.8, linestyle=":")
    axes.set(
        xlabel="recall",
        ylabel="precision (dotted: share of the class)",
        xlim=(0, 1),
        ylim=(0, 1.01),
    )


def _lift(axes: Axes, outputs: Outputs) -> None:
    """The share of a class among the samples with the highest scores, over its share among all."""
    for number, (name, one) in enumerate(_curves(outputs)):
        targeted = one.positive + one.negative
        lift = (one.positive / targeted) / (one.positive[-1] / targeted[-1])
        axes.plot(targeted / targeted[-1], lift, label=plain(name), **_look(number))
    axes.axhline(1.0, color="0.6", linewidth=1, linestyle=":")
    axes.set(
        xlabel="share of samples, highest scores first",
        ylabel="lift over a random choice",
        xlim=(0, 1),
    )
    axes.set_ylim(bottom=0)


def _calibration(axes: Axes, outputs: Outputs) -> None:
    """The share of a class among samples of like probability, in bins of equally many samples."""
    first = _first_drawn(outputs)
    for number, name in enumerate(outputs.classes[first:][:CLASSES]):
        column = first + number
        p = outputs.probabilities[:, column]
        hits = outputs.labels == column

        # with fewer samples than bins, some are empty
        bins = [rows for rows in np.array_split(np.argsort(p, kind="stable"), BINS) if len(rows)]
        mean = [p[rows].mean() for rows in bins]
        share = [hits[rows].mean() for rows in bins]
        label = plain(class_name(name))
        axes.plot(mean, share, marker="o", markersize=4, label=label, **_look(number))
    axes.plot([0, 1], [0, 1], color="0.6", linewidth=1, linestyle=":")
    axes.set(
        xlabel="mean predicted probability", ylabel="share of the class", xlim=(0, 1), ylim=(0, 1)
    )


def _values(axes: Axes, outputs: Outputs) -> None:
    known = []
    for name in ("rmse", "r2"):
        value = find_metric(name).of(outputs)
        if np.isfinite(value):  # R2 is not, where all labels are equal
            known.append(f"{name.upper()} {value:.4g}")

    axes.scatter(
        outputs.predicted,
        outputs.labels,
        s=9,
        alpha=0.5,
        color=COLOURS[0],
        linewidth=0,
        label=", ".join(known),
    )

    both = np.append(outputs.predicted, outputs.labels)
    ends = [float(both.min()), float(both.max())]
    axes.plot(ends, ends, color="0.6", linewidth=1, linestyle=":")
    axes.set(xlabel="prediction", ylabel="value")
