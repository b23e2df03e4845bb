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
from mtcd.errors import ConfigError, MtcdError

FEW = {"max_iter": 6, "learning_rate": 0.5}


@pytest.mark.parametrize("estimator", [mtcd.TreesRegressor(**FEW), mtcd.TreesClassifier(**FEW)], ids=repr)
def test_scikit_learns_checks_pass(estimator: Any) -> None:
    check_estimator(estimator, on_skip=None)


def test_one_block_is_the_learners_own_boosting_and_settings_are_searched() -> None:
    X, y = samples("classes")
    X[::7, 2] = np.nan
    ours = mtcd.TreesClassifier(blocks=1, max_iter=10, **SETTINGS).fit(X, np.where(y, "yes", "no"))
    np.testing.assert_allclose(ours.predict_proba(X)[:, 1], joint(X, y, "binary", 10).predict(X), atol=1e-6)
    np.testing.assert_array_equal(ours.run_.predict(X), ours.predict(X))
    search = GridSearchCV(clone(ours).set_params(blocks=2), {"depth": [1, 3]}, cv=2).fit(X, y)
    assert search.best_params_["depth"] in (1, 3)


@pytest.mark.parametrize(
    ("loss", "settings"), [("poisson", {}), ("quantile", {"quantile": 0.8}), ("huber", {"delta": 2})]
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
    by_party = {row["client"]: row["importance"] for row in run.importance(X, y, kind="permutation")}
    assert by_party["client_0"] > 10 * by_party["client_2"] > 10 * abs(by_party["client_1"])
    columns = run.importance(X, y, kind="permutation", by="column", repeats=2)
    assert max(columns, key=lambda row: row["importance"])["column"] == "x0"
    assert sum(row["share"] for row in run.importance()) == pytest.approx(1.0)
    for bad, said in (({"kind": "gian"}, "did you mean 'gain'"), ({"kind": "permutation"}, "give X and y")):
        with pytest.raises(ConfigError, match=said):
            run.importance(**bad)
    linear = mtcd.train(mtcd.split(X, y, 2), method=mtcd.STCD(), stop=mtcd.Stop(iterations=2))
    with pytest.raises(MtcdError, match="coefficients"):
        linear.importance()
