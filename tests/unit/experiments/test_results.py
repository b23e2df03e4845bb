"""Numbers read off trainings, against closed forms and histories made by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mtcd_experiments.results import CurveResult, Results, TrainedCurve
from mtcd_experiments.schema import Experiment


def trained(
    x: list[float], gap: list[float], seed: int = 0, server: float = 0.0, status: str = "converged"
) -> TrainedCurve:
    """One message between clients per iteration, and this many with the server."""
    places = np.array(x, dtype=float)
    floats = {"floats_client_client": 10 * places, "floats_client_server": 3 * server * places}
    columns = {
        "iteration": places,
        "gap": np.array(gap, dtype=float),
        "client_client": places,
        "client_server": server * places,
        **floats,
    }
    return TrainedCurve(seed, status, 1e-3, 2.0, columns)


def exponential(rate: float, x: list[float], **more: Any) -> TrainedCurve:
    return trained(x, [float(np.exp(-rate * place)) for place in x], **more)


@pytest.mark.parametrize(
    ("gap", "seen"), [(0.9, 3), (1e-1, 57), (1e-3, 300), (2e-3, 300), (3e-3, 120)]
)
def test_reach_is_where_it_was_first_measured(gap: float, seen: int) -> None:
    one = exponential(0.05, [0, 3, 10, 11, 57, 120, 300], server=0.5)
    assert one.reach(gap, "iterations") == seen
    assert one.reach(gap, "cost", 10) == pytest.approx(seen * (0.5 + 0.1))


def test_reach_at_the_start_at_the_last_row_and_never() -> None:
    one = trained([0, 10, 20], [1.0, 0.1, 0.01])
    assert one.reach(2.0, "iterations") == 0
    assert one.reach(1.0, "iterations") == 0
    assert one.reach(0.01, "iterations") == pytest.approx(20)
    assert one.reach(0.0099, "iterations") is None


def test_reach_takes_the_first_time_of_a_gap_that_comes_and_goes() -> None:
    one = trained([0, 10, 20, 30], [1.0, 0.01, 1.0, 0.01])
    assert one.reach(0.1, "iterations") == 10


@pytest.mark.parametrize("end", [0.0, -1e-17])
def test_reach_of_a_gap_that_rounding_made_nothing(end: float) -> None:
    assert trained([0, 10], [1.0, end]).reach(1e-3, "iterations") == 10


def test_cost_is_one_with_the_server_and_a_share_between_clients() -> None:
    one = trained([0, 100], [1, 0.1], server=2.0)
    assert one.cost(50).tolist() == [0, 202]
    assert one.along("cost", 50).tolist() == [0, 202]
    assert one.along("iterations", 50).tolist() == [0, 100]
    assert one.along("floats", 50).tolist() == [0, 1000 + 600]
    assert one.along("float-cost", 50).tolist() == [0, 1000 / 50 + 600]
    assert one.reach(0.1, "float-cost", 10) == 1000 / 10 + 600


def test_the_spread_is_over_the_seeds_that_got_there() -> None:
    places = range(1001)
    curve = CurveResult(
        "c", tuple(exponential(rate, places, seed=i) for i, rate in enumerate((0.01, 0.02, 0.001)))
    )
    spread = curve.reach(1e-4)
    slow, fast = (np.ceil(np.log(1e4) / rate) for rate in (0.01, 0.02))
    assert (spread.least, spread.most) == pytest.approx((fast, slow))
    assert spread.mean == pytest.approx((fast + slow) / 2)
    assert (spread.reached, spread.seeds, spread.everywhere) == (2, 3, False)
    assert curve.reach(1e-30) is None
    everywhere = curve.reach(0.5)
    assert everywhere.everywhere


def test_the_line_is_the_geometric_mean_up_to_the_first_seed_that_was_stopped() -> None:
    fast = exponential(0.03, [0, 200], seed=1, status="iterations")
    line = CurveResult("c", (exponential(0.01, [0, 50, 400]), fast)).line(
        "iterations", 1.0, points=40
    )
    assert line.x[0] == 0
    assert line.x[-1] == pytest.approx(200)
    np.testing.assert_allclose(line.value, np.exp(-0.02 * line.x), rtol=1e-10)
    np.testing.assert_allclose(line.low, np.exp(-0.03 * line.x), rtol=1e-10)
    np.testing.assert_allclose(line.high, np.exp(-0.01 * line.x), rtol=1e-10)
    steps = np.diff(np.log(line.x[1:]))
    np.testing.assert_allclose(steps, steps[0], rtol=1e-9)


def test_a_seed_that_converged_stays_at_its_last_gap() -> None:
    """Or the line would end above a gap that all seeds reach."""
    curve = CurveResult("c", (exponential(0.01, [0, 400]), exponential(0.02, [0, 200], seed=1)))
    line = curve.line("iterations", 1.0)
    assert line.x[-1] == pytest.approx(400)
    fast = np.exp(-0.02 * np.minimum(line.x, 200))
    np.testing.assert_allclose(line.value, np.sqrt(fast * np.exp(-0.01 * line.x)), rtol=1e-10)
    assert line.value[-1] == pytest.approx(np.exp(-4))


def test_the_line_along_cost() -> None:
    line = CurveResult("c", (exponential(0.01, [0, 100], server=1.0),)).line("cost", 4.0)
    np.testing.assert_allclose(line.value, np.exp(-0.01 * line.x / 1.25), rtol=1e-10)


def test_a_line_through_gaps_of_rounding_size_stays_positive() -> None:
    line = CurveResult("c", (trained([0, 10, 20], [1.0, 1e-9, -1e-12]),)).line("iterations", 1.0)
    assert line.value.min() == pytest.approx(1e-9)
    assert CurveResult("c", (trained([0, 10], [0.0, 0.0]),)).line("iterations", 1.0).value.tolist()[
        0
    ] == pytest.approx(1e-16)


def test_a_training_that_diverged_at_once_is_a_point() -> None:
    curve = CurveResult("c", (trained([0], [3.0], status="diverged"), trained([0, 5], [3.0, 1.0])))
    line = curve.line("iterations", 1.0)
    assert (line.x.tolist(), line.value.tolist()) == ([0.0], [pytest.approx(3.0)])
    assert curve.status == "diverged, converged"


def test_the_final_gap_is_the_geometric_mean_of_the_ends() -> None:
    curve = CurveResult("c", (trained([0, 9], [1, 1e-4]), trained([0, 2], [1, 1e-6])))
    assert curve.final_gap == pytest.approx(1e-5)
    assert CurveResult("c", (trained([0, 9], [1e-3, -1e-9]),)).final_gap == pytest.approx(1e-3)


def test_seconds_add_up_and_the_step_size_is_the_one_used() -> None:
    curve = CurveResult("c", (trained([0], [1]), trained([0], [1], seed=1)))
    assert (curve.seconds, curve.stepsize, curve.status) == (4.0, 1e-3, "converged")


def test_cases_that_were_left_out_are_not_named() -> None:
    experiment = Experiment.model_validate(
        {
            "title": "t",
            "about": "a",
            "problem": {},
            "cases": {"one": {"title": "1"}, "two": {"title": "2", "optional": True}},
            "curves": {"c": {"label": "c", "method": {}}},
            "panels": [{"x": "iterations"}],
            "quick": {"changes": {}},
        }
    )
    curves = {("one", "c"): CurveResult("c", (trained([0], [1]),))}
    assert Results("r", experiment, curves, 1, False, 100.0).case_names() == ["one"]
