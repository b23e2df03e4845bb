"""The engine on Ray: the driver of a training whose parties are hosted by actors.

- **Observations**: the party that reports progress is held by its host (``host.py``) until the observer asks for the
  next observation. Nothing is under way then, so ledgers, parameters and states of all hosts are of one moment.
- **Snapshots**: at observations, at most every few seconds, the driver keeps the states of all hosts. If the observer
  needs no observation for long, the driver holds the parties in between for that purpose alone.
- **Faults**: when actors die, new ones are created, all hosts go back to the latest snapshot, and the training
  continues in a new term; messages of an older term are discarded. As everything is a function of seed and iteration,
  iterates and ledger are those of a training without faults.
"""

from __future__ import annotations

import logging
import pickle
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import fields
from time import perf_counter
from typing import Any, NamedTuple

from mtcd.engines.ray.cluster import ActorsDied, Cluster
from mtcd.engines.ray.host import HostState, Report
from mtcd.engines.ray.placement import place
from mtcd.engines.ray.settings import Ray
from mtcd.errors import MtcdError
from mtcd.ledger.ledger import Ledger
from mtcd.protocol.engine import Engine, Recipe
from mtcd.protocol.model import EpochLoss
from mtcd.protocol.monitor import Monitor
from mtcd.protocol.party import SERVER, Message, Part, Parties, Progress
from mtcd.protocol.snapshots import restored, take
from mtcd.protocol.state import Snapshot

log = logging.getLogger("mtcd.engines.ray")
PAUSE_SECONDS = 0.05  # between two checks of the clock, for an observer that may pause
PATIENCE = 60.0  # after an interrupt, for the parties to hold one model
SNAPSHOT_SHARE = 50.0  # taking snapshots takes no more than 1/50 of the time


class Kept(NamedTuple):
    """A snapshot for recovery: the pickled state of each host, and what the driver had then."""

    hosts: dict[int, bytes] | None
    ledger: Ledger
    trace: dict[str, Any] | None
    hop: int


class RayEngine(Engine):
    """Runs the parties of a recipe in actors. ``parties`` are those of this process, which never train."""

    def __init__(
        self, settings: Ray, recipe: Recipe, parties: Parties, ledger: Ledger, cluster: Cluster | None = None
    ) -> None:
        self.settings, self.recipe, self.parties, self.ledger = settings, recipe, parties, ledger
        self.cluster = cluster or Cluster(settings)
        self.placed: list[list[int]] = []
        self.restarts = 0
        """How often actors have died and were replaced."""
        self._shares: list[Any] = []
        self._routes: dict[int, int] = {}
        self._term = 0
        self._due: float = 0
        self._polls: dict[int, Any] = {}
        self._before = Ledger(float_bytes=ledger.float_bytes)
        """What the ledger had before the hosts began: the messages of an earlier training that this one continues."""
        self._resumed: dict[int, bytes] | None = None
        self._kept: Kept | None = None
        self._snapshot_due, self._spacing = 0.0, settings.snapshot_seconds
        self._observed: Progress | None = None
        self._reporters: list[int] = []
        self._states: dict[int, bytes] | None = None
        self._parameters: list[Any] | None = None
        self._pace: tuple[float, int] | None = None
        self._deaths = 0
        self._last = -1
        """The iteration of the latest observation that was yielded."""
        self._stopped = False

    # Start and end

    def start(self) -> None:
        try:
            self.cluster.start()
            network = self.recipe.network
            self.placed = place(network, self.cluster.room(), self.recipe.weights(), self.recipe.together())
            self._routes = {k: host for host, clients in enumerate(self.placed) for k in clients}
            self._routes[SERVER] = 0
            self._shares = [self.cluster.put(self.recipe.share(clients)) for clients in self.placed]
            self._create(range(len(self.placed)))
            self.recipe.bind(self.aggregate)
        except ActorsDied as died:
            self.stop()
            raise MtcdError(f"An actor died as it started: {died.reason}. {_ADVICE}") from None
        except BaseException:
            self.stop()
            raise

    def _create(self, numbers: Sequence[int]) -> None:
        self.cluster.create(numbers)
        server = None if self.parties.server is None else SERVER
        self.cluster.call_of(
            numbers,
            "open",
            lambda n: (self._shares[n], n, self.placed[n], server if n == self._routes[SERVER] else None),
        )

    def stop(self) -> None:
        if not self._stopped:
            self._stopped = True
            if self._observed is not None and self.cluster.handles and self._parameters is None:
                self._parameters = self._fetch_parameters()
            self.cluster.stop()

    # Running

    def skip_to(self, iteration: float) -> None:
        self._due = iteration

    def run(self, pausing: bool = False) -> Iterator[Progress | None]:
        self._before = deepcopy(self.ledger)
        self._keep(self._resumed, 0)
        self._attempt(self._prepare)
        while True:
            progress = None
            for progress in self._wait(pausing):
                if progress is None and pausing:
                    yield None
            assert progress is not None
            if self._observe(progress):
                self._last = progress.hop
                yield progress
                self._continue()

    def _attempt(self, action: Any) -> bool:
        """Do something with all hosts; if some have died, recover. Returns whether it was done."""
        try:
            action()
            return True
        except ActorsDied as died:
            self._recover(died)
            return False

    def _prepare(self) -> None:
        """Bring all hosts to the latest snapshot, and let them run."""
        kept, self._term = self._kept, self._term + 1
        assert kept is not None
        due = self._hold_from(kept.hop)
        peers = [self.cluster.handles[number] for number in range(len(self.placed))]
        bits, traced = self.ledger.float_bytes, self.tracer is not None
        states = kept.hosts or {}
        self.cluster.call("prepare", lambda n: (self._term, peers, self._routes, due, states.get(n), bits, traced))
        self._observed = None
        self._release(range(len(self.placed)), due)

    def _release(self, hosts: Sequence[int], due: float) -> None:
        self._pace = None if self._observed is None else (perf_counter(), self._observed.hop)
        for number in hosts:
            self.cluster.tell(number, "release", self._term, due)

    def _wait(self, pausing: bool) -> Iterator[Progress | None]:
        """Yields None while waiting, then the next progress."""
        parts: dict[int, Part] = {}
        reporters: list[int] = []
        while True:
            try:
                self._polls |= {n: self.cluster.ask(n, "poll") for n in self.cluster.handles if n not in self._polls}
                reports = self.cluster.wait(self._polls, PAUSE_SECONDS if pausing else None)
            except ActorsDied as died:
                self._recover(died)
                parts, reporters = {}, []
                continue
            for number, report in reports.items():
                del self._polls[number]
                if report.term != self._term:
                    continue
                reporters.append(number)
                progress = self._progress(report, parts)
                if progress is not None:
                    self._reporters = reporters
                    yield progress
                    return
            yield None

    def _progress(self, report: Report, parts: dict[int, Part]) -> Progress | None:
        """The progress that a report completes."""
        if report.error is not None:
            raise report.error
        if report.progress is not None:
            return report.progress
        parts |= report.parts or {}
        if len(parts) < len(self.parties.clients):
            return None
        return Progress(parts[0].iteration, 0, None, 0.0, [parts[k].parameters for k in range(len(parts))])

    def _observe(self, progress: Progress) -> bool:
        """Collect what belongs to an observation; returns whether the observer wants it."""
        self._measure_pace(progress)
        self._observed, self._states = progress, None
        self._parameters = None if progress.parameters is None else list(progress.parameters)
        try:
            found = self.cluster.call("observed")
            self._add_up([ledger for ledger, _, _ in found.values()], [traced for _, traced, _ in found.values()])
            for number, (_, _, warnings) in found.items():
                for line in warnings:
                    log.warning("Actor %d: %s", number, line)
            if perf_counter() >= self._snapshot_due:
                began = perf_counter()
                self._keep(self._host_states(), progress.hop)
                self._spacing = max(self.settings.snapshot_seconds, SNAPSHOT_SHARE * (perf_counter() - began))
                self._snapshot_due = perf_counter() + self._spacing
        except ActorsDied as died:
            self._recover(died)
            return False
        if progress.hop < self._wanted:
            self._continue()
            return False
        return True

    def _continue(self) -> None:
        """After an observation: release those that are held."""
        assert self._observed is not None
        due = self._hold_from(self._observed.hop)
        self._release(self._reporters, due)
        self._observed = None

    @property
    def _wanted(self) -> float:
        """The iteration of the next observation; after a fault, none is reported twice."""
        return max(self._due, self._last + 1)

    def _hold_from(self, hop: int) -> float:
        """The iteration at which the parties are held next: that of the observer, or earlier for a snapshot."""
        if self._rate is None:
            return min(self._wanted, 2 * hop + 10)
        return min(self._wanted, hop + max(1, int(self._rate * self._spacing)))

    _rate: float | None = None
    """Iterations per second."""

    def _measure_pace(self, progress: Progress) -> None:
        if self._pace is not None and progress.hop > self._pace[1]:
            began, hop = self._pace
            self._rate = (progress.hop - hop) / max(perf_counter() - began, 1e-6)

    def _add_up(self, ledgers: Sequence[Ledger], traced: Sequence[Any]) -> None:
        if self.tracer is not None:
            self.tracer.replay(traced)
        self._set_ledger(Ledger.total([self._before, *ledgers]))

    def _set_ledger(self, found: Ledger) -> None:
        """In place: tracer and observer have the same ledger."""
        for one in fields(Ledger):
            setattr(self.ledger, one.name, deepcopy(getattr(found, one.name)))

    # Faults

    def _keep(self, hosts: dict[int, bytes] | None, hop: int) -> None:
        trace = None if self.tracer is None else deepcopy(self.tracer.state())
        self._kept = Kept(hosts, deepcopy(self.ledger), trace, hop)
        self._deaths = 0

    def _recover(self, died: ActorsDied) -> None:
        """Replace the actors that died, and go back to the latest snapshot."""
        while True:
            self._deaths += 1
            self.restarts += 1
            if self._deaths > self.settings.restarts:
                raise MtcdError(
                    f"Actors have died {self._deaths} times without progress, the last one because: {died.reason}. "
                    + _ADVICE
                )
            names = [self.recipe.network.clients[self.placed[n][0]] for n in died.numbers]
            log.warning(
                "%d actor(s) died (with the clients %s, ...): %s. They are restarted from the last snapshot.",
                len(died.numbers),
                ", ".join(names),
                died.reason,
            )
            assert self._kept is not None
            self._set_ledger(self._kept.ledger)
            if self.tracer is not None and self._kept.trace is not None:
                self.tracer.restore(deepcopy(self._kept.trace))
            for number in died.numbers:  # the others' polls go on: a second one would miss what the first receives
                self._polls.pop(number, None)
            try:
                self._create(died.numbers)
                self._prepare()
                return
            except ActorsDied as again:
                died = again

    # What is observed

    def parameters(self) -> list[Any]:
        if self._parameters is None:
            if self._observed is None:
                self._interrupt()
            self._parameters = self._fetch_parameters()
        return self._parameters

    def _fetch_parameters(self) -> list[Any]:
        if self.parties.gather is None:
            found: dict[int, Any] = {}
            for part in self.cluster.call("parameters").values():
                found |= part
            return [found[k] for k in range(len(self.parties.clients))]
        return self._restored_here()

    def _restored_here(self) -> list[Any]:
        """The parties of this process take over the states of those in the hosts; returns the parameters."""
        for host in self._unpickled():
            for number, state in host.parties.items():
                party = self.parties.server if number == SERVER else self.parties.clients[number]
                assert party is not None
                party.restore(state)
            self.parties.adopt(host.waiting)
        return self.parties.parameters()

    def _unpickled(self) -> list[HostState]:
        return [pickle.loads(state) for state in self._host_states().values()]

    def _interrupt(self) -> None:
        """After an interrupt between two observations: wait until the parties hold one model."""
        self._due, ends = 0, perf_counter() + PATIENCE
        for number in self.cluster.handles:
            self.cluster.tell(number, "hold_at", self._wanted)
        while self._observed is None:
            for progress in self._wait(pausing=True):
                if progress is not None:
                    self._observe(progress)
                elif perf_counter() > ends:
                    raise MtcdError(f"After the interrupt, the parties did not hold one model within {PATIENCE:.0f} s.")

    def aggregate(self, parameters: Sequence[Any]) -> Any:
        """The sum of all representations with these parameters, computed where the blocks are."""
        own = {n: {k: parameters[k] for k in clients} for n, clients in enumerate(self.placed)}
        try:
            found = self.cluster.call("aggregate", lambda n: (own[n],))
        except ActorsDied as died:
            raise MtcdError(f"An actor died during a measurement: {died.reason}. Resume from the checkpoint.") from None
        return sum(found[n] for n in sorted(found))

    def epoch_loss(self) -> EpochLoss | None:
        if self.parties.checkpointed is None:
            return None
        [found] = self.cluster.call_of(self._reporters, "epoch_loss", lambda n: ()).values()
        return found  # type: ignore[no-any-return]

    def _host_states(self) -> dict[int, bytes]:
        if self._states is None:
            self._states = self.cluster.call("state")
        return self._states

    def snapshot(self) -> Snapshot:
        """The parties and the messages under way, as the local engine has them."""
        if self.parties.checkpointed is not None:
            self._restored_here()
            return self.parties.checkpointed.snapshot()
        hosts = self._unpickled()
        parties = {number: state for host in hosts for number, state in host.parties.items()}
        progress = self._observed
        assert progress is not None
        own = None if progress.parameters is None else list(progress.parameters)
        monitor = Monitor(len(self.parties.clients))
        return take(
            {
                "parties": [parties[number] for number in self._numbers()],
                "monitor": monitor.state(),
                "waiting": [message for host in hosts for message in host.waiting],
                "outgoing": [message for host in hosts for message in host.outgoing],
                "ahead": {},
                "observed": own,
                "reached": progress.hop,
            }
        )

    def _numbers(self) -> list[int]:
        return [*range(len(self.parties.clients)), *([] if self.parties.server is None else [SERVER])]

    def resume(self, snapshot: Snapshot) -> None:
        if self.parties.checkpointed is not None:
            opening = self.parties.checkpointed.resume(snapshot)
            everybody = [*self.parties.clients, *([] if self.parties.server is None else [self.parties.server])]
            self._resume_hosts([party.state() for party in everybody], [], opening)
            return
        state = restored(snapshot)
        if state["ahead"] or state["monitor"]["reports"]:
            raise MtcdError("The checkpoint is of clients that are ahead of each other: resume it without engine: ray.")
        self._resume_hosts(state["parties"], state["waiting"], state["outgoing"])

    def _resume_hosts(
        self, parties: Sequence[dict[str, Any]], waiting: Sequence[Message], outgoing: Sequence[Message]
    ) -> None:
        """Have the hosts start with these states and messages."""
        hosts = {n: HostState({}, ledger=Ledger(float_bytes=self.ledger.float_bytes)) for n in range(len(self.placed))}
        for number, own in zip(self._numbers(), parties, strict=True):
            hosts[self._routes[number]].parties[number] = own
        for message in waiting:
            hosts[self._routes[message.to]].waiting.append(message)
        for message in outgoing:
            hosts[self._routes[message.sender]].outgoing.append(message)
        self._resumed = {n: pickle.dumps(host, protocol=5) for n, host in hosts.items()}


_ADVICE = (
    "See the logs of Ray (/tmp/ray/session_latest/logs on that node). If its memory ran out, set fewer actors per "
    "node (engine.cpus), reserve memory (engine.memory), or add nodes."
)
