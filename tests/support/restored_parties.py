"""Parties that are restored from a journal after every message, beside others that go on."""

from collections import deque
from collections.abc import Callable
from typing import Any

from mtcd.federation.delivery.journal import MemoryJournal
from mtcd.protocol.party import MONITOR, SERVER, Message, Part, Parties


def moment(message: Message) -> tuple[tuple[int, int], list[Any]]:
    """Which moment is told of, and what."""
    told = message.payload
    if isinstance(told, Part):
        return (message.sender, told.iteration), [told.parameters.copy()]
    return (0, told.hop), [told.penalty, None if told.aggregate is None else told.aggregate.copy()]


def restore_after_every_message(make: Callable[[], Parties], messages: int) -> None:
    """Every attribute that changes is kept: what the restored ones send is the same."""
    parties, journals = make(), {}
    waiting = deque(message for message in parties.opening if message.to != MONITOR)
    parties = {**dict(enumerate(parties.clients)), SERVER: parties.server}
    for _ in range(messages):
        message = waiting.popleft()
        k = message.to
        again = make()
        party = again.server if k == SERVER else again.clients[k]
        if k in journals:
            party.restore(journals[k].last())
        journal = journals.setdefault(k, MemoryJournal())
        copied = MemoryJournal()
        copied.commit(message)
        sent, other = list(parties[k].receive(message)), list(party.receive(copied.last()))
        journal.commit(party.state())
        for one, two in zip(sent, other, strict=True):
            copied.commit(one if one.to != MONITOR else moment(one))
            content = copied.content
            copied.commit(two if two.to != MONITOR else moment(two))
            assert copied.content == content
        waiting.extend(one for one in sent if one.to != MONITOR)
