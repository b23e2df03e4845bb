"""A federation as an engine: every party is a node in a thread of this process, with real links and
journals.

It runs a whole federation on one machine: in the contract suite, and for trials before the parties
start on their own hosts. The nodes are those of ``mtcd party``; here an observer watches them.

What can be observed, and what cannot:

- **Progress** comes from the party that reports it, which waits until the observer asks for the
  next observation. Observations that the observer skips (``skip_to``) cost nothing.
- **Parameters** of linear models are read from the parties at an observation, which is impossible
  across hosts. Those of split networks are available only after the end, in the parties' blocks.
- **The ledger** is the sum of the parties' ledgers. It is exact after the end. At an observation of
  a single token without a server it lacks the hop that the token is about to make, and where
  clients report their parts of an iteration (DCPA), it may have messages of the next.
- **The end**: the parties apply stop and divergence rules themselves (``node/watch.py``). Stopping
  the engine before they end is like a crash of all processes: ``resume`` continues from their
  journals.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Condition, Thread
from time import sleep
from typing import Any

from mtcd.core.errors import MtcdError
from mtcd.federation.credentials.bundle import Bundle
from mtcd.federation.names import SERVER as SERVER_NAME
from mtcd.federation.node.node import Node
from mtcd.federation.node.watch import reached
from mtcd.federation.participant.kinds import make_participant
from mtcd.federation.participant.participant import Participant
from mtcd.protocol.engine import Engine, Monitor
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.protocol.party import MONITOR, Message, Progress
from mtcd.protocol.state import Snapshot

PAUSE_SECONDS = 0.05  # between two checks of the clock, for an observer that may pause
END_SECONDS = 120.0  # for all parties to learn of the end


class FederationEngine(Engine):
    """Runs the parties (and the server) of these bundles, with run folders in ``folder``.

    ``participant`` makes the participant of a bundle; without it, tables are read as the bundles say.
    """

    def __init__(
        self,
        bundles: Mapping[str, Bundle],
        folder: Path,
        participant: Callable[[Bundle], Participant] | None = None,
    ) -> None:
        self.bundles, self.folder = bundles, folder
        self.participant = participant or partial(make_participant, given={})
        self.ledger = Ledger()
        self.nodes: dict[str, Node] = {}
        self._threads: list[Thread] = []
        self._failure: BaseException | None = None
        self._monitor = Monitor(len(bundles) - (SERVER_NAME in bundles))
        self._changed = Condition()
        """Guards the attributes below, which the threads of the parties share with the observer."""
        self._due: float = 0
        self._observed: Progress | None = None
        self._released = -1
        """The last iteration whose observation is over."""
        self._running = 0
        self._limit_reached = False
        """Whether a party has ended the training, or is about to."""
        self._leaving = False

    @property
    def statuses(self) -> dict[str, str | None]:
        """The status of the end at each party."""
        return {name: node.status for name, node in self.nodes.items()}

    def run(self, pausing: bool = False) -> Iterator[Progress | None]:
        self._start_nodes()
        timeout = None
        if pausing:
            timeout = PAUSE_SECONDS
        while True:
            with self._changed:
                self._changed.wait_for(
                    lambda: self._observed is not None or not self._running, timeout
                )
                observed, over = self._observed, not self._running

            if observed is not None:
                self._add_up()
                yield observed
                self._release(observed)
            elif over:
                self._conclude()
                if self._failure is not None:
                    raise self._failure
                return
            else:
                yield None

    def skip_to(self, iteration: float) -> None:
        with self._changed:
            self._due = iteration

    def parameters(self) -> list[Any]:
        if any(bundle.config.model.any_shape for bundle in self.bundles.values()):
            raise MtcdError(
                "In a federation, networks stay with their parties: read the blocks in their run "
                "folders after the end."
            )
        while self._running and any(node.trainer is None for node in self.nodes.values()):
            # the first observation may come before all parties have started the run
            sleep(PAUSE_SECONDS)
        with self._changed:
            # an interrupt: wait for the next observation
            if self._running and self._observed is None:
                self._due = 0
                self._changed.wait_for(lambda: self._observed is not None or not self._running)
            if self._observed is not None and self._observed.parameters is not None:
                return list(self._observed.parameters)

        clients: list[Any] = [self.nodes[name].party for name in self._names]
        server = None
        if SERVER_NAME in self.nodes:
            server = self.nodes[SERVER_NAME].party
        parties = self.nodes[self._names[0]].role.parties
        return replace(parties, clients=clients, server=server).parameters()

    def snapshot(self) -> Snapshot:
        """The folder of the journals, from which ``resume`` continues after ``stop``."""
        return Snapshot({"folder": str(self.folder)}, {})

    def resume(self, snapshot: Snapshot) -> None:
        self.folder = Path(snapshot.facts["folder"])

    def stop(self) -> None:
        with self._changed:
            # parties that are ending tell each other: they are left to it
            ending = self._limit_reached
            self._leaving = self._leaving or not ending
            self._observed, self._due, self._released = None, math.inf, sys.maxsize
            self._changed.notify_all()
        if not ending:
            for node in self.nodes.values():
                node.loop.stop()
        for thread in self._threads:
            # the end is gossiped: parties learn of it one after the other
            thread.join(END_SECONDS)
        if any(thread.is_alive() for thread in self._threads):
            for node in self.nodes.values():
                node.loop.stop()
            raise MtcdError(
                f"The parties did not end within {END_SECONDS:.0f} s: see their logs in "
                f"{self.folder}."
            )
        self._conclude()

    @property
    def _names(self) -> list[str]:
        return [name for name in self.bundles if name != SERVER_NAME]

    def _start_nodes(self) -> None:
        try:
            for name, bundle in self.bundles.items():
                # real journals, in a folder for each party, as on hosts of their own
                node = Node(bundle, self.folder / name, self.participant(bundle), None)
                node.report = partial(self._report, node.number)
                self.nodes[name] = node
        except BaseException:
            for node in self.nodes.values():
                node.close()
            raise

        self._running = len(self.nodes)
        self._threads = [
            Thread(target=self._run_node, args=(node,), daemon=True) for node in self.nodes.values()
        ]
        for thread in self._threads:
            thread.start()

    def _run_node(self, node: Node) -> None:
        try:
            node.run()
        except BaseException as error:
            self._fail(error)
        with self._changed:
            self._running -= 1
            self._changed.notify_all()

    def _fail(self, error: BaseException) -> None:
        """Handle the error of a party: all others exit, and ``run`` raises it."""
        with self._changed:
            if self._leaving:
                return
            self._failure, self._leaving = error, True
            self._changed.notify_all()
        for node in self.nodes.values():
            node.loop.stop()

    def _report(self, number: int, payload: Any, status: str | None) -> str | None:
        """Called in a party's thread with a report to the monitor, and the status if it ends the
        training.

        The party waits here during the observation, unless other clients have yet to report their
        parts: a waiting party retries nothing, and they may need it. Returns the status, or raises
        if the party is to exit.
        """
        hop = reached(payload) or 0
        with self._changed:
            if status is not None:
                self._limit_reached = True
            # each iteration is observed once, also if a party reports it again after a restart
            if hop >= self._due and hop > self._released:
                progress = self._monitor.collect(Message(number, MONITOR, payload))
                if progress is not None:
                    self._observed = _progress(progress)
                    self._changed.notify_all()
                    self._changed.wait_for(lambda: self._leaving or self._released >= hop)
            if self._leaving:
                # as if its process were interrupted: its journal is complete
                raise KeyboardInterrupt
        return status

    def _release(self, observed: Progress) -> None:
        with self._changed:
            if self._observed is observed:
                self._observed, self._released = None, observed.hop
            self._changed.notify_all()

    def _add_up(self) -> None:
        trainers = [node.trainer for node in self.nodes.values()]
        self.ledger = Ledger.total(
            [trainer.reliable.ledger for trainer in trainers if trainer is not None]
        )

    def _conclude(self) -> None:
        """Collect ledgers and status after all parties have exited."""
        self._add_up()
        found = {status for status in self.statuses.values() if status is not None}
        self.status = None
        if len(found) == 1:  # parties that disagree have no status
            self.status = found.pop()


def _progress(report: Any) -> Progress:
    """The progress in a report to the monitor, which may be a single token."""
    if isinstance(report, Progress):
        return report
    return Progress(report.hop, report.t, report.aggregate, report.penalty)
