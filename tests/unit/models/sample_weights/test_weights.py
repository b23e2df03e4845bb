"""Weights of samples and classes: the same as repeated rows, and as in scikit-learn."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression, Ridge

import commands
import mtcd
from mtcd.core import features
from mtcd.core.errors import ConfigError, DataError, MtcdError
from mtcd.data.standardise import standardise
from mtcd.models.glm.block_smoothness import BlockSmoothness
from mtcd.models.glm.model import LinearClient
from mtcd.models.glm.optimum.optimum import optimum
from mtcd.models.glm.smoothness import block_smoothness, overall_smoothness
from mtcd.models.losses import LOSSES, Loss
from mtcd.models.losses.logistic import Logistic
from mtcd.models.losses.squared_hinge import SquaredHinge
from mtcd.models.sample_weights.weighted import Weighted
from mtcd.models.weights import loss_on
from mtcd.protocol.model import LocalUpdates
from problems import MODELS, make_data

RNG = np.random.default_rng(0)
X = RNG.standard_normal((150, 8))
SCORE = X @ RNG.standard_normal(8) + RNG.standard_normal(150)
CLASSES = (SCORE > 1.0).astype(int)
WEIGHTS = 3.0 * RNG.exponential(size=150)
TIMES = RNG.integers(0, 4, 150)
METHODS = {
    "stcd": mtcd.STCD(local_updates=5),
    "majorise": mtcd.MTCD(tokens=2, hops=8, local_updates=5, local_solver="majorise"),
    "optimal": mtcd.MTCD(tokens=2, hops=8, local_updates=5, combine="optimal"),
    "svfl": mtcd.SVFL(),
    "dcpa": mtcd.DCPA(),
    "tree-cg": mtcd.TreeCG(),
    "conjugate": mtcd.STCD(walk="tour", acceleration="conjugate"),
    "twin": mtcd.STCD(walk="tour", acceleration="twin"),
}


def trained(data: mtcd.VerticalData, model: mtcd.Glm, method) -> mtcd.Run:
    run = mtcd.train(data, model, "path", method, mtcd.Stop(gap=1e-11, iterations=100_000))
    assert run.status == "converged"
    return run


@pytest.mark.long
@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 0.5, 1: 4}])
def test_logistic_regression_is_that_of_scikit_learn(name: str, class_weight) -> None:
    model = mtcd.Glm("logistic", l2=1.0, intercept=True, class_weight=class_weight)
    run = trained(mtcd.split(X, CLASSES, 4, weights=WEIGHTS), model, METHODS[name])
    theirs = LogisticRegression(C=1.0, class_weight=class_weight, tol=1e-10, max_iter=10_000)
    theirs.fit(X, CLASSES, sample_weight=WEIGHTS)
    np.testing.assert_allclose(run.coefficients, theirs.coef_[0], atol=1e-4)
    assert run.intercept == pytest.approx(theirs.intercept_[0], abs=1e-4)


@pytest.mark.parametrize("name", METHODS)
def test_ridge_is_that_of_scikit_learn(name: str) -> None:
    run = trained(
        mtcd.split(X, SCORE, 4, weights=WEIGHTS), mtcd.Glm("ridge", alpha=2.0), METHODS[name]
    )
    theirs = Ridge(2.0, fit_intercept=False).fit(X, SCORE, sample_weight=WEIGHTS)
    np.testing.assert_allclose(run.coefficients, theirs.coef_, atol=1e-4)


def test_classes_with_names_and_three_of_them() -> None:
    labels = np.array(["a", "b", "c"])[np.digitize(SCORE, [-2, 3])]
    data = mtcd.split(X, labels, 4)
    model = mtcd.Glm("multinomial", l2=1.0, class_weight={"a": 3.0, "c": 0.5})
    run = trained(data, model, mtcd.TreeCG())
    theirs = LogisticRegression(
        C=1.0, fit_intercept=False, class_weight={"a": 3.0, "c": 0.5}, tol=1e-10
    )
    np.testing.assert_allclose(run.coefficients, theirs.fit(X, labels).coef_.T, atol=1e-4)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_whole_weights_repeat_rows(model: mtcd.Glm, sparse: bool) -> None:
    data = make_data(model, 40, [3, 50, 2], 1, sparse)  # a block that is wider than tall too
    times = np.random.default_rng(2).integers(0, 4, 40)
    rows = np.repeat(np.arange(40), times)
    columns = {name: list(held) for name, held in zip(data.clients, data.positions, strict=True)}
    matrix = sp.hstack(data.blocks).tocsr() if sparse else np.hstack(data.blocks)
    one = model.problem(mtcd.split(matrix, data.labels, columns, weights=times))
    two = model.problem(mtcd.split(matrix[rows], data.labels[rows], columns))
    if model.l1 or model.l2_weight:  # otherwise the model fits perfectly
        ours, theirs = (optimum(p.blocks, p.labels, p.loss, p.penalties).value for p in (one, two))
        assert ours == pytest.approx(theirs, rel=1e-9)
    for L in (BlockSmoothness(one), BlockSmoothness(two)):
        np.testing.assert_allclose(L.blocks, BlockSmoothness(two).blocks)
        assert L.overall == pytest.approx(BlockSmoothness(two).overall)
    eta = 0.5 / BlockSmoothness(two).blocks.max()
    for k, majorise in ((0, False), (0, True), (1, False), (1, True)):
        results = [_updated(problem.client(k), eta, majorise) for problem in (one, two)]
        np.testing.assert_allclose(*results, rtol=1e-7, atol=1e-10)


def _updated(client: LinearClient, eta: float, majorise: bool) -> np.ndarray:
    return client.local_update(
        client.initial(), np.zeros(client.y.shape), LocalUpdates(5, eta, majorise=majorise)
    )


@pytest.mark.parametrize("base", [Logistic(), SquaredHinge()])
def test_the_bound_of_the_second_derivative_holds_and_is_tight(base: Loss) -> None:
    loss, y = Weighted(base, WEIGHTS), base.encode(CLASSES)[0]
    A = loss.scaled(X)
    bound = loss.curvature * A.T @ A
    np.testing.assert_allclose(bound, X.T @ np.stack([loss.hessian_bound(x) for x in X.T], axis=1))
    for z in (np.zeros(150), SCORE):
        hessian = X.T @ np.stack([loss.hessian_product(z, y, x) for x in X.T], axis=1)
        assert np.linalg.eigvalsh(bound - hessian)[0] >= -1e-9
    assert block_smoothness([X], loss)[0] == pytest.approx(np.linalg.eigvalsh(bound)[-1])
    assert overall_smoothness([X[:, :3], X[:, 3:]], loss) == pytest.approx(
        np.linalg.eigvalsh(bound)[-1]
    )


@pytest.mark.parametrize("kind", sorted(LOSSES))
def test_values_add_up_to_the_value(kind: str) -> None:
    loss = LOSSES[kind]()
    labels = SCORE if loss.example == "ridge" else CLASSES
    y, _ = loss.encode(labels)
    z = np.random.default_rng(3).standard_normal(y.shape)
    assert loss.values(z, y).shape == (150,)
    assert loss.values(z, y).sum() == pytest.approx(loss.value(z, y), rel=1e-12)
    assert Weighted(loss, TIMES.astype(float)).value(z, y) == pytest.approx(
        loss.value(np.repeat(z, TIMES, axis=0), np.repeat(y, TIMES, axis=0)), rel=1e-12
    )


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array])
def test_standardising_counts_samples_by_their_weights(convert) -> None:
    features = np.column_stack([X * (X > 0), TIMES > 0])  # the last: constant where it counts
    data, scaling = standardise(mtcd.split(convert(features), SCORE, 2, weights=TIMES))
    _, repeated = standardise(
        mtcd.split(convert(np.repeat(features, TIMES, axis=0)), np.repeat(SCORE, TIMES), 2)
    )
    for one, two in zip(
        (*scaling.means, *scaling.scales), (*repeated.means, *repeated.scales), strict=True
    ):
        np.testing.assert_allclose(one, two, atol=1e-12)
    assert (data.weights == TIMES).all()


def test_mini_batches_take_the_weights_of_their_rows() -> None:
    data = mtcd.split(X, SCORE, 4, weights=TIMES)
    method = mtcd.MTCD(tokens=1, hops=4, batch=30)
    run = mtcd.train(data, mtcd.Glm("ridge"), "path", method, mtcd.Stop(iterations=2000))
    best = Ridge(1.0, fit_intercept=False).fit(X, SCORE, sample_weight=TIMES).coef_
    np.testing.assert_allclose(run.coefficients, best, atol=0.05)
    assert not np.allclose(Ridge(1.0, fit_intercept=False).fit(X, SCORE).coef_, best, atol=0.05)


def test_data_with_other_weights_is_other_data() -> None:
    plain, ones, others = (
        mtcd.split(X, SCORE, 2, weights=w) for w in (None, np.ones(150), WEIGHTS)
    )
    assert len({plain.fingerprint, ones.fingerprint, others.fingerprint}) == 3
    held = others.holdout(0.2)
    assert held.weights.shape == (held.samples,)
    assert set(held.weights) <= set(WEIGHTS)


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        (np.ones(149), "149 weights for 150 samples"),
        (np.r_[np.ones(149), -1], "row 150 is negative"),
        (np.r_[np.nan, np.ones(149)], "row 1 is missing"),
        (np.r_[np.inf, np.ones(149)], "row 1 is infinite"),
        (np.zeros(150), "All weights are 0"),
        (np.ones((150, 2)), "one number per sample"),
        (["a"] * 150, "not numbers"),
    ],
)
def test_wrong_weights_are_refused(weights, said: str) -> None:
    with pytest.raises(DataError, match=said):
        mtcd.split(X, SCORE, 2, weights=weights)


@pytest.mark.parametrize(
    ("kind", "class_weight", "said"),
    [
        ("logistic", "even", "must be 'balanced' or a weight for each class"),
        ("logistic", {}, "must be 'balanced' or a weight for each class"),
        ("logistic", {1: -1.0}, "of 1 must be 0 or more"),
        ("logistic", {2: 1.0}, "2 is no class: the labels have 0, 1"),
        ("logistic", {0: 0, 1: 0}, "all samples have weight 0"),
        ("ridge", "balanced", "ridge predicts a number"),
    ],
)
def test_wrong_weights_of_classes_are_refused(kind: str, class_weight, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        mtcd.Glm(kind, class_weight=class_weight).problem(mtcd.split(X, CLASSES, 2))


def test_a_loss_without_values_and_a_split_network_say_so() -> None:
    class Own(Logistic):
        values = Loss.values

    with pytest.raises(ConfigError, match="defines values"):
        Weighted(Own(), WEIGHTS).value(SCORE, CLASSES.astype(float))
    with pytest.raises(DataError, match="do not take weights"):
        mtcd.VerticalDataset.from_table(mtcd.split(X, CLASSES, 2, weights=WEIGHTS))


def test_a_config_names_the_column_and_a_run_keeps_the_weights_of_classes(tmp_path: Path) -> None:
    names = [f"x{j}" for j in range(8)]
    table = np.column_stack([X, CLASSES, WEIGHTS])
    np.savetxt(
        tmp_path / "t.csv", table, delimiter=",", header=",".join([*names, "y", "w"]), comments=""
    )
    config = tmp_path / "c.yaml"
    config.write_text(
        "data: {table: t.csv, label: y, weight: w, clients: 2}\n"
        "model: {kind: logistic, l2: 1, class_weight: {0: 2, 1: 3}}\n"
        "method: {kind: tree-cg}\nstop: {gap: 1e-10}\n"
    )
    assert commands.run("train", str(config), "--out", str(tmp_path / "run")) == 0
    run = mtcd.load_run(tmp_path / "run")
    assert run.model.model.class_weight == {"0": 2.0, "1": 3.0}
    theirs = LogisticRegression(C=1.0, fit_intercept=False, class_weight={0: 2, 1: 3}, tol=1e-10)
    np.testing.assert_allclose(
        run.coefficients, theirs.fit(X, CLASSES, WEIGHTS).coef_[0], atol=1e-4
    )
    for key, said in (("label", "cannot be the weight"), ("nothing", "no weight column")):
        with pytest.raises(MtcdError, match=said):
            mtcd.read_tables(tmp_path / "t.csv", "y", 2, weight="y" if key == "label" else key)
    with pytest.raises(DataError, match="which is the weight"):
        mtcd.read_tables(tmp_path / "t.csv", "y", {"a": ["x0", "w"]}, weight="w")


@pytest.mark.parametrize("given", ["samples", "classes"])
def test_an_installation_without_weights_refuses_them(monkeypatch, given) -> None:
    monkeypatch.setattr(features, "parts", lambda group: {})
    weights = WEIGHTS if given == "samples" else None
    class_weight = "balanced" if given == "classes" else None
    with pytest.raises(ConfigError, match="has no weights of samples or classes: leave them out"):
        loss_on(Logistic(), "logistic", CLASSES, weights, class_weight)


def test_an_installation_without_weights_trains_without_them(monkeypatch) -> None:
    monkeypatch.setattr(features, "parts", lambda group: {})
    loss = Logistic()
    found, encoded, classes = loss_on(loss, "logistic", CLASSES)
    assert found is loss
    assert encoded.tolist() == CLASSES.tolist()
    assert classes == (0, 1)
