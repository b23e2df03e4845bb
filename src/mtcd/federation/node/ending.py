"""The end of a run at one party: evaluation, the final fusion module, keeping the block, and exit.

A party stays until all reachable parties know of the end, as it may relay it to some. It also stays
for an operator that watches: an operator cannot be called, it asks. A party that was asked for its
status repeatedly stays until it is asked once more, and so has told how the run ended for it; not
longer than such an operator takes to ask again.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtcd.core.errors import WireError
from mtcd.federation.credentials.bundle import Bundle
from mtcd.federation.names import SERVER
from mtcd.federation.node.context import NodeContext
from mtcd.federation.node.exit_status import (
    FAILED,
    FINISHED,
    INTERRUPTED,
    RUNNING,
    STOPPED,
    ExitStatusGossip,
)
from mtcd.federation.node.final_check import FinalCheck, Outcome
from mtcd.federation.node.folder import RunFolder
from mtcd.federation.node.link import IncomingRequest
from mtcd.federation.node.loop import Loop
from mtcd.federation.node.presence import ENDED, HAS_ENDED
from mtcd.federation.node.refusal import Refusal, UnableError
from mtcd.federation.node.rpc import RpcClient
from mtcd.federation.node.training import Trainer
from mtcd.federation.node.watch import Watch
from mtcd.federation.participant.keeping import OWN_METRICS, Summary, keep_metrics
from mtcd.federation.participant.participant import Participant, Role
from mtcd.protocol.codec.envelopes import End
from mtcd.protocol.party import Party
from mtcd.training.divergence import DIVERGED

LONGEST_INTERVAL = 15.0
"""Seconds between two requests: who asks less often does not watch, and nobody waits for the next
one."""
SLACK_SECONDS = 2.0
ANSWER_SECONDS = 0.2  # for the answer to be sent


class Watched:
    """The requests of the operator for the status of one party."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self._last: float | None = None
        self._interval: float | None = None
        self._then: Callable[[], None] | None = None

    def asked(self) -> None:
        """The operator asks, and is answered."""
        now = self.loop.now()
        # Two requests make an interval; one alone may have been a glance.
        self._interval = None
        if self._last is not None:
            self._interval = now - self._last
        self._last = now
        if self._then is not None:
            self.loop.later(ANSWER_SECONDS, self._leave)

    @property
    def silence_seconds(self) -> float:
        """For how many seconds the next request is worth waiting for; 0 if nobody watches."""
        if self._last is None or self._interval is None or self._interval > LONGEST_INTERVAL:
            return 0.0
        # Twice the interval: a request may be late, or the answer before it was.
        expected = self._last + 2 * self._interval + SLACK_SECONDS
        return max(0.0, expected - self.loop.now())

    def leave(self, then: Callable[[], None]) -> None:
        """Call ``then`` when an operator that watches has asked once more, or does not ask
        again."""
        self._then = then
        if self.silence_seconds:
            self.loop.later(self.silence_seconds, self._leave)
        else:
            self._leave()

    def _leave(self) -> None:
        # Once: the operator may ask while the time runs out.
        then, self._then = self._then, None
        if then is not None:
            then()


LONGEST_STAY_SECONDS = 30.0
UNREACHABLE_STAY_SECONDS = 10.0  # an unreachable party may be restarting
STEP_SECONDS = 0.2
# requests without an answer after which a party that is no neighbour counts as unreachable
UNANSWERED_LIMIT = 5


class Leaving:
    """The exit of one party. ``step`` calls ``leave``, or schedules itself again; ``undone``, if
    the end is undone."""

    def __init__(
        self,
        trainer: Trainer,
        rpc_client: RpcClient,
        leave: Callable[[], None],
        undone: Callable[[], None],
    ) -> None:
        self.trainer, self.rpc_client, self.leave, self.undone = trainer, rpc_client, leave, undone
        self.rpc, self.loop = trainer.rpc, trainer.loop
        self._began = self.loop.now()
        self._unanswered: Counter[str] = Counter()

    def step(self) -> None:
        """Exit if there is no party to wait for.

        An unreachable party that only this one may notify has ``UNREACHABLE_STAY_SECONDS`` to come
        back.
        """
        trainer, link, reliable = self.trainer, self.rpc.link, self.trainer.reliable
        # The end that the token brought was not that of its latest term.
        if reliable.ended is None:  # a stale token had ended it
            self.undone()
            return
        # Its own messages are delivered by the loop, and wait for nobody.
        undelivered = {trainer.names[to] for to, _ in reliable.outbox if to != reliable.number}
        unnotified = undelivered | self.rpc_client.waits_for
        # All that are up count, though nothing is in the outbox for them: this party may be the one
        # through which they hear of the end.
        unaware = (undelivered | link.up) - trainer.known_ended | self.rpc_client.waits_for
        stayed = self.loop.now() - self._began
        # An unreachable party may be restarting; not for ever, as it may never come back.
        expected: set[str] = set()
        if stayed < UNREACHABLE_STAY_SECONDS:
            expected = unnotified
        reachable = {name for name in unaware if not self._is_unreachable(name)}
        waited_for = (unaware & expected) | reachable
        if not (waited_for or trainer.awaits_reports()) or stayed > LONGEST_STAY_SECONDS:
            self._leave(unnotified & unaware)
            return
        # before, the others must stay up to relay reports
        ended = HAS_ENDED
        if trainer.awaits_reports():
            ended = b""
        for name in unaware:
            self.rpc.ask(name, "ready", trainer.run.encode() + ended, self._answered(name))
        self.loop.later(STEP_SECONDS, self.step)

    def _leave(self, unnotified: set[str]) -> None:
        if unnotified:
            names = ", ".join(sorted(unnotified))
            left = (
                f"Unreachable at the end of the run: {names}. When restarted, this party notifies "
                "them."
            )
            self.trainer.log.say("left", left)
        self._commit()
        self.leave()

    def _commit(self) -> None:
        """Commit an outbox without end messages to parties that know of the end: a restart sends
        none of them."""
        reliable, names = self.trainer.reliable, self.trainer.names
        for place, envelope in list(reliable.outbox.items()):
            if (
                isinstance(envelope.message.payload, End)
                and names[envelope.to] in self.trainer.known_ended
            ):
                del reliable.outbox[place]
        reliable.commit()

    def _is_unreachable(self, name: str) -> bool:
        link = self.rpc.link
        if name in link.peers:
            return name not in link.up
        # Of others only their silence tells, as relays give no reasons.
        return self._unanswered[name] >= UNANSWERED_LIMIT

    def _answered(self, name: str) -> Callable[[bytes | None, str], None]:
        def answered(answer: bytes | None, why: str) -> None:
            self._unanswered[name] += 1
            if answer is not None:
                self._unanswered[name] = 0
            if answer == ENDED:
                self.trainer.known_ended.add(name)

        return answered


FINAL_MODULE = "fusion_module"
NOT_TESTED = (
    "There are no metrics on the held-out samples, as the outputs for some of them are too large "
    "to be added up: check that their columns have the same units and scales as those of the "
    "training samples."
)


class Ending:
    """What a node does after the end of the training. ``trainer``, ``watch`` and ``role`` are those
    of the run."""

    role: Role
    trainer: Trainer | None = None
    watch: Watch | None = None
    final_check: FinalCheck | None = None
    status: str | None = None
    """The status of the end."""

    def __init__(
        self, bundle: Bundle, participant: Participant, folder: RunFolder, context: NodeContext
    ) -> None:
        self.bundle, self.participant, self.folder, self.context = (
            bundle,
            participant,
            folder,
            context,
        )
        context.failed = self._failed
        self.refusal = Refusal(context, self._has_begun)
        self.log, self.loop, self.rpc, self.rpc_client = (
            context.log,
            context.loop,
            context.rpc,
            context.rpc_client,
        )
        self.outcome = Outcome()
        """The outcome of the evaluation after the end."""
        self.gossip = ExitStatusGossip(context, folder)
        self.watched = Watched(context.loop)
        self.stay_seconds = 0.0
        """For how long this party stays after the end, to answer the operator."""
        self.staying = False
        self.rpc.on(FINAL_MODULE, self._receive_final_module)

    @property
    def party(self) -> Party:
        """This party of the method."""
        assert self.trainer is not None
        return self.trainer.reliable.party

    @property
    def complete(self) -> bool:
        """Whether this party knows the final fusion module, if the model has one."""
        return not self.participant.awaits_final_module

    @property
    def term(self) -> int | None:
        """The term of the token with which the training has ended; None if it has not, or a stale
        token ended it."""
        assert self.trainer is not None
        reliable = self.trainer.reliable
        if reliable.ended is None:
            return None
        # A token that was regenerated has a later term; elsewhere all terms are 0.
        if not self.role.judged:
            return 0
        return max(reliable.terms, default=0)

    def evidence(self) -> NDArray[np.float64]:
        """This party's part of the sum from which the model at the end is evaluated."""
        return self.participant.evidence(self.party)

    def has_diverged(self, total: NDArray[np.float64]) -> bool:
        """Whether the training has diverged, given the sum of all parts."""
        diverged = self.participant.has_diverged(total)
        if not diverged:
            tested = self.participant.held_out_metrics(total)
            self._measure(self.participant.aggregate(total), tested)
            self._measure_own(total)
            if self.bundle.config.holdout is not None and not tested:
                self.log.say("note", NOT_TESTED)
        return diverged

    def _measure(
        self, aggregate: NDArray[np.float64], tested: Mapping[str, float] = MappingProxyType({})
    ) -> None:
        """Keep the metrics on the training samples, from their aggregate at the end, and on
        held-out ones."""
        metrics = self.participant.metrics(aggregate)
        if metrics:
            known = {**metrics, **tested}
            keep_metrics(self.folder.path, known)
            held_out = ""
            if tested:
                held_out = f" On the held-out samples: {_shown(tested)}."
            sentence = f"On the training samples at the end: {_shown(metrics)}.{held_out}"
            self.log.say("metrics", sentence, **known)

    def _measure_own(self, total: NDArray[np.float64]) -> None:
        """Keep what this party alone may know, where the labels that others see are not those of
        its table. The log, which others may ask for, has no number of it."""
        metrics = self.participant.own_metrics(total)
        if metrics:
            keep_metrics(self.folder.path, metrics, OWN_METRICS)
            self.log.say("note", f"The metrics on the labels of the table are in {OWN_METRICS}.")

    def _awaits_reports(self) -> bool:
        """Whether the final fusion module or the final check is pending; not after divergence,
        which leaves no model."""
        assert self.trainer is not None
        end = self.trainer.reliable.ended
        if end is not None and end.status == DIVERGED:
            return False
        return self.participant.awaits_final_module or (
            self.final_check is not None and self.final_check.pending
        )

    def _end(self) -> None:
        assert self.trainer is not None
        reliable = self.trainer.reliable
        assert reliable.ended is not None
        diverged = reliable.ended.status == DIVERGED
        self.participant.restore(self.folder.path)
        # Only the party that ended the training has it; of a model that diverged nobody needs it.
        module = None
        if reliable.ended_here and not diverged:
            module = self.participant.final_module()
        if module is not None:
            others = [
                name for name in self.bundle.config.parties if name != self.bundle.config.name
            ]
            self.loop.call(
                partial(self.rpc_client.ask, FINAL_MODULE, dict.fromkeys(others, module))
            )
        # it diverged on the way
        if self.final_check is None or (diverged and self.folder.final_check() is None):
            self._conclude(Outcome())
        else:
            self.final_check.begin(self._conclude)
        leaving = Leaving(
            self.trainer, self.rpc_client, self._leave, partial(self.gossip.say, RUNNING)
        )
        self.loop.call(leaving.step)

    def _conclude(self, outcome: Outcome) -> None:
        """Keep the block, once it is known whether the training has diverged or that this is
        unknown for now."""
        assert self.trainer is not None
        self.outcome = outcome
        if outcome.diverged:
            self.trainer.reliable.correct_status(DIVERGED)
        summary = self._keep()
        self.log.say("ended", summary.message, status=summary.status)
        how = FINISHED
        if summary.status in (DIVERGED, STOPPED):
            how = summary.status
        facts = {"iteration": summary.iterations, "objective": finite(summary.objective)}
        self.gossip.say(how, status=summary.status, **facts)

    def _leave(self) -> None:
        """Exit when the exit status is delivered, or stay to answer the operator."""
        if self.stay_seconds:
            self.staying = True
            self.log.say("staying", f"Staying for {self.stay_seconds:g} s, to answer the operator.")
            self.loop.later(self.stay_seconds, self.loop.stop)
        # With a stay, the loop ends at its time, whoever asks meanwhile.
        if self.stay_seconds:
            self.gossip.leave(lambda: None)
        else:
            self.gossip.leave(self._leave_operator)

    def _leave_operator(self) -> None:
        self.watched.leave(self.loop.stop)

    def _has_begun(self) -> bool:
        """Whether training has begun here: this party has sent or processed something that
        counts."""
        if self.trainer is None:
            return False
        reliable = self.trainer.reliable
        return reliable.ended is not None or any(reliable.ledger.messages("sent").values())

    @property
    def is_observed(self) -> bool:
        """Whether an engine of this process observes all parties, and ends them itself if one
        fails."""
        return False

    def _failed(self, error: BaseException) -> None:
        """Tell the others that this process ends, while its links are open. What has ended stays as
        it was told."""
        if self.status is not None:
            return
        how = FAILED
        # The name of the error only: its text may hold values of the table.
        status = type(error).__name__
        if isinstance(error, KeyboardInterrupt):
            how = INTERRUPTED
            status = ""

        iteration = None
        if self.watch is not None:
            iteration = self.watch.iteration
        facts: dict[str, Any] = {"status": status, "iteration": iteration}
        if isinstance(error, UnableError):
            facts["status"] = f"{error.party} cannot take part"
        opening = isinstance(error, UnableError) or not self.folder.has_run
        if how == INTERRUPTED or not opening or self.is_observed:
            self.gossip.say_at_once(how, **facts)
        else:  # all are needed until training begins: nobody is to wait for this party
            self.gossip.say(how, **facts)
            self.refusal.tell(error)

    def _keep(self) -> Summary:
        assert self.trainer is not None
        assert self.watch is not None
        unjudged = self.outcome.sentence(self.role.judged)
        summary = self.participant.keep(
            self.folder.path, self.trainer.reliable, self.watch, self.role.notes, unjudged
        )
        self.status = summary.status
        return summary

    def _receive_final_module(self, request: IncomingRequest) -> None:
        """Handle the final fusion module from the party that ended the training."""
        # With a server only that one ends a training; a party could otherwise plant a module.
        if SERVER in self.bundle.config.peers and request.sender != SERVER:
            raise WireError("sender", "is not the party that ended the training")
        if self.trainer is None or self.trainer.reliable.ended is None:
            request.drop()  # the end message is in flight: the sender retries
            return
        if self.participant.accept_final_module(request.body):
            # The check may have waited for this module.
            if self.final_check is not None and self.final_check.pending:
                self.final_check.proceed()
            else:
                self._keep()
        request.answer()


def finite(value: float | None) -> float | None:
    """The value, or None if it is not finite."""
    if value is None or not math.isfinite(value):
        return None
    return value


def _shown(metrics: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.4g}" for name, value in metrics.items())
