"""A party as a process: it opens its links, agrees on a run with the others, trains, and keeps its block.

Whatever moment it is killed at, started again it goes on: what was agreed and what it did are in its folder.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtcd.divergence import DIVERGED
from mtcd.errors import MtcdError, WireError
from mtcd.federation.delivery.journal import FileJournal
from mtcd.federation.delivery.reliable_party import ReliableParty
from mtcd.federation.kit import Kit
from mtcd.federation.names import SERVER as SERVER_NAME
from mtcd.federation.node.control import answer_operator
from mtcd.federation.node.folder import RunFolder
from mtcd.federation.node.leaving import Leaving
from mtcd.federation.node.link import Connect, Link
from mtcd.federation.node.log import Log
from mtcd.federation.node.loop import Loop
from mtcd.federation.node.mail import Asked
from mtcd.federation.node.opening import Agreed, Leading, Opening
from mtcd.federation.node.role import Participant, Role
from mtcd.federation.node.station import Station
from mtcd.federation.node.training import Trainer
from mtcd.federation.node.verdict import Outcome, Verdict
from mtcd.federation.node.watch import Report, Watch
from mtcd.federation.participant.keeping import Summary
from mtcd.federation.recovery.choose import make_reliable_party
from mtcd.methods.hosting import Share
from mtcd.methods.svfl import Shared
from mtcd.protocol.party import SERVER, Party
from mtcd.protocol.token import Token

SAY_WAITING = 5.0  # seconds
WORDS = "words"
ELSEWHERE = (
    "The others are in a run that is not in this folder. If this party took part in it, start it with the folder of "
    "that run (--out); else stop all, and start all with new folders."
)


class Node:
    """One party, or the server. ``run`` returns how training ended: a limit's name, stopped or diverged.

    ``loop`` brings the clock and ``connect`` makes the links: both are given where a federation is simulated.
    """

    def __init__(
        self,
        kit: Kit,
        out: Path,
        participant: Participant,
        show: Callable[[str], None] | None,
        loop: Loop | None = None,
        connect: Connect = Link,
    ) -> None:
        config = kit.config
        self.kit, self.participant = kit, participant
        self.number = SERVER if config.is_server else config.parties.index(config.name)
        self.folder = RunFolder(out)
        self.trainer: Trainer | None = None
        self.watch: Watch | None = None
        self.verdict: Verdict | None = None
        self.agreed: Agreed | None = None
        self.leading: Leading | None = None
        self.status: str | None = None
        """How training ended."""
        self.report: Report | None = None
        """An engine on this machine that observes this party: see ``federation/engine.py``."""
        self.outcome = Outcome()
        """Whether it has diverged, as far as that took an evaluation after the end."""
        self.station = station = Station(kit, Log(config.name, self.folder.log, show), self._changed, loop, connect)
        self.log, self.loop, self.mail, self.questions = station.log, station.loop, station.mail, station.questions
        self._early: float | None = None
        """Since when others are in training while this party is not."""
        for kind in ("envelope", "ready"):
            self.mail.on(kind, self._too_early)  # until there is a trainer
        self.mail.on(WORDS, self._hear_words)
        answer_operator(self)

    def run(self) -> str:
        """Until the run has ended and the others know."""
        try:
            with np.errstate(all="ignore"):  # overflows are seen when messages are sent
                self.station.run(self._begin)
        finally:
            self.folder.close()
        if self.status is None:
            raise MtcdError("Stopped before training began.")
        return self.status

    def close(self) -> None:
        """Give up links and folder, of a node that does not run."""
        self.station.close()
        self.folder.close()

    # Before training

    def _begin(self) -> None:
        config = self.kit.config
        leads = config.name == config.labels.held_by
        if leads:
            told = _Kept(self.folder)
            self.leading = Leading(self.questions, self.kit, self.participant, self.log, self._agree, self._go, told)
        else:
            part = None if config.is_server else self.participant
            opening = Opening(self.mail, self.kit, part, self.log, self._agree)
        known = self.folder.agreed()
        if known is not None:
            self.log.say("resumed", "Going on with the run that was under way.")
            if self.leading is None:
                opening.agreed = known[0]
            opener = self._train(known[0], self.participant.role(known[0], self.log), known[1])
            if self.leading is not None:
                self.leading.tell(known[0], opener)
        elif self.leading is not None:
            self.leading.lead()
        self._say_waiting()

    def _agree(self, agreed: Agreed) -> str | None:
        """First of all its role: what cannot be trained is refused, and not kept."""
        role = self.participant.role(agreed, self.log)
        return self._train(agreed, role, self.folder.agree(agreed))

    def _train(self, agreed: Agreed, role: Role, when: float) -> str | None:
        """Be ready for envelopes. Who sets the training going comes back, if it is one; who leads waits for all."""
        self.agreed = agreed
        self.watch = role.watch
        role.watch.began, role.watch.now = when, self.loop.now
        role.watch.report = self.report
        self.role = role
        journal, network = FileJournal(self.folder.journal, self.kit.config.limits.sync), self.kit.config.network

        def make() -> ReliableParty:
            parties = self.participant.role(agreed, self.log).parties if self.trainer is not None else role.parties
            reliable = make_reliable_party(self.number, parties, journal, network)
            reliable.limit, reliable.judge = role.watch.limit, role.watch.judge
            reliable.ledger.float_bytes = role.bounds.dtype.itemsize
            return reliable

        self.trainer = Trainer(self.mail, self.loop, self.log, make, role.bounds, self._comes_by, self._told, self._end)
        self.verdict = None
        if role.evaluated_at_end:
            self.verdict = Verdict(self.station, self.kit.config, agreed.run, self, self.folder)
        self.trainer.awaits_words = self._awaits_words
        for note in role.notes:
            self.log.say("note", note)
        if self.leading is None:
            self._go()
        first = {self.trainer.names[message.sender] for message in role.parties.opening}
        return first.pop() if len(first) == 1 else None

    def _go(self) -> None:
        assert self.agreed is not None
        assert self.trainer is not None
        over = self.trainer.reliable.ended is not None
        self.log.say("training", "The run has ended already." if over else "Training.", run=self.agreed.run)
        if self.report is None:
            self.trainer.go()
        else:  # whoever leads hears first that this party agrees
            self.loop.call(self._go_observed)

    def _go_observed(self) -> None:
        """The opening is observed before anything is sent."""
        assert self.trainer is not None
        assert self.report is not None
        for message in self.trainer.reliable.reports:
            self.report(message.payload, None)
        self.trainer.go()

    def _say_waiting(self) -> None:
        """For whom: until training has begun."""
        if self.trainer is None or (self.leading is not None and self.questions.waits_for):
            if waits := self.waits_for():
                self.station.say_waiting(waits)
            reached = self.kit.config.labels.held_by not in self.station.missing()
            early = self._early is not None and self.loop.now() - self._early > SAY_WAITING
            if self.trainer is None and early and reached:
                self.log.now_and_then(("early",), ELSEWHERE)
            self.loop.later(SAY_WAITING, self._say_waiting)

    def _too_early(self, asked: Asked) -> None:
        """For a moment that is so whenever training begins; for longer if this party has lost its folder."""
        if not asked.straight:
            raise WireError("kind", "is none that is answered now")
        self._early = self._early or self.loop.now()
        asked.let_go()

    def waits_for(self) -> list[str]:
        """Who holds this party up."""
        if self.trainer is not None and not (self.leading is not None and self.questions.waits_for):
            names, ended = self.trainer.names, self.trainer.reliable.ended is not None
            return [] if ended else sorted(names[number] for number in self.trainer.reliable.policy.waits_for)
        return sorted(self.questions.waits_for) if self.leading is not None else [self.kit.config.labels.held_by]

    def _changed(self, name: str, here: bool) -> None:
        if self.trainer is not None:
            self.trainer.changed(name, here)

    # In training

    def _told(self, payload: Any) -> None:
        assert self.watch is not None
        if getattr(payload, "aggregate", None) is not None and self.trainer is not None:
            gap_part = partial(self.participant.gap_part, self.trainer.reliable.party, payload)
            ended = self.trainer.reliable.ended is not None
            self.watch.look(self.role.problem, payload.aggregate, payload.penalty, gap_part, ended)
        self.watch.say()

    def _comes_by(self, payload: Any) -> None:
        """Something is about to be done: a token is visited, or the server asks for an upload."""
        assert self.watch is not None
        if isinstance(payload, Token):
            self.watch.visited(payload)
            self._told(payload)
        elif isinstance(payload, Share | Shared):
            self.watch.called(payload.t if isinstance(payload, Share) else payload.round)
        if self.trainer is not None and self.watch.is_hopeless(payload):
            self.trainer.tell_diverged()

    # The end

    @property
    def party(self) -> Party:
        """What takes part in the training."""
        assert self.trainer is not None
        return self.trainer.reliable.party

    @property
    def complete(self) -> bool:
        """Whether this party knows all that the end left with others."""
        return not self.participant.awaits_words

    def evidence(self) -> NDArray[np.float64]:
        """This party's part of the objective, as it ended."""
        return self.participant.evidence(self.party)

    def has_diverged(self, total: NDArray[np.float64]) -> bool:
        """Whether training has, given all parties' parts."""
        return self.participant.has_diverged(total)

    def _awaits_words(self) -> bool:
        """Whether something is still to be told. Of a training that has diverged, nothing is kept."""
        assert self.trainer is not None
        end = self.trainer.reliable.ended
        if end is not None and end.status == DIVERGED:
            return False
        return self.participant.awaits_words or (self.verdict is not None and self.verdict.pending)

    def _end(self) -> None:
        assert self.trainer is not None
        reliable = self.trainer.reliable
        assert reliable.ended is not None
        diverged = reliable.ended.status == DIVERGED
        self.participant.recall(self.folder.path)
        words = self.participant.last_words() if reliable.ended_here and not diverged else None
        if words is not None:
            others = [name for name in self.kit.config.parties if name != self.kit.config.name]
            self.loop.call(partial(self.questions.ask, WORDS, dict.fromkeys(others, words)))
        if self.verdict is None or (diverged and self.folder.verdict() is None):  # it ended so on the way
            self._conclude(Outcome())
        else:
            self.verdict.begin(self._conclude)
        leaving = Leaving(self.trainer, self.questions)
        self.loop.call(leaving.step)

    def _conclude(self, outcome: Outcome) -> None:
        """It is known how training ended, or that nobody can tell now."""
        assert self.trainer is not None
        self.outcome = outcome
        if outcome.diverged:
            self.trainer.reliable.correct_status(DIVERGED)
        summary = self._keep()
        self.log.say("ended", summary.message, status=summary.status)

    def _keep(self) -> Summary:
        assert self.trainer is not None
        assert self.watch is not None
        unjudged = self.outcome.sentence
        summary = self.participant.keep(self.folder.path, self.trainer.reliable, self.watch, self.role.notes, unjudged)
        self.status = summary.status
        return summary

    def _hear_words(self, asked: Asked) -> None:
        """The party that ended the training tells how all of it ended."""
        if SERVER_NAME in self.kit.config.peers and asked.sender != SERVER_NAME:
            raise WireError("sender", "is not the one who ended the training")
        if self.trainer is None or self.trainer.reliable.ended is None:
            asked.let_go()  # the end is on its way: to be asked again
            return
        if self.participant.hear(asked.body):
            if self.verdict is not None and self.verdict.pending:
                self.verdict.proceed()
            else:
                self._keep()
        asked.answer()


class _Kept(set[str]):
    """Names, each written down before it counts."""

    def __init__(self, folder: RunFolder) -> None:
        super().__init__(folder.told())
        self._folder = folder

    def add(self, name: str) -> None:
        self._folder.tell({*self, name})
        super().add(name)
