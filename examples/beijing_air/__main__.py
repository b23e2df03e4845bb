"""All numbers and pictures of docs/beijing-air.md: `python examples/beijing_air --out
docs/figures`.

It needs the data set beijing-air (docs/datasets.md) and takes some minutes on a quiet machine.
`--quick` takes one station and every 150th hour, to see that it runs; `--draw` draws the pictures
again from the CSV files.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from accuracy import TEST_YEAR, compare, predictions, problem
from pictures import draw
from training import LINKS, agreement, best_multiple, curve, trainings

import mtcd
from mtcd_experiments.datasets.catalogue import read_series
from mtcd_experiments.datasets.entry import RawSeries

MAIN = mtcd.Forecast("Dongsi", 6, TEST_YEAR)
HORIZONS = (1, 6, 24)
# the centre, the north-east and the west; and the centre a day ahead
TRAINED = (
    MAIN,
    mtcd.Forecast("Huairou", 6),
    mtcd.Forecast("Gucheng", 6),
    mtcd.Forecast("Dongsi", 24),
)
SHOWN = (np.datetime64("2016-11-28T00"), np.datetime64("2016-12-14T00"))


def main() -> None:
    """Measure (unless told to draw only), write the tables, draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/beijing-air"))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--draw", action="store_true")
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    if not given.draw:
        measure(given.out, given.quick, given.seeds)
    draw(given.out, MAIN.target, MAIN.hours)
    print(f"Tables and pictures are in {given.out}.")


def measure(folder: Path, quick: bool, seeds: int) -> None:
    """Everything that takes time."""
    raw = read_series("beijing-air")
    every, trained = (150, TRAINED[:1]) if quick else (1, TRAINED)
    asked = (
        trained
        if quick
        else [mtcd.Forecast(target, hours) for target in raw.clients for hours in HORIZONS]
    )
    accuracy = [row for one in asked for row in told(compare(raw, one, every))]
    write(folder, "accuracy", accuracy)
    penalties = {(row["target"], row["hours"], row["model"]): row["penalty"] for row in accuracy}
    write(
        folder,
        "days",
        days(raw, *(penalties[MAIN.target, MAIN.hours, m] for m in ("together", "alone")), every),
    )
    train_all(
        folder,
        raw,
        {one: penalties[one.target, one.hours, "together"] for one in trained},
        seeds,
        every,
    )


def train_all(
    folder: Path,
    raw: RawSeries,
    problems: Mapping[mtcd.Forecast, float],
    seeds: int,
    every: int = 1,
) -> None:
    """The federated trainings of these problems, each with its penalty."""
    methods, curves, multiple = [], [], None
    for asked, penalty in problems.items():
        data = problem(raw, asked, 12, every)
        model = mtcd.Glm("ridge", alpha=penalty, intercept=True)
        network = mtcd.read_network(LINKS, data.clients)
        # of the first problem: the others have its columns
        multiple = multiple or best_multiple(data, model, network)
        for row, run in trainings(data, model, multiple, seeds):
            methods += told([{"target": asked.target, "hours": asked.hours, **row}])
            if asked == MAIN and row["seed"] == 0:
                curves += [{"method": row["method"], **point} for point in curve(run)]
        write(folder, "methods", methods)
        write(folder, "curves", curves)
        difference = agreement(data, model, network)
        print(
            f"largest difference from the closed form in the test year: {difference:.1e} µg/m³",
            flush=True,
        )


def days(raw: RawSeries, penalty: float, penalty_alone: float, every: int) -> list[dict[str, Any]]:
    """Measured and predicted, hour by hour, of some days."""
    data = problem(raw, MAIN, 12, every)
    assert data.test is not None
    together = predictions(data, np.array([penalty]))[0]
    alone = predictions(problem(raw, MAIN, 1, every), np.array([penalty_alone]))[0]
    start = int((np.datetime64(f"{TEST_YEAR}-03-01T00") - raw.first).astype(int))
    pm = raw.values[:, raw.clients.index(MAIN.target), 0]
    hours = np.array([t for t in range(start + MAIN.hours, len(pm)) if not np.isnan(pm[t])])[
        ::every
    ]
    times = raw.first + hours
    rows = zip(times, data.test.labels, alone, together, strict=True)
    return [
        {
            "time": f"{time}:00",
            "measured": float(label),
            "alone": float(one),
            "together": float(all_),
        }
        for time, label, one, all_ in rows
        if every > 1 or SHOWN[0] <= time < SHOWN[1]
    ]


def told(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows, printed as they come."""
    kept = []
    for row in rows:
        print(
            "  ".join(f"{v:.4g}" if isinstance(v, float) else str(v) for v in row.values()),
            flush=True,
        )
        kept.append(row)
    return kept


def write(folder: Path, name: str, rows: list[dict[str, Any]]) -> None:
    """A table as CSV."""
    pl.DataFrame(rows, infer_schema_length=None).write_csv(
        folder / f"beijing-air-{name}.csv", float_precision=6
    )


if __name__ == "__main__":
    main()
