"""A party as a process: it opens its links, agrees on a run with the others, trains, and keeps its
block.

The run folder holds the agreement and the journal, from which a party resumes after a crash at any
moment.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import time
from typing import Any

import numpy as np

from mtcd.core.errors import MtcdError, WireError
from mtcd.federation.credentials.bundle import Bundle
from mtcd.federation.delivery.journal import FileJournal
from mtcd.federation.delivery.reliable_party import ReliableParty
from mtcd.federation.node.context import NodeContext
from mtcd.federation.node.control import answer_operator
from mtcd.federation.node.ending import Ending
from mtcd.federation.node.final_check import FinalCheck
from mtcd.federation.node.folder import RunFolder
from mtcd.federation.node.link import Connect, IncomingRequest, Link
from mtcd.federation.node.log import Log
from mtcd.federation.node.loop import Loop
from mtcd.federation.node.opening import Agreed, OpeningFollower, OpeningLeader
from mtcd.federation.node.rejoining import COUNTS
from mtcd.federation.node.training import Trainer
from mtcd.federation.node.watch import Report
from mtcd.federation.participant.participant import Participant, Role
from mtcd.federation.recovery.choose import make_reliable_party
from mtcd.federation.relay_encryption import certify
from mtcd.protocol.codec.payloads import Payload
from mtcd.protocol.party import SERVER
from mtcd.protocol.token import Token

WAITING_NOTE_SECONDS = 5.0
ADVICE_SECONDS = 30.0
"""Without any connection to a peer, after which this party says how to find out why."""
PHASES = OPENING, TRAINING, ENDED = "opening", "training", "ended"
OTHER_RUN = (
    "The other parties are in a run that is not in this folder. If this party took part in it, "
    "start it with the folder of that run (--out); otherwise stop all parties, and start them with "
    "new folders."
)


class Node(Ending):
    """One party, or the server, with its bundle.

    ``run`` returns the status of the end: the name of a limit, stopped or diverged. A simulated
    federation injects ``loop``, which has the clock, and ``connect``, which makes the links.
    """

    def __init__(
        self,
        bundle: Bundle,
        out: Path,
        participant: Participant,
        show: Callable[[str], None] | None,
        loop: Loop | None = None,
        connect: Connect = Link,
    ) -> None:
        config, folder = bundle.config, RunFolder(out)
        participant.folder = folder.path
        log = Log(config.name, folder.log, show)
        try:
            context = NodeContext(bundle, log, self._changed, loop, connect)
        except BaseException:
            # its address may be in use: whoever starts it again must find the folder unlocked
            log.close()
            folder.close()
            raise
        super().__init__(bundle, participant, folder, context)
        self.number = SERVER if config.is_server else config.parties.index(config.name)
        self.agreed: Agreed | None = None
        self.leading: OpeningLeader | None = None
        self.following: OpeningFollower | None = None
        self.report: Report | None = None
        """The callback of an engine that observes this party: see
        ``testing/federation_engine.py``."""
        self._early: float | None = None
        """The time since which other parties train while this one does not."""
        self.lost: dict[str, float] = {}
        """By peer whose connection was lost, and did not come back: when, in seconds since 1970."""
        for kind in ("envelope", "ready", COUNTS):
            self.rpc.on(kind, self._too_early)  # until there is a trainer
        self._began = self.loop.now()
        answer_operator(self)

    def run(self) -> str:
        """Run until the training has ended and the other parties know."""
        try:
            with np.errstate(all="ignore"):  # overflows are detected when messages are sent
                self.context.run(self._begin)
        finally:
            self.folder.close()
        if self.status is None:
            raise MtcdError("Stopped before training began: there is no model.")
        return self.status

    def close(self) -> None:
        """Close the links and the folder of a node that does not run."""
        self.context.close()
        self.folder.close()

    @property
    def is_observed(self) -> bool:
        return self.report is not None

    # Before training

    def _begin(self) -> None:
        config = self.bundle.config
        # The number is the place in the file of the federation, which is the same at all parties.
        leads = config.name == config.labels.held_by
        if leads:
            confirmed = _Confirmed(self.folder)
            self.leading = OpeningLeader(
                self.rpc_client,
                self.bundle,
                self.participant,
                self.log,
                self._agree,
                self._go,
                confirmed,
            )
        else:
            part: Participant | None = self.participant
            # The server has no samples to align.
            if config.is_server:
                part = None
            self.following = OpeningFollower(self.rpc, self.bundle, part, self.log, self._agree)
        known = self.folder.agreed()
        if known is not None:
            self.log.say("resumed", "Resuming the run of this folder.")
            if self.following is not None:
                self.following.agreed = known[0]
            opener = self._train(
                known[0], self.participant.role(known[0], self.log), known[1], resumed=True
            )
            if self.leading is not None:
                self.leading.start_others(known[0], opener)
        else:
            self.gossip.begin("")
            if self.leading is not None:
                self.leading.lead()
        self._say_waiting()

    def _agree(self, agreed: Agreed) -> str | None:
        """Accept the settings of a run: settings that cannot be trained are refused before anything
        is written."""
        role = self.participant.role(agreed, self.log)
        return self._train(agreed, role, self.folder.agree(agreed))

    def _train(self, agreed: Agreed, role: Role, when: float, resumed: bool = False) -> str | None:
        """Prepare to receive envelopes; returns the party that sends the first message, if it is
        one party."""
        self.agreed = agreed
        self.gossip.begin(agreed.run)
        self.watch = role.watch
        role.watch.began, role.watch.now = when, self.loop.now
        role.watch.report = self.report
        self.role = role
        journal = FileJournal(
            self.folder.journal, self.bundle.config.limits.sync, self.rpc.counters.commits
        )
        network = self.bundle.config.network

        def make() -> ReliableParty:
            # Made anew after a message that could not be processed: the first ones were changed.
            parties = role.parties
            if self.trainer is not None:
                parties = self.participant.role(agreed, self.log).parties
            certify(parties, self.number, self.rpc.seal, self.bundle.config, agreed.run)
            reliable = make_reliable_party(self.number, parties, journal, network)
            reliable.limit, reliable.judge = (
                partial(role.watch.limit, keeper=reliable),
                role.watch.judge,
            )
            reliable.ledger.float_bytes = role.bounds.dtype.itemsize
            return reliable

        callbacks = self._on_payload, self._on_report, self._end
        self.trainer = Trainer(
            self.rpc, self.loop, self.log, make, role.bounds, *callbacks, resumed
        )
        self.final_check = None
        if role.evaluated_at_end:
            self.final_check = FinalCheck(
                self.context, self.bundle.config, agreed.run, self, self.folder
            )
        self.trainer.awaits_reports = self._awaits_reports
        for note in role.notes:
            self.log.say("note", note)
        if self.leading is None:
            self._go()
        # With one opener it starts last, when all others can receive.
        first = {self.trainer.names[message.sender] for message in role.parties.opening}
        if len(first) != 1:
            return None
        return first.pop()

    def _go(self) -> None:
        assert self.agreed is not None
        assert self.trainer is not None
        opens = "Training."
        if self.trainer.reliable.ended is not None:
            opens = "The run has ended already."
        self.log.say("training", opens, run=self.agreed.run)
        if self.report is None:
            self.trainer.go()
        else:  # after the leader has received this party's confirmation
            self.loop.call(self._go_observed)

    def _go_observed(self) -> None:
        """Report the opening to the observer before anything is sent."""
        assert self.trainer is not None
        assert self.report is not None
        for message in self.trainer.reliable.reports:
            self.report(message.payload, None)
        self.trainer.go()

    def _say_waiting(self) -> None:
        """Log the parties for which this one waits, until training has begun."""
        if self.trainer is None or (self.leading is not None and self.rpc_client.waits_for):
            if waits := self.waits_for():
                self.context.say_waiting(waits)
            reached = self.bundle.config.labels.held_by not in self.context.missing()
            early = self._early is not None and self.loop.now() - self._early > WAITING_NOTE_SECONDS
            if self.trainer is None and early and reached:
                self.log.throttled(("early",), OTHER_RUN)
            if self.trainer is None and self.loop.now() - self._began > ADVICE_SECONDS:
                self._say_how_to_check()
            self.loop.later(WAITING_NOTE_SECONDS, self._say_waiting)

    def _say_how_to_check(self) -> None:
        """Log once, for peers without a connection: a certificate that has expired, say, lets them
        tell nobody."""
        if missing := self.context.missing():
            sentence = (
                f"Still no connection to {', '.join(missing)}: not started, or cannot be reached. "
                "On its host, 'mtcd party BUNDLE --check' (or 'mtcd server') finds what is wrong "
                "there, such as its certificate, its clock or its address."
            )
            self.log.throttled(("unreached", *missing), sentence, often=1, missing=missing)

    def _too_early(self, request: IncomingRequest) -> None:
        """Drop a message of a training that has not begun here: soon it will, unless this party
        lost its folder."""
        if not request.direct:
            raise WireError("kind", "has no handler in this phase")
        self._early = self._early or self.loop.now()
        request.drop()

    def waits_for(self) -> list[str]:
        """The parties for which this one waits."""
        starts_others = self.leading is not None and bool(self.rpc_client.waits_for)
        if self.trainer is not None and not starts_others:
            reliable, names = self.trainer.reliable, self.trainer.names
            if reliable.ended is not None:
                return []
            return sorted(names[number] for number in reliable.policy.waits_for)
        if self.leading is not None:
            return sorted(self.rpc_client.waits_for)
        return [self.bundle.config.labels.held_by]

    @property
    def phase(self) -> str:
        """One of ``PHASES``: what this party does now."""
        if self.trainer is None:
            return OPENING
        if self.trainer.reliable.ended is None:
            return TRAINING
        return ENDED

    def _changed(self, name: str, up: bool) -> None:
        if up:
            self.lost.pop(name, None)
        else:
            self.lost[name] = time()
        if self.trainer is not None:
            self.trainer.changed(name, up)
        if up:
            self.gossip.tell()

    # In training

    def _on_report(self, payload: Any) -> None:
        """Watch a report to the monitor; at the end, it has the aggregate of the final model."""
        self._watch(payload)
        ended = self.trainer is not None and self.trainer.reliable.ended is not None
        aggregate = getattr(payload, "aggregate", None)
        if ended and aggregate is not None and self.role.problem is not None:
            self._measure(aggregate)

    def _watch(self, payload: Any) -> None:
        assert self.watch is not None
        if getattr(payload, "aggregate", None) is None or self.trainer is None:
            self.watch.look(payload)
            return

        reliable = self.trainer.reliable
        gap_part = partial(self.participant.gap_part, reliable.party, payload)
        self.watch.look(payload, self.role.problem, gap_part, reliable.ended is not None)

    def _on_payload(self, payload: Payload) -> None:
        """Watch a payload before it is processed: a token, or the server's request for an
        upload."""
        assert self.watch is not None
        if isinstance(payload, Token):
            # Before the token is processed, as the visit changes it.
            self.watch.visited(payload)
            if self.role.parties.server is not None:  # a lone token is reported after its visit
                self._watch(payload)
        elif payload.rounds_ended is not None:
            self.watch.requested(payload.rounds_ended)
            self.watch.look(payload)
        if self.trainer is not None and self.watch.shows_divergence(payload):
            self.trainer.report_divergence()


class _Confirmed(set[str]):
    """The parties that have confirmed the start; each is written to the run folder before it is
    added."""

    def __init__(self, folder: RunFolder) -> None:
        super().__init__(folder.confirmed())
        self._folder = folder

    def add(self, name: str) -> None:
        self._folder.confirm({*self, name})
        super().add(name)
