"""The plain version of split networks against sums by hand: one number per party, h_k = w_k x_k and
outputs v H."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from mtcd.protocol.batches import Batches
from mtcd.testing.references.splitnet import (
    PartyWeights,
    Settings,
    SplitObjective,
    Task,
    mtcd,
    stcd,
    svfl,
)

RNG = np.random.default_rng(3)
X, Y = RNG.standard_normal((3, 6)), RNG.standard_normal(6)
W, V = np.array([0.5, -1.0, 2.0]), 1.5
ETAS, MOMENTUM, Q = (0.1, 0.05), 0.4, 2


def times(value: float) -> nn.Module:
    layer = nn.Linear(1, 1, bias=False).double()
    nn.init.constant_(layer.weight, value)
    return layer


def task(aggregation: str) -> Task:
    features = [torch.as_tensor(x[:, None]) for x in X]
    labels = torch.as_tensor(Y[:, None])
    return Task([times(w) for w in W], times(V), aggregation, functional.mse_loss, features, labels)


def settings(batches: Batches, fusion_updates: int = 1) -> Settings:
    return Settings(Q, lambda t: ETAS[t], batches, fusion_updates, MOMENTUM)


@dataclass
class ByHand:
    """Weights and velocities of all parties as numbers; the token holds what each client
    contributes."""

    share: float
    w: Any = field(default_factory=W.copy)
    u: Any = field(default_factory=lambda: np.zeros(3))
    v: float = V
    u_0: float = 0.0

    def aggregate(self, h: Any) -> Any:
        return h.sum(axis=0) * self.share

    def error(self, h: Any, y: Any) -> Any:
        return 2 * (self.v * self.aggregate(h) - y) / len(y)

    def visit(self, k: int, h: Any, x: Any, y: Any, eta: float) -> None:
        for _ in range(Q):
            self.step(k, h, x, y, eta)

    def step(self, k: int, h: Any, x: Any, y: Any, eta: float) -> None:
        self.u[k] = MOMENTUM * self.u[k] + (self.error(h, y) * self.v * self.share * x[k]).sum()
        self.w[k] -= eta * self.u[k]
        h[k] = self.w[k] * x[k]

    def fuse(self, h: Any, y: Any, eta: float, steps: int) -> None:
        for _ in range(steps):
            self.u_0 = MOMENTUM * self.u_0 + (self.error(h, y) * self.aggregate(h)).sum()
            self.v -= eta * self.u_0


class Trails:
    """Tokens that visit given clients, and check the token, iteration, hop and previous client that
    are asked for."""

    def __init__(self, trails: dict[tuple[int, int], list[int]]) -> None:
        self.trails = trails

    def first(self, token: int, iteration: int) -> int:
        return self.trails[token, iteration][0]

    def next(self, token: int, t: int, hop: int, client: int, previous: int) -> int:
        before = [-1, *self.trails[token, t]]
        assert (previous, client) == (before[hop - 1], before[hop])
        return [*self.trails[token, t], 0][hop]


def check(found: tuple[list[PartyWeights], PartyWeights], w: Any, v: float, u: Any = None) -> None:
    theta, theta_0 = found
    np.testing.assert_allclose([block.weights["weight"].item() for block in theta], w)
    assert theta_0.weights["weight"].item() == pytest.approx(v)
    if u is not None:
        np.testing.assert_allclose([block.velocity["weight"].item() for block in theta], u)


@pytest.mark.parametrize(("aggregation", "share"), [("sum", 1.0), ("mean", 1 / 3)])
@pytest.mark.parametrize("rule", ["average", "visitors"])
def test_tokens_roam_and_their_copies_are_combined(
    rule: str, aggregation: str, share: float
) -> None:
    trails = {(0, 0): [2, 0, 2], (1, 0): [0, 0, 0], (0, 1): [1, 2, 0], (1, 1): [2, 2, 1]}
    batches = Batches(6, 2, seed=1)
    found = mtcd(task(aggregation), Trails(trails), settings(batches, 3), 2, 3, rule, 2)
    assert len(found) == 3
    now = ByHand(share)
    check(found[0], W, V)
    for t, eta in enumerate(ETAS):
        x, y = X[:, batches.rows(t)], Y[batches.rows(t)]
        Z = now.w[:, None] * x
        copies = [ByHand(share, now.w.copy(), now.u.copy(), now.v) for _ in range(2)]
        for gamma, copy in enumerate(copies):
            h = Z.copy()
            for k in trails[gamma, t]:
                copy.visit(k, h, x, y, eta)
        now.fuse(Z, y, eta, 3)
        for k in range(3):
            came = [k in trails[gamma, t] for gamma in range(2)]
            counted = [
                copy for copy, seen in zip(copies, came, strict=True) if seen or rule == "average"
            ] or copies
            now.w[k], now.u[k] = (np.mean([values[k] for values in one]) for one in _parts(counted))
        check(found[t + 1], now.w, now.v, now.u)


def _parts(copies: list[ByHand]) -> tuple[list[Any], list[Any]]:
    return [copy.w for copy in copies], [copy.u for copy in copies]


def test_with_a_server_all_clients_step_from_the_same_aggregate() -> None:
    batches = Batches(6, 2, seed=1)
    found = svfl(task("sum"), settings(batches, 2), 2)
    assert len(found) == 3
    now = ByHand(1.0)
    for t, eta in enumerate(ETAS):
        x, y = X[:, batches.rows(t)], Y[batches.rows(t)]
        Z = now.w[:, None] * x
        for k in range(3):
            now.visit(k, Z.copy(), x, y, eta)
        now.fuse(Z, y, eta, 2)
        check(found[t + 1], now.w, now.v, now.u)


@pytest.mark.parametrize("first_pass", [True, False])
@pytest.mark.parametrize("size", [None, 2])
def test_a_lone_token_takes_theta_0_along(first_pass: bool, size: int | None) -> None:
    trail, fusing, batches = [1, 0, 1, 1, 2], frozenset({1, 2}), Batches(6, size, seed=1)
    found = stcd(
        task("sum"), Trails({(0, 0): trail}), settings(batches), fusing, len(trail), first_pass
    )
    rows = slice(None) if size is None else batches.rows(0)
    x, y, now, eta = X[:, rows], Y[rows], ByHand(1.0), ETAS[0]
    h = now.w[:, None] * x * first_pass
    velocities = dict.fromkeys(fusing, 0.0)
    for k in trail:
        others = h.copy()
        for _ in range(Q):
            own = now.w[k] * x[k]
            slope = 2 * (now.v * (others.sum(axis=0) - others[k] + own) - y) / len(y)
            u_0 = (slope * (others.sum(axis=0) - others[k] + own)).sum()
            now.u[k] = MOMENTUM * now.u[k] + (slope * now.v * x[k]).sum()
            now.w[k] -= eta * now.u[k]
            if k in fusing:
                velocities[k] = MOMENTUM * velocities[k] + u_0
                now.v -= eta * velocities[k]
        h[k] = now.w[k] * x[k]
    check(found, now.w, now.v, now.u)


def test_a_first_pass_is_made_unless_left_out() -> None:
    given = (
        task("sum"),
        Trails({(0, 0): [0, 1]}),
        settings(Batches(6, None, 1)),
        frozenset[int](),
        2,
    )
    default, asked = (stcd(*given, *more)[0] for more in ((), (True,)))
    assert [block.weights["weight"].item() for block in default] == [
        block.weights["weight"].item() for block in asked
    ]


def test_representations_are_joined_side_by_side() -> None:
    parts = [torch.ones(2, 1), 2 * torch.ones(2, 3)]
    joined = task("concat").aggregate(parts)
    assert joined.tolist() == [[1.0, 2.0, 2.0, 2.0]] * 2


def test_gradients_of_a_fusion_without_parameters_and_of_unused_ones() -> None:
    spare = times(0.5)
    spare.register_parameter("unused", nn.Parameter(torch.ones(2)))
    spare.register_parameter("frozen", nn.Parameter(torch.ones(2), requires_grad=False))
    x, y = torch.ones(2, 1).double(), torch.zeros(2, 1).double()
    given = Task([spare], nn.Identity(), "sum", functional.mse_loss, [x], y)
    f, (theta, theta_0) = SplitObjective(given, Batches(2, None, 0), 0), given.start()
    assert theta[0].weights.keys() == theta[0].velocity.keys() == {"weight", "unused"}
    Z = f.parts(theta)
    assert f.gradients(None, Z, {}, theta_0.weights) == ({}, {})
    here, there = f.gradients(0, Z, theta[0].weights, theta_0.weights)
    assert (here["weight"].item(), here["unused"].tolist(), there) == (1.0, [0.0, 0.0], {})
