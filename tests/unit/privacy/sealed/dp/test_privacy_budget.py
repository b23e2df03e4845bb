"""The accounting of differential privacy against closed forms, and its noise against statistics."""

from __future__ import annotations

import json
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr
from scipy.stats import kstest

from mtcd.core.errors import ConfigError
from mtcd.privacy.sealed.dp.budget import (
    Budget,
    epsilon_of,
    log_delta,
    mu_of,
    plan_budget,
    shared_precisions,
)
from mtcd.privacy.sealed.dp.noise import draw_secret, gaussian_noise, insecure_secret
from mtcd.privacy.settings import DP
from project import SUPPORT

LIBRARY = json.loads((SUPPORT / "accounting.json").read_text())
"""What dp-accounting says: ``accounting_reference.py`` has recorded it."""


def closed_form(sensitivity: float, delta: float) -> float:
    """The epsilon of one Gaussian mechanism of deviation 1: the exact condition of Balle and Wang
    (2018)."""

    def excess(epsilon: float) -> float:
        half, rest = sensitivity / 2, epsilon / sensitivity
        return float(ndtr(half - rest) - np.exp(epsilon + log_ndtr(-half - rest)) - delta)

    return float(brentq(excess, 0.0, 1000.0)) if excess(0.0) > 0 else 0.0


@settings(max_examples=60, deadline=None)
@given(st.floats(-12, 3), st.floats(-12, 1.7))
def test_delta_is_exact_also_where_nothing_of_it_is_left(log_epsilon: float, log_mu: float) -> None:
    """Against the formula with 200 digits: tiny deltas, tiny and large epsilons."""
    epsilon, mu = 10**log_epsilon, 10**log_mu
    if epsilon / mu > 60:  # delta is then below 10^-780, whose logarithm is of no use to anybody
        return
    with mpmath.workdps(200):
        e, m = mpmath.mpf(epsilon), mpmath.mpf(mu)
        exact = mpmath.log(mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m))
        assert log_delta(epsilon, mu) == pytest.approx(float(exact), rel=1e-9, abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(st.floats(-6, 2), st.floats(-300, -0.01))
def test_the_largest_mu_and_the_least_epsilon_are_inverse(
    log_epsilon: float, log_of_delta: float
) -> None:
    epsilon, delta = 10**log_epsilon, 10**log_of_delta
    mu = mu_of(epsilon, delta)
    assert log_delta(epsilon, mu) == pytest.approx(math.log(delta), rel=1e-9, abs=1e-9)
    assert log_delta(epsilon_of(mu, delta), mu) == pytest.approx(
        math.log(delta), rel=1e-9, abs=1e-9
    )


def test_what_hides_a_row_without_any_epsilon() -> None:
    """At epsilon 0, delta is the total variation 2 Phi(mu/2) - 1."""
    for mu in (1e-12, 1e-3, 0.5, 3.0):
        total_variation = math.erf(mu / math.sqrt(8))
        assert log_delta(0.0, mu) == pytest.approx(math.log(total_variation), rel=1e-12)
        assert epsilon_of(mu, min(total_variation * 1.001, 0.9999)) == 0.0
        assert epsilon_of(mu, total_variation * 0.999) > 0.0
    assert epsilon_of(0.0, 1e-300) == 0.0


def test_noise_and_delta_are_those_of_dp_accounting() -> None:
    assert LIBRARY["library"] == "dp-accounting 0.6.0"
    for epsilon, delta, tours, noise in LIBRARY["noise"]:
        assert math.sqrt(tours) / mu_of(epsilon, delta) == pytest.approx(noise, rel=1e-5)
    for epsilon, mu, delta in LIBRARY["delta"]:
        assert math.exp(log_delta(epsilon, mu)) == pytest.approx(delta, rel=1e-9, abs=1e-300)


def test_trainings_compose_as_dp_accounting_says() -> None:
    """Its distribution of the privacy loss is rounded up, by little."""
    for mus, delta, epsilon in LIBRARY["composed"]:
        ours = epsilon_of(math.sqrt(sum(mu**2 for mu in mus)), delta)
        assert ours <= epsilon
        assert ours == pytest.approx(epsilon, rel=1e-3)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 8.0])
@pytest.mark.parametrize("tours", [1, 40])
def test_the_noise_is_that_of_one_gaussian_release_of_all_gradients(
    epsilon: float, tours: int
) -> None:
    """T releases to K parties are one of squared sensitivity T max(K, 4) / m^2."""
    for names in ("ab", "abcde"):
        budget, K = plan_budget(DP(epsilon=epsilon, tours=tours), names), len(names)
        [multiplier] = set(budget.multipliers)
        for done in {tours, (tours + 1) // 2}:
            spent = closed_form(np.sqrt(done * max(K, 4)) / multiplier, 1e-5)
            assert budget.spent(done) == pytest.approx([spent] * K, rel=1e-6)
        assert budget.spent(tours) == pytest.approx([epsilon] * K, rel=1e-4)
        assert max(budget.spent(tours)) <= epsilon
        assert set(budget.spent(0)) == {0.0}


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(0.1, 10), min_size=1, max_size=5), st.integers(0, 2**31))
def test_no_derivatives_move_the_gradients_of_a_tour_by_more(
    multipliers: list[float], seed: int
) -> None:
    """Derivatives of one sign between 0 and 1, and rows of length 1, drawn at random and at their
    extremes."""
    rng, m = np.random.default_rng(seed), np.array(multipliers)
    budget = Budget(tuple("abcde"[: len(m)]), (1.0,) * len(m), 1e-5, 1, tuple(multipliers))
    a, b = np.vstack([rng.random((200, 2)), [[0, 1], [1, 0], [1, 1]]]).T
    x, moved = rng.standard_normal((2, len(a), 3))
    x, moved = (rows / np.linalg.norm(rows, axis=1)[:, None] for rows in (x, moved))
    moved[100:] = -x[100:]
    for j, bound in enumerate(budget.sensitivities()):
        others = (m**-2.0).sum() - m[j] ** -2.0
        own = ((a[:, None] * x - b[:, None] * moved) ** 2).sum(axis=1) / m[j] ** 2
        assert ((a - b) ** 2 * others + own).max() == pytest.approx(bound)


@settings(max_examples=6, deadline=None)
@given(
    st.lists(st.floats(0.05, 20), min_size=2, max_size=6),
    st.integers(1, 60),
    st.sampled_from([1e-7, 1e-5, 1e-2]),
)
def test_no_party_spends_more_than_its_own_budget(
    epsilons: list[float], tours: int, delta: float
) -> None:
    names = [f"p{k}" for k in range(len(epsilons))]
    own = dict(zip(names[1:], epsilons[1:], strict=True))
    budget = plan_budget(DP(epsilon=epsilons[0], delta=delta, parties=own, tours=tours), names)
    assert (np.array(budget.spent(tours)) <= np.array(epsilons) * (1 + 1e-9)).all()
    assert np.isclose(budget.spent(tours), epsilons, rtol=1e-4).any()  # some budget is used up
    u = np.array(budget.multipliers) ** -2.0
    # all gradients by one length, or the own by two
    for j, spent in enumerate(budget.spent(tours)):
        sensitivity = np.sqrt(tours * max(u.sum(), 4 * u[j]))
        assert spent == pytest.approx(closed_form(sensitivity, delta), rel=1e-6)


@settings(max_examples=8, deadline=None)
@given(st.lists(st.floats(0.01, 10), min_size=1, max_size=5), st.integers(0, 2**31))
def test_shared_precisions_have_the_largest_product(allowed: list[float], seed: int) -> None:
    """Concave objective, linear constraints: no feasible point nearby, or anywhere else, is
    better."""
    b, rng = np.array(allowed), np.random.default_rng(seed)
    u = shared_precisions(b)
    assert (u > 0).all()
    assert (np.maximum(u.sum(), 4 * u) <= b * (1 + 1e-9)).all()
    for spread in (1e-3, 0.1, 1.0):
        for tried in u * np.exp(spread * rng.standard_normal((200, len(u)))):
            feasible = tried * (b / np.maximum(tried.sum(), 4 * tried)).min()
            assert np.log(feasible).sum() <= np.log(u).sum() + 1e-7


def test_a_small_budget_of_one_party_makes_all_gradients_noisier_and_its_own_most() -> None:
    alike = plan_budget(DP(epsilon=3), ["a", "b", "bank"])
    budget = plan_budget(DP(epsilon=3, parties={"bank": 1.0}), ["a", "b", "bank"])
    a, b, bank = budget.multipliers
    assert alike.multipliers[0] < a == pytest.approx(b)
    # a quarter of its budget; the others share the rest of it
    assert bank == pytest.approx(a * np.sqrt(1.5))
    assert budget.spent(40)[2] == pytest.approx(1.0)
    assert 1.0 < budget.spent(40)[0] < 3.0


@pytest.mark.parametrize("deviation", [3.0, 1e9])
def test_noise_is_gaussian(deviation: float) -> None:
    for secret in (draw_secret(), insecure_secret(0, "", [])):
        noise = gaussian_noise(deviation, 40_000, secret, 1, 2)
        assert noise.dtype == np.int64
        wanted = np.sqrt(deviation**2 + 1 / 12)  # with the rounding
        assert abs(noise.std() / wanted - 1) < 5 / np.sqrt(2 * 40_000)
        assert abs(noise.mean()) < 5 * wanted / np.sqrt(40_000)
        spread = noise + np.random.default_rng(0).uniform(-0.5, 0.5, noise.size)
        assert kstest(spread / wanted, "norm").pvalue > 1e-4 or deviation < 10


def test_noise_is_a_function_of_the_secret_the_client_and_the_tour() -> None:
    secrets = (draw_secret(), draw_secret(), insecure_secret(0, "", []), insecure_secret(1, "", []))
    places = [
        (secret, client, tour) for secret in secrets for client in (0, 1, 11) for tour in (1, 11)
    ]
    drawn = {tuple(gaussian_noise(1e6, 8, *place)) for place in places}
    assert len(drawn) == len(places)
    assert drawn == {tuple(gaussian_noise(1e6, 8, *place)) for place in places}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"epsilon": 0}, "epsilon must be above 0"),
        ({"epsilon": 1e9}, "promises nothing"),
        ({"epsilon": 100.5}, "promises nothing"),
        ({"epsilon": 1, "parties": {"a": 101.0}}, "promises nothing"),
        ({"epsilon": 1, "clip": 1e300}, "from 0.001 to 1000"),
        ({"epsilon": 1, "clip": 1001.0}, "from 0.001 to 1000"),
        ({"epsilon": 1, "clip": 1e-4}, "from 0.001 to 1000"),
        ({"epsilon": 1, "clip": 1e-300}, "from 0.001 to 1000"),
        ({"epsilon": 1, "insecure_seeded_noise": 1}, "must be true or false"),
        ({"epsilon": -1.0}, "epsilon must be above 0"),
        ({"epsilon": float("nan")}, "epsilon must be a finite number"),
        ({"epsilon": float("inf")}, "epsilon must be a finite number"),
        ({"epsilon": "3"}, "epsilon must be a number"),
        ({"epsilon": True}, "epsilon must be a number"),
        ({"epsilon": 1, "delta": 0}, "delta must be above 0"),
        ({"epsilon": 1, "delta": 1.0}, "delta must be below 1"),
        ({"epsilon": 1, "delta": float("nan")}, "delta must be a finite number"),
        ({"epsilon": 1, "tours": 0}, "tours must be 1 or more"),
        ({"epsilon": 1, "tours": 2.5}, "tours must be a whole number"),
        ({"epsilon": 1, "clip": 0}, "clip must be above 0"),
        ({"epsilon": 1, "stepsize": -1}, "stepsize must be above 0"),
        ({"epsilon": 1, "parties": {"a": 0}}, "the epsilon of 'a' must be above 0"),
        ({"epsilon": 1, "parties": ["a"]}, "must map names of parties"),
    ],
)
def test_settings_that_mean_nothing_are_refused(given: dict[str, object], words: str) -> None:
    assert DP(epsilon=100.0, clip=0.001).clip == 0.001
    assert DP(epsilon=1.0, clip=1000.0).clip == 1000.0
    with pytest.raises(ConfigError, match=words):
        DP(**given)  # type: ignore[arg-type]


def test_unknown_parties_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"no party is called 'bnak'.*bank"):
        plan_budget(DP(epsilon=1, parties={"bnak": 1}), ["bank", "shop"])
