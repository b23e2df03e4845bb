"""Split networks of one number each, without PyTorch, so that every decision of their parties can
be computed by hand.

Client k represents sample n as theta_k x_kn; H is their sum, and the loss of theta_0 = w the mean
of (w H_n - y_n)^2/2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from mtcd.engines.local import LocalEngine
from mtcd.methods.method import Method
from mtcd.models.splitnet.setup import SplitParties, split_parties
from mtcd.network.topology import make_network
from mtcd.protocol.batches import Batches
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.protocol.model import EpochLoss, State, Visit
from mtcd.protocol.party import Message
from mtcd.protocol.token import Token

SAMPLES = 6


class OneNumber:
    """Client k's network."""

    def __init__(self, k: int, batches: Batches, labels: np.ndarray) -> None:
        self.x = np.random.default_rng(k).standard_normal((SAMPLES, 1))
        self.theta, self.batches, self.labels = np.array([1.0 + k]), batches, labels
        self.joined = False
        self.visits: list[Visit] = []

    def rows(self, values: np.ndarray, t: int) -> np.ndarray:
        rows = self.batches.rows(t)
        return values if rows is None else values[rows]

    def represent(self, t: int) -> np.ndarray:
        return self.theta * self.rows(self.x, t)

    def join(self, H: np.ndarray, t: int) -> np.ndarray:
        H, self.joined = H if self.joined else H + self.represent(t), True
        return H

    def local_update(
        self, H: np.ndarray, theta_0: Sequence[np.ndarray], visit: Visit
    ) -> np.ndarray:
        self.visits.append(visit)
        x, y, w = self.rows(self.x, visit.t), self.rows(self.labels, visit.t), theta_0[0]
        for _ in range(visit.local_updates):
            change = -visit.stepsize * np.mean((w * H - y) * w * x)
            self.theta, H = self.theta + change, H + change * x
        return H

    def state(self) -> State:
        return {"theta": self.theta.copy()}

    def load(self, state: State) -> None:
        self.theta = state["theta"].copy()

    weights = state

    def full_state(self) -> State:
        return {"theta": self.theta.copy(), "joined": np.array(self.joined)}

    def restore(self, memory: State) -> None:
        self.theta, self.joined = memory["theta"].copy(), bool(memory["joined"])

    def mixed(self, start: State, copies: Sequence[State], weight: float) -> State:
        return {
            "theta": start["theta"]
            + weight * sum(copy["theta"] - start["theta"] for copy in copies)
        }


class OneWeight:
    """The fusion module."""

    size = 1

    def __init__(self, batches: Batches, labels: np.ndarray) -> None:
        self.w, self.batches, self.labels = np.array([0.5]), batches, labels
        self.updates: list[tuple[int, int, float]] = []

    def values(self) -> list[np.ndarray]:
        return [self.w.copy()]

    def weights(self) -> State:
        return {"parameter.0": self.w}

    def full_state(self) -> State:
        return {"w": self.w.copy()}

    def restore(self, memory: State) -> None:
        self.w = memory["w"].copy()

    def local_update(self, H: np.ndarray, t: int, steps: int, eta: float) -> float:
        self.updates.append((t, steps, eta))
        self.w = self.w + 0.01
        return self.loss(H, [self.w - 0.01], t)

    def loss(self, H: np.ndarray, theta_0: Sequence[np.ndarray], t: int) -> float:
        rows = self.batches.rows(t)
        y = self.labels if rows is None else self.labels[rows]
        return float(np.mean((theta_0[0] * H - y) ** 2) / 2)

    def blank_loss(self) -> float:
        return 1000.0


class SmallStage:
    """All of them, in one process."""

    def __init__(self, clients: int, batches: Batches, sums: bool) -> None:
        labels = np.arange(SAMPLES, dtype=float)[:, None]
        self.clients = [OneNumber(k, batches, labels) for k in range(clients)]
        self.fusion, self.sums = OneWeight(batches, labels), sums
        self.epoch_loss: Any = lambda: None
        self.lanes: list[int] = []

    def aggregate(self, representations: Sequence[np.ndarray]) -> np.ndarray:
        return np.sum(representations, axis=0)

    def empty(self) -> np.ndarray:
        return np.zeros((SAMPLES, 1))

    @contextmanager
    def lane(self, token: int) -> Iterator[None]:
        self.lanes.append(token)
        yield

    def join(self) -> None:
        pass


class SmallProblem:
    """It notes how many lanes are asked for."""

    samples, outputs, fusion_keeps_statistics = SAMPLES, 1, False

    def __init__(self, clients: int = 3, sums: bool = True) -> None:
        self.clients, self.sums = clients, sums
        self.lanes = 0

    def stage(self, batches: Batches, lanes: int) -> Any:
        self.lanes = lanes
        return SmallStage(self.clients, batches, self.sums)


def parties_of(method: Method, clients: int = 3, seed: int = 0, kind: str = "path") -> Any:
    network = make_network(kind, [f"c{k}" for k in range(clients)])
    return split_parties(method, SmallProblem(clients), network, seed)


def run(parties: SplitParties, moments: int) -> list[tuple[Any, EpochLoss | None]]:
    """The progress reports, and the loss of the epoch at each of them."""
    told = []
    for progress in LocalEngine(parties.parties(), Ledger()).run():
        told.append(
            (
                (progress.hop, progress.t, progress.aggregate, progress.penalty),
                parties.stage.epoch_loss(),
            )
        )
        if len(told) == moments:
            break
    return told


def token_for(parties: Any, index: int, t: int = 0, hop: int = 0) -> Token:
    H = parties.stage.aggregate([net.represent(t) for net in parties.stage.clients])
    return Token(index, t, hop, H, 0.0, slots={"theta_0": parties.stage.fusion.values()})


def run_to_first_sync(parties: Any) -> Sequence[Message]:
    """Deliver all uploads; returns the messages of the server then."""
    sent: Sequence[Message] = ()
    for question in parties.parties().opening:
        (upload,) = parties.clients[question.to].receive(question)
        assert not sent
        sent = parties.server.receive(upload)
    return sent
