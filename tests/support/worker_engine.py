"""An engine whose parties live in other processes, written against ``protocol/engine.py`` alone.

It shows that such an engine needs nothing outside its own file, and that nobody measures on live
objects: those that the method made never train here.
"""

from __future__ import annotations

import multiprocessing as mp
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from multiprocessing.connection import Connection
from typing import Any

from mtcd.engines.local import LocalEngine
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.protocol.party import SERVER, Message, Parties, Party

WORKERS = 2


def work(pipe: Connection) -> None:
    """A worker: holds parties, delivers to them, sends and restores their states."""
    parties: dict[int, Any] = {}
    while True:
        asked, number, given = pipe.recv()
        if asked == "hold":
            parties[number] = given
        elif asked == "restore":
            parties[number].restore(given)
        else:
            pipe.send(
                parties[number].receive(given) if asked == "deliver" else parties[number].state()
            )


@cache
def workers() -> list[Connection]:
    """Processes that stay until the tests are over."""
    context, pipes = mp.get_context("spawn"), []
    for _ in range(WORKERS):
        ours, theirs = context.Pipe()
        context.Process(target=work, args=(theirs,), daemon=True).start()
        pipes.append(ours)
    return pipes


class RemoteParty(Party):
    """A party in a worker."""

    def __init__(self, number: int) -> None:
        self.number, self.pipe = number, workers()[number % WORKERS]

    def hold(self, party: Party) -> RemoteParty:
        self.pipe.send(("hold", self.number, party))
        return self

    def receive(self, message: Message) -> Sequence[Message]:
        self.pipe.send(("deliver", self.number, message))
        sent: Sequence[Message] = self.pipe.recv()
        return sent

    def state(self) -> dict[str, Any]:
        self.pipe.send(("state", self.number, None))
        state: dict[str, Any] = self.pipe.recv()
        return state

    def restore(self, state: dict[str, Any]) -> None:
        self.pipe.send(("restore", self.number, state))


class WorkerEngine(LocalEngine):
    """Delivers message by message, to parties in workers."""

    def __init__(self, parties: Parties, ledger: Ledger) -> None:
        super().__init__(parties, ledger)
        self.made = parties

    def start(self) -> None:
        clients: Any = [RemoteParty(k).hold(client) for k, client in enumerate(self.made.clients)]
        server = None if self.made.server is None else RemoteParty(SERVER).hold(self.made.server)
        self.parties = replace(self.made, clients=clients, server=server)

    def parameters(self) -> list[Any]:
        """The parties made here, which never trained, take over the states of those in the
        workers."""
        if self._observed is not None:
            return super().parameters()
        pairs = zip(
            (*self.made.clients, self.made.server),
            (*self.parties.clients, self.parties.server),
            strict=True,
        )
        for here, there in pairs:
            if here is not None and there is not None:
                here.restore(there.state())
        return self.made.parameters()
