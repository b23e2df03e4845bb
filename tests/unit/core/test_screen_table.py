"""Tables on screens of any width: every title and every number is whole."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

import mtcd
from commands import run as command
from mtcd.cli import show
from mtcd.core.terminal.screen import screen
from mtcd.core.terminal.table import ScreenTable
from mtcd.federation.commands.operator import show_summary

WIDTHS = (40, 60, 80, 120)


def printed(table: ScreenTable, width: int) -> str:
    console = Console(width=width, file=io.StringIO())
    console.print(table)
    return console.file.getvalue()  # type: ignore[attr-defined]


def read_back(text: str, table: ScreenTable) -> list[dict[str, str]]:
    """The rows of a table without wrapped cells, from what is on the screen."""
    lines = [line.rstrip() for line in text.splitlines()]
    if set(table.titles) <= set(lines[0].split()):
        return [dict(zip(table.titles, line.split(), strict=True)) for line in lines[1:]]
    rows: list[dict[str, str]] = []
    title = ""
    for line in filter(None, lines):
        if line.startswith("    "):  # under its title, as there is no room beside it
            rows[-1][title] = line.strip()
        elif line.startswith("  ") and line.strip() in table.titles:
            title = line.strip()
        elif line.startswith("  "):
            title, value = line.split()
            rows[-1][title] = value
        else:
            rows.append({table.titles[0]: line})
    return rows


NUMBERS = st.integers(0, 10**12).map(lambda n: f"{n:,}")


@given(
    st.integers(1, 8).flatmap(
        lambda n: st.lists(st.lists(NUMBERS, min_size=n, max_size=n), min_size=1)
    ),
    st.data(),
)
def test_every_title_and_number_is_whole_at_every_width(
    rows: list[list[str]], data: st.DataObject
) -> None:
    titles = [
        "name",
        *(f"column{'_' * data.draw(st.integers(0, 12))}{j}" for j, _ in enumerate(rows[0])),
    ]
    table = ScreenTable(titles, [[f"r{i}", *row] for i, row in enumerate(rows)], words=["name"])
    width = data.draw(st.integers(24, 200))
    text = printed(table, width)
    assert all(len(line) <= width for line in text.splitlines())
    assert read_back(text, table) == [dict(zip(titles, row, strict=True)) for row in table.rows]


def test_columns_side_by_side_where_they_fit_and_words_wrap_first() -> None:
    table = ScreenTable(
        ["method", "cost"], [["STCD, Q=5, tour, conjugate", "1,234.5"], ["SVFL", "7"]], ["method"]
    )
    assert printed(table, 35).splitlines()[1] == "STCD, Q=5, tour, conjugate  1,234.5"
    assert [line.rstrip() for line in printed(table, 25).splitlines()] == [
        "method               cost",
        "STCD, Q=5, tour,  1,234.5",
        "conjugate",
        "SVFL                    7",
    ]
    assert [line.rstrip() for line in printed(table, 16).splitlines()] == [
        "STCD, Q=5, tour,",
        "conjugate",
        "  cost  1,234.5",
        "",
        "SVFL",
        "  cost  7",
    ]


def test_a_case_is_said_once_side_by_side_and_in_every_block() -> None:
    rows = [["path", "MTCD", "12,345,678"], ["path", "STCD", "3"], ["cycle", "STCD", "4"]]
    table = ScreenTable(
        ["case", "curve", "iterations"], rows, ["case", "curve"], caption="ridge", grouped=True
    )
    assert printed(table, 60).count("path") == 1
    assert printed(table, 20).count("path") == 2
    assert printed(table, 20).startswith("ridge")


def test_nothing_in_a_cell_is_taken_for_markup_or_steers_the_terminal() -> None:
    table = ScreenTable(
        ["client", "holds"],
        [["[bold]a[/]", "3: [x], [/y]\x1b[2J\na"]],
        ["client", "holds"],
        "\x1b[1A",
    )
    text = printed(table, 60)
    assert "\x1b" not in text
    assert "\ufffd[2J a" in text
    assert "[bold]a[/]" in text
    assert "3: [x], [/y]" in text


# --- the tables of the commands ------------------------------------------------------------------


@pytest.fixture(params=WIDTHS)
def wide(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(screen, "width", request.param)
    return request.param


def check_shown(text: str, *cells: str) -> None:
    assert "…" not in text
    lines = text.splitlines()
    for cell in cells:
        assert any(cell in line for line in lines), cell


def test_runs_of_the_demo(wide: int, capsys: pytest.CaptureFixture[str]) -> None:
    """With the numbers that it gives: once they were too wide for 80 columns."""
    data = mtcd.synthetic("ridge", samples=20, features=4, clients=2)
    run = mtcd.train(data, method=mtcd.SVFL(2, 1e-4), stop=mtcd.Stop(gap=1e-2, iterations=5))
    last = replace(
        run.final,
        iteration=182_784,
        hops=365_568,
        syncs=2_856,
        gap=9.93e-5,
        cost=159_600.0,
        seconds=146.3,
    )
    long = replace(run, method="MTCD, Γ=2, S=64, Q=20, average", history=mtcd.History([last]))
    screen.print(show.runs_table([run, long]))
    titles = ("iterations", "hops", "syncs", "gap", "cost", "seconds")
    shown = capsys.readouterr().out
    check_shown(shown, *titles, "182,784", "365,568", "2,856", "9.93e-05", "159,600.0", "146.3")
    assert (len(shown.splitlines()) < 8) == (wide >= 80), "side by side on a usual screen"


CONFIG = """
data: {synthetic: ridge, samples: 30, features: 24, clients: 6}
model: {kind: ridge, alpha: 10}
network: {kind: path}
method: {kind: mtcd, tokens: 2, hops: 64, local_updates: 20}
stop: {gap: 1e-4, iterations: 200000}
"""


def test_train(wide: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "c.yaml").write_text(CONFIG)
    assert command("train", str(tmp_path / "c.yaml"), "--out", str(tmp_path / "out")) == 0
    last = mtcd.load_run(tmp_path / "out").final
    numbers = (
        f"{last.iteration:,}",
        f"{last.hops:,}",
        f"{last.gap:.2e}",
        f"{last.cost:,.1f}",
        f"{last.seconds:.1f}",
    )
    check_shown(
        capsys.readouterr().out, "iterations", "hops", "syncs", "gap", "cost", "seconds", *numbers
    )


def test_inspect(wide: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "c.yaml").write_text(CONFIG)
    command("inspect", str(tmp_path / "c.yaml"), "--json")
    found = json.loads(capsys.readouterr().out)
    command("inspect", str(tmp_path / "c.yaml"))
    numbers = [f"{found[key]:.4g}" for key in ("stepsize", "stepsize_limit", "stepsize_auto")]
    shown = capsys.readouterr().out
    check_shown(shown, "algebraic connectivity", "step-size limit", *found["clients"], *numbers)
    check_shown(shown, *(fact["shown"].split()[0] for fact in found["theory"].values()))


def test_plan(wide: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "c.yaml").write_text(CONFIG)
    (tmp_path / "links.csv").write_text(
        "from,to,latency_ms,bandwidth_mbps\n*,*,20,100\nserver,*,50,10\n"
    )
    out = (
        "--out",
        str(tmp_path / "p.yaml"),
        "--links",
        str(tmp_path / "links.csv"),
        "--budget",
        "1s",
    )
    assert command("plan", str(tmp_path / "c.yaml"), *out) == 0
    check_shown(
        capsys.readouterr().out, "cost", "hops", "server", "compute", "wall-clock", "how sure"
    )


def test_the_list_of_experiments(wide: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("reproduce", "--list") == 0
    shown = capsys.readouterr().out
    check_shown(shown, "title", "about", "ridge-topologies", "ablation-local-updates")
    assert " ".join(shown.split()).count("semi-decentralised") == 1


@pytest.mark.parametrize("phase", ["aligning", "ended"])
def test_status_of_a_federation(wide: int, phase: str, capsys: pytest.CaptureFixture[str]) -> None:
    one: dict[str, Any] = {
        "phase": phase,
        "iteration": 1_234_567,
        "connected": ["b"],
        "gone": ["clinic_0"],
    }
    summary = {
        "parties": {
            f"clinic_{k}": one | {"waiting_for": ["clinic_2", "the_server"]} for k in range(3)
        },
        "tokens": {"0": "clinic_1", "1": "clinic_1"},
        "hops": 12345678,
        "cost": 123456.0,
        "syncs": 17,
        "objective": 12.5,
        "gap": 1e-5,
        "status": "converged" if phase == "ended" else None,
    }
    show_summary(summary)
    shown = capsys.readouterr().out
    check_shown(
        shown,
        "phase",
        "iteration",
        "connected",
        "waits for",
        "clinic_2",
        "the_server",
        "1234567",
        phase,
    )


SPLIT = """
data: {synthetic: logistic, samples: 60, features: 8, clients: 4, test_samples: 20}
model: {kind: split, client: mlp, fusion: linear}
network: {kind: path}
method: {kind: mtcd, tokens: 2, hops: 3, local_updates: 2, stepsize: 0.05, batch: 20}
stop: {epochs: 2}
metrics: [auc, average_precision, balanced_accuracy, log_loss, brier]
"""


def test_a_split_network_with_many_metrics(
    wide: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    (tmp_path / "c.yaml").write_text(SPLIT)
    assert command("train", str(tmp_path / "c.yaml"), "--out", str(tmp_path / "out")) == 0
    last = mtcd.load_run(tmp_path / "out").final
    numbers = (
        f"{last.objective:.6g}",
        f"{last.test_accuracy:.1%}",
        f"{last.cost:,.1f}",
        f"{last.seconds:.1f}",
    )
    metrics = [f"{value:#.4g}" for value in last.metrics.values()]
    shown = capsys.readouterr().out
    check_shown(
        shown,
        "epochs",
        "syncs",
        "seconds",
        "test accuracy",
        "balanced accuracy",
        *numbers,
        *metrics,
    )


def test_large_errors_keep_their_digits() -> None:
    assert show.measured(1_234_567.8, 4) == "1,234,568"
    assert show.measured(0.5, 4) == "0.5000"
    assert show.measured(1.5e-7, 4) == "1.500e-07"


@pytest.mark.parametrize("width", [20, 80])
def test_alarming_rows_are_red_and_no_others(width: int) -> None:
    table = ScreenTable(
        ["party", "phase"],
        [["a", "training"], ["b", "not reached"]],
        ["party", "phase"],
        alarming=[1],
    )
    console = Console(width=width, force_terminal=True, color_system="standard", file=io.StringIO())
    console.print(table)
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    red = [line for line in lines if "31m" in line]
    assert red
    assert not any("training" in line for line in red)
    assert any("b" in line for line in red)
