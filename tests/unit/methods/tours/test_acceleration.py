"""Accelerated tours: the plain twin, the invariant, the guard, and that it pays."""

import itertools

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import mtcd
from compared_tours import at_sync, check_against_reference, check_invariant
from mtcd.core.errors import ConfigError
from mtcd.engines.local import LocalEngine
from mtcd.methods.mtcd.mtcd import MTCD, STCD
from mtcd.methods.tours.acceleration import ACCELERATIONS, Acceleration, Memory
from mtcd.methods.tours.anderson import Anderson, best_weights
from mtcd.methods.tours.instruction import Instruction
from mtcd.methods.tours.momentum import next_momentum
from mtcd.models.glm.fit import LabelFit
from mtcd.models.losses.squared import Squared
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.protocol.snapshots import restored, take
from problems import MODELS, Case, cases, make_data
from same_objects import differences

KINDS = sorted(
    name for name, made in ACCELERATIONS.usable().items() if issubclass(made, Acceleration)
)
NOTHING = np.zeros(0)


def accelerated(Q: int = 3, eta: float = 5e-3, depth: int = 2, kind: str = "anderson") -> MTCD:
    return STCD(Q, eta, walk="tour", acceleration=kind, depth=depth)


def suits(case: Case, kind: str) -> None:
    assume(not (ACCELERATIONS[kind].smooth_only and case.model.l1))


@given(cases(connected=True), st.integers(1, 3), st.integers(1, 3), st.sampled_from(KINDS))
@settings(max_examples=100)
def test_it_follows_the_plain_version(case: Case, Q: int, depth: int, kind: str) -> None:
    suits(case, kind)
    check_against_reference(case, accelerated(Q, depth=depth, kind=kind))


@pytest.mark.long
@given(cases(), st.integers(1, 3), st.integers(1, 3), st.sampled_from(KINDS), st.data())
@settings(max_examples=100)
def test_so_does_the_acceleration_at_the_sync(
    case: Case, Q: int, depth: int, kind: str, data: st.DataObject
) -> None:
    suits(case, kind)
    check_against_reference(case, at_sync(case, Q, depth, kind, data))


@pytest.mark.long
@given(cases(connected=True), st.integers(1, 3), st.integers(1, 3), st.sampled_from(KINDS))
@settings(max_examples=100)
def test_the_token_is_at_every_hop_what_the_clients_hold_or_are_about_to_hold(
    case: Case, Q: int, depth: int, kind: str
) -> None:
    suits(case, kind)
    check_invariant(case, accelerated(Q, depth=depth, kind=kind))


@given(cases(), st.integers(1, 3), st.integers(1, 3), st.sampled_from(KINDS), st.data())
@settings(max_examples=100)
def test_so_it_is_with_a_server(
    case: Case, Q: int, depth: int, kind: str, data: st.DataObject
) -> None:
    suits(case, kind)
    check_invariant(case, at_sync(case, Q, depth, kind, data))


@pytest.mark.parametrize(
    "model",
    [model for model in MODELS if model.l1 or model.l2_weight or model.kind != "multinomial"],
    ids=str,
)
@pytest.mark.parametrize("kind", KINDS)
def test_it_never_ends_up_worse_than_the_tour_alone_and_reaches_the_optimum(
    model, kind: str
) -> None:
    if ACCELERATIONS[kind].smooth_only and model.l1:
        with pytest.raises(ConfigError, match="use momentum"):
            mtcd.train(
                make_data(model, 60, [3, 4], seed=7),
                model,
                "path",
                STCD(walk="tour", acceleration=kind),
            )
        return
    data = make_data(model, 60, [3, 4, 2, 5, 3], seed=7)
    stop = mtcd.Stop(gap=1e-7, iterations=200_000)
    plain = mtcd.train(data, model, "path", STCD(5, walk="tour"), stop)
    fast = mtcd.train(data, model, "path", STCD(5, walk="tour", acceleration=kind), stop)
    assert plain.status == fast.status == "converged"
    assert fast.final.iteration <= 1.5 * plain.final.iteration + 50
    assert fast.coefficients == pytest.approx(plain.coefficients, abs=1e-2)


def test_it_pays_on_the_path() -> None:
    """Ridge with more features than samples: the slow direction that a tour alone crawls along."""
    data = mtcd.synthetic("ridge", samples=100, features=200, clients=10)
    stop = mtcd.Stop(gap=1e-6, iterations=400_000)
    model = mtcd.Glm("ridge", alpha=1.0)
    hops = {
        name: mtcd.train(data, model, "path", method, stop).final.iteration
        for name, method in {
            "lazy": STCD(20, 1e-4),
            "tour": STCD(20, 1e-4, walk="tour"),
        }.items()
    }
    for kind in KINDS:
        hops[kind] = mtcd.train(
            data, model, "path", accelerated(20, 1e-4, 5, kind), stop
        ).final.iteration
    assert hops["lazy"] > 2 * hops["tour"] > 20 * max(hops["anderson"], hops["momentum"])
    assert hops["conjugate"] < 0.5 * min(hops["anderson"], hops["momentum"])


def test_an_extrapolation_that_does_not_help_is_undone_and_the_next_one_waits() -> None:
    z = np.array([8.0])
    home = Anderson(1, z, 0.0, MODELS[0].problem(make_data(MODELS[0], 2, [1], 0)).fit, 0, 0.0)
    memory, theta, said = Memory(), np.array([8.0]), []
    for value in (5.0, 4.0, 9.0, 3.0, 2.0, 1.0, 0.5):  # the third tour is worse than the second
        theta = theta / 2
        z /= 2
        said.append(home.end_tour(z, value, 0.0, NOTHING))
        theta = memory.apply(theta, said[-1])
        assert theta == pytest.approx(z)
    assert [bool(one.weights) for one in said] == [False, True, True, False, False, True, False]
    assert said[2].weights == (1.0, 0.0)
    assert home.patience == 1, "one that helps makes it bold again"


@given(st.integers(1, 5), st.integers(0, 10_000))
def test_weights_are_the_best_with_sum_one(count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    R = [rng.standard_normal(12) for _ in range(count)]
    c = np.array(best_weights(R))
    assert c.sum() == pytest.approx(1.0)
    best = np.linalg.norm(c @ np.stack(R))
    # the optimum of |R c| with sum c = 1 by Lagrange: G c = lambda 1
    exact = np.linalg.solve(np.stack(R) @ np.stack(R).T, np.ones(count))
    assert best == pytest.approx(np.linalg.norm((exact / exact.sum()) @ np.stack(R)), rel=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_what_clients_are_told_to_mix_has_weights_with_sum_one(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Instruction] = []
    end_tour = ACCELERATIONS[kind].end_tour

    def noted(self, *given) -> Instruction:
        told.append(end_tour(self, *given))
        return told[-1]

    monkeypatch.setattr(ACCELERATIONS[kind], "end_tour", noted)
    data = make_data(MODELS[0], 20, [3, 2, 4, 3], seed=1)
    mtcd.train(data, MODELS[0], "path", accelerated(kind=kind), mtcd.Stop(iterations=90))
    sums = [sum(instruction.weights) for instruction in told if instruction.weights]
    assert len(sums) > 2
    assert sums == pytest.approx([1.0] * len(sums))


@given(st.floats(1.0, 1e6))
def test_momentum_grows_as_in_fista(a: float) -> None:
    """The next a is the root above 0 of x^2 - x = a^2, and b is (a - 1) over it: below 1, and
    larger every time."""
    b, after = next_momentum(a)
    assert after * after - after == pytest.approx(a * a)
    assert after > 0
    assert b * after == pytest.approx(a - 1.0)
    assert b <= next_momentum(after)[0] < 1.0


@pytest.mark.parametrize("kind", ["anderson", "momentum"])
def test_from_its_state_it_goes_on_as_the_old_one_also_if_tours_raise_the_objective(
    kind: str,
) -> None:
    """Then it undoes what it has tried, and waits longer: both depend on what a training seldom
    shows."""
    rng = np.random.default_rng(4)
    z, fit = rng.standard_normal(6), LabelFit(Squared(), rng.standard_normal(6))

    def made() -> Acceleration:
        return ACCELERATIONS[kind](2, z, 0.0, fit, 0, 0.0)

    old, undone, patience = made(), 0, set()
    for tour in range(60):
        again = made()
        again.restore(restored(take(old.state())))
        assert differences(old, again, {"fit"}) == []
        end = z + rng.standard_normal(6)
        other, objective = end.copy(), float(rng.uniform(1, 2)) - 0.01 * tour
        order = old.end_tour(end, objective, 0.0, NOTHING)
        assert order == again.end_tour(other, objective, 0.0, NOTHING)
        np.testing.assert_array_equal(end, other)
        undone += order.weights == (1.0, 0.0)
        patience.add(getattr(old, "patience", 0))
        z = end
    assert undone > 3
    assert len(patience) == {"anderson": 4, "momentum": 1}[kind]


def test_a_tour_on_trial_is_no_progress_yet() -> None:
    """Extrapolation on badly scaled data goes far astray before it is undone: that must not count
    as divergence."""
    rng = np.random.default_rng(0)
    X = 100 * rng.normal(size=(100, 24))
    data = mtcd.split(X, X @ rng.normal(size=24) + 100 * rng.normal(size=100), clients=6)
    run = mtcd.train(
        data,
        mtcd.Glm("huber", l2=1.0),
        "path",
        accelerated(5, "auto", 5),
        mtcd.Stop(iterations=1500),
    )
    assert run.status == "iterations"
    assert all(after <= before for before, after in itertools.pairwise(run.history["objective"]))


@pytest.mark.parametrize("kind", KINDS)
def test_steps_beyond_all_bounds_end_as_diverged(kind: str) -> None:
    data = make_data(MODELS[0], 30, [3, 4, 2], seed=7)
    run = mtcd.train(
        data, MODELS[0], "path", accelerated(5, 1e150, 3, kind), mtcd.Stop(iterations=500)
    )
    assert run.status == "diverged"
    assert "smaller stepsize" in run.message


def test_the_coefficients_are_on_the_ledger() -> None:
    data = make_data(MODELS[0], 20, [2, 2, 2], seed=1)
    parties = accelerated(depth=1).parties(
        MODELS[0].problem(data), mtcd.make_network("path", data.clients), 0
    )
    ledger = Ledger()
    tour = 4
    next(told for told in LocalEngine(parties, ledger).run() if told.hop == 4 * tour)
    # nothing in the first two tours; the third, of which no progress is told, carries two
    # coefficients
    assert ledger.floats()["client_client"] == 4 * tour * 20 + 2 * tour


def test_instructions_are_followed_once() -> None:
    memory = Memory()
    assert memory.apply(np.ones(1), Instruction(1, keep=2)) == 1.0
    assert memory.apply(np.full(1, 3.0), Instruction(1, keep=2)) == 3.0
    assert memory.apply(np.full(1, 3.0), Instruction(2, (0.5, 0.5), keep=0)) == 2.0
    assert memory.snapshots == []
