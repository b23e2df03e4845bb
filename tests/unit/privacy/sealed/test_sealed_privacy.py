"""What the parties of a sealed training receive: no labels, no scores of others, no key; uniform
numbers at the key holder; and messages that are refused.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import ks_2samp, kstest

pytest.importorskip("tenseal")

import mtcd
from mtcd.core.errors import WireError
from mtcd.engines.local import LocalEngine
from mtcd.models.glm.model import LinearProblem
from mtcd.privacy.sealed.payloads import SealedAnswer
from mtcd.privacy.sealed.settings import SealedTours
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.protocol.party import MONITOR, SERVER, Message, Parties

MODEL = mtcd.Glm("logistic", l2=1.0)
NETWORK = mtcd.make_network("cycle", ["a", "b", "c"])


def problem_of(seed: int) -> LinearProblem:
    return MODEL.problem(mtcd.synthetic("logistic", samples=150, features=24, clients=3, seed=seed))


class Recording(LocalEngine):
    """Keeps every message."""

    def __init__(self, parties: Parties) -> None:
        super().__init__(parties, Ledger())
        self.messages: list[Message] = []
        self.listeners = {"test": self}  # type: ignore[dict-item]

    def see(self, message: Message) -> None:
        self.messages.append(message)


def recorded(method: Any, problem: LinearProblem, tours: int) -> tuple[Recording, Parties]:
    parties = method.parties(problem, NETWORK, 0)
    engine = Recording(parties)
    observed = engine.run()
    while next(observed).hop < tours:  # type: ignore[union-attr]
        pass
    return engine, parties


def content(payload: Any) -> Iterator[bytes]:
    """Everything in a payload, as bytes of eight to a number."""
    for field in fields(payload):
        value = getattr(payload, field.name)
        if isinstance(value, np.ndarray):
            yield value.tobytes()
        elif isinstance(value, int | float):
            yield np.float64(value).tobytes()


def received(engine: Recording) -> dict[int, bytes]:
    found: dict[int, list[bytes]] = defaultdict(list)
    for message in engine.messages:
        if message.to not in (MONITOR, message.sender):
            found[message.to] += content(message.payload)
    return {party: b"|".join(parts) for party, parts in found.items()}


def label_patterns(labels: np.ndarray, scale: float) -> list[bytes]:
    """Runs of labels in the forms in which a careless program would send them."""
    runs = [labels[i : i + 24] for i in (0, 60, 120)]
    shapes = [
        run.astype(kind).tobytes() for run in runs for kind in ("<f8", "<f4", "<i8", "<i4", "u1")
    ]
    return shapes + [np.rint(run * scale).astype("<i8").tobytes() for run in runs]


def test_nobody_receives_labels_scores_or_keys(tmp_path: Path) -> None:
    problem = problem_of(1)
    engine, parties = recorded(SealedTours(), problem, 3)
    server = parties.server
    server.holding.key.save(tmp_path / "key")
    secret = (tmp_path / "key").read_bytes()
    pieces = [secret[i : i + 24] for i in range(len(secret) // 4, 3 * len(secret) // 4, 4096)]
    parameters = engine.parameters()
    scores = [X @ theta for X, theta in zip(problem.blocks, parameters, strict=True)]
    scores += [server.holding.steering.scores, problem.aggregate(parameters)]
    numbers = [value.tobytes() for values in scores for value in values[:40]]
    transcripts = received(engine)
    assert set(transcripts) == {0, 1, 2, SERVER}
    public = server.holding.key.public
    for party, transcript in transcripts.items():
        assert not [
            p for p in label_patterns(problem.labels, server.holding.scale) if p in transcript
        ], party
        assert not [number for number in numbers if number in transcript], party
        assert not [piece for piece in pieces if piece in transcript and piece not in public], party


def test_the_search_finds_labels_where_nothing_is_encrypted() -> None:
    """The label holder's columns are constant here, so that it passes on the derivative at 0
    itself: 1/2 - y."""
    problem = problem_of(1)
    problem = replace(problem, blocks=(np.zeros_like(problem.blocks[0]), *problem.blocks[1:]))
    found = {}
    for scheme in ("clear", "bfv"):
        engine, parties = recorded(SealedTours(scheme=scheme), problem, 1)  # type: ignore[arg-type]
        server = parties.server
        derivative = np.rint((0.5 - problem.labels[:24]) * server.holding.scale).astype("<i8")
        found[scheme] = derivative.tobytes() in received(engine)[1]
    assert found == {"clear": True, "bfv": False}


def test_what_the_key_holder_decrypts_is_uniform_and_does_not_depend_on_the_table() -> None:
    samples = []
    for seed in (1, 2):
        engine, parties = recorded(SealedTours(), problem_of(seed), 4)
        server = parties.server
        answers = [m.payload.values for m in engine.messages if isinstance(m.payload, SealedAnswer)]
        # without those of sums over labels
        answers = [values for values in answers if len(values) > 1]
        values = np.concatenate(answers) / server.holding.key.parameters.plain_modulus + 0.5
        assert len(values) == 4 * (24 + 3)  # of three clients, each with a check
        assert kstest(values, "uniform").pvalue > 1e-4
        samples.append(values)
    assert ks_2samp(*samples).pvalue > 1e-4
    assert not np.intersect1d(*samples).size


@pytest.mark.parametrize("scheme", ["clear", "bfv"])
def test_spoilt_and_foreign_ciphertexts_are_refused_and_change_nothing(scheme: Any) -> None:
    method, problem = SealedTours(scheme=scheme), problem_of(3)
    parties, others = (method.parties(problem, NETWORK, 0) for _ in range(2))
    requests = []
    for each in (parties, others):
        *keys, token = each.server.receive(each.opening[-1])
        each.clients[0].receive(keys[0])
        requests += each.clients[0].receive(token)
    own, foreign = requests
    server = parties.server
    payload: Any = own.payload
    flipped = payload.data.copy()
    flipped[len(flipped) // 2] ^= 255
    spoilt = {
        "cut off": replace(payload, data=payload.data[:-9]),
        "checksum": replace(payload, data=flipped),
        "belongs to another run": foreign.payload,
        "sealed": replace(payload, data=np.zeros(64, np.uint8)),
    }
    for words, bad in spoilt.items():
        with pytest.raises(WireError, match=words):
            server.receive(Message(0, SERVER, bad))
    assert server.holding.answered == []
    [answer] = server.receive(own)  # the true one is still answered
    assert isinstance(answer.payload, SealedAnswer)
