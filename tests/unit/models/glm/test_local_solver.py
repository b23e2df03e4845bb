"""local_solver: majorise, in trainings: the same optimum, f never rises, and settings that it does
not fit."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import mtcd
from mtcd.config.build import build
from mtcd.config.read import check_config
from mtcd.models.losses.logistic import Logistic

DATA = mtcd.synthetic("logistic", samples=120, features=15, clients=5)
METHODS = {
    "stcd": mtcd.STCD(local_updates=50, local_solver="majorise"),
    "conjugate": mtcd.STCD(walk="tour", acceleration="conjugate", local_solver="majorise"),
    "mtcd": mtcd.MTCD(
        clusters=[[0, 1], [2, 3, 4]], hops=6, local_updates=9, local_solver="majorise"
    ),
    "average": mtcd.MTCD(tokens=2, hops=10, local_updates=9, local_solver="majorise"),
}


@pytest.mark.parametrize("name", METHODS)
def test_the_optimum_is_that_of_scikit_learn(name: str) -> None:
    run = mtcd.train(
        DATA,
        mtcd.Glm("logistic", l2=1.0),
        "cycle",
        METHODS[name],
        mtcd.Stop(gap=1e-9, iterations=40_000),
    )
    assert run.status == "converged"
    X = np.hstack(DATA.blocks)
    theirs = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-10, max_iter=10_000).fit(
        X, DATA.labels
    )
    np.testing.assert_allclose(run.coefficients, theirs.coef_[0], atol=2e-4)


def test_the_objective_never_rises() -> None:
    run = mtcd.train(
        DATA, mtcd.Glm("logistic", l2=1.0), "cycle", METHODS["stcd"], mtcd.Stop(iterations=300)
    )
    assert (np.diff(run.history["objective"]) <= 1e-9).all()


def test_a_visit_takes_one_gradient_whatever_the_number_of_steps(monkeypatch) -> None:
    calls, gradient = [], Logistic.gradient
    monkeypatch.setattr(Logistic, "gradient", lambda *given: calls.append(1) or gradient(*given))
    method = mtcd.STCD(local_updates=1000, local_solver="majorise")
    mtcd.train(DATA, mtcd.Glm("logistic", l2=1.0), "cycle", method, mtcd.Stop(iterations=50))
    assert len(calls) <= 50


def test_for_the_squared_loss_both_solvers_are_the_same() -> None:
    data = mtcd.synthetic("ridge", samples=40, features=8, clients=4)
    runs = [
        mtcd.train(
            data,
            mtcd.Glm("ridge"),
            "path",
            mtcd.STCD(5, local_solver=solver),
            mtcd.Stop(iterations=50),
        )
        for solver in ("gradient", "majorise")
    ]
    assert np.array_equal(runs[0].coefficients, runs[1].coefficients)


def test_it_is_named_in_the_description_and_by_a_config() -> None:
    assert METHODS["stcd"].describe() == "STCD, Q=50, majorise"
    data = {"synthetic": "logistic", "samples": 30, "features": 4, "clients": 2}
    method = {"kind": "stcd", "local_updates": 50, "local_solver": "majorise"}
    config = check_config({"data": data, "model": {"kind": "logistic"}, "method": method})
    assert build(config).method == METHODS["stcd"]
