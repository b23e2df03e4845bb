"""Trees as estimators of scikit-learn, and the importance of parties and columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import check_estimator

import mtcd
from boosting import SETTINGS, joint, samples, trained
from mtcd.core.errors import ConfigError, DataError, DataWarning, MtcdError
from mtcd.core.seeding import stream
from mtcd.models.trees.model import model_from_json

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


OTHERS = {
    "blocks": 3,
    "network": "path",
    "method": mtcd.STCD(local_updates=2),
    "loss": "huber",
    "delta": 0.7,
    "quantile": 0.25,
    "max_iter": 7,
    "learning_rate": 0.3,
    "depth": 2,
    "leaves": 5,
    "l2": 0.25,
    "min_samples": 3,
    "columns": 0.5,
    "rows": 0.75,
    "adaptive": False,
    "random_state": 4,
}


@pytest.mark.parametrize("made", [mtcd.TreesRegressor, mtcd.TreesClassifier])
def test_settings_are_parameters_of_the_estimator_and_of_its_model(made: Any) -> None:
    estimator = made(**OTHERS)
    assert estimator.get_params(deep=False) == OTHERS
    plain = made().get_params(deep=False)
    assert [name for name in OTHERS if plain[name] == OTHERS[name]] == []
    model = made(**{**OTHERS, "delta": 1.0})._model("quantile")
    of_model = {name: getattr(model, name) for name in OTHERS if hasattr(model, name)}
    assert len(of_model) == 11
    assert of_model == {name: OTHERS[name] for name in of_model} | {
        "loss": "quantile",
        "delta": 1.0,
    }


def test_an_estimator_trains_for_as_many_hops_as_it_is_told_on_its_network() -> None:
    X, y = samples("values", 60)
    found = mtcd.TreesRegressor(blocks=3, network="path", max_iter=7, random_state=4).fit(X, y)
    assert found.n_iter_ == found.run_.final.iteration == 7
    data = mtcd.split(X, y, 3)
    model, method = mtcd.Trees("squared"), mtcd.STCD(walk="tour")
    same = mtcd.train(data, model, "path", method, mtcd.Stop(iterations=7), seed=4, metrics=())
    np.testing.assert_allclose(found.predict(X), same.predict(X))


def test_what_an_estimator_cannot_take_is_refused() -> None:
    X, y = samples("values", 60)
    with pytest.raises(NotFittedError):
        mtcd.TreesRegressor().predict(X)
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        mtcd.TreesClassifier(**FEW).fit(X, y)

    frame = pl.DataFrame({"a": X[:, 0], "b": X[:, 1]})
    city = pl.Series("city", ["Rome", "Oslo", "Bonn"] * 20, dtype=pl.Categorical)
    numbers = mtcd.TreesRegressor(blocks=1, **FEW).fit(frame, y)
    with pytest.raises(ValueError, match="Columns a are of categories, but were numbers"):
        numbers.predict(frame.with_columns(city.alias("a")))
    categories = mtcd.TreesRegressor(blocks=1, **FEW).fit(frame.with_columns(city), y)
    with pytest.raises(ValueError, match=r"trained on columns of categories .city."):
        categories.predict(np.zeros((2, 3)))


def test_categories_are_known_by_their_texts_whatever_their_order() -> None:
    """Also in a frame of pandas, which stays as it is."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    city = rng.choice(["Rome", "Oslo", "Lima", "Bonn"], 120)
    y = np.isin(city, ["Rome", "Lima"]) + 0.1 * rng.standard_normal(120)
    given = {"min_samples": 5, "max_iter": 20, "blocks": 1}

    def fitted(frame: Any) -> Any:
        return mtcd.TreesRegressor(**given).fit(frame, y)

    dose = rng.standard_normal(120)
    frame = pandas.DataFrame({"dose": dose, "city": pandas.Categorical(city)})
    before = frame.copy()
    one = fitted(frame)
    assert one.categories_ == {"city": ("Bonn", "Lima", "Oslo", "Rome")}
    pandas.testing.assert_frame_equal(frame, before)

    turned = pl.DataFrame({"dose": dose, "city": city}).with_columns(
        pl.col("city").cast(pl.Enum(["Rome", "Lima", "Bonn", "Oslo"]))
    )
    np.testing.assert_allclose(fitted(turned).predict(turned), one.predict(frame))
    with pytest.warns(DataWarning, match="count as missing: city \\(2, such as 'Paris'\\)"):
        one.predict(
            pl.DataFrame({"dose": [0.0, 0.0], "city": ["Paris", "Paris"]}).with_columns(
                pl.col("city").cast(pl.Categorical)
            )
        )


@pytest.mark.parametrize(
    ("loss", "label", "predicted"),
    [("squared", 3.0, 3.0), ("poisson", 2.0, 2.0), ("poisson", 1.0, 1.0), ("huber", -4.0, -4.0)],
)
def test_where_all_labels_are_equal_they_are_predicted(
    loss: str, label: float, predicted: float
) -> None:
    found = mtcd.TreesRegressor(loss=loss).fit(np.eye(4), np.full(4, label))
    assert found.predict(np.zeros((3, 4))).tolist() == pytest.approx([predicted] * 3)


@pytest.mark.parametrize("by", ["party", "column"])
@pytest.mark.parametrize(("repeats", "seed"), [(2, 0), (3, 7)])
def test_the_importance_by_permutation_is_the_rise_of_the_loss(
    by: str, repeats: int, seed: int
) -> None:
    X, y = samples("values", 90, 4)
    data = mtcd.split(X, y, {"a": [0, 1], "b": [2, 3]})
    run = trained(data, mtcd.Trees("squared", **SETTINGS), 12)
    before = [block.copy() for block in data.blocks]
    found = run.importance(data, kind="permutation", by=by, repeats=repeats, seed=seed)

    expected = []
    for k in range(2):
        groups = [[2 * k, 2 * k + 1]] if by == "party" else [[2 * k], [2 * k + 1]]
        for place, columns in enumerate(groups):
            rises = []
            for repeat in range(repeats):
                number = -1 if by == "party" else place
                order = stream(seed, "permutation", k, number, repeat).permutation(90)
                changed = X.copy()
                changed[:, columns] = X[order][:, columns]
                after, now = ((run.predict(given) - y) ** 2 / 2 for given in (changed, X))
                rises.append(after.mean() - now.mean())

            expected.append((np.mean(rises), np.std(rises)))
    shown = [(row["importance"], row["deviation"]) for row in found]
    np.testing.assert_allclose(shown, expected, atol=1e-9)
    assert all(np.array_equal(*both) for both in zip(before, data.blocks, strict=True))


def test_importances_that_cannot_be_are_refused() -> None:
    X, y = samples("classes3", 90)
    run = trained(mtcd.split(X, y, 2), mtcd.Trees("multinomial", **SETTINGS), 4)
    with pytest.raises(ConfigError, match="repeats must be 1 or more"):
        run.importance(X, y, kind="permutation", repeats=0)
    with pytest.raises(ConfigError, match="do not have all classes"):
        run.importance(X[y < 2], y[y < 2], kind="permutation")
    with pytest.raises(MtcdError, match="by must be 'party' or 'column', but is 'row'"):
        run.importance(by="row")
    linear = trained(
        mtcd.split(X, X[:, 0], 2),
        mtcd.Mixed("squared", default="linear", parties={"client_0": "linear"}),
        4,
    )
    with pytest.raises(ConfigError, match="Gains are of trees, and no party has any"):
        linear.importance()


def test_missing_values_are_refused_where_none_were_trained_on() -> None:
    X, y = samples("values", 60)
    run = trained(mtcd.split(X, y, 2), mtcd.Trees("squared", **SETTINGS), 4)
    X[0, 0] = np.nan
    with pytest.raises(DataError, match="client_0"):
        run.predict(X)


@pytest.mark.parametrize("clients", [4, 5])
def test_a_trained_model_shows_the_parts_of_at_most_four_clients(clients: int) -> None:
    X, y = samples("values", 60, 5)
    run = trained(mtcd.split(X, y, clients), mtcd.Trees("squared", **SETTINGS), 4)
    shown = repr(run.trained())
    assert ("client_3: " in shown, "client_4" in shown, ", ..." in shown) == (
        True,
        False,
        clients > 4,
    )


def test_the_description_of_a_model_is_read_as_often_as_one_likes() -> None:
    model = mtcd.Mixed("squared", {"a": {"kind": "trees", "depth": 3}}, "linear")
    parties = dict(model.parties)
    about = model.to_json()
    for _ in range(2):
        assert model_from_json(about) == model
        assert model.families(["a", "b"]) == model_from_json(about).families(["a", "b"])

    assert model.parties == parties == {"a": {"kind": "trees", "depth": 3}}
