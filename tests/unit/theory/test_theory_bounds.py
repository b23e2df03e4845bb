"""Bounds and break-even ratios against numbers done by hand and the methods' own costs."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtcd.core.errors import ConfigError
from mtcd.methods.mtcd.mtcd import MTCD
from mtcd.methods.svfl.svfl import SVFL
from mtcd.network.topology import make_network
from mtcd.protocol.ledger.costs import Costs
from mtcd.theory.bounds import Guarantee
from mtcd.theory.breakeven import Comparison


def test_the_right_hand_side_by_hand() -> None:
    promise = Guarantee(
        delta=3.0,
        stepsize=0.001,
        pi=0.25,
        hops=4,
        local_updates=5,
        smoothness=10.0,
        variance=2.0,
        batch=8,
    )
    # 2*3/(0.001*0.25*T) = 24000/T;  0.001*400*2*10/(0.25*8) = 4
    assert promise.floor == pytest.approx(4.0)
    assert promise.after(1000) == pytest.approx(28.0)
    assert promise.iterations(4.5) == 48_000
    assert promise.batch_size(0.5) == 64
    assert (
        promise.after(promise.iterations(5.3)) <= 5.3 < promise.after(promise.iterations(5.3) - 1)
    )
    with pytest.raises(ConfigError, match="batch above 11"):
        promise.iterations(3.0)
    for ask in (promise.iterations, promise.batch_size):
        with pytest.raises(ConfigError, match="must be above 0"):
            ask(0.0)


def test_the_least_number_of_iterations_and_the_least_batch_are_not_one_more_by_rounding() -> None:
    promise = Guarantee(
        delta=3.0, stepsize=0.001, pi=0.3, hops=4, local_updates=5, smoothness=10.0, variance=2.0
    )
    exact = Guarantee(delta=3.0, stepsize=0.001, pi=0.3, hops=4, local_updates=5, smoothness=10.0)
    for number in (*range(1, 300), 99_991):
        assert exact.iterations(exact.after(number)) == number
        assert promise.batch_size(promise.floor / number) == number
    assert exact.iterations(1e9) == promise.batch_size(1e9) == 1


def test_one_sample_at_a_time_is_the_default_batch() -> None:
    """The noise is that of one sample, and a batch of B divides it by B."""
    given = {
        "delta": 10.0,
        "stepsize": 0.01,
        "pi": 0.5,
        "hops": 5,
        "local_updates": 2,
        "smoothness": 4.0,
    }
    alone = Guarantee(**given, variance=3.0)
    assert alone.floor == Guarantee(**given, variance=3.0, batch=1).floor > 0
    assert alone.floor == pytest.approx(8 * Guarantee(**given, variance=3.0, batch=8).floor)


def test_a_batch_of_the_size_asked_for_is_enough_and_the_next_smaller_is_not() -> None:
    settings_ = {
        "delta": 1.0,
        "stepsize": 0.0031,
        "pi": 0.37,
        "hops": 3,
        "local_updates": 2,
        "smoothness": 7.0,
    }
    B = Guarantee(**settings_, variance=5.0).batch_size(0.1)
    assert Guarantee(**settings_, variance=5.0, batch=B).floor <= 0.1
    assert Guarantee(**settings_, variance=5.0, batch=B - 1).floor > 0.1
    assert Guarantee(**settings_).floor == 0.0
    assert Guarantee(**settings_).batch_size(0.1) == 1


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"stepsize": 0.1}, "1/\\(2 L S Q\\) = 0.0125"),
        ({"pi": 1.5}, "at most 1"),
        ({"pi": 0.0}, "pi must be above 0"),
    ],
)
def test_where_the_theorems_say_nothing_is_refused(change: dict[str, float], says: str) -> None:
    fine = {
        "delta": 1.0,
        "stepsize": 0.0125,
        "pi": 0.5,
        "hops": 5,
        "local_updates": 2,
        "smoothness": 4.0,
    }
    Guarantee(**fine)
    with pytest.raises(ConfigError, match=says):
        Guarantee(**(fine | change))


@settings(deadline=None)
@given(
    st.integers(2, 40), st.integers(1, 40), st.integers(1, 99), st.booleans(), st.floats(-0.5, 0.5)
)
def test_breakeven_is_where_the_methods_costs_cross(
    K: int, tokens: int, hops: int, full_batch: bool, off: float
) -> None:
    network, batch = make_network("path", [f"c{k}" for k in range(K)]), None if full_batch else 7
    method, rival = MTCD(tokens=tokens, hops=hops, batch=batch), SVFL(batch=batch)
    comparison = Comparison(K, tokens, hops, full_batch=full_batch)
    turning = comparison.cost_ratio
    assert (turning == math.inf) == (tokens >= K)
    ratio = 1e9 if turning == math.inf else turning * math.exp(off)
    ours = method.prices(network, tokens).iteration(Costs(ratio=ratio))
    theirs = rival.prices(network, tokens).iteration(Costs(ratio=ratio))
    assert comparison.cost(1.0, 1 / ratio) == pytest.approx(ours)
    assert comparison.client_server_cost(1.0) == theirs
    if abs(off) > 1e-6 or turning == math.inf:
        assert (ours < theirs) == (turning < ratio)


@pytest.mark.parametrize(("tokens", "hops", "batch"), [(2, 5, None), (3, 8, None), (2, 5, 4)])
def test_breakeven_per_float_is_where_the_methods_costs_cross(
    tokens: int, hops: int, batch: int | None
) -> None:
    """With visitors' weights and the full batch, tokens carry a second aggregate: up, and from
    client to client."""
    N, K = 20, 9
    network = make_network("cycle", [f"c{k}" for k in range(K)])
    method, rival = (
        MTCD(tokens=tokens, hops=hops, batch=batch, combine="visitors"),
        SVFL(batch=batch),
    )
    sizes, theirs = method.messages(network, 0, N, 1).sizes, rival.messages(network, 0, N, 1).sizes
    parts = {name: getattr(sizes, name) / theirs.uplink for name in ("uplink", "downlink", "hop")}
    turning = Comparison(K, tokens, hops, full_batch=batch is None, **parts).cost_ratio
    costs = Costs(ratio=turning, per="float")
    ours = method.prices(network, tokens).iteration(costs, sizes)
    assert ours == pytest.approx(rival.prices(network, tokens).iteration(costs, theirs))
    assert (turning > Comparison(K, tokens, hops, full_batch=batch is None).cost_ratio) == (
        batch is None
    )


def test_breakeven_ratios_of_the_paper() -> None:
    K, tokens = 80, 4
    paper = Comparison(K, tokens, hops=K // tokens)
    assert paper.cost_ratio == pytest.approx(20 * tokens / (K - tokens))
    assert paper.time_ratio == pytest.approx(K / (tokens * (K - tokens)))
    # by hand: 80 up, 4 down, 20 hops of 3 and 20 updates of 0.5; against 80 up, 80 down and 20
    # updates
    assert paper.time(tau_t=2.0, tau_s=3.0, tau_q=0.5) == 84 * 2 + 20 * 3 + 20 * 0.5
    assert paper.client_server_time(tau_t=2.0, tau_q=0.5) == 160 * 2 + 20 * 0.5
    for full_batch in (False, True):
        other = Comparison(K, tokens, hops=33, local_updates=3, full_batch=full_batch)
        tau_t = other.time_ratio * 0.7
        assert other.time(tau_t, 0.7, 0.1) == pytest.approx(other.client_server_time(tau_t, 0.1))
    assert Comparison(5, 5, hops=1).time_ratio == math.inf


@pytest.mark.parametrize(
    "name", ["delta", "variance", "stepsize", "pi", "smoothness", "hops", "local_updates", "batch"]
)
def test_what_cannot_be_less_than_nothing_is_refused(name: str) -> None:
    fine = {
        "delta": 1.0,
        "stepsize": 1e-3,
        "pi": 0.5,
        "hops": 5,
        "local_updates": 2,
        "smoothness": 4.0,
    }
    Guarantee(**fine)
    with pytest.raises(ConfigError, match=name):
        Guarantee(**(fine | {name: -1}))


@pytest.mark.parametrize("name", ["stepsize", "pi", "smoothness", "hops", "local_updates", "batch"])
def test_what_must_be_above_0_is_refused_at_0(name: str) -> None:
    fine = {
        "delta": 0.0,
        "stepsize": 1e-3,
        "pi": 1.0,
        "hops": 1,
        "local_updates": 1,
        "smoothness": 4.0,
        "batch": 1,
    }
    # nothing to gain and no noise: one iteration, and a batch of one
    promise = Guarantee(**fine, variance=0.0)
    assert (promise.iterations(1e-9), promise.batch_size(1e-9), promise.floor) == (1, 1, 0.0)
    with pytest.raises(ConfigError, match=name):
        Guarantee(**(fine | {name: 0}))


@pytest.mark.parametrize(
    ("times", "fine"), [(1 - 1e-6, True), (1.0, True), (1 + 1e-12, True), (1.001, False)]
)
def test_the_largest_step_of_the_theorems_may_be_exceeded_by_rounding_alone(
    times: float, fine: bool
) -> None:
    given = {"delta": 1.0, "pi": 1.0, "hops": 3, "local_updates": 7, "smoothness": 11.0}
    stepsize = times / (2 * 11 * 3 * 7)
    if fine:
        assert Guarantee(**given, stepsize=stepsize).after(1) == pytest.approx(2 / stepsize)
    else:
        with pytest.raises(ConfigError, match="step sizes up to"):
            Guarantee(**given, stepsize=stepsize)


def test_a_target_at_the_floor_is_never_reached() -> None:
    promise = Guarantee(
        delta=1.0, stepsize=0.01, pi=0.5, hops=5, local_updates=2, smoothness=4.0, variance=3.0
    )
    with pytest.raises(ConfigError, match="for ever"):
        promise.iterations(promise.floor)
    for nothing in (0.0, -0.5):
        with pytest.raises(ConfigError, match="target must be above 0"):
            promise.iterations(nothing)
    assert promise.after(promise.iterations(1.01 * promise.floor)) <= 1.01 * promise.floor
    with pytest.raises(ConfigError, match="iterations"):
        promise.after(0)


def test_one_client_more_than_tokens_saves_one_uplink() -> None:
    """Four tokens of five clients, three hops each: 5 + 4 messages to and from the server in place
    of 10."""
    few = Comparison(clients=5, tokens=4, hops=3)
    assert (few.server_messages, few.server_traffic, few.cost_ratio, few.time_ratio) == (
        9,
        9.0,
        12.0,
        3.0,
    )
    assert (few.cost(2.0, 0.5), few.client_server_cost(2.0)) == (9 * 2 + 12 * 0.5, 20.0)
    full = Comparison(clients=5, tokens=4, hops=3, full_batch=True)
    assert (full.server_messages, full.cost_ratio, full.time_ratio) == (8, 6.0, 1.5)
    sized = Comparison(clients=5, tokens=4, hops=3, uplink=3.0, downlink=0.5, hop=2.0)
    assert (sized.server_traffic, sized.cost(1.0, 1.0)) == (5 * 3 + 4 * 0.5, 17.0 + 24.0)
    for name in ("clients", "tokens", "hops", "local_updates"):
        with pytest.raises(ConfigError, match=name):
            Comparison(**({"clients": 5, "tokens": 4, "hops": 3} | {name: 0}))
