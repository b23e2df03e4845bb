"""Numbers of accuracy: read off trainings made by hand, kept on disk, and the claims about them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from made_up_results import accuracies, learnt
from mtcd.config.read import check_config
from mtcd.core.errors import DataError
from mtcd.training.history import History, Measurement
from mtcd_experiments import accuracy_checks as checks
from mtcd_experiments.accuracy import (
    accuracy_after,
    accuracy_at_end,
    best_of_all,
    cost_per_epoch,
    quarters,
    share_of_baseline,
)
from mtcd_experiments.reading import FigureReader, NotThereError
from mtcd_experiments.results import CurveResult, Results, TrainedCurve
from mtcd_experiments.store import Store
from mtcd_experiments.work import CurveJob

CONFIG = {
    "data": {"synthetic": "logistic", "samples": 20, "features": 4, "clients": 2},
    "model": {"kind": "logistic"},
    "stop": {"iterations": 9},
}


def trained(
    epochs: list[float],
    accuracy: list[float],
    server: float = 1.0,
    status: str = "epochs",
    floats: float = 100.0,
) -> TrainedCurve:
    """Ten batches an epoch, and so many messages with the server in each, of so many floats."""
    one = learnt(1.0, epochs=len(epochs) - 1)
    places = np.array(epochs, dtype=float)
    own = {
        "epoch": places,
        "test_accuracy": np.array(accuracy),
        "client_server": 10 * server * places,
    }
    own |= {
        "floats_client_server": floats * own["client_server"],
        "floats_client_client": 0 * places,
    }
    return replace(one, status=status, columns={**one.columns, **own})


def results(**curves: list[TrainedCurve]) -> Results:
    made = accuracies(target_accuracy=None)
    return replace(
        made,
        curves={("cifar10", name): CurveResult(name, tuple(ones)) for name, ones in curves.items()},
    )


# ---- numbers


def test_the_line_is_the_mean_where_some_seed_was_measured() -> None:
    curve = CurveResult("c", (trained([0, 1, 2], [0.1, 0.5, 0.7]), trained([0, 2], [0.1, 0.3])))
    line = curve.line("epochs", 100.0)
    assert line.x.tolist() == [0, 1, 2]
    np.testing.assert_allclose(line.value, [0.1, (0.5 + 0.2) / 2, 0.5])
    np.testing.assert_allclose(line.low, [0.1, 0.2, 0.3])
    np.testing.assert_allclose(line.high, [0.1, 0.5, 0.7])
    assert curve.ending == "done"
    assert CurveResult("c", (trained([0, 1], [0.1, 0.5], status="seconds"),)).ending == "stopped"


def test_the_line_ends_with_the_first_seed() -> None:
    curve = CurveResult(
        "c", (trained([0, 1, 2], [0.1, 0.5, 0.7]), trained([0, 1], [0.1, 0.3], status="diverged"))
    )
    assert curve.line("epochs", 100.0).x.tolist() == [0, 1]
    assert curve.ending == "diverged"


def test_reach_is_the_first_time_that_the_accuracy_was_seen() -> None:
    one = trained([0, 1, 2, 3], [0.1, 0.6, 0.5, 0.7])
    assert one.reach(0.6, "epochs") == 1
    assert one.reach(0.65, "cost", 100.0) == one.cost(100.0)[3]
    assert one.reach(0.8, "epochs") is None


def test_bytes_are_four_for_each_number_on_any_link() -> None:
    one = learnt(0.2, epochs=2, batches=5, between=4.0, server=6.0)
    assert one.along("bytes", 100.0).tolist() == [0, 4 * 1600 * 5 * 10, 4 * 1600 * 10 * 10]


@pytest.mark.parametrize(
    ("last", "expected"),
    [(0, []), (1, []), (2, [1]), (3, [1, 2]), (4, [1, 2, 3]), (5, [2, 3, 4]), (100, [25, 50, 75])],
)
def test_quarters_are_whole_epochs_before_the_last(last: int, expected: list[int]) -> None:
    assert quarters(results(svfl=[learnt(0.2, epochs=last)])) == expected


def test_the_accuracy_after_an_epoch_is_the_last_one_measured_by_then() -> None:
    curve = CurveResult(
        "c", (trained([0, 0.5, 1.5, 3], [0.1, 0.2, 0.3, 0.4]), trained([0, 1], [0.1, 0.8]))
    )
    after = accuracy_after(curve, 1)
    assert (after.mean, after.least, after.most, after.everywhere) == (
        pytest.approx(0.5),
        0.2,
        0.8,
        True,
    )
    later = accuracy_after(curve, 3)
    assert (later.mean, later.reached, later.seeds) == (0.4, 1, 2)
    assert accuracy_after(curve, 4) is None
    assert accuracy_at_end(curve).mean == pytest.approx(0.6)


def test_an_epoch_costs_what_its_messages_do() -> None:
    """Mini-batches: K + Γ + S·Γ/R a batch for MTCD, 2K for SVFL; here K = 4, Γ = S = 2."""
    made = accuracies()
    mtcd = 50 * (4 + 2 + 2 * 2 / 100)
    assert cost_per_epoch(made.curves["cifar10", "mtcd"], 100.0) == pytest.approx(mtcd)
    assert share_of_baseline(made, "cifar10", "mtcd", 100.0) == pytest.approx(mtcd / (50 * 2 * 4))
    assert cost_per_epoch(CurveResult("c", (learnt(0.2, epochs=0),)), 100.0) is None
    assert share_of_baseline(results(mtcd=[learnt(0.2)]), "cifar10", "mtcd", 100.0) is None


def test_the_most_that_all_reached() -> None:
    assert (
        best_of_all(
            results(
                svfl=[trained([0, 1], [0.1, 0.913])], mtcd=[trained([0, 1, 2], [0, 0.658, 0.5])]
            )
        )
        == 0.65
    )


# ---- claims


def read(
    svfl: list[float], mtcd: list[float], server: float = 0.5, floats: float = 100.0
) -> FigureReader:
    epochs = [float(epoch) for epoch in range(len(svfl))]
    ours = trained(epochs[: len(mtcd)], mtcd, server, floats=floats)
    return FigureReader(results(svfl=[trained(epochs, svfl)], mtcd=[ours]))


@pytest.mark.parametrize(
    ("mtcd", "holds"),
    [
        ([0.1, 0.49, 0.69, 0.79], "yes"),
        ([0.1, 0.9, 0.9, 0.9], "yes"),
        ([0.1, 0.4, 0.69, 0.8], "in part"),
        ([0.1, 0.4, 0.6, 0.7], "no"),
        ([0.1, 0.5], "in part"),  # it ended far below, before the others
    ],
)
def test_as_accurate_per_epoch(mtcd: list[float], holds: str) -> None:
    measured, found = checks.as_accurate_per_epoch(["mtcd"], "svfl")(
        read([0.1, 0.5, 0.7, 0.8], mtcd)
    )
    assert found == holds
    assert "after 1, 2 epochs and at the end" in measured
    assert "against 50.0% → 70.0% → 80.0%" in measured
    assert ("not there" in measured) == (len(mtcd) == 2)


def test_where_nobody_has_learnt_nothing_is_shown() -> None:
    still = read([0.1, 0.11, 0.12, 0.1], [0.1, 0.1, 0.11, 0.12])
    assert checks.as_accurate_per_epoch(["mtcd"], "svfl")(still)[1] == "open"
    assert checks.cheaper_to_accuracy(["mtcd"], "svfl")(still)[1] == "open"


def test_a_claim_of_lower_cost_is_about_messages_and_floats() -> None:
    """Half the messages, each four times as large: cheaper per message, dearer per float."""
    larger = read([0.1, 0.5, 0.7, 0.8], [0.1, 0.5, 0.7, 0.8], server=0.5, floats=400)
    for claim in (checks.cheaper_per_epoch, checks.cheaper_to_accuracy):
        measured, found = claim(["mtcd"], "svfl")(larger)
        assert found == "in part"
        assert "per message: " in measured
        assert "per float: " in measured
    assert "50.0% of it; and per float" in checks.cheaper_per_epoch(["mtcd"], "svfl")(larger)[0]
    assert "200.0% of it" in checks.cheaper_per_epoch(["mtcd"], "svfl")(larger)[0]


@pytest.mark.parametrize(("server", "holds"), [(0.5, "yes"), (0.99, "no"), (2.0, "no")])
def test_cheaper_per_epoch(server: float, holds: str) -> None:
    seen = read([0.1, 0.5, 0.7, 0.8], [0.1, 0.5, 0.7, 0.8], server)
    measured, found = checks.cheaper_per_epoch(["mtcd"], "svfl")(seen)
    assert found == holds
    assert f"{server:.1%} of it" in measured
    with pytest.raises(NotThereError):
        checks.cheaper_per_epoch(["gone"], "svfl")(seen)


@pytest.mark.parametrize(
    ("mtcd", "server", "holds"),
    [
        ([0.1, 0.5, 0.7, 0.8], 0.5, "yes"),
        ([0.1, 0.2, 0.5, 0.7], 0.5, "yes"),  # 70% after 3 half-price epochs, against 2
        ([0.1, 0.2, 0.5, 0.7], 0.9, "no"),
        ([0.1, 0.5, 0.7, 0.8], 0.99, "open"),  # about the same
    ],
)
def test_cheaper_to_the_accuracy_that_all_reach(
    mtcd: list[float], server: float, holds: str
) -> None:
    measured, found = checks.cheaper_to_accuracy(["mtcd"], "svfl")(
        read([0.1, 0.5, 0.7, 0.8], mtcd, server)
    )
    assert found == holds
    assert f"cost to {mtcd[-1]:.1%}, the most that all reached (R_C = 100)" in measured


def test_an_accuracy_that_is_not_reached_is_more_than_what_was_spent() -> None:
    seen = read([0.1, 0.5, 0.7, 0.8], [0.1, 0.2, 0.5, 0.7])
    target = seen.results.experiment.model_copy(update={"target_accuracy": 0.75})
    measured, found = checks.cheaper_to_accuracy(["mtcd"], "svfl")(
        FigureReader(replace(seen.results, experiment=target))
    )
    assert "more than 15 (70.0% there) against 30" in measured
    assert found == "open"


# ---- what is kept


def measured(epoch: float | None, test_accuracy: float | None) -> Measurement:
    sent = {"client_client": 4, "uplink": 3, "downlink": 2}
    floats = {link: 100 * count for link, count in sent.items()}
    return Measurement(7, 14, 1, 0.6, None, 5.04, sent, floats, 0.5, epoch, 0.9, test_accuracy)


def record(rows: list[Measurement], monkeypatch: pytest.MonkeyPatch) -> dict:
    """What is kept of a training that was measured like this."""
    config = check_config(CONFIG)
    final = SimpleNamespace(seconds=0.5)
    run = SimpleNamespace(
        status="epochs", message="", stepsize=1e-3, final=final, history=History(rows)
    )
    setup = SimpleNamespace(
        config=config,
        data=SimpleNamespace(notes=("made up",)),
        train=lambda watch, checkpoint, resume: run,
    )
    monkeypatch.setattr("mtcd.config.one_training.build", lambda config: setup)
    return CurveJob(config).run()


def test_what_is_kept_of_a_training_up_to_an_epoch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A measurement without a test accuracy is left out."""
    kept = record([measured(0.0, 0.1), measured(0.5, None), measured(1.0, 0.7)], monkeypatch)
    store, path = Store(tmp_path), tmp_path / "one.json"
    saved = store.save(path, kept)
    back = store.load(path)
    assert back is not None
    for one in (saved, back):
        assert (one.status, one.notes, one.measure) == ("epochs", ("made up",), "accuracy")
        columns = {name: column.tolist() for name, column in one.columns.items()}
        assert columns["epoch"] == [0, 1]
        assert columns["test_accuracy"] == [0.1, 0.7]
        assert (columns["client_client"], columns["client_server"]) == ([4, 4], [5, 5])
        assert (columns["floats_client_client"], columns["floats_client_server"]) == (
            [400, 400],
            [500, 500],
        )


def test_data_without_a_test_part_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match="data with a test part"):
        record([measured(0.0, None), measured(1.0, None)], monkeypatch)


def test_a_history_is_written_and_read_with_and_without_epochs(tmp_path: Path) -> None:
    rows = [measured(None, None), measured(1.0, 0.7)]
    History(rows).write(tmp_path / "history.csv")
    assert History.read(tmp_path / "history.csv").rows == rows
    lines = (tmp_path / "history.csv").read_text().splitlines()
    (tmp_path / "old.csv").write_text(
        "\n".join(",".join(line.split(",")[:-3]) for line in lines) + "\n"
    )
    old = History.read(tmp_path / "old.csv").rows[1]
    assert (old.seconds, old.epoch, old.accuracy, old.test_accuracy) == (0.5, None, None, None)


def test_kept_trainings_of_before_are_still_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """New keys of a config, with defaults, change no file name: this one is of the first
    version."""
    monkeypatch.setattr("mtcd.config.one_training.VERSION", "0.1.0")
    monkeypatch.setattr("mtcd_experiments.store.FORMAT", 1)
    config = check_config(
        {
            "data": {
                "synthetic": "ridge",
                "samples": 1000,
                "features": 2000,
                "clients": 80,
                "seed": 0,
            },
            "model": {"kind": "ridge", "alpha": 10},
            "network": {"kind": "path"},
            "stop": {"gap": 8e-5, "iterations": 6000000},
            "costs": {"ratio": 100},
            "method": {"kind": "stcd", "local_updates": 20, "stepsize": 1e-5},
        }
    )
    assert Store(Path()).path(config).name == "stcd-seed0-4b9aaba21bfbf647.json"
