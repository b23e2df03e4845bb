"""Trees as estimators of scikit-learn, and the importance of parties and columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import check_estimator

import mtcd
from boosting import SETTINGS, joint, samples, trained
from mtcd.core.errors import ConfigError, MtcdError

FEW = {"max_iter": 10, "learning_rate": 0.5}


@pytest.mark.long
@pytest.mark.parametrize(
    "estimator", [mtcd.TreesRegressor(**FEW), mtcd.TreesClassifier(**FEW)], ids=repr
)
def test_scikit_learns_checks_pass(estimator: Any) -> None:
    check_estimator(estimator, on_skip=None)


@pytest.mark.parametrize("kind", ["classes", "values"])
def test_weights_are_the_learners_and_as_many_copies_of_a_sample(kind: str) -> None:
    X, y = samples(kind)
    # few values, each often: copies leave the thresholds where they are
    X = np.clip(np.round(X), -1, 1)
    weights = np.random.default_rng(3).integers(0, 4, len(y)).astype(float)
    counts, few = weights.astype(int), {**SETTINGS, "min_samples": 1, "adaptive": False}
    made = {"classes": mtcd.TreesClassifier, "values": mtcd.TreesRegressor}[kind]
    one, two = (made(blocks=K, max_iter=8, random_state=0, **few) for K in (1, 2))
    margins = one.fit(X, y, weights).run_.trained().decision(X)
    kept = weights > 0
    goal = {"classes": "binary", "values": "regression"}[kind]
    theirs = joint(X[kept], y[kept], goal, 8, weights=weights[kept], min_data_in_leaf=1)
    np.testing.assert_allclose(margins, theirs.predict(X, raw_score=True), atol=1e-6)
    weighted = two.fit(X, y, weights).run_.trained().decision(X)
    copied = two.fit(np.repeat(X, counts, axis=0), np.repeat(y, counts)).run_.trained().decision(X)
    np.testing.assert_allclose(weighted, copied, atol=1e-6)
    assert not np.allclose(margins, one.fit(X, y).run_.trained().decision(X), atol=1e-3)
    with pytest.raises(ValueError, match="non-zero"):
        two.fit(X, y, np.zeros(len(y)))


def test_classes_without_weight_are_none_and_a_hinge_gives_no_probabilities() -> None:
    X, y = samples("classes")
    three = np.where(X[:, 0] > 1, "other", np.where(y, "yes", "no"))
    found = mtcd.TreesClassifier(**FEW).fit(X, three, (three != "other").astype(float))
    assert found.classes_.tolist() == ["no", "yes"]
    hinge = mtcd.TreesClassifier(loss="squared-hinge", **FEW).fit(X, y)
    assert hinge.score(X, y) > 0.7
    assert not hasattr(hinge, "predict_proba")
    with pytest.raises(ValueError, match="is for two classes"):
        hinge.fit(X, three)
    assert (
        hinge.set_params(method__local_updates=3, adaptive=False)
        .fit(X, y)
        .run_.parts["client_0"]
        .forest.rounds
        > 2
    )


def test_the_seed_decides_which_samples_a_tree_is_grown_on() -> None:
    X, y = samples("values")

    def margins(seed: int) -> Any:
        return mtcd.TreesRegressor(random_state=seed, rows=0.5, **FEW).fit(X, y).predict(X).tolist()

    assert margins(1) == margins(1)
    assert margins(1) != margins(2)


def test_one_block_is_the_learners_own_boosting_and_settings_are_searched() -> None:
    X, y = samples("classes")
    X[::7, 2] = np.nan
    ours = mtcd.TreesClassifier(blocks=1, max_iter=10, **SETTINGS).fit(X, np.where(y, "yes", "no"))
    np.testing.assert_allclose(
        ours.predict_proba(X)[:, 1], joint(X, y, "binary", 10).predict(X), atol=1e-6
    )
    np.testing.assert_array_equal(ours.run_.predict(X), ours.predict(X))
    search = GridSearchCV(clone(ours).set_params(blocks=2), {"depth": [1, 3]}, cv=2).fit(X, y)
    assert search.best_params_["depth"] in (1, 3)


@pytest.mark.parametrize(
    ("loss", "settings"),
    [("poisson", {}), ("quantile", {"quantile": 0.8}), ("huber", {"delta": 2})],
)
def test_losses_of_the_regressor(loss: str, settings: dict[str, Any]) -> None:
    X, y = samples("counts")
    found = mtcd.TreesRegressor(loss=loss, max_iter=20, **settings, **SETTINGS).fit(X, y)
    assert found.score(X, y) > 0 or loss == "quantile"
    assert loss != "poisson" or (found.predict(X) > 0).all()
    assert found.predict(X) == pytest.approx(found.run_.predict(X))


def test_gains_are_the_learners_and_permutations_find_the_party_that_matters() -> None:
    X, y = samples("values")
    run = trained(mtcd.split(X, y, 1), mtcd.Trees("squared", **SETTINGS), 8)
    theirs = joint(X, y, "regression", 8).feature_importance("gain")
    np.testing.assert_allclose([row["gain"] for row in run.importance()], theirs, rtol=1e-4)
    y = X[:, 0] + 0.1 * X[:, 5]
    run = trained(mtcd.split(X, y, 3), mtcd.Trees("squared", **SETTINGS), 40)
    by_party = {
        row["client"]: row["importance"] for row in run.importance(X, y, kind="permutation")
    }
    assert by_party["client_0"] > 10 * by_party["client_2"] > 10 * abs(by_party["client_1"])
    columns = run.importance(X, y, kind="permutation", by="column", repeats=2)
    assert max(columns, key=lambda row: row["importance"])["column"] == "x0"
    assert sum(row["share"] for row in run.importance()) == pytest.approx(1.0)
    for bad, said in (
        ({"kind": "gian"}, "did you mean 'gain'"),
        ({"kind": "permutation"}, "give X and y"),
    ):
        with pytest.raises(ConfigError, match=said):
            run.importance(**bad)
    linear = mtcd.train(mtcd.split(X, y, 2), method=mtcd.STCD(), stop=mtcd.Stop(iterations=2))
    with pytest.raises(MtcdError, match="coefficients"):
        linear.importance()
