"""Sealed tours with differential privacy: sensitivity by brute force, a plain twin, budgets, resume
and refusals."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mtcd
from commands import run
from mtcd.core.arrays import Array
from mtcd.core.errors import MtcdError
from mtcd.engines.local import LocalEngine
from mtcd.models.glm.model import LinearProblem
from mtcd.privacy.sealed.dp.budget import plan_budget
from mtcd.privacy.sealed.dp.noise import gaussian_noise
from mtcd.privacy.sealed.dp.plan import (
    PrivateBlock,
    PrivatePlan,
    PrivateSteering,
    clip_rows,
    clipping_length,
)
from mtcd.privacy.sealed.dp.settings import PrivateTours
from mtcd.privacy.sealed.payloads import SealedToken
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.protocol.party import Message

MODEL = mtcd.Glm("logistic", l2=1.0)
DP = mtcd.DP(epsilon=8.0, tours=6, insecure_seeded_noise=True)
CLEAR = PrivateTours(scheme="clear", dp=DP)
SEALED = mtcd.Privacy(mode="sealed", dp=DP)


def table(samples: int = 200, clients: int = 3, seed: int = 2) -> mtcd.VerticalData:
    return mtcd.synthetic(
        "logistic", samples=samples, features=5 * clients, clients=clients, seed=seed
    )


def tours(
    problem: LinearProblem, method: PrivateTours, see: Callable[[Message], None] | None = None
) -> PrivatePlan:
    """Run all tours; returns the plan."""
    network = mtcd.make_network(
        "cycle" if len(problem.blocks) > 2 else "path",
        [f"p{k}" for k in range(len(problem.blocks))],
    )
    parties = method.parties(problem, network, 0)
    engine = LocalEngine(parties, Ledger())
    if see is not None:
        engine.listeners = {"test": type("Seen", (), {"see": staticmethod(see)})()}
    for _ in engine.run():
        pass
    plan = parties.server.plan
    assert isinstance(plan, PrivatePlan)
    return plan


class Transcript:
    """Runs tours in which the parties receive given gradients, and keeps the gradients before the
    noise."""

    def __init__(
        self, patch: pytest.MonkeyPatch, noise: Callable[[int, int, Array], Array]
    ) -> None:
        self.exact: dict[tuple[int, int], Array] = {}
        self.received: dict[tuple[int, int], Array] = {}
        self.blocks: list[PrivateBlock] = []
        update = PrivateBlock.update

        def replayed(block: PrivateBlock, products: Array, token: float, draws: Array) -> Any:
            k = next(
                k
                for k, X in enumerate(self.problem.blocks)
                if X.shape == block.X.shape and (X == block.X).all()
            )
            place = (k, block.tour)
            self.exact[place] = products
            self.received.setdefault(place, products + noise(k, block.tour, products))
            return update(block, self.received[place], token, draws)

        patch.setattr(PrivateSteering, "released", lambda self, values, *_: values)
        patch.setattr(PrivateBlock, "update", replayed)

    def run(
        self, problem: LinearProblem, method: PrivateTours
    ) -> tuple[dict[tuple[int, int], Array], float]:
        """The exact gradients, and one clipping length, in integers."""
        self.exact, self.problem = {}, problem
        plan = tours(problem, method)
        return self.exact, plan.scales(plan.parameters()).sensitivity


def rows_like(rng: np.random.Generator, columns: int) -> Array:
    """Any row, also a long one."""
    return np.asarray(rng.standard_normal(columns) * 10.0 ** rng.uniform(-2, 3))


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 2**31), st.integers(2, 4), st.booleans(), st.floats(-2, 3))
def test_a_changed_row_moves_the_gradients_by_no_more_than_the_accounting_says(
    seed: int, clients: int, intercept: bool, size: float
) -> None:
    """Given the same noisy gradients so far, which is what adaptive composition takes: party by
    party, tour by tour."""
    rng = np.random.default_rng(seed)
    data = table(30, clients, seed % 97)
    data = replace(data, blocks=tuple(X * 10.0 ** rng.uniform(-1, 2) for X in data.blocks))
    changed, row = int(rng.integers(clients)), int(rng.integers(30))
    other = [np.array(X) for X in data.blocks]
    other[changed][row] = (
        -other[changed][row] if rng.random() < 0.5 else rows_like(rng, other[changed].shape[1])
    )
    model, method = (
        replace(MODEL, intercept=intercept),
        replace(CLEAR, dp=mtcd.DP(epsilon=1.0, tours=3)),
    )

    def noise(k: int, t: int, products: Array) -> Array:
        draws = np.random.default_rng([seed, k, t]).standard_normal(len(products))
        return np.rint(draws * 10.0**size * 30 * np.abs(products).max())

    with pytest.MonkeyPatch.context() as patch:
        transcript = Transcript(patch, noise)
        first, length = transcript.run(model.problem(data), method)
        second, _ = transcript.run(model.problem(replace(data, blocks=tuple(other))), method)
    assert len(first) == 3 * clients
    moved = {
        place: np.linalg.norm(exact - second[place]) / length for place, exact in first.items()
    }
    for t in (1, 2, 3):
        assert moved[changed, t] <= 2.0
        others = [moved[k, t] for k in range(clients) if k != changed]
        assert max(others) <= 1.0
        # with the same noise for all, and with any other, as the others' part is linear in their
        # precisions
        for weight in (1.0, 0.1, 10.0):
            of_all = clients - 1 + weight
            assert sum(np.square(others)) + weight * moved[changed, t] ** 2 <= max(
                of_all, 4 * weight
            ) * (1 + 1e-9)
    flipped = np.where(
        np.arange(30) == row, data.labels[::-1].max() + data.labels.min() - data.labels, data.labels
    )
    with pytest.MonkeyPatch.context() as patch:
        transcript = Transcript(patch, noise)
        first, _ = transcript.run(model.problem(data), method)
        second, _ = transcript.run(model.problem(replace(data, labels=flipped)), method)
    assert all(np.linalg.norm(first[place] - second[place]) <= length for place in first)


def test_the_bounds_are_reached() -> None:
    """Scores far from 0 give derivatives of 0 and 1: a row with the opposite sign moves others by
    one length."""
    plan = tours(MODEL.problem(table(30, 2)), CLEAR)
    scales = plan.scales(plan.parameters())
    row = np.full((1, 4), 0.5)  # of length 1
    integers = scales.rows(row, 1.0)[0]
    assert np.linalg.norm(integers) == pytest.approx(scales.radius)
    for derivative, opposite, own, others in ((1.0, 1.0, 2.0, 0.0), (1.0, 0.0, 1.0, 1.0)):
        before, after = derivative * scales.unit, opposite * scales.unit
        assert np.linalg.norm(integers * before + integers * after) == pytest.approx(
            own * scales.sensitivity
        )
        assert np.linalg.norm(integers * before - integers * after) == pytest.approx(
            others * scales.sensitivity
        )


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 12), st.floats(0.01, 10))
def test_integer_rows_are_never_longer_than_the_clipping_length(
    seed: int, columns: int, clip: float
) -> None:
    rng = np.random.default_rng(seed)
    X = np.array([rows_like(rng, columns) for _ in range(20)])
    scales = _scales()
    for free in (0, 1):
        block = np.hstack([X, np.ones((20, free))])
        length = clipping_length(columns + free, free, clip)
        clipped = clip_rows(block, free, clip)
        assert (clipped[:, columns:] == 1).all()
        integers = scales.rows(clipped, length)[:20]
        assert (np.linalg.norm(integers, axis=1) <= scales.radius * (1 + 1e-12)).all()
        short = np.linalg.norm(X, axis=1) <= clip * np.sqrt(columns) * (1 - 1e-12)
        assert np.allclose(clipped[short, :columns], X[short], rtol=1e-12)


def _scales() -> Any:
    problem = MODEL.problem(table(30, 2))
    plan = CLEAR.plan(problem, mtcd.make_network("path", ["a", "b"]), 0, None)
    return plan.scales(plan.parameters())


def twin(problem: LinearProblem, plan: PrivatePlan) -> list[Array]:
    """Descent in floating-point numbers, with the same noise: rows are clipped in gradients; mean
    of the later half."""
    dp, scales = plan.dp, plan.scales(plan.parameters())
    assert plan.insecure_secret is not None
    X = [
        clip_rows(np.asarray(block), p.free, dp.clip)
        for block, p in zip(problem.blocks, problem.penalties, strict=True)
    ]
    theta = [np.zeros(x.shape[1]) for x in X]
    mean = [np.zeros(x.shape[1]) for x in X]
    for t in range(1, dp.tours + 1):
        scores = sum(np.asarray(block) @ w for block, w in zip(problem.blocks, theta, strict=True))
        g = 1 / (1 + np.exp(-scores)) - problem.labels
        for k, x in enumerate(X):
            free, length = (
                problem.penalties[k].free,
                clipping_length(x.shape[1], problem.penalties[k].free, dp.clip),
            )
            deviation = plan.budget.multipliers[k] * scales.sensitivity
            drawn = gaussian_noise(deviation, x.shape[1], plan.insecure_secret, k, t)
            penalty = problem.penalties[k].l2 * np.where(
                np.arange(x.shape[1]) < x.shape[1] - free, theta[k], 0
            )
            gradient = x.T @ g + penalty + drawn * length / scales.sensitivity
            theta[k] = theta[k] - dp.stepsize / (len(g) + problem.penalties[k].l2) * gradient
            mean[k] = mean[k] + theta[k] * (t > dp.tours // 2) / (dp.tours - dp.tours // 2)
    return mean


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("tours_", [1, 6, 7])
def test_the_model_is_that_of_the_plain_twin(intercept: bool, tours_: int) -> None:
    model, data = replace(MODEL, intercept=intercept), table()
    method = replace(CLEAR, dp=replace(DP, tours=tours_, parties={"client_1": 2.0}))
    run = mtcd.train(data, model, "cycle", method)
    problem = model.problem(data)
    plan = method.plan(problem, mtcd.make_network("cycle", data.clients), 0, None)
    assert isinstance(plan, PrivatePlan)
    for theta, name in zip(twin(problem, plan), data.clients, strict=True):
        found = run.parameters[name]  # without the intercept
        assert np.abs(found - theta[: len(found)]).max() < 2e-3 * max(1, np.abs(theta).max())


def test_encryption_changes_nothing() -> None:
    pytest.importorskip("tenseal")
    data, dp = table(100, 2), replace(DP, tours=2)
    runs = [
        mtcd.train(data, MODEL, "path", method, privacy=privacy)
        for method, privacy in (
            (replace(CLEAR, dp=dp), None),
            (mtcd.MTCD(walk="tour"), replace(SEALED, dp=dp)),
        )
    ]
    assert (runs[0].coefficients == runs[1].coefficients).all()


def test_gradients_have_the_noise_of_their_party(monkeypatch: pytest.MonkeyPatch) -> None:
    found: dict[int, list[Array]] = {}
    released = PrivateSteering.released

    def kept(self: PrivateSteering, values: Any, client: int, t: int) -> Any:
        answer = released(self, values, client, t)
        modulus = self.plan.parameters().plain_modulus
        found.setdefault(client, []).append(
            (answer - values + modulus // 2) % modulus - modulus // 2
        )
        return answer

    monkeypatch.setattr(PrivateSteering, "released", kept)
    dp = mtcd.DP(epsilon=3.0, tours=60, parties={"p1": 1.0})
    plan = tours(MODEL.problem(table(60, 3)), replace(CLEAR, dp=dp))
    for k, multiplier in enumerate(plan.budget.multipliers):
        noise = np.concatenate(found[k]) / plan.scales(plan.parameters()).sensitivity
        assert len(noise) == 60 * 5
        assert noise.std() == pytest.approx(multiplier, rel=5 / np.sqrt(2 * len(noise)))


def test_what_parties_receive_besides_does_not_depend_on_the_data() -> None:
    seen: list[list[Any]] = []
    for seed in (1, 2):
        found: list[Any] = []
        tours(
            MODEL.problem(table(seed=seed)),
            CLEAR,
            lambda message, found=found: found.append(message.payload),
        )
        tokens = [one for one in found if isinstance(one, SealedToken)]
        seen.append(
            [
                (one.t, one.place, one.weights.size, one.stretch, one.scale, one.data.size)
                for one in tokens
            ]
        )
    assert seen[0] == seen[1]
    assert {one[2] for one in seen[0]} == {0}


def test_a_training_ends_when_the_budget_is_spent_and_says_what_was_spent() -> None:
    data, method = table(), replace(CLEAR, dp=replace(DP, parties={"client_2": 3.0}))
    whole = mtcd.train(data, MODEL, "cycle", method, mtcd.Stop(iterations=100))
    assert whole.final.iteration == 6
    [note] = [
        note
        for note in whole.notes
        if note.startswith("The budget is spent, and the training has ended")
    ]
    assert "3 (client_2) at delta 1e-05 after 6 of 6 tours." in note
    part = mtcd.train(data, MODEL, "cycle", method, mtcd.Stop(iterations=2))
    spent = method.budget(mtcd.make_network("cycle", data.clients)).spent(2)
    [note] = [note for note in part.notes if note.startswith("Spent so far")]
    assert f"{spent[2]:.3g} (client_2)" in note
    assert part.status != "diverged"
    assert any("protects nobody" in note for note in whole.notes)


def test_a_resumed_training_receives_the_same_gradients(tmp_path: Path) -> None:
    """So nothing is spent twice; and other settings are refused."""
    data = table()

    def train(iterations: int, folder: str, resume: bool = False, **changed: Any) -> mtcd.Run:
        method = replace(CLEAR, dp=replace(DP, **changed))
        stop = mtcd.Stop(iterations=iterations)
        return mtcd.train(
            data, MODEL, "path", method, stop, checkpoint=tmp_path / folder, resume=resume
        )

    train(4, "a")
    resumed, straight = train(50, "a", resume=True), train(50, "b")
    assert (resumed.coefficients == straight.coefficients).all()
    again = train(100, "a", resume=True)
    assert again.final.iteration == 6
    assert (again.coefficients == straight.coefficients).all()
    for changed in (
        {"epsilon": 9.0},
        {"delta": 1e-4},
        {"tours": 50},
        {"parties": {"client_0": 1.0}},
    ):
        with pytest.raises(MtcdError, match="is of another training"):
            train(9, "a", resume=True, **changed)


def test_two_trainings_do_not_share_their_noise() -> None:
    """By default, and with the seed: with other budgets, or on a table with one other row,
    differences have noise."""
    data = table()
    row = np.array(data.blocks[0])
    row[3] = -row[3]
    neighbour = replace(data, blocks=(row, *data.blocks[1:]))
    for seeded in (False, True):
        dp = replace(DP, insecure_seeded_noise=seeded, tours=1)
        released: list[Array] = []

        def kept(self: PrivateSteering, values: Any, client: int, t: int) -> Any:
            deviation = (
                self.plan.budget.multipliers[client]
                * self.plan.scales(self.plan.parameters()).sensitivity
            )
            noise = gaussian_noise(deviation, len(values), self.secret, client, t)
            released.append(noise / deviation)  # noqa: B023
            return values

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(PrivateSteering, "released", kept)
            for one, changed in ((data, dp), (neighbour, dp), (data, replace(dp, epsilon=7.0))):
                mtcd.train(one, MODEL, "cycle", replace(CLEAR, dp=changed))
        of_all = [np.concatenate(released[k : k + 3]) for k in (0, 3, 6)]
        for a, b in ((0, 1), (0, 2), (1, 2)):
            assert np.abs(of_all[a] - of_all[b]).max() > 0.5


def test_secret_noise_is_kept_in_checkpoints_and_drawn_once(tmp_path: Path) -> None:
    """A tour that is repeated, from any copy of the folder, releases the same numbers."""
    data, method = table(), replace(CLEAR, dp=replace(DP, insecure_seeded_noise=False))

    def train(iterations: int, folder: str, resume: bool) -> Array:
        stop = mtcd.Stop(iterations=iterations)
        return mtcd.train(
            data, MODEL, "path", method, stop, checkpoint=tmp_path / folder, resume=resume
        ).coefficients

    train(2, "first", resume=False)
    for copy in ("second", "third"):
        shutil.copytree(tmp_path / "first", tmp_path / copy)
    ends = [train(50, folder, resume=True) for folder in ("first", "second", "third")]
    assert (ends[0] == ends[1]).all()
    assert (ends[0] == ends[2]).all()
    other = train(50, "another", resume=False)
    assert (other != ends[0]).any()


def test_inspect_and_plan_say_what_it_will_cost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "private.yaml"
    file.write_text(
        "data: {synthetic: logistic, samples: 200, features: 12, clients: 3}\nmodel: {kind: "
        "logistic, l2: 1}\n"
        "method: {kind: mtcd, walk: tour}\nstop: {iterations: 10}\n"
        "privacy: {mode: sealed, dp: {epsilon: 3, tours: 20, parties: {client_1: 1}}}\n"
    )
    run("inspect", str(file), "--json")
    found = json.loads(capsys.readouterr().out)["privacy"]
    budget = plan_budget(
        mtcd.DP(epsilon=3, tours=20, parties={"client_1": 1}), ["client_0", "client_1", "client_2"]
    )
    assert found["releases"] == 60
    assert list(found["noise_multiplier"].values()) == pytest.approx(budget.multipliers)
    assert list(found["expected_spending"].values()) == pytest.approx(budget.spent(10))
    run("inspect", str(file))
    shown = capsys.readouterr()
    assert "A file beside each table counts what they have spent" in shown.err
    assert (
        "on top of what earlier trainings on the same rows have spent, which nothing counts "
        "without a table" in " ".join(shown.out.split())
    )
    run("plan", str(file), "--json")
    planned = json.loads(capsys.readouterr().out)
    assert planned["cost"] == pytest.approx(10 * planned["cost_per_tour"])
    by_tours = planned["noise_by_tours"]
    # the square root of the tours
    assert by_tours["80"]["client_0"] == pytest.approx(2 * by_tours["20"]["client_0"])
    assert run("plan", str(file), "--target", "0.1") != 0
    assert "--target is not for privacy.dp" in capsys.readouterr().err
    assert run("train", str(file), "--set", "privacy.mode=open") != 0
    assert "no better than if each party trained alone" in capsys.readouterr().err
