"""train(): it finds the optimum, stops when asked, says when it diverges, and its run can be
kept."""

import math

import networkx as nx
import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import StandardScaler

import mtcd
from mtcd.core.errors import ConfigError, DataError, DivergedError, MtcdError
from mtcd.engines.choose import engine_for
from mtcd.models.glm.model import Glm
from mtcd.models.glm.training import best_objective
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.training.observer import Observer
from problems import MODELS, make_data

WIDTHS = [2, 3, 1, 2]


@pytest.mark.parametrize(
    "model",
    [m for m in MODELS if m.l2_weight],
    ids=lambda m: f"{m.kind}-{m.l1}-{m.l2}-{m.intercept}",
)
@pytest.mark.parametrize(
    "method",
    [
        mtcd.STCD(local_updates=3),
        mtcd.MTCD(tokens=2, hops=3, local_updates=2),
        mtcd.MTCD(tokens=2, hops=2, local_updates=2, combine="visitors", stepsize=2e-3),
        mtcd.MTCD(tokens=2, hops=2, combine="cluster", stepsize=4e-3),
        mtcd.SVFL(local_updates=2, stepsize=2e-3),
    ],
    ids=lambda m: m.describe(),
)
def test_every_method_finds_the_optimum_of_every_model(model: Glm, method) -> None:
    data = make_data(model, 30, WIDTHS, seed=4)
    run = mtcd.train(data, model, "cycle", method, mtcd.Stop(gap=1e-6, iterations=60_000), seed=1)
    assert run.status == "converged", run.message
    assert 0 <= run.gap + 1e-12 <= 1e-6 + 1e-12
    held = [*run.parameters.values()]
    if model.intercept:
        held[0] = np.append(held[0], [run.intercept], axis=0)
    assert model.problem(data).evaluate(held) == pytest.approx(run.objective, rel=1e-9)


def test_ridge_agrees_with_scikit_learn_on_real_data_split_by_name() -> None:
    X, y = load_diabetes(return_X_y=True)
    owners = {"clinic": [7, 0, 3], "lab": [1, 2, 9], "home": [8, 4, 5, 6]}
    run = mtcd.train(
        mtcd.split(X, y, owners), Glm("ridge", alpha=0.1, intercept=True), "path",
        mtcd.STCD(local_updates=20), mtcd.Stop(gap=1e-13, iterations=200_000),
    )  # fmt: skip
    expected = Ridge(alpha=0.1, tol=1e-12).fit(X, y)
    np.testing.assert_allclose(run.coefficients, expected.coef_, rtol=1e-3, atol=0.3)
    np.testing.assert_allclose(run.intercept, expected.intercept_, rtol=1e-4)
    np.testing.assert_allclose(run.predict(X), expected.predict(X), rtol=1e-2)


def test_logistic_regression_predicts_as_scikit_learn_does() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    run = mtcd.train(
        mtcd.split(X, 2 * y - 1, clients=6), Glm("logistic", l2=1.0), "complete",
        mtcd.MTCD(tokens=3, hops=6, local_updates=10), mtcd.Stop(gap=1e-7, iterations=30_000),
    )  # fmt: skip
    expected = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-10, max_iter=5000).fit(X, y)
    np.testing.assert_allclose(run.coefficients, expected.coef_[0], atol=2e-3)
    assert set(np.unique(run.predict(X))) == {-1, 1}
    assert np.mean((run.predict(X) + 1) / 2 == expected.predict(X)) > 0.999


def test_multinomial_predicts_class_names_and_mini_batches_learn() -> None:
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    run = mtcd.train(
        mtcd.split(X, names, clients=4), Glm("multinomial", l2=0.1, intercept=True), "star",
        mtcd.MTCD(tokens=2, hops=3, local_updates=2, batch=30, stepsize=1e-4), mtcd.Stop(iterations=9000),
        standardise=True,
    )  # fmt: skip
    assert run.gap is None
    assert np.mean(run.predict(X) == names) > 0.9
    assert run.coefficients.shape == (4, 3)


@pytest.mark.parametrize(
    ("stop", "status"),
    [
        (mtcd.Stop(iterations=100), "iterations"),
        (mtcd.Stop(cost=3.0), "cost"),
        (mtcd.Stop(seconds=0.05), "seconds"),
        (mtcd.Stop(gap=1e-2, iterations=10**7), "converged"),
    ],
)
def test_it_stops_as_asked(stop: mtcd.Stop, status: str) -> None:
    data = make_data(MODELS[0], 30, WIDTHS, seed=4)
    run = mtcd.train(data, MODELS[0], "path", mtcd.STCD(local_updates=2, stepsize=1e-4), stop)
    assert run.status == status
    if status == "iterations":
        assert run.final.iteration == run.final.hops == 100
    if status == "cost":
        assert run.final.cost == pytest.approx(3.0, abs=0.011)
    if status == "seconds":
        assert run.final.seconds >= 0.05
    if status == "converged":
        assert run.gap <= 1e-2 < run.history["gap"][-2]


def test_history_tells_the_way_without_a_row_for_every_hop() -> None:
    data = make_data(MODELS[0], 30, WIDTHS, seed=4)
    run = mtcd.train(
        data, MODELS[0], "path", mtcd.STCD(stepsize=1e-4), mtcd.Stop(gap=0, iterations=50_000)
    )
    history = run.history
    assert history["iteration"][0] == 0
    assert history["iteration"][-1] == 50_000
    assert len(history) < 1000
    assert (np.diff(history["iteration"]) > 0).all()
    assert (np.diff(history["objective"]) <= 1e-9).all(), (
        "small steps of coordinate descent never go up"
    )
    assert (np.diff(history["seconds"]) >= 0).all()
    np.testing.assert_allclose(history["cost"], history["iteration"] / 100)
    best = best_objective(data, MODELS[0], MODELS[0].problem(data))
    np.testing.assert_allclose(history["gap"], (history["objective"] - best) / best)


@pytest.mark.parametrize("stepsize", [0.05, 1.0, 1e6, 1e150])
@pytest.mark.parametrize(
    "method",
    [
        lambda eta: mtcd.STCD(local_updates=5, stepsize=eta),
        lambda eta: mtcd.MTCD(tokens=2, hops=4, local_updates=5, stepsize=eta),
        lambda eta: mtcd.MTCD(tokens=2, hops=4, local_updates=5, stepsize=eta, batch=10),
        lambda eta: mtcd.SVFL(local_updates=5, stepsize=eta),
    ],
)
@pytest.mark.parametrize(
    "model", [MODELS[0], MODELS[2], Glm("squared-hinge", l2=0.1)], ids=lambda m: m.kind
)
def test_too_large_a_step_is_said_with_the_limit_and_leaves_no_nan(
    model: Glm, method, stepsize: float
) -> None:
    data = make_data(model, 60, WIDTHS, seed=4)
    run = mtcd.train(data, model, "path", method(stepsize), mtcd.Stop(iterations=4000))
    if run.status != "diverged":  # l1 and the hinge bound some of the smaller ones
        assert stepsize == 0.05
        return
    assert "stepsize" in run.message
    assert "to work up to" in run.message
    assert all(math.isfinite(value) for value in run.history["objective"])
    assert math.isfinite(run.summary()["objective"])
    with pytest.raises(DivergedError, match="too large"):
        run.predict(np.zeros((1, 8)))


def test_auto_step_sizes_never_diverge_and_say_their_rule() -> None:
    for model in MODELS:
        data = make_data(model, 40, WIDTHS, seed=9)
        for method in (
            mtcd.STCD(local_updates=4),
            mtcd.MTCD(tokens=3, hops=4, local_updates=4),
            mtcd.MTCD(tokens=3, hops=4, combine="cluster"),
            mtcd.MTCD(tokens=3, hops=2, batch=7),
            mtcd.SVFL(local_updates=4),
            mtcd.SVFL(batch=1),
        ):
            run = mtcd.train(data, model, "cycle", method, mtcd.Stop(iterations=400))
            assert run.status == "iterations"
            assert run.objective < run.history["objective"][0]
            assert "stepsize auto" in run.notes[-1]


def test_saving_replaces_a_run_but_nothing_else(tmp_path) -> None:
    data = make_data(MODELS[0], 20, WIDTHS, seed=4)
    run = mtcd.train(data, MODELS[0], "path", mtcd.STCD(), mtcd.Stop(iterations=10))
    run.save(tmp_path / "deep" / "run")
    run.save(tmp_path / "deep" / "run")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("precious")
    with pytest.raises(ConfigError, match="other files .thesis.txt"):
        run.save(tmp_path / "other")
    (tmp_path / "file").write_text("x")
    with pytest.raises(ConfigError, match="is a file"):
        run.save(tmp_path / "file")
    assert (tmp_path / "other" / "thesis.txt").read_text() == "precious"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["deep", "file", "other"]
    with pytest.raises(MtcdError, match="not a complete run"):
        mtcd.Run.load(tmp_path / "other")


def test_bad_samples_to_predict_are_refused() -> None:
    data = make_data(MODELS[0], 20, WIDTHS, seed=4)
    run = mtcd.train(data, MODELS[0], "path", mtcd.STCD(), mtcd.Stop(iterations=10))
    for given, words in (
        (mtcd.split(np.hstack(data.blocks), data.labels, clients=4), "split differently"),
        ("abc", "not a matrix"),
        (
            np.where(np.arange(8) == 2, np.nan, np.ones((1, 8))),
            "'x2' of client 'c1' is missing in row 1",
        ),
        ({f"x{j}": np.zeros(3 + j) for j in range(8)}, "equally long"),
        (np.zeros((3, 7)), "8 columns"),
        ({"x1": np.zeros(3)}, "no column 'x0'"),
    ):
        with pytest.raises(DataError, match=words):
            run.predict(given)


def test_two_columns_of_one_name_cannot_be_told_apart_in_a_table(tmp_path) -> None:
    (tmp_path / "one.csv").write_text("id,age,y\n1,2,3\n2,4,1\n3,5,5\n")
    (tmp_path / "two.csv").write_text("id,age\n1,7\n2,1\n3,4\n")
    clients = {"h": ["age"], "k": mtcd.TableShare(tmp_path / "two.csv")}
    data = mtcd.read_tables(tmp_path / "one.csv", "y", clients, id="id")
    run = mtcd.train(data, Glm("ridge"), "path", mtcd.STCD(), mtcd.Stop(iterations=10))
    assert run.predict(data).shape == (3,)
    with pytest.raises(DataError, match="Two clients have a column 'age'"):
        run.predict({"age": np.zeros(3)})


def test_client_names_that_would_be_odd_file_names_keep_their_parameters(tmp_path) -> None:
    data = mtcd.split(
        np.random.default_rng(0).standard_normal((9, 4)),
        np.arange(9.0),
        {"a": [0], "a.npy": [1], "../b": [2], "": [3]},
    )
    run = mtcd.train(data, Glm("ridge"), "path", mtcd.STCD(), mtcd.Stop(iterations=50))
    run.save(tmp_path / "run")
    back = mtcd.Run.load(tmp_path / "run")
    assert {name: theta.tolist() for name, theta in back.parameters.items()} == {
        name: theta.tolist() for name, theta in run.parameters.items()
    }


@pytest.mark.parametrize("seed", range(4))
def test_the_noise_of_mini_batches_is_not_divergence(seed: int) -> None:
    rng = np.random.default_rng(0)
    data = mtcd.split(rng.standard_normal((200, 4)), rng.integers(0, 2, 200), clients=2)
    run = mtcd.train(
        data,
        Glm("logistic", l2=1.0),
        "path",
        mtcd.SVFL(batch=1),
        mtcd.Stop(iterations=50),
        seed=seed,
    )
    assert run.status == "iterations"
    assert set(run.predict(data).tolist()) <= {0, 1}
    assert run.predict(data).dtype.kind == "i"


def test_features_that_are_all_zero_are_said() -> None:
    with pytest.raises(DataError, match="All features are 0"):
        mtcd.train(
            mtcd.split(np.zeros((3, 2)), [1, 2, 3], 2),
            Glm("linear"),
            "path",
            mtcd.STCD(),
            mtcd.Stop(iterations=3),
        )


def test_a_networkx_graph_over_the_clients_is_a_network() -> None:
    data = make_data(MODELS[0], 20, WIDTHS, seed=4)
    by_graph, by_name = (
        mtcd.train(data, MODELS[0], network, mtcd.STCD(stepsize=1e-3), mtcd.Stop(iterations=50))
        for network in (nx.path_graph(4), "path")
    )
    assert np.array_equal(by_graph.coefficients, by_name.coefficients)


def test_train_wants_a_method_and_a_network_that_fits() -> None:
    data = make_data(MODELS[0], 20, WIDTHS, seed=4)
    with pytest.raises(ConfigError, match="method must be MTCD.*or left out, but is 'svfl'"):
        mtcd.train(data, MODELS[0], method="svfl")
    for wrong in (
        {"stop": 100},
        {"seed": -1},
        {"seed": 1.5},
        {"model": "ridge"},
        {"costs": 5},
        {"method": "svfl"},
    ):
        with pytest.raises(ConfigError):
            mtcd.train(data, **{"method": mtcd.STCD(), **wrong})
    with pytest.raises(ConfigError, match="same clients"):
        mtcd.train(data, MODELS[0], mtcd.make_network("path", ["a", "b"]), mtcd.STCD())


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"gap": -1.0},
        {"iterations": -5},
        {"iterations": 1.5},
        {"seconds": float("nan")},
        {"gap": "x"},
    ],
)
def test_stops_that_make_no_sense_are_refused(settings) -> None:
    with pytest.raises(ConfigError, match="stop"):
        mtcd.Stop(**settings)


def test_an_interrupt_leaves_the_model_the_clients_hold() -> None:
    data = make_data(MODELS[0], 20, WIDTHS, seed=4)

    def watch(now: mtcd.Measurement, fraction: float) -> None:
        if now.iteration >= 20:
            raise KeyboardInterrupt

    run = mtcd.train(
        data, MODELS[0], "path", mtcd.STCD(stepsize=1e-3), mtcd.Stop(iterations=10_000), watch=watch
    )
    assert run.status == "interrupted"
    assert MODELS[0].problem(data).evaluate(list(run.parameters.values())) == pytest.approx(
        run.objective
    )


def test_an_interrupt_in_the_middle_of_a_roam_is_measured_too() -> None:
    data = make_data(MODELS[0], 20, WIDTHS, seed=4)
    method = mtcd.MTCD(tokens=2, hops=5, stepsize=1e-3)
    problem = MODELS[0].problem(data)
    parties = method.parties(problem, mtcd.make_network("path", data.clients), 0)
    host, visits = parties.clients[1].visit, []

    def visit(token) -> None:
        host(token)
        visits.append(token.t)
        if token.t == 3:
            raise KeyboardInterrupt

    parties.clients[1].visit = visit
    observer = Observer(problem, engine_for(parties, Ledger()), mtcd.Costs(), None, worst_end=1.0)
    assert observer.run(mtcd.Stop(iterations=1000), None) == "interrupted"
    held = problem.evaluate([client.parameters() for client in parties.clients])
    assert observer.rows[-1].objective == held
    iterations = [row.iteration for row in observer.rows]
    assert len(set(iterations)) == len(iterations)


def test_an_interrupt_of_a_training_that_diverges_has_no_model() -> None:
    data = make_data(MODELS[0], 60, WIDTHS, seed=4)

    def watch(now: mtcd.Measurement, fraction: float) -> None:
        if now.iteration >= 3 and now.objective > 2 * first[0]:
            raise KeyboardInterrupt
        first.append(now.objective)

    first: list[float] = []
    run = mtcd.train(
        data, MODELS[0], "path", mtcd.STCD(5, 0.05), mtcd.Stop(iterations=9000), watch=watch
    )
    assert run.status == "diverged"
    assert run.model is None
