"""Parties of sealed tours with a cipher in the clear."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import mtcd
from mtcd.engines.local import LocalEngine
from mtcd.models.glm.model import LinearProblem
from mtcd.privacy.sealed.settings import SealedTours
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.protocol.party import Message, Parties
from problems import make_data

N, WIDTHS = 40, [12, 13, 14]


MODELS = {"ridge": mtcd.Glm("ridge", l2=0.5), "logistic": mtcd.Glm("logistic", l2=0.5)}


CLEAR = SealedTours(scheme="clear", depth=2)


NETWORK = mtcd.make_network("path", ["a", "b", "c"])


def problem_of(kind: str = "ridge", widths: list[int] = WIDTHS) -> LinearProblem:
    model = MODELS[kind]
    return model.problem(make_data(model, N, widths, seed=3))


def parties_of(problem: LinearProblem, method: SealedTours = CLEAR) -> tuple[Parties, Any]:
    """All parties, and the part of the one with the key."""
    parties = method.parties(problem, NETWORK, 0)
    holder = parties.server or parties.clients[method.holder]
    return parties, holder.holding


def run(parties: Parties, tours: int) -> list[Message]:
    """Run so many tours; returns all messages."""
    engine, seen = LocalEngine(parties, Ledger()), list[Message]()
    engine.listeners = {"test": SimpleNamespace(see=seen.append)}  # type: ignore[dict-item]
    for told in engine.run():
        if told.hop == tours:
            break
    return seen


def of_kind(messages: list[Message], kind: type) -> list[Any]:
    return [message.payload for message in messages if isinstance(message.payload, kind)]
