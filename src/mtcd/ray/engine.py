"""The engine on Ray: the driver of a training whose parties are hosted by actors.

- **Observations**: the party that reports progress is held by its host (``host.py``) until the
  observer asks for the next observation. Nothing is under way then, so ledgers, parameters and
  states of all hosts are of one moment.
- **Snapshots**: at observations, at most every few seconds, the driver keeps the states of all
  hosts. If the observer needs no observation for long, the driver holds the parties in between for
  that purpose alone.
- **Faults**: when actors die, new ones are created, all hosts go back to the latest snapshot, and
  the training continues in a new term; messages of an older term are discarded. As everything is a
  function of seed and iteration, iterates and ledger are those of a training without faults.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import fields
from time import perf_counter
from typing import Any, NamedTuple

from mtcd.core.errors import MtcdError
from mtcd.protocol.engine import Engine, Recipe
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.protocol.model import EpochLoss
from mtcd.protocol.party import SERVER, Part, Parties, Progress
from mtcd.protocol.state import Snapshot
from mtcd.ray.cluster import ActorsDied, RayActors
from mtcd.ray.host import Report
from mtcd.ray.pacing import Pacing
from mtcd.ray.placement import place
from mtcd.ray.settings import Ray
from mtcd.ray.states import adopt, as_host_states, as_snapshot, unpickled

log = logging.getLogger("mtcd.ray")
PAUSE_SECONDS = 0.05  # between two checks of the clock, for an observer that may pause
PATIENCE = 60.0  # after an interrupt, for the parties to hold one model


class RecoverySnapshot(NamedTuple):
    """A snapshot for recovery: the pickled state of each host, and what the driver had then."""

    hosts: dict[int, bytes] | None
    ledger: Ledger
    listeners: dict[str, dict[str, Any]]
    """The states of the listeners, by name."""
    hop: int


class RayEngine(Engine):
    """Runs the parties of a recipe in actors. ``parties`` are those of this process, which never
    train."""

    def __init__(
        self,
        settings: Ray,
        recipe: Recipe,
        parties: Parties,
        ledger: Ledger,
        cluster: RayActors | None = None,
    ) -> None:
        self.settings = settings
        self.recipe = recipe
        self.parties = parties
        self.ledger = ledger
        # one that several trainings share is given by who ends it
        self.cluster = cluster or RayActors(settings)
        self.placed: list[list[int]] = []
        self.restarts = 0
        """How often actors have died and were replaced."""
        self._shares: list[Any] = []
        self._routes: dict[int, int] = {}
        self._term = 0
        self._pacing = Pacing(settings.snapshot_seconds)
        self._polls: dict[int, Any] = {}
        self._before = Ledger(float_bytes=ledger.float_bytes)
        """What the ledger had before the hosts began: the messages of an earlier training that this
        one continues."""
        self._resumed: dict[int, bytes] | None = None
        self._kept: RecoverySnapshot | None = None
        self._observed: Progress | None = None
        self._reporters: list[int] = []
        self._states: dict[int, bytes] | None = None
        self._parameters: list[Any] | None = None
        self._deaths = 0
        self._stopped = False

    # Start and end

    def start(self) -> None:
        try:
            self.cluster.start(self.recipe.device())
            network = self.recipe.network
            self.placed = place(
                network, self.cluster.room(), self.recipe.weights(), self.recipe.together()
            )
            self._routes = {SERVER: 0}
            for host, clients in enumerate(self.placed):
                self._routes |= dict.fromkeys(clients, host)
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
        servers: list[int | None] = [None] * len(self.placed)
        if self.parties.server is not None:
            servers[self._routes[SERVER]] = SERVER
        self.cluster.call_of(
            numbers, "open", lambda n: (self._shares[n], n, self.placed[n], servers[n])
        )

    def stop(self) -> None:
        if not self._stopped:
            self._stopped = True
            # the model is asked for after the training, when its hosts are gone
            if self._observed is not None and self.cluster.handles and self._parameters is None:
                self._parameters = self._fetch_parameters()
            self.cluster.stop()

    # Running

    def skip_to(self, iteration: float) -> None:
        self._pacing.due = iteration

    def run(self, pausing: bool = False) -> Iterator[Progress | None]:
        # a first snapshot of nothing done: actors may die before the first one is taken
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
                self._pacing.last = progress.hop
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
        kept = self._kept
        assert kept is not None
        # messages of before carry the old term: whatever is still under way will be discarded
        self._term = self._term + 1
        due = self._pacing.hold_from(kept.hop)

        peers = [self.cluster.handles[number] for number in range(len(self.placed))]
        bits = self.ledger.float_bytes
        # none at the very start: parties then begin as they were made
        states = kept.hosts or {}
        recorders = [listener.recorder() for listener in self.listeners.values()]
        self.cluster.call(
            "prepare",
            lambda n: (self._term, peers, self._routes, due, states.get(n), bits, recorders),
        )
        self._observed = None
        self._release(range(len(self.placed)), due)

    def _release(self, hosts: Sequence[int], due: float) -> None:
        hop = None
        if self._observed is not None:
            hop = self._observed.hop
        self._pacing.released(hop)
        for number in hosts:
            self.cluster.tell(number, "release", self._term, due)

    def _wait(self, pausing: bool) -> Iterator[Progress | None]:
        """Yields None while waiting, then the next progress."""
        timeout = None
        if pausing:
            timeout = PAUSE_SECONDS
        parts: dict[int, Part] = {}
        reporters: list[int] = []
        while True:
            try:
                # one open poll for each host: its answer is the next report
                for number in self.cluster.handles:
                    if number not in self._polls:
                        self._polls[number] = self.cluster.ask(number, "poll")

                reports = self.cluster.wait(self._polls, timeout)
            except ActorsDied as died:
                self._recover(died)
                parts = {}
                reporters = []
                continue

            for number, report in reports.items():
                del self._polls[number]
                if report.term != self._term:  # of before a fault
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
            return None  # other hosts are still on their way to this iteration

        parameters = [parts[k].parameters for k in range(len(parts))]
        return Progress(parts[0].iteration, 0, None, 0.0, parameters)

    def _observe(self, progress: Progress) -> bool:
        """Collect what belongs to an observation; returns whether the observer wants it."""
        self._pacing.reached(progress.hop)
        self._observed, self._states, self._parameters = progress, None, None
        if progress.parameters is not None:
            self._parameters = list(progress.parameters)
        if not self._attempt(self._collect):
            return False
        # it was held for a snapshot alone
        if progress.hop < self._pacing.wanted:
            self._continue()
            return False
        return True

    def _collect(self) -> None:
        """The ledgers and warnings of all hosts, and a snapshot if it is time for one."""
        found = self.cluster.call("observed")
        ledgers, recorded, warnings = zip(*found.values(), strict=True)
        self._add_up(ledgers, recorded)
        for number, lines in zip(found, warnings, strict=True):
            for line in lines:
                log.warning("Actor %d: %s", number, line)

        if self._pacing.snapshot_due and self._observed is not None:
            began = perf_counter()
            self._keep(self._host_states(), self._observed.hop)
            self._pacing.snapshot_took(perf_counter() - began)

    def _continue(self) -> None:
        """After an observation: release those that are held."""
        assert self._observed is not None
        due = self._pacing.hold_from(self._observed.hop)
        self._release(self._reporters, due)
        self._observed = None

    def _add_up(self, ledgers: Sequence[Ledger], recorded: Sequence[list[list[Any]]]) -> None:
        """The ledger of all hosts, and what their recorders have taken for each listener."""
        for number, listener in enumerate(self.listeners.values()):
            listener.replay([taken[number] for taken in recorded])

        self._set_ledger(Ledger.total([self._before, *ledgers]))

    def _set_ledger(self, found: Ledger) -> None:
        """In place: listeners and observer have the same ledger."""
        for one in fields(Ledger):
            setattr(self.ledger, one.name, deepcopy(getattr(found, one.name)))

    # Faults

    def _keep(self, hosts: dict[int, bytes] | None, hop: int) -> None:
        listeners = {name: deepcopy(one.state()) for name, one in self.listeners.items()}
        self._kept = RecoverySnapshot(hosts, deepcopy(self.ledger), listeners, hop)
        self._deaths = 0

    def _recover(self, died: ActorsDied) -> None:
        """Replace the actors that died, and go back to the latest snapshot."""
        while True:
            self._deaths += 1
            self.restarts += 1
            if self._deaths > self.settings.restarts:
                raise MtcdError(
                    f"Actors have died {self._deaths} times without progress, the last one "
                    f"because: {died.reason}. {_ADVICE}"
                )

            names = [self.recipe.network.clients[self.placed[n][0]] for n in died.numbers]
            log.warning(
                "%d actor(s) died (with the clients %s, ...): %s. They are restarted from the last "
                "snapshot.",
                len(died.numbers),
                ", ".join(names),
                died.reason,
            )

            # what was counted since the snapshot will be done, and counted, again
            assert self._kept is not None
            self._set_ledger(self._kept.ledger)
            for name, listener in self.listeners.items():
                listener.restore(deepcopy(self._kept.listeners[name]))

            # the others' polls go on: a second one would miss what the first receives
            for number in died.numbers:
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

        # where parties know more of the model than their parameters, those of this process gather it
        return adopt(self.parties, unpickled(self._host_states()))

    def _interrupt(self) -> None:
        """After an interrupt between two observations: wait until the parties hold one model."""
        # nothing is held now, so the parameters of hosts are of different moments
        self._pacing.due = 0
        ends = perf_counter() + PATIENCE
        for number in self.cluster.handles:
            self.cluster.tell(number, "hold_at", self._pacing.wanted)
        while self._observed is None:
            for progress in self._wait(pausing=True):
                if progress is not None:
                    self._observe(progress)
                elif perf_counter() > ends:
                    raise MtcdError(
                        "After the interrupt, the parties did not hold one model within "
                        f"{PATIENCE:.0f} s."
                    )

    def aggregate(self, parameters: Sequence[Any]) -> Any:
        """The sum of all representations with these parameters, computed where the blocks are."""
        own = [{k: parameters[k] for k in clients} for clients in self.placed]
        try:
            found = self.cluster.call("aggregate", lambda n: (own[n],))
        except ActorsDied as died:
            raise MtcdError(
                f"An actor died during a measurement: {died.reason}. Resume from the checkpoint."
            ) from None
        return sum(found[n] for n in sorted(found))  # in one order: rounding is the same every time

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
        hosts = unpickled(self._host_states())
        if self.parties.checkpointed is not None:
            adopt(self.parties, hosts)
            return self.parties.checkpointed.snapshot()
        assert self._observed is not None
        return as_snapshot(self.parties, hosts, self._observed)

    def resume(self, snapshot: Snapshot) -> None:
        self._resumed = as_host_states(
            self.parties, snapshot, self._routes, self.ledger.float_bytes
        )


_ADVICE = (
    "See the logs of Ray (/tmp/ray/session_latest/logs on that node). If its memory ran out, set "
    "fewer actors per node (engine.cpus), reserve memory (engine.memory), or add nodes."
)
