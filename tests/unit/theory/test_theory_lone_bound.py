"""The bound of STCD, equation (5): by hand, against the expectation over all walks, and as inspect
shows it."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inspected import said
from mtcd.core.errors import ConfigError
from mtcd.data.synthetic import synthetic
from mtcd.inspection import walks
from mtcd.models.glm.block_smoothness import BlockSmoothness
from mtcd.models.glm.model import Glm
from mtcd.network.topology import make_network
from mtcd.network.walks.lazy import lazy_chain
from mtcd.network.walks.metropolis import metropolis_chain
from mtcd.theory.bounds import LoneGuarantee
from mtcd.theory.mixing import mixing_bounds, mixing_time, spectral_gap

SETTINGS: dict[str, Any] = {
    "delta": 3.0,
    "stepsize": 0.1,
    "pi_min": 0.25,
    "mixing_time": 7,
    "local_updates": 3,
    "smoothness": 20.0,
    "block_smoothness": 10.0,
}


def test_the_right_hand_side_by_hand() -> None:
    promise = LoneGuarantee(**SETTINGS)
    # 4/(0.25*0.1*(1 - 0.1*10/2)) = 320;  4*0.1*20^2/(0.25*0.5) = 1280;  Q tau - 1 = 20
    assert (promise.omega_1, promise.omega_2) == (pytest.approx(1280.0), pytest.approx(320.0))
    assert promise.constant == pytest.approx((1280 * 400 + 320) * 3)
    assert promise.after(1000) == pytest.approx(1536.96)
    assert promise.after(promise.updates(50.0)) <= 50.0 < promise.after(promise.updates(50.0) - 1)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"stepsize": 0.2}, "below 2/max_k L_k = 0.2"),
        ({"pi_min": 1.5}, "at most 1"),
        ({"mixing_time": -1}, "0 or more"),
        ({"delta": -1.0}, "delta"),
        *(
            ({name: 0}, name)
            for name in ("stepsize", "pi_min", "smoothness", "block_smoothness", "local_updates")
        ),
    ],
)
def test_what_it_does_not_hold_for_is_refused(change: dict[str, float], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        LoneGuarantee(**(SETTINGS | change))


def test_one_client_that_is_visited_all_the_time_does_not_wait() -> None:
    alone = LoneGuarantee(**(SETTINGS | {"pi_min": 1.0, "mixing_time": 0}))
    assert alone.constant == pytest.approx(alone.omega_2 * 3.0) == pytest.approx(240.0)
    assert LoneGuarantee(
        **(SETTINGS | {"mixing_time": 1, "local_updates": 1})
    ).constant == pytest.approx(320.0 * 3)
    done = LoneGuarantee(**(SETTINGS | {"delta": 0.0}))
    assert (done.updates(1e-9), done.after(1)) == (1, 0.0)
    with pytest.raises(ConfigError, match="updates"):
        done.after(0)


@pytest.mark.parametrize("make", [lazy_chain, metropolis_chain])
@pytest.mark.parametrize("share", [0.1, 1.0, 1.9])
@pytest.mark.parametrize("Q", [1, 3])
def test_it_holds_in_expectation_over_all_walks(make: Any, share: float, Q: int) -> None:
    """Three clients in a row, every walk of five hops with its probability, plain gradient
    steps."""
    data = synthetic("ridge", samples=8, features=3, clients=3, seed=1)
    problem = Glm("ridge", alpha=0.5).problem(data)
    X, y, smoothness = np.hstack(problem.blocks), problem.labels, BlockSmoothness(problem)
    P, long_run = make(make_network("path", ["a", "b", "c"]))
    P, eta, hops = P.toarray(), share / smoothness.blocks.max(), 5
    expected = np.zeros(hops * Q)
    for walk in itertools.product(range(3), repeat=hops):
        p = float(np.prod([P[a, b] for a, b in itertools.pairwise(walk)])) * (walk[0] == 0)
        theta, least = np.zeros(3), np.inf
        for r, k in enumerate(k for k in walk for _ in range(Q)):
            theta[k] -= eta * (X.T @ (X @ theta - y) + 0.5 * theta)[k]
            least = min(least, float(((X.T @ (X @ theta - y) + 0.5 * theta) ** 2).sum()))
            expected[r] += p * least
    solution = np.linalg.solve(X.T @ X + 0.5 * np.eye(3), X.T @ y)
    delta = problem.evaluate([np.zeros(1)] * 3) - problem.evaluate(np.split(solution, 3))
    tau = mixing_time(make(make_network("path", ["a", "b", "c"])).P, long_run, long_run.min() / 2)
    promise = LoneGuarantee(
        delta, eta, long_run.min(), tau, Q, smoothness.overall, float(smoothness.blocks.max())
    )
    assert all(expected[r - 1] <= promise.after(r) for r in range(1, hops * Q + 1))


def inspected(where: Path, capsys: Any, **config: Any) -> dict[str, Any]:
    assert said(where, "--json", **config) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_inspect_shows_it_for_stcd(tmp_path: Path, capsys: Any) -> None:
    found = inspected(tmp_path, capsys, K=5, method="kind: stcd, local_updates: 4, stepsize: 0.001")
    chain = lazy_chain(make_network("path", [f"c{k}" for k in range(5)]))
    tau = mixing_time(*chain, chain.share.min() / 2)
    theory = found["theory"]
    assert theory["pi_min"]["value"] == pytest.approx(2 / 13)
    assert theory["mixing_time_pi_min"]["value"] == tau > theory["mixing_time"]["value"]
    labels = synthetic("ridge", samples=20, features=5, clients=5, seed=0).labels
    L, L_b, eta = found["smoothness"]["overall"], found["smoothness"]["largest_block"], 0.001
    denominator = 2 / 13 * (1 - eta * L_b / 2)
    C = (
        (4 * eta * L**2 / denominator * (4 * tau - 1) ** 2 + 4 / (denominator * eta))
        * (labels**2).sum()
        / 2
    )
    assert theory["guarantee_stcd"]["value"] == pytest.approx(C)
    assert theory["guarantee_stcd"]["shown"].endswith("/r")


def test_inspect_of_a_large_network_shows_an_upper_bound_and_says_so(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walks, "MIXING_WORK", 3)
    theory = inspected(tmp_path, capsys, K=5, method="kind: stcd, stepsize: 0.001")["theory"]
    chain = lazy_chain(make_network("path", [f"c{k}" for k in range(5)]))
    bound = mixing_bounds(spectral_gap(*chain), chain.share.min(), chain.share.min() / 2)[1]
    assert (
        theory["mixing_time_pi_min"]["value"]
        == math.ceil(bound)
        >= mixing_time(*chain, chain.share.min() / 2)
    )
    assert theory["mixing_time_pi_min"]["shown"].startswith("at most ")
    assert "upper bound from the spectral gap" in theory["mixing_time_pi_min"]["meaning"]
    assert theory["guarantee_stcd"]["value"] > 0


@pytest.mark.parametrize(
    ("network", "method", "says"),
    [
        ("path", "kind: stcd, walk: tour", "Markov chains on clients and forget"),
        ("path", "kind: stcd, walk: non-backtracking", "Markov chains on clients and forget"),
        # alternates for ever
        ("cycle", "kind: stcd, walk: metropolis", "Markov chains on clients and forget"),
        ("path", "kind: stcd, stepsize: 100.0", "step sizes below 2/max_k L_k"),
    ],
)
def test_inspect_says_where_it_does_not_hold(
    tmp_path: Path, capsys: Any, network: str, method: str, says: str
) -> None:
    shown = inspected(tmp_path, capsys, K=6, kind=network, method=method)["theory"][
        "guarantee_stcd"
    ]
    assert (shown["value"], shown["shown"]) == (None, "none")
    assert says in shown["meaning"]


@pytest.mark.parametrize(
    "method", ["kind: mtcd, hops: 3", "kind: stcd, walk: tour, acceleration: conjugate"]
)
def test_it_is_shown_for_plain_stcd_only(tmp_path: Path, capsys: Any, method: str) -> None:
    theory = inspected(tmp_path, capsys, method=method)["theory"]
    assert not {"guarantee_stcd", "pi_min", "mixing_time_pi_min"} & set(theory)


def test_the_least_number_of_updates_is_not_one_more_by_rounding() -> None:
    bound = LoneGuarantee(
        delta=3.0,
        pi_min=0.25,
        stepsize=0.1,
        mixing_time=7,
        local_updates=3,
        smoothness=20.0,
        block_smoothness=10.0,
    )
    for updates in (*range(1, 1000), 999_983):
        assert bound.updates(bound.constant / updates) == updates
    assert bound.updates(2 * bound.constant) == 1
    assert bound.updates(bound.constant / 1.5) == 2
    for target in (0.0, -0.5):
        with pytest.raises(ConfigError, match="target"):
            bound.updates(target)
