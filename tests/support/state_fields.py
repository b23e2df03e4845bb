"""Trainings whose parties are made anew before every message, from the state that they declare: for
tests that leave a part of the state out."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pytest

from mtcd.protocol.party import MONITOR, SERVER, Message, Parties, Party
from mtcd.protocol.state import Stateful
from mtcd.training.training import Training
from same_objects import differences

Make = Callable[[], Parties]


class _CapturedError(Exception):
    """Ends a call of ``mtcd.train`` once it would make the parties."""


def makers(train: Callable[[], Any]) -> Make:
    """What makes the parties of a training, without training them.

    Parameters
    ----------
    train : callable
        Calls ``mtcd.train``.

    Returns
    -------
    callable
        Makes the same parties anew at each call.
    """
    caught: list[Training] = []

    def parties(self: Training) -> Parties:
        caught.append(self)
        raise _CapturedError

    with pytest.MonkeyPatch.context() as patch:
        for kind in (Training, *Training.__subclasses__()):
            if "parties" in vars(kind):
                patch.setattr(kind, "parties", parties)
        with pytest.raises(_CapturedError):
            train()

    return caught[0].parties


class Trail(NamedTuple):
    """What a training has sent, and its model at the end."""

    messages: list[Message]
    parameters: list[np.ndarray[Any, Any]]
    parts: set[type[Stateful]]
    """The classes whose state was part of the parties' state."""
    replays: list[str]
    """What became of each message that came a second time."""


def trail(
    make: Make, length: int, restart: bool, order: int | None = None, replay: bool = False
) -> Trail:
    """Process so many messages, and return what was sent.

    Parameters
    ----------
    make : callable
        Makes the parties.
    length : int
        The number of messages to process.
    restart : bool
        Whether the receiver of each message is made anew before, from a copy of its state, as after
        a crash of its process.
    order : int, optional
        Seed of an order in which links deliver; each link keeps the order of its own messages. By
        default messages are delivered as they are sent.
    replay : bool
        Whether a copy of each party gets the last message to it once more, as from a cheat: what
        becomes of it is kept in ``replays``.
    """
    random = None if order is None else Random(order)
    parties = make()
    receivers = _receivers(parties)
    waiting = deque(parties.opening)
    sent: list[Message] = []
    found: set[type[Stateful]] = set()
    replays: list[str] = []
    latest: dict[int, Message] = {}

    for _ in range(length):
        message = _next(waiting, sent, random)
        if message is None:
            break
        receiver = receivers[message.to]
        if restart:
            found |= set(_stateful_parts(receiver))
            receiver = receivers[message.to] = _again(make, message.to, receiver)
        if replay and message.to in latest:
            cheated = _again(make, message.to, receiver) if restart else copy.deepcopy(receiver)
            replays.append(_outcome(cheated, latest[message.to]))
        latest[message.to] = copy.deepcopy(message)
        for answer in receiver.receive(message):
            waiting.append(copy.deepcopy(answer))

    clients = [receivers[k] for k in range(len(parties.clients))]
    parameters = [np.asarray(client.parameters()) for client in clients]  # type: ignore[attr-defined]
    return Trail(sent, parameters, found, replays)


def _receivers(parties: Parties) -> dict[int, Party]:
    numbered: dict[int, Party] = dict(enumerate(parties.clients))
    if parties.server is not None:
        numbered[SERVER] = parties.server
    return numbered


def _next(waiting: deque[Message], sent: list[Message], random: Random | None) -> Message | None:
    """The next message to a party; reports to the monitor on the way to it are only kept."""
    while waiting:
        first: dict[tuple[int, int], Message] = {}
        for message in waiting:
            first.setdefault((message.sender, message.to), message)
        chosen = waiting[0] if random is None else random.choice([*first.values()])
        waiting.remove(chosen)
        sent.append(chosen)
        if chosen.to != MONITOR:
            return chosen
    return None


def _outcome(party: Party, message: Message) -> str:
    """What a party does with a message: the addresses of its answers, or why it refuses."""
    try:
        answers = party.receive(copy.deepcopy(message))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ", ".join(f"{type(one.payload).__name__} to {one.to}" for one in answers)


def _again(make: Make, number: int, old: Party) -> Party:
    """A new object of this party with a copy of the state of the old one."""
    new = _receivers(make())[number]
    new.restore(copy.deepcopy(old.state()))
    return new


def _stateful_parts(part: Stateful) -> Iterator[type[Stateful]]:
    yield type(part)
    for name in part.state_fields:
        inner = getattr(part, name)
        if isinstance(inner, Stateful):
            yield from _stateful_parts(inner)


def differ(one: Trail, other: Trail, random: bool = False) -> bool:
    """Whether two trainings have sent other messages or ended with another model.

    Parameters
    ----------
    one, other : Trail
        The trainings.
    random : bool
        Whether messages hold random numbers, as keys and masked sums do: then only their kinds,
        senders and receivers are compared.
    """
    if len(one.messages) != len(other.messages) or one.replays != other.replays:
        return True
    pairs = zip(one.parameters, other.parameters, strict=True)
    if any(mine.tobytes() != theirs.tobytes() for mine, theirs in pairs):
        return True
    messages = list(zip(one.messages, other.messages, strict=True))
    if random:
        return any(_address(mine) != _address(theirs) for mine, theirs in messages)
    return any(differences(mine, theirs) for mine, theirs in messages)


def _address(message: Message) -> tuple[int, int, type]:
    return message.sender, message.to, type(message.payload)


@contextmanager
def without(owner: type[Stateful], field: str) -> Iterator[None]:
    """A class that forgets one field of its state."""
    left = tuple(name for name in owner.state_fields if name != field)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, "state_fields", left)
        yield
