"""Trainings that start from given parameters: against the reference, and against longer trainings
from 0."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import mtcd
from mtcd.core.errors import ConfigError, MtcdError

DATA = mtcd.synthetic("logistic", samples=120, features=12, clients=4)
MODEL = mtcd.Glm("logistic", l2=1.0, intercept=True)
METHODS = {
    "stcd": mtcd.STCD(local_updates=3),
    "average": mtcd.MTCD(tokens=2, hops=6, local_updates=3),
    "visitors": mtcd.MTCD(tokens=2, hops=6, combine="visitors"),
    "optimal": mtcd.MTCD(tokens=2, hops=6, local_updates=3, combine="optimal"),
    "conjugate": mtcd.STCD(walk="tour", acceleration="conjugate"),
    "twin": mtcd.STCD(walk="tour", acceleration="twin"),
    "conjugate sync": mtcd.MTCD(
        clusters=[[0, 1], [2, 3]], walk="tour", hops=4, acceleration="conjugate"
    ),
    "svfl": mtcd.SVFL(local_updates=2),
    "float32": mtcd.MTCD(tokens=2, hops=6, transport="float32"),
}


@pytest.mark.parametrize("name", METHODS)
def test_a_run_goes_on_from_an_earlier_one(name: str) -> None:
    """From the optimum of a slightly larger l2, every method reaches its own in fewer
    iterations."""
    method, stop = METHODS[name], mtcd.Stop(gap=1e-6, iterations=20_000)
    earlier = mtcd.train(DATA, replace(MODEL, l2=1.1), "path", method, stop)
    cold, warm = (
        mtcd.train(DATA, MODEL, "path", method, stop, start=start) for start in (None, earlier)
    )
    assert warm.status == cold.status == "converged"
    assert warm.final.iteration < cold.final.iteration
    first = MODEL.problem(DATA).evaluate(
        [np.append(earlier.parameters["client_0"], earlier.intercept)]
        + [earlier.parameters[name] for name in DATA.clients[1:]]
    )
    assert warm.history.rows[0].objective == pytest.approx(
        first, rel=1e-6 if name == "float32" else 1e-12
    )
    np.testing.assert_allclose(warm.coefficients, cold.coefficients, atol=0.01)


@pytest.mark.parametrize("name", ["stcd", "average", "conjugate", "twin", "svfl"])
def test_a_warm_training_is_resumed(tmp_path: Path, name: str) -> None:
    start = {client: np.full(3, 0.2) for client in DATA.clients}
    whole, part, rest = (
        mtcd.train(
            DATA, MODEL, "path", METHODS[name], mtcd.Stop(iterations=n), start=start, **options
        )
        for n, options in (
            (60, {}),
            (24, {"checkpoint": tmp_path}),
            (60, {"checkpoint": tmp_path, "resume": True}),
        )
    )
    assert part.final.iteration < rest.final.iteration == whole.final.iteration
    assert np.array_equal(rest.coefficients, whole.coefficients)
    assert rest.ledger == whole.ledger
    with pytest.raises(MtcdError, match="its start was 'parameters"):
        mtcd.train(
            DATA,
            MODEL,
            "path",
            METHODS[name],
            mtcd.Stop(iterations=60),
            checkpoint=tmp_path,
            resume=True,
        )


def test_two_halves_are_the_whole() -> None:
    whole = mtcd.train(DATA, MODEL, method=mtcd.SVFL(2), stop=mtcd.Stop(iterations=40))
    half = mtcd.train(DATA, MODEL, method=mtcd.SVFL(2), stop=mtcd.Stop(iterations=20))
    again = mtcd.train(DATA, MODEL, method=mtcd.SVFL(2), stop=mtcd.Stop(iterations=20), start=half)
    np.testing.assert_allclose(again.coefficients, whole.coefficients, rtol=1e-10)


def test_collecting_the_first_token_is_on_the_ledger() -> None:
    start = {client: np.ones(3) for client in DATA.clients}
    runs = [
        mtcd.train(DATA, MODEL, "path", method, mtcd.Stop(iterations=6), start=start)
        for method in (mtcd.SVFL(), mtcd.MTCD(hops=6), mtcd.STCD(start="client_0"))
    ]
    first = [run.history.rows[0] for run in runs]
    assert [row.messages for row in first] == [
        {"client_client": 0, "uplink": 4, "downlink": 0},
        {"client_client": 0, "uplink": 4, "downlink": 0},
        {"client_client": 3, "uplink": 0, "downlink": 0},  # from the end of the path to its start
    ]
    assert [sum(row.floats.values()) for row in first] == [480, 480, 360]
    assert runs[2].final.iteration == 6


@pytest.mark.parametrize("scaled", [(False, True), (True, False), (True, True)])
def test_scaled_columns_start_with_the_same_predictions(scaled: tuple[bool, bool]) -> None:
    shifted = mtcd.split(np.hstack(DATA.blocks) * 3 + 1, DATA.labels, 4)
    method, stop = mtcd.STCD(local_updates=3), mtcd.Stop(iterations=60)
    one = mtcd.train(
        shifted, MODEL, "path", method, stop, standardise=scaled[0], metrics=["log_loss"]
    )
    two = mtcd.train(
        shifted, MODEL, "path", method, stop, standardise=scaled[1], metrics=["log_loss"], start=one
    )
    assert two.history.rows[0].metrics["train_log_loss"] == pytest.approx(
        one.final.metrics["train_log_loss"], rel=1e-9
    )


def test_an_end_above_a_good_start_but_below_zero_is_no_divergence() -> None:
    best = mtcd.train(DATA, MODEL, "path", mtcd.STCD(local_updates=3), mtcd.Stop(gap=1e-3))
    runs = [
        mtcd.train(
            DATA,
            MODEL,
            method=mtcd.SVFL(stepsize=stepsize),
            stop=mtcd.Stop(iterations=100),
            start=best,
        )
        for stepsize in (0.1, 1.0)
    ]
    at_zero = DATA.samples * np.log(2)
    assert 1.1 * best.objective < runs[0].objective < at_zero
    assert [run.status for run in runs] == ["iterations", "diverged"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"method": mtcd.TreeCG(), "start": {}}, "tree-cg starts at 0"),
        ({"method": mtcd.DCPA(), "start": {}}, "dcpa starts at 0"),
        ({"start": {"client_0": np.ones(3)}}, "no parameters of client_1"),
        ({"start": {c: np.ones(4) for c in DATA.clients}}, "shape"),
        ({"start": {c: np.full(3, np.nan) for c in DATA.clients}}, "finite"),
        ({"start": {c: ["a", "b", "c"] for c in DATA.clients}}, "are not numbers"),
        ({"start": 0.5}, "must be a run, or parameters by client"),
        ({"start": {c: np.ones(3) for c in [*DATA.clients, "who"]}}, "parameters of who"),
    ],
)
def test_what_cannot_be_a_start_is_refused(options, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        mtcd.train(
            DATA, MODEL, **{"method": mtcd.SVFL(), "stop": mtcd.Stop(iterations=2), **options}
        )
