"""Boosted trees on a token: against the learner's own boosting, the invariant of the token, and
saved runs."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mtcd
from boosting import SETTINGS, joint, plain_token_boosting, problem_of, samples, trained
from mtcd.core.seeding import stream
from mtcd.models.glm.fit import LabelFit
from mtcd.models.losses.quantile import Quantile
from mtcd.models.losses.squared import Squared
from mtcd.models.trees.ensemble import Ensemble, Tree, summed
from mtcd.models.trees.families.family import Inputs
from mtcd.models.trees.families.trees import TreeFamily, TreeParty
from mtcd.models.trees.gains import AWAITED, GrowthRule, known_gains, record
from mtcd.models.trees.training import compares_gains
from mtcd.protocol.model import Gains
from mtcd.protocol.token import Token
from mtcd.training.plateau import Plateau

OBJECTIVES = [
    ("squared", "values", "regression", {}),
    ("logistic", "classes", "binary", {}),
    ("multinomial", "classes3", "multiclass", {"num_class": 3}),
    ("huber", "values", "huber", {"alpha": 0.7}),
    ("poisson", "counts", "poisson", {"poisson_max_delta_step": 1e-12}),
]


@pytest.mark.parametrize(("loss", "kind", "objective", "more"), OBJECTIVES)
def test_one_client_with_all_columns_is_the_learners_own_boosting(
    loss: str, kind: str, objective: str, more: dict[str, Any]
) -> None:
    X, y = samples(kind)
    own = {"delta": more["alpha"]} if loss == "huber" else {}
    run = trained(mtcd.split(X, y, 1), mtcd.Trees(loss, **SETTINGS, **own), 12)
    theirs = joint(X, y, objective, 12, **more)
    scores = theirs.predict(X, raw_score=True)
    ours = run.decision(X)
    if loss == "huber":  # LightGBM starts from the mean, mtcd from the constant of the lowest loss
        assert np.corrcoef(ours, scores)[0, 1] > 0.995
    else:
        # LightGBM keeps gradients in single precision
        np.testing.assert_allclose(ours, scores, atol=1e-5)


def test_the_quantile_loss_gives_quantiles() -> None:
    X, y = samples("values", n=800)
    for level in (0.1, 0.9):
        run = trained(mtcd.split(X, y, 2), mtcd.Trees("quantile", quantile=level, **SETTINGS), 40)
        assert np.mean(y <= run.predict(X)) == pytest.approx(level, abs=0.03)
        theirs = joint(X, y, "quantile", 40, alpha=level).predict(X)

        def pinball(z: Any, level: float = level) -> float:
            return float(np.maximum(level * (y - z), (level - 1) * (y - z)).mean())

        assert pinball(run.predict(X)) < 1.1 * pinball(theirs)


@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize(
    "loss", ["squared", "logistic", "multinomial", "huber", "quantile", "poisson"]
)
def test_the_loss_falls_at_every_visit_that_grows_trees(loss: str, adaptive: bool) -> None:
    kind = {"logistic": "classes", "multinomial": "classes3", "poisson": "counts"}.get(
        loss, "values"
    )
    data = mtcd.split(*samples(kind), 3)
    model = mtcd.Trees(loss, adaptive=adaptive, **SETTINGS)
    run = mtcd.train(
        data, model, "cycle", mtcd.STCD(local_updates=2), mtcd.Stop(iterations=25), metrics=()
    )
    objectives = [row.objective for row in run.history.rows]
    assert len(objectives) == 26
    fell = [after < before * (1 - 1e-12) for before, after in itertools.pairwise(objectives)]
    assert sum(fell) == 25 - run.ledger.unchanged
    assert sum(fell) == 25 or adaptive
    assert all(after <= before * (1 + 1e-12) for before, after in itertools.pairwise(objectives))


METHODS = st.sampled_from(
    [
        mtcd.STCD(local_updates=2),
        mtcd.MTCD(tokens=2, hops=3),
        mtcd.MTCD(tokens=3, hops=2, combine="visitors"),
        mtcd.MTCD(tokens=2, hops=3, combine="optimal"),
        mtcd.MTCD(clusters=[[0, 1], [2, 3]], hops=2),
        mtcd.MTCD(clusters=[[0, 1], [2, 3]], hops=2, combine="optimal"),
    ]
)


@given(
    METHODS,
    st.integers(0, 1000),
    st.sampled_from(["squared", "multinomial"]),
    st.sampled_from([0.5, 1.0]),
)
@settings(deadline=None, max_examples=12)
def test_the_token_is_the_sum_of_the_margins(
    method: Any, seed: int, loss: str, share: float
) -> None:
    X, y = samples("classes3" if loss == "multinomial" else "values", n=80, seed=seed)
    data, seen = mtcd.split(X, y, 4), []

    class Seen(mtcd.Callback):
        def on_measure(self, moment: mtcd.Moment) -> None:
            seen.append((moment.measurement.objective, moment.model))

    mtcd.train(
        data,
        mtcd.Trees(loss, columns=share, rows=share, **SETTINGS),
        "cycle",
        method,
        mtcd.Stop(iterations=6),
        metrics=(),
        seed=seed,
        callbacks=[Seen()],
    )
    problem = problem_of(data, loss)
    for objective, model in seen:  # that of the token, and from the trees of all clients
        z = model.decision(data) - problem.shift
        assert problem.read_off(z, 0.0) == pytest.approx(objective, rel=1e-9)


def test_a_saved_run_predicts_the_same_without_pickle(tmp_path: Path) -> None:
    X, y = samples("classes3")
    run = trained(
        mtcd.split(X, y, 3),
        mtcd.Trees("multinomial", **SETTINGS),
        9,
        method=mtcd.MTCD(tokens=2, hops=3),
    )
    run.save(tmp_path / "run")
    again = mtcd.load_run(tmp_path / "run")
    np.testing.assert_array_equal(run.predict_proba(X), again.predict_proba(X))
    again.save(tmp_path / "again")
    np.testing.assert_array_equal(mtcd.load_run(tmp_path / "again").decision(X), run.decision(X))
    assert "rounds of trees" in repr(again.model)


@pytest.mark.parametrize("combine", ["average", "visitors", "optimal"])
def test_a_training_resumes_to_the_same_trees(tmp_path: Path, combine: str) -> None:
    X, y = samples("classes")
    data, model = mtcd.split(X, y, 3), mtcd.Trees("logistic", rows=0.7, columns=0.7, **SETTINGS)
    method = mtcd.MTCD(tokens=2, hops=3, combine=combine)

    def train(iterations: int, **more: Any) -> mtcd.Run:
        return mtcd.train(data, model, "complete", method, mtcd.Stop(iterations=iterations), **more)

    train(6, checkpoint=tmp_path)
    resumed = train(15, checkpoint=tmp_path, resume=True)
    whole = train(15)
    np.testing.assert_array_equal(resumed.decision(X), whole.decision(X))
    assert resumed.ledger == whole.ledger


def test_a_party_whose_trees_do_not_help_passes_the_token_on_and_the_ledger_counts_it() -> None:
    X, y = samples("values")
    X[:, 4:] = 1.0  # the second party's columns are constant
    model = mtcd.Trees("squared", adaptive=False, **SETTINGS)
    run = trained(mtcd.split(X, y, [[0, 1, 2, 3], [4, 5]]), model, 20)
    own = run.parts["client_0"].forest.rounds
    assert run.parts["client_1"].forest.rounds == 0
    assert run.ledger.hops == 20 == own + run.ledger.unchanged
    assert run.ledger.unchanged > 3


def test_the_best_model_on_a_hold_out_is_kept_and_survives_a_resume(tmp_path: Path) -> None:
    data = mtcd.split(*samples("classes"), 2).holdout(0.4)
    model = mtcd.Trees("logistic", **{**SETTINGS, "learning_rate": 0.8})

    def train(hops: int, **more: Any) -> mtcd.Run:
        kept = [
            mtcd.KeepBest(on="test_log_loss"),
            mtcd.EarlyStopping(on="test_log_loss", patience=8),
        ]
        stop = mtcd.Stop(iterations=hops)
        return mtcd.train(
            data,
            model,
            method=mtcd.STCD(),
            stop=stop,
            metrics=("log_loss",),
            callbacks=kept,
            **more,
        )

    whole = train(100)
    assert whole.status == "stopped"
    best = min(row.metrics["test_log_loss"] for row in whole.history.rows if row.metrics)
    assert whole.evaluate(data.test)["log_loss"] == pytest.approx(best)
    train(5, checkpoint=tmp_path)
    resumed = train(100, checkpoint=tmp_path, resume=True)
    np.testing.assert_array_equal(resumed.decision(data.test), whole.decision(data.test))


def test_rules_that_end_a_training_wait_for_the_first_tree() -> None:
    X, y = samples("values", d=12)
    data, model = mtcd.split(X, y, 12), mtcd.Trees("squared", **SETTINGS)
    method, most = mtcd.STCD(walk="tour"), mtcd.Stop(iterations=60)
    ended = {
        "plateau": mtcd.train(
            data, model, "path", method, replace(most, plateau=Plateau()), metrics=()
        ),
        "stopped": mtcd.train(
            data, model, "path", method, most, metrics=(), callbacks=[mtcd.EarlyStopping()]
        ),
    }
    for status, run in ended.items():
        assert sum(part.forest.rounds for part in run.parts.values()) > 0
        assert run.status in (status, "iterations")
    nothing = mtcd.split(np.ones(X.shape), y, 12)  # no column can be split
    run = mtcd.train(
        nothing, model, "path", method, mtcd.Stop(iterations=200, plateau=Plateau()), metrics=()
    )
    assert run.status == "plateau"
    assert run.final.iteration <= 60


def test_ensembles_are_a_vector_space() -> None:
    one, two = (Tree.of((0, 0, hop, 0), f"tree {hop}") for hop in range(2))
    a = Ensemble().extended(one)
    b = a.extended(two)
    assert [tree.text.strip() for tree in (b - a).trees] == ["tree 1"]
    assert len(a - a) == 0
    halfway = a + 0.5 * (b - a)
    assert halfway.weights == (1.0, 0.5)
    assert summed([(2.0, halfway)]).weights == (np.float64(2.0) * halfway).weights == (2.0, 1.0)


def test_trees_are_grown_where_they_gain() -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((600, 20))
    # the other four parties have noise
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.5 * rng.standard_normal(600)
    data = mtcd.split(X, y, 5).holdout(0.5)
    errors, rounds = {}, {}
    for adaptive in (False, True):
        model = mtcd.Trees("squared", adaptive=adaptive, **SETTINGS)
        run = trained(data, model, 100, "complete", mtcd.STCD(walk="tour"))
        errors[adaptive] = run.evaluate(data.test)["rmse"]
        rounds[adaptive] = [part.forest.rounds for part in run.parts.values()]
    assert rounds[False] == [20] * 5
    assert rounds[True][0] > 2 * max(rounds[True][1:])
    assert errors[True] < 0.9 * errors[False]


@pytest.mark.parametrize("loss", [Quantile(0.3), Quantile(0.8), Squared()], ids=repr)
def test_a_tree_whose_gain_is_measured_has_not_seen_the_held_out_labels(
    loss: Any, monkeypatch
) -> None:
    """Neither its splits nor its leaves: with other labels there, it is the same tree."""
    X, y = samples("values", n=120)
    visit = (4, 0)
    held_out = stream(9, "held-out", 1, *visit).permutation(120) % 5 == 0
    others = np.where(held_out, np.random.default_rng(0).permutation(y) + 50.0, y)
    found, measured = [], TreeParty._margins_of

    def kept(*args: Any) -> Any:
        found.append(measured(*args))
        return found[-1]

    monkeypatch.setattr(TreeParty, "_margins_of", kept)
    gains = []
    for labels in (y, others):
        client = TreeParty(TreeFamily(min_samples=2), Inputs(1, X, (), LabelFit(loss, labels), 9))
        gains.append(client._held_out_gain(np.zeros(120), visit))
    np.testing.assert_array_equal(*found)
    assert len(np.unique(found[0])) > 3

    before, after = (loss.values(z, y)[held_out].mean() for z in (np.zeros(120), found[0]))
    assert gains[0] == pytest.approx(max(0.0, 120 * (before - after)))
    assert gains[0] != gains[1]


@pytest.mark.parametrize(
    ("network", "start", "tour"), [("path", 2, [2, 3, 2, 1, 0, 1]), ("complete", 1, [1, 2, 3, 0])]
)
def test_the_choice_is_that_of_a_plain_loop(network: str, start: int, tour: list[int]) -> None:
    X, y = samples("values", d=8)
    method = mtcd.STCD(walk="tour", start=start)
    run = trained(mtcd.split(X, y, 4), mtcd.Trees("squared", **SETTINGS), 60, network, method)
    order = list(itertools.islice(itertools.cycle(tour), 60))
    predicted, grown = plain_token_boosting([X[:, 2 * k : 2 * k + 2] for k in range(4)], y, order)
    assert [part.forest.rounds for part in run.parts.values()] == grown
    assert min(grown) < max(grown)
    np.testing.assert_allclose(run.predict(X), predicted, rtol=1e-9, atol=1e-12)


def test_trees_do_not_depend_on_where_the_token_starts() -> None:
    rng = np.random.default_rng(2)
    X = rng.standard_normal((400, 10))
    y = 5.0 * X[:, 0] + rng.standard_normal(400)  # the other four parties have noise
    data = mtcd.split(X, y, 5)
    for start in range(5):
        run = trained(
            data, mtcd.Trees("squared", **SETTINGS), 12, "path", mtcd.STCD(walk="tour", start=start)
        )
        rounds = [part.forest.rounds for part in run.parts.values()]
        assert rounds[0] > 0 == sum(rounds[1:])


@pytest.mark.parametrize(
    ("others", "gains", "grown"),
    [
        (None, [0.0, 9.0, 9.0], 2),  # nothing is known: Q trees
        (10.0, [6.9], 0),  # far less than another party gains
        (10.0, [7.0, 7.0, 9.9], 2),
        (10.0, [7.0, 6.9], 1),
        (10.0, [20.0, 15.0, 10.0, 9.9], 3),  # more, while no other would gain more
        (0.0, [0.0], 0),
        (0.0, [1.0] * 20, 16),
    ],
)
def test_the_choice_compares_gains(others: float | None, gains: list[float], grown: int) -> None:
    known = Gains(others)
    rule = GrowthRule(2, known)
    taken = list(
        itertools.takewhile(lambda place: rule.accepts(place, gains[place]), range(rule.most))
    )
    assert len(taken) == grown
    assert known.own == gains[min(grown, rule.most - 1)]


def test_a_token_tells_the_largest_gain_of_other_clients() -> None:
    token = Token(0, 0, 0, np.zeros(2), 0.0, slots={"gains": np.full(3, -1.0)})
    assert known_gains(token, 1).others is None
    sent = token.slots["gains"]
    record(token, 1, Gains(None, 2.0))
    record(token, 2, Gains(None))  # a family that does not compare gains
    assert sent.tolist() == [-1, -1, -1]
    assert token.slots["gains"].tolist() == [-1, 2, -1]
    assert known_gains(token, 1).others is None
    assert known_gains(token, 0).others == 2.0


def test_a_token_waits_for_the_gains_of_all_clients_but_not_for_ever() -> None:
    token = Token(0, 0, 0, np.zeros(2), 0.0, slots={"gains": np.full(3, AWAITED)})
    assert known_gains(token, 0) == Gains(None, awaited=True)
    record(token, 1, Gains(None, 2.0))
    assert known_gains(token, 0) == Gains(2.0, awaited=True)
    assert known_gains(token, 0).awaited
    token.hop = 6  # two for each client
    assert known_gains(token, 0) == Gains(2.0)
    token.hop = 5
    record(token, 2, Gains(None))  # a family that does not compare gains
    assert known_gains(token, 0) == Gains(2.0)
    measured = Gains(2.0, awaited=True)
    assert not GrowthRule(1, measured).accepts(0, 9.0)
    assert measured.own == 9.0


def test_gains_are_compared_where_two_parties_choose_by_them() -> None:
    choosing, fixed = TreeFamily(adaptive=True), TreeFamily(adaptive=False)
    assert not compares_gains([])
    assert not compares_gains([choosing, fixed, fixed]), "it has nobody to compare with"
    assert compares_gains([choosing, fixed, choosing])
