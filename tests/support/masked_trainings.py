"""Masked trainings, and the statistics of what their server receives."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import chi2

import mtcd
from mtcd.methods.method import Method
from mtcd.methods.mtcd.mtcd import MTCD
from mtcd.methods.svfl.svfl import SVFL
from mtcd.network.changes import with_changes
from mtcd.privacy.masked.masked import with_masks
from mtcd.protocol.party import MONITOR, SERVER, Message, Parties

DATA = mtcd.synthetic("logistic", samples=60, features=15, clients=5)


MODEL = mtcd.Glm("logistic", l2=0.5)


METHODS: dict[str, Method] = {
    "mini-batches": MTCD(tokens=3, hops=4, batch=15, stepsize=0.05),
    "svfl": SVFL(local_updates=2, stepsize=0.01),
    "svfl, mini-batches": SVFL(batch=20, stepsize=0.02),
    "average": MTCD(tokens=3, hops=4, stepsize=0.05),
    "cluster": MTCD(clusters=[[0, 1], [2, 3, 4]], hops=3, stepsize=0.05),
}


def doubly(method: Method) -> Method:
    return with_masks(method, "double-masked")


def delivered(method: Method, count: int, data: Any = DATA) -> tuple[list[Message], Parties]:
    """The first messages of a training that reach the server, and the parties."""
    parties = method.parties(MODEL.problem(data), mtcd.make_network("complete", data.clients), 3)
    by_number = {**dict(enumerate(parties.clients)), SERVER: parties.server}
    found, waiting = [], deque(parties.opening)
    while len(found) < count:
        message = waiting.popleft()
        if message.to == SERVER:
            found.append(message)
        if message.to != MONITOR:
            waiting.extend(by_number[message.to].receive(message))
    return found, parties


def p_value(words: np.ndarray) -> float:
    """Of the hypothesis that all bytes are equally likely."""
    counts = np.bincount(np.ascontiguousarray(words).view(np.uint8), minlength=256)
    expected = counts.sum() / 256
    return float(chi2.sf(((counts - expected) ** 2 / expected).sum(), 255))


def train_with(method: Method, clients: int = 5, changes: Sequence[Any] = ()) -> None:
    data = mtcd.synthetic("logistic", samples=30, features=10, clients=clients)
    network = with_changes(mtcd.make_network("complete", data.clients), changes)
    mtcd.train(data, MODEL, network, method, mtcd.Stop(iterations=2))
