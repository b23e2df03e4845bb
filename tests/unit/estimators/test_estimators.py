"""MTCDRegressor and MTCDClassifier: scikit-learn's own checks, and agreement with its
estimators."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_diabetes, load_iris, make_classification
from sklearn.linear_model import HuberRegressor, Lasso, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import mtcd
from mtcd import MTCDClassifier, MTCDRegressor

X_ILL, Y_ILL = load_diabetes(return_X_y=True)
X_ILL = StandardScaler().fit_transform(X_ILL)
X_TWO, Y_TWO = make_classification(200, 12, n_informative=6, random_state=0)


@pytest.mark.long
# weights of 1000 and 0.0001
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("estimator", [MTCDRegressor(), MTCDClassifier()], ids=repr)
def test_scikit_learns_checks_pass(estimator) -> None:
    check_estimator(estimator, on_skip=None)


def test_ridge_is_that_of_scikit_learn() -> None:
    ours = MTCDRegressor(l2=3.0, blocks=5, network="path", tol=1e-10).fit(X_ILL, Y_ILL)
    theirs = Ridge(alpha=3.0).fit(X_ILL, Y_ILL)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-3, atol=1e-2)
    assert ours.intercept_ == pytest.approx(theirs.intercept_, rel=1e-6)
    assert ours.score(X_ILL, Y_ILL) == pytest.approx(theirs.score(X_ILL, Y_ILL), abs=1e-6)


def test_the_lasso_is_that_of_scikit_learn() -> None:
    ours = MTCDRegressor(l1=2.0 * len(Y_ILL), l2=0.0, tol=1e-10).fit(X_ILL, Y_ILL)
    theirs = Lasso(alpha=2.0, tol=1e-10).fit(X_ILL, Y_ILL)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-2)
    assert ((ours.coef_ == 0) == (theirs.coef_ == 0)).all()


def test_huber_resists_outliers() -> None:
    y = X_ILL @ np.arange(10.0)
    y[:5] += 1e4
    ours = MTCDRegressor(loss="huber", l2=0.0).fit(X_ILL, y)
    np.testing.assert_allclose(ours.coef_, HuberRegressor().fit(X_ILL, y).coef_, atol=0.1)


@pytest.mark.parametrize("sparse", [False, True])
def test_logistic_regression_is_that_of_scikit_learn(sparse: bool) -> None:
    X = sp.csr_matrix(X_TWO) if sparse else X_TWO
    ours = MTCDClassifier(l2=1.0, tol=1e-10).fit(X, Y_TWO)
    theirs = LogisticRegression(C=1.0, tol=1e-10, max_iter=10_000).fit(X_TWO, Y_TWO)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-3)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X_TWO), atol=1e-3)
    assert (ours.predict(X) == theirs.predict(X_TWO)).all()


def test_more_than_two_classes_by_name() -> None:
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    ours = MTCDClassifier(
        blocks={"sepal": [0, 1], "petal": [2, 3]}, network=[("sepal", "petal")]
    ).fit(X, names)
    theirs = LogisticRegression(C=1.0, max_iter=10_000).fit(X, names)
    assert ours.coef_.shape == (3, 4)
    assert list(ours.classes_) == ["setosa", "versicolor", "virginica"]
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=2e-2)
    assert ours.score(X, names) > 0.96
    assert ours.run_.classes == ("setosa", "versicolor", "virginica")
    np.testing.assert_array_equal(ours.run_.predict(X), ours.predict(X))
    assert ours.run_.score(X, names) == ours.score(X, names)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_grid_search_over_l2_and_local_updates() -> None:
    grid = {"l2": [0.1, 100.0], "method__local_updates": [1, 5]}
    method = mtcd.MTCD(tokens=2, hops=8)
    search = GridSearchCV(
        MTCDClassifier(method=method, max_iter=300), grid, cv=3, error_score="raise"
    )
    search.fit(X_TWO, Y_TWO)
    assert search.best_params_["l2"] in (0.1, 100.0)
    assert (
        search.best_estimator_.method.local_updates == search.best_params_["method__local_updates"]
    )
    assert method.local_updates == 1, "the method that was given stays as it is"
    theirs = GridSearchCV(LogisticRegression(max_iter=1000), {"C": [10.0, 0.01]}, cv=3).fit(
        X_TWO, Y_TWO
    )
    assert search.best_score_ == pytest.approx(theirs.best_score_, abs=0.02)


def test_a_pipeline_of_frames_with_blocks_by_name() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.normal(50, 10, 90),
            "bmi": rng.normal(25, 4, 90),
            "sex": rng.choice(["f", "m"], 90),
        }
    )
    y = (frame["age"] + 10 * (frame["sex"] == "m") + rng.normal(0, 5, 90) > 55).map(
        {True: "ill", False: "well"}
    )
    prepare = ColumnTransformer(
        [
            ("scale", StandardScaler(), ["age", "bmi"]),
            ("one", OneHotEncoder(sparse_output=False), ["sex"]),
        ],
        verbose_feature_names_out=False,
    ).set_output(transform="pandas")
    blocks = {"clinic": ["age", "bmi"], "registry": ["sex_f", "sex_m"]}
    model = make_pipeline(prepare, MTCDClassifier(blocks=blocks, network="path")).fit(frame, y)
    assert model.score(frame, y) > 0.85
    run = model[-1].run_
    assert run.column_names == ("age", "bmi", "sex_f", "sex_m")
    assert set(run.parameters) == {"clinic", "registry"}


def test_weights_are_those_of_scikit_learn() -> None:
    weights = np.random.default_rng(0).integers(0, 4, len(Y_TWO)).astype(float)
    ours = MTCDClassifier(class_weight={0: 1.0, 1: 3.0}, tol=1e-10).fit(
        X_TWO, Y_TWO, sample_weight=weights
    )
    theirs = LogisticRegression(class_weight={0: 1.0, 1: 3.0}, tol=1e-10, max_iter=10_000)
    np.testing.assert_allclose(
        ours.coef_, theirs.fit(X_TWO, Y_TWO, sample_weight=weights).coef_, atol=1e-3
    )
    balanced = MTCDClassifier(class_weight="balanced", tol=1e-10).fit(X_TWO[50:], Y_TWO[50:])
    theirs.set_params(class_weight="balanced").fit(X_TWO[50:], Y_TWO[50:])
    np.testing.assert_allclose(balanced.coef_, theirs.coef_, atol=1e-3)
    ridge = MTCDRegressor(tol=1e-10).fit(X_ILL, Y_ILL, sample_weight=np.arange(len(Y_ILL)))
    np.testing.assert_allclose(
        ridge.coef_,
        Ridge().fit(X_ILL, Y_ILL, sample_weight=np.arange(len(Y_ILL))).coef_,
        rtol=1e-3,
        atol=1e-2,
    )


def test_columns_that_no_client_holds_have_the_coefficient_zero() -> None:
    ours = MTCDRegressor(blocks={"a": [7, 2], "b": slice(0, 2)}, tol=1e-10).fit(X_ILL, Y_ILL)
    theirs = Ridge(alpha=1.0).fit(X_ILL[:, [0, 1, 2, 7]], Y_ILL)
    assert (ours.coef_[[3, 4, 5, 6, 8, 9]] == 0).all()
    np.testing.assert_allclose(ours.coef_[[0, 1, 2, 7]], theirs.coef_, rtol=1e-3, atol=1e-2)
    np.testing.assert_allclose(
        ours.predict(X_ILL), theirs.predict(X_ILL[:, [0, 1, 2, 7]]), rtol=1e-3
    )


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_clones_have_the_same_parameters_and_no_result() -> None:
    fitted = MTCDRegressor(l2=2.0, method=mtcd.SVFL(local_updates=3), blocks=2, max_iter=20).fit(
        X_ILL, Y_ILL
    )
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    assert copy.get_params()["method__local_updates"] == 3
    assert not hasattr(copy, "run_")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_same_seed_gives_the_same_model() -> None:
    runs = [
        MTCDClassifier(method=mtcd.STCD(), max_iter=50, random_state=3).fit(X_TWO, Y_TWO).coef_
        for _ in range(2)
    ]
    assert np.array_equal(*runs)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("seed", [0, 3, np.int64(8)])
def test_the_seed_is_that_of_the_training(seed: int) -> None:
    """The walk depends on it: another seed is another model."""
    given = {"method": mtcd.STCD(stepsize=1e-3), "max_iter": 50, "tol": 0.0, "fit_intercept": False}
    ours = MTCDRegressor(random_state=seed, l2=1.0, blocks=3, **given).fit(X_ILL, Y_ILL)
    data = mtcd.split(X_ILL, Y_ILL, clients=3)
    limit = mtcd.Stop(iterations=50)
    model = mtcd.Glm("ridge", alpha=1.0)
    theirs = [
        mtcd.train(data, model, "complete", given["method"], limit, seed=one)
        for one in (seed, seed + 1)
    ]
    np.testing.assert_array_equal(ours.coef_, theirs[0].coefficients)
    assert not np.array_equal(ours.coef_, theirs[1].coefficients)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_random_state_is_drawn_from_and_none_is_new_every_time() -> None:
    def coefficients(state: Any) -> Any:
        return (
            MTCDClassifier(method=mtcd.STCD(), max_iter=20, random_state=state)
            .fit(X_TWO, Y_TWO)
            .coef_.tolist()
        )

    one, same = np.random.RandomState(4), np.random.RandomState(4)
    first, second = coefficients(one), coefficients(one)
    assert [coefficients(same), coefficients(same)] == [first, second]
    assert first != second
    assert coefficients(None) != coefficients(None)


def test_nothing_is_printed_unless_asked(capsys) -> None:
    MTCDRegressor().fit(X_ILL, Y_ILL)
    assert capsys.readouterr() == ("", "")
    MTCDRegressor(verbose=True).fit(X_ILL, Y_ILL)
    assert "iterations" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("estimator", "said"),
    [
        (MTCDClassifier(loss="huber"), "loss must be one of 'logistic', 'squared-hinge'"),
        (MTCDClassifier(blocks=13), "13 clients cannot share 12 columns"),
        (MTCDClassifier(blocks={"a": ["age"]}), "age"),
        (MTCDClassifier(network="ring"), "ring"),
        (MTCDClassifier(method="stcd"), "method must be MTCD.*but is 'stcd'"),
        (MTCDClassifier(l2=-1.0), "model.l2"),
        (MTCDClassifier(class_weight={"ill": 2.0}), "names the class 'ill'"),
        (MTCDClassifier(class_weight="even"), "class_weight"),
        (MTCDClassifier(method=mtcd.STCD(stepsize=50.0)), "Diverged"),
    ],
)
def test_settings_that_cannot_work(estimator, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        estimator.fit(X_TWO, Y_TWO)


def test_more_classes_than_a_loss_has() -> None:
    with pytest.raises(ValueError, match="is for two classes, but there are 3"):
        MTCDClassifier(loss="squared-hinge").fit(*load_iris(return_X_y=True))
    with pytest.raises(AttributeError, match="predict_proba"):
        MTCDClassifier(loss="squared-hinge").fit(X_TWO, Y_TWO).predict_proba(X_TWO)


def test_unknown_settings_of_a_method() -> None:
    with pytest.raises(ValueError, match="method__updates"):
        MTCDRegressor(method=mtcd.STCD()).set_params(method__updates=3)
