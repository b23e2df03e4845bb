"""Federations in one thread, for tests: real nodes, but their links are a list in which all that
passes can be seen.

Time passes when nothing else is left to do: the next timer of anybody goes off.
"""

from __future__ import annotations

import heapq
import json
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from queue import Empty
from typing import Any, NamedTuple
from unittest.mock import patch

from live import make_bundles, own_table_of
from mtcd.core.errors import MtcdError
from mtcd.data.vertical import VerticalData
from mtcd.federation import psi_process
from mtcd.federation.credentials.bundle import Bundle
from mtcd.federation.node.chunks import wrap
from mtcd.federation.node.link import IncomingRequest
from mtcd.federation.node.loop import Loop
from mtcd.federation.node.node import Node
from mtcd.federation.participant.participant import Participant
from mtcd.models.glm.party.participant import LinearParticipant
from mtcd.protocol.codec.records import pack

Done = Callable[[bytes | None], None]


class Passing(NamedTuple):
    """A request on its way."""

    sender: str
    to: str
    kind: str
    body: bytes


def once(done: Done) -> Callable[[bytes], None]:
    """A reply, of which the first counts; an empty one is none."""
    waiting = [done]

    def reply(body: bytes) -> None:
        if waiting:
            waiting.pop()(body or None)

    return reply


class Wire:
    """In the place of a ``Link``."""

    def __init__(
        self, hub: Hub, bundle: Bundle, loop: Any, heard: Any, changed: Any, counters: Any
    ) -> None:
        self.hub, self.loop, self.heard, self.changed = hub, loop, heard, changed
        self.me, self.peers = bundle.config.name, frozenset(bundle.config.peers)
        self.up: set[str] = set()
        hub.wires[self.me] = self

    def post(self, to: str, kind: str, body: bytes, done: Done) -> None:
        passing = Passing(self.me, to, kind, bytes(body))
        self.hub.under_way.append((passing, done))

    def close(self) -> None:
        pass


class HubLoop(Loop):
    """Does long computations at once, and not in a thread."""

    def work(self, job: Any, then: Any, failed: Any = None) -> None:
        try:
            found = job()
        except MtcdError as error:
            if failed is None:
                raise
            failed(error)
        else:
            then(found)


def compute_here(job: str, progress: Any, ids: list[str], *parts: bytes) -> bytes:
    """A private set intersection at once, and not in a process of its own."""
    written = wrap({"job": job}, json.dumps(ids).encode(), *parts)
    return psi_process._computed(written, lambda done, of: None)


class Hub:
    """All links. ``meddle`` sees every request before it arrives, ``tamper`` every answer, and may
    give another."""

    def __init__(
        self,
        folder: Path,
        clients: tuple[str, ...],
        participant: Callable[[Bundle], Participant],
        **changes: Any,
    ) -> None:
        self.wires: dict[str, Wire] = {}
        self.under_way: deque[tuple[Passing, Done]] = deque()
        self.meddle: Callable[[Passing], None] = lambda passing: None
        self.tamper: Callable[[Passing, bytes | None, Done], None] = lambda passing, answer, done: (
            None
        )
        self.clients, self.bundles = clients, make_bundles(folder, clients, **changes)
        self.now = 0.0
        self.shown: list[str] = []
        self.nodes = self.make_nodes(folder / "runs", participant)

    def make_nodes(
        self, folder: Path, participant: Callable[[Bundle], Participant]
    ) -> dict[str, Node]:
        """All parties, each with a folder of its own."""
        return {
            name: self._node(bundle, folder / name, participant(bundle))
            for name, bundle in self.bundles.items()
        }

    def _node(self, bundle: Bundle, folder: Path, participant: Participant) -> Node:
        return Node(
            bundle,
            folder,
            participant,
            self.shown.append,
            HubLoop(lambda: self.now),
            partial(Wire, self),
        )

    def begin(self) -> None:
        """All start, then all links come up."""
        for node in self.nodes.values():
            node._begin()
        for name, wire in self.wires.items():
            for peer in sorted(wire.peers & self.wires.keys()):
                wire.up.add(peer)
                self.nodes[name]._changed(peer, True)

    def run(self, steps: int = 100_000) -> None:
        """Until all have left."""
        for _ in range(steps):
            if all(node.loop._stopped for node in self.nodes.values()):
                return
            if not self.act() and not self.deliver() and not self.leave():
                self.wait()
        raise AssertionError({name: node.log.tail[-1] for name, node in self.nodes.items()})

    def train(
        self,
        meddle: Callable[[Passing], None] | None = None,
        tamper: Callable[[Passing, bytes | None, Done], None] | None = None,
    ) -> None:
        """From the start until all have left, with somebody who meddles or tampers, if given."""
        self.meddle = meddle or self.meddle
        self.tamper = tamper or self.tamper
        self.begin()
        self.run()

    def act(self) -> bool:
        """All that the parties have to do now."""
        return sum(_drain(node) for node in self.nodes.values()) > 0

    def deliver(self) -> bool:
        """The next request."""
        if not self.under_way:
            return False
        passing, done = self.under_way.popleft()
        back = self.nodes[passing.sender].loop
        if self.nodes[passing.to].loop._stopped:
            back.call(lambda: done(None))
            return True
        self.meddle(passing)

        def answered(answer: bytes | None) -> None:
            back.call(lambda: self._answer(passing, answer, done))

        self.wires[passing.to].heard(
            IncomingRequest(passing.sender, passing.kind, passing.body, once(answered))
        )
        return True

    def leave(self) -> bool:
        """The links of those who have stopped go down."""
        gone = [name for name, node in self.nodes.items() if node.loop._stopped]
        before = [
            (name, one) for name, wire in self.wires.items() for one in gone if one in wire.up
        ]
        for name, one in before:
            self.wires[name].up.discard(one)
            self.nodes[name]._changed(one, False)
        return bool(before)

    def _answer(self, passing: Passing, answer: bytes | None, done: Done) -> None:
        self.tamper(passing, answer, done)
        done(answer)

    def wait(self) -> None:
        """Until the next timer."""
        loops = [
            node.loop
            for node in self.nodes.values()
            if node.loop._timers and not node.loop._stopped
        ]
        due, _, act = heapq.heappop(min(loops, key=lambda loop: loop._timers[0][0])._timers)
        self.now = max(self.now, due)
        act()

    def ask(self, passing: Passing) -> bytes | None:
        """Ask somebody something out of turn; the answer, None without one."""
        answers: list[bytes | None] = []
        self.wires[passing.to].heard(
            IncomingRequest(passing.sender, passing.kind, passing.body, once(answers.append))
        )
        assert len(answers) <= 1
        return answers[0] if answers else None

    def __enter__(self) -> Hub:
        self._in_one_process = patch.object(psi_process, "compute", compute_here)
        self._in_one_process.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._in_one_process.stop()
        for node in self.nodes.values():
            node.log.close()
            node.folder.close()


def linear(data: VerticalData) -> Callable[[Bundle], Participant]:
    """Every party with its own part of the data."""
    return lambda bundle: LinearParticipant(bundle, own_table_of(data, bundle))


def _drain(node: Node) -> bool:
    done = False
    while not node.loop._stopped:
        try:
            act = node.loop._queue.get_nowait()
        except Empty:
            return done
        act()
        done = True
    return done


def holds(node: Node) -> tuple[Any, ...]:
    """All that a party holds, in its folder and in memory, but for its log."""
    files = {
        p.name: p.read_bytes() for p in sorted(node.folder.path.iterdir()) if p.name != "log.jsonl"
    }
    if node.trainer is None:
        return files, node.agreed
    reliable = node.trainer.reliable
    return files, pack(reliable.snapshot()), reliable.down, node.agreed
