"""Gossip of exit statuses: a party sends its own to all peers, and keeps theirs for the operator.

The server is not told the objective, which it may not know. Without a server, parties forward a
status to neighbours that are not directly connected to its origin. So the last party to leave knows
how all the others ended.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from time import sleep, time
from typing import Any

from mtcd.core.errors import WireError
from mtcd.federation.names import SERVER
from mtcd.federation.node.context import NodeContext
from mtcd.federation.node.exit_status import FILE, RUNNING, ExitStatus, ExitStatuses, Signed, Signer
from mtcd.federation.node.folder import RunFolder
from mtcd.federation.node.rpc import IncomingRequest

EXIT_STATUS = "last_word"  # the kind of the request: part of the protocol
WAIT_SECONDS = 1.0  # for acks, before this party leaves
STEP_SECONDS = 0.05
SENDING_SECONDS = 0.2  # when the loop has failed, and no ack is processed


class ExitStatusGossip:
    """The exit statuses that one party knows. ``run`` is empty before a run is agreed."""

    def __init__(self, context: NodeContext, folder: RunFolder) -> None:
        self.bundle, self.rpc, self.loop, self.log = (
            context.bundle,
            context.rpc,
            context.loop,
            context.log,
        )
        self.me, self.run = context.bundle.config.name, ""
        self.known = ExitStatuses(context.bundle, folder.path / FILE)
        self._signer = Signer(context.bundle)
        self._for_server: Signed | None = None
        self._told: dict[str, set[tuple[str, int]]] = {}
        """By peer: the statuses that it has, or that are being sent to it."""
        self._pending = 0
        config = context.bundle.config
        self._near = {frozenset(link) for link in config.links}
        self._forwards = SERVER not in config.peers and not config.is_server
        self.rpc.on(EXIT_STATUS, self._receive)

    def begin(self, run: str) -> None:
        """Start a run, or resume it: drop the statuses of other runs, and report running again."""
        self.run = run
        self.known.keep_runs([run])
        if self.me in self.known.statuses:
            self.say(RUNNING)

    def say(self, outcome: str, **facts: Any) -> None:
        """A new status of this party."""
        before = self.known.statuses.get(self.me)
        moment = max(int(time() * 1000), 0 if before is None else before.time + 1)
        status = ExitStatus.model_validate(
            {"party": self.me, "run": self.run, "outcome": outcome, "time": moment, **facts}
        )
        self.known.add(status, self._signer.sign(status))
        self._for_server = self._signer.sign(status.model_copy(update={"objective": None}))
        self.tell()

    def tell(self) -> None:
        """Send all peers that are up the statuses that they do not have."""
        for peer in sorted(self.rpc.link.up):
            new = {
                name: status
                for name, status in self.known.statuses.items()
                if self._is_for(name, peer)
            }
            told = self._told.setdefault(peer, set())
            fresh = {
                name: (name, status.time)
                for name, status in new.items()
                if (name, status.time) not in told
            }
            if fresh:
                told |= set(fresh.values())
                body = self._bodies(peer, list(fresh))
                self._pending += 1
                self.rpc.ask(
                    peer, EXIT_STATUS, body, self._answered(peer, set(fresh.values())), True
                )

    def _is_for(self, name: str, peer: str) -> bool:
        """Whether this party sends a peer the status of party ``name``."""
        if name == self.me:
            return True
        return self._forwards and name != peer and frozenset((name, peer)) not in self._near

    def _bodies(self, peer: str, names: list[str]) -> bytes:
        if peer == SERVER and self._for_server is not None:
            return json.dumps([self._for_server]).encode()
        return json.dumps(self.known.signed(names)).encode()

    def _answered(
        self, peer: str, sent: set[tuple[str, int]]
    ) -> Callable[[bytes | None, str], None]:
        def answered(answer: bytes | None, why: str) -> None:
            self._pending -= 1
            if answer is None and not why:  # lost; one that is refused is not sent again
                self._told[peer] -= sent

        return answered

    def _receive(self, request: IncomingRequest) -> None:
        """Keep what a peer sends: its own status, and others that it forwards."""
        try:
            brought = json.loads(request.body)
        except (ValueError, RecursionError):
            brought = None
        members = len(self.bundle.config.parties) + 1
        if not isinstance(brought, list) or not 1 <= len(brought) <= members or not request.direct:
            raise WireError("exit statuses", "are not readable")
        statuses = [self.known.read(signed) for signed in brought]
        if len({status.party for status in statuses}) < len(statuses):
            raise WireError("exit statuses", "hold two of one party")
        if any(status.run != self.run for status in statuses):
            raise WireError("run", "is another one")
        told = self._told.setdefault(request.sender, set())
        for status, signed in zip(statuses, brought, strict=True):
            if status.party != self.me:
                self.known.add(status, signed)
                told.add((status.party, status.time))
        request.answer()
        if self._forwards:
            self.tell()

    # Leaving

    def leave(self, then: Callable[[], None]) -> None:
        """Call ``then`` when the statuses are delivered, or after a while."""
        self.tell()
        end = self.loop.now() + WAIT_SECONDS

        def step() -> None:
            if self._pending and self.loop.now() < end:
                self.loop.later(STEP_SECONDS, step)
            else:
                then()

        step()

    def say_at_once(self, outcome: str, **facts: Any) -> None:
        """Send a new status after the loop has failed, without waiting for acks."""
        self.say(outcome, **facts)
        if self._pending:
            sleep(SENDING_SECONDS)
