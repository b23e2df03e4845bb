"""Pictures, tables and the page of figures of accuracy; and the real ones, quickly."""

from __future__ import annotations

import csv
import io
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text
from pydantic import ValidationError

from commands import run
from made_up_results import accuracies
from mtcd.config.schema import StopSection
from mtcd_experiments.claims import check_claims
from mtcd_experiments.figures import draw
from mtcd_experiments.numbers import entries, lines_csv
from mtcd_experiments.page import write_page
from mtcd_experiments.tables import cells, headings, table_csv

# an epoch of 50 batches: K + Γ + S·Γ/R each, with K = 4 and Γ = S = 2
MTCD = 50 * (4 + 2 + 2 * 2 / 100)
SVFL = 50 * 2 * 4


def drawn(**more: Any) -> Figure:
    figure = draw(accuracies(**more))
    figure.draw_without_rendering()
    return figure


def said(figure: Figure) -> str:
    return " ".join(" ".join(text.get_text() for text in figure.findobj(Text)).split())  # type: ignore[attr-defined]


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_the_picture_is_of_percents_along_epochs_cost_and_bytes() -> None:
    figure = drawn()
    words = said(figure)
    for one in (
        "test accuracy",
        "epochs",
        "communication cost ($R_C$ = 100)",
        "communication in bytes",
        "80%",
        "MB",
    ):
        assert one in words
    assert (
        "Lines: mean over 3 seeds; dotted: 80%. Bands: from the least to the most of the seeds."
        in words
    )
    assert "ring" not in words  # an end after the epochs asked for is no news
    epochs, cost, sent = figure.axes
    assert [line.get_xdata()[-1] for line in epochs.get_lines()[:2]] == [20, 20]
    assert [line.get_xdata()[-1] for line in cost.get_lines()[:2]] == pytest.approx(
        [20 * SVFL, 20 * MTCD]
    )
    assert sent.get_lines()[0].get_xdata()[-1] == 4 * 1600 * 8 * 50 * 20
    for axes in figure.axes:
        low, high = axes.get_ylim()
        assert 0.1 < low < 0.8 < 0.9 < high < 1  # not down to where guessing gets
        assert [
            line.get_ydata()[0] for line in axes.get_lines() if line.get_label() == "_target"
        ] == [0.8]


def test_one_seed_without_a_target() -> None:
    figure = drawn(seeds=1, target_accuracy=None)
    assert "Lines: one seed." in said(figure)
    assert not [
        line for axes in figure.axes for line in axes.get_lines() if line.get_label() == "_target"
    ]


def test_a_log_axis_starts_at_the_first_measurement_after_the_start() -> None:
    figure = drawn(panels=[{"x": "epochs", "scale": "log"}])
    assert 0 < figure.axes[0].get_xlim()[0] < 1


def test_the_table() -> None:
    found = accuracies()
    titles, row = headings(found), cells(found, entries(found)[1])
    shown = dict(zip(titles, row, strict=True))
    assert shown["cost R=100"] == "6,040"
    assert shown["cost per epoch, of SVFL's"] == "75.5%"
    assert [title for title in titles if title.endswith("epochs")] == [
        f"after {n} epochs" for n in (5, 10, 15)
    ]
    made = found.curves["cifar10", "mtcd"].trained
    assert (
        shown["after 10 epochs"]
        == f"{np.mean([one.columns['test_accuracy'][10] for one in made]):.1%}"
    )
    assert (
        shown["at the end"] == f"{np.mean([one.columns['test_accuracy'][-1] for one in made]):.1%}"
    )
    first = [
        next(i for i, a in enumerate(one.columns["test_accuracy"]) if a >= 0.8) for one in made
    ]
    assert shown["cost R=100 to an accuracy of 0.8"] == f"{np.mean(first) * MTCD:,.0f}"
    assert len(headings(found, brief=True)) == len(titles)
    assert len(headings(accuracies(target_accuracy=None))) == len(titles) - 1


BOTH = [{"x": "epochs"}, {"x": "cost"}, {"x": "cost", "per": "float"}]


def test_costs_per_message_and_per_float_side_by_side() -> None:
    """As made up, all messages are of 1600 numbers: a float costs as much as a message, 1600
    times."""
    found = accuracies(panels=BOTH)
    figure = drawn(panels=BOTH)
    assert [axes.get_xlabel() for axes in figure.axes[1:]] == [
        "communication cost ($R_C$ = 100)",
        "communication cost per float ($R_C$ = 100)",
    ]
    ends = [axes.get_lines()[1].get_xdata()[-1] for axes in figure.axes[1:]]
    assert ends == pytest.approx([20 * MTCD, 1600 * 20 * MTCD])
    shown = dict(zip(headings(found), cells(found, entries(found)[1]), strict=True))
    assert shown["float cost R=100"] == f"{1600 * 20 * MTCD:,.0f}"
    assert shown["float cost per epoch, of SVFL's"] == shown["cost per epoch, of SVFL's"] == "75.5%"
    row = rows(table_csv(found))[1]
    assert float(row["float_share_of_svfl_R100"]) == pytest.approx(MTCD / SVFL)
    assert float(row["float_cost_R100_mean"]) == pytest.approx(1600 * 20 * MTCD)
    assert {one["panel"] for one in rows(lines_csv(found))} == {
        "epochs",
        "cost R=100",
        "float cost R=100",
    }


def test_a_config_that_prices_floats_has_figures_of_them() -> None:
    found = replace(accuracies(panels=[{"x": "cost"}]), per="float")
    assert "float cost R=100" in headings(found)
    assert "per float" in draw(found).axes[0].get_xlabel()


def test_only_costs_have_a_price() -> None:
    with pytest.raises(ValidationError, match="per is for x: cost"):
        accuracies(panels=[{"x": "bytes", "per": "float"}])


def test_the_csv_files() -> None:
    found = accuracies()
    svfl, mtcd = rows(table_csv(found))
    assert float(mtcd["share_of_svfl_R100"]) == pytest.approx(MTCD / SVFL)
    assert (svfl["share_of_svfl_R100"], svfl["status"], svfl["seconds"]) == (
        "1.0",
        "epochs",
        "180.0",
    )
    assert float(mtcd["cost_R100_mean"]) == pytest.approx(20 * MTCD)
    ends = [one.columns["test_accuracy"][-1] for one in found.curves["cifar10", "mtcd"].trained]
    assert [float(mtcd[f"accuracy_{what}"]) for what in ("least", "most")] == [min(ends), max(ends)]
    points = rows(lines_csv(found))
    assert {row["panel"] for row in points} == {"epochs", "cost R=100", "bytes"}
    assert all(
        0 <= float(row["low"]) <= float(row["value"]) <= float(row["high"]) <= 1 for row in points
    )


def test_the_page_has_claims_picture_and_table(tmp_path: Path) -> None:
    found = {"cifar10": accuracies(notes=("Made-up data in place of cifar10.",))}
    claims = check_claims(found)
    assert [claim.holds for claim in claims] == ["yes", "yes", "yes"]
    write_page(found, claims, tmp_path / "page.md", tmp_path, {})
    text = (tmp_path / "page.md").read_text()
    for one in (
        "(cifar10.png)",
        "75.5% of it",
        "- Made-up data in place of cifar10.",
        "after 10 epochs",
        "--seeds 3",
    ):
        assert one in text.replace("./", "")
    assert "gap" not in text


# ---- the real ones, on made-up data


@pytest.mark.long
@pytest.mark.skipif(
    "epochs" not in StopSection.model_fields, reason="the config has no stop.epochs yet"
)
@pytest.mark.parametrize(
    ("name", "clients", "tokens", "hops", "width", "ours"),
    [
        ("cifar10", 4, 2, 2, 16, ["mtcd"]),
        ("modelnet10", 12, 2, 6, 64, ["mtcd-complete", "mtcd-path"]),
    ],
)
def test_the_quick_version_learns_and_costs_what_it_should(
    name: str,
    clients: int,
    tokens: int,
    hops: int,
    width: int,
    ours: list[str],
    tmp_path: Path,
    capsys: Any,
) -> None:
    pytest.importorskip("torch")
    # CI has trained them already: what is there is kept
    folder = Path(os.environ.get("MTCD_QUICK_FIGURES", tmp_path))
    assert (
        run("reproduce", name, "--quick", "--out", str(folder), "--page", str(tmp_path / "page.md"))
        == 0
    )
    assert f"Made-up data in place of {name}" in " ".join(capsys.readouterr().err.split())
    table = {row["curve"]: row for row in rows((folder / f"{name}-table.csv").read_text())}
    assert list(table) == ["svfl", *ours]
    share = (clients + tokens + hops * tokens / 100) / (2 * clients)
    # batches of 50, 4 classes
    fresh, token = 50 * width, 50 * clients * width + 4 * clients * width + 4
    floats = clients * fresh + (tokens + hops * tokens / 100) * token
    for curve in ours:
        assert float(table[curve]["share_of_svfl_R100"]) == pytest.approx(share, rel=0.02)
        both = clients * (fresh + token)
        assert float(table[curve]["float_share_of_svfl_R100"]) == pytest.approx(
            floats / both, rel=0.02
        )
    for row in table.values():
        assert row["status"] == "epochs"
        assert float(row["accuracy_mean"]) > 0.3  # of 4 classes
    assert f"{name}.png" in (tmp_path / "page.md").read_text()
