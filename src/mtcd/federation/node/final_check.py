"""The final check: the evaluation after the end whether the training has diverged.

The model is in the blocks of all parties. The label holder asks the other parties whether they have
ended; then a masked sum (``passing.py``) adds up their representations (and penalties, of a linear
model), which only the holder learns. It evaluates the objective, as a training in one process does
at its end, and announces the result to all parties. Before, no block is kept. Every party writes
the result to its run folder, so that it survives a restart. If a party is unreachable, the holder
waits up to a timeout: the run then ends with the status of its limit and the note that the result
is missing. When all parties are restarted, the objective is evaluated again.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from mtcd.core.errors import WireError
from mtcd.federation.credentials.bundle_schema import BundleConfig
from mtcd.federation.names import SERVER
from mtcd.federation.node.context import NodeContext
from mtcd.federation.node.link import IncomingRequest
from mtcd.federation.node.passing import SumContributor, SumReceiver, Sums, fits, from_sums, to_sums
from mtcd.federation.node.rpc import Answers
from mtcd.training.divergence import DIVERGED

EVALUATE, RESULT = "evaluate", "result"
FINE, MISSING = "fine", "missing"
UNREACHABLE_TIMEOUT_SECONDS = 5.0  # for a party whose link is down
ANSWER_TIMEOUT_SECONDS = 15.0  # for any other
RESULT_TIMEOUT_SECONDS = 20.0  # for the holder
GROUP_TIMEOUT_SECONDS = 1.0


@dataclass(frozen=True)
class Outcome:
    """Whether the training has diverged; unknown if parties were ``away`` (unreachable) at the
    evaluation."""

    diverged: bool = False
    away: tuple[str, ...] = ()

    def sentence(self, judged: bool) -> str:
        """What is not known, why, and what to do; empty if the result is known.

        ``judged``: the token told whether the training has diverged, and only metrics are missing.
        """
        if not self.away:
            return ""
        if judged:
            return (
                f"The held-out samples are not evaluated: {', '.join(self.away)} took no part "
                "after the end. Start all parties again at the same time, with the same folders, "
                "to evaluate them."
            )
        return (
            f"Whether the training has diverged is not known: {', '.join(self.away)} took no part "
            "when the objective was evaluated at the end. Start all parties again at the same "
            "time, with the same folders, to evaluate it. Do not rely on the model before."
        )

    def __str__(self) -> str:
        if self.away:
            return " ".join([MISSING, *self.away])
        if self.diverged:
            return DIVERGED
        return FINE

    @staticmethod
    def read(text: str, names: Iterable[str]) -> Outcome:
        """Decode the text of ``str``; ``names`` are the known parties."""
        if text in (DIVERGED, FINE):
            return Outcome(text == DIVERGED)
        kind, *away = text.split(" ")
        if kind != MISSING or not away or not set(away) <= set(names):
            raise WireError("result", "is not valid")
        return Outcome(away=tuple(away))


class FinalCheckStore(Protocol):
    """The storage of the result and, at the holder, of the parties that have confirmed it."""

    def final_check(self) -> tuple[bool, set[str]] | None:
        """Whether the training has diverged, and the parties that have confirmed it; None while it
        is unknown."""

    def keep_final_check(self, diverged: bool, confirmed: set[str]) -> None:
        """Write the result, and the parties that have confirmed it."""


class Evidence(Protocol):
    """A party's part of the evaluation."""

    @property
    def complete(self) -> bool:
        """Whether this party knows the final theta_0, if the model has one."""

    @property
    def term(self) -> int | None:
        """The term of the token that has ended the training, 0 without one; None while the training
        goes on."""

    def evidence(self) -> NDArray[np.float64]:
        """This party's part of the sum from which the model is evaluated."""

    def has_diverged(self, total: NDArray[np.float64]) -> bool:
        """Whether the training has diverged, given the sum of all parts."""


class FinalCheck:
    """The evaluation at one party, or at the server. ``then`` gets the outcome; again if the result
    comes late."""

    def __init__(
        self,
        context: NodeContext,
        config: BundleConfig,
        run: str,
        own: Evidence,
        store: FinalCheckStore,
    ) -> None:
        self.rpc, self.rpc_client, self.loop, self.log = (
            context.rpc,
            context.rpc_client,
            context.loop,
            context.log,
        )
        self.run, self.own, self.config, self.name = run.encode(), own, config, config.name
        self.holder = config.labels.held_by
        self.parties = [name for name in config.parties if name != self.holder]
        self.clients = len(config.parties)
        self._then: Callable[[Outcome], None] | None = None
        self._store = store
        self._confirmed: set[str] = set()
        self._part: NDArray[np.float64] | None = None
        self.known = self._missing = False
        # The pass of predictions, with the label holder as the one that learns the sum.
        seen = config.model_copy(
            update={"predictions": config.predictions.model_copy(update={"seen_by": self.holder})}
        )
        if self.name == self.holder:
            self._receiver = SumReceiver(self.rpc, self.rpc_client, seen)
            return
        self.rpc.on(RESULT, self._receive_result)
        if not config.is_server:
            SumContributor(self.rpc, self.rpc_client, seen, self._sums)
            self.rpc.on(EVALUATE, self._send_certificate)

    def begin(self, then: Callable[[Outcome], None]) -> None:
        """Begin the evaluation after this party has ended. A result from before a restart
        stands."""
        self._then, self._part, self.known, self._missing = then, None, False, False
        kept = self._store.final_check()
        if kept is not None:
            # Announced again: some may not have confirmed it before the restart.
            diverged, self._confirmed = kept
            self._announce(Outcome(diverged))
        elif self.name == self.holder:
            self.loop.later(UNREACHABLE_TIMEOUT_SECONDS, lambda: self._give_up(self._awaited()))
            self.loop.later(
                ANSWER_TIMEOUT_SECONDS, lambda: self._announce(self._without(self._awaited()))
            )
            self.proceed()
        else:
            self.loop.later(UNREACHABLE_TIMEOUT_SECONDS, lambda: self._give_up({self.holder}))
            self.loop.later(
                RESULT_TIMEOUT_SECONDS, lambda: self._announce(self._without({self.holder}))
            )

    def _awaited(self) -> set[str]:
        """The parties for which the holder waits: for an answer, or for the final theta_0."""
        # The module comes from the server, where there is one.
        has_module: set[str] = set()
        if not self.own.complete:
            has_module = {SERVER} & set(self.config.peers)
        return (self.rpc_client.waits_for | has_module) or set(self.parties)

    def _without(self, away: set[str]) -> Outcome:
        return Outcome(away=tuple(sorted(away)))

    def proceed(self) -> None:
        """Evaluate the objective, if this is the holder and it is complete; called when either may
        have changed."""
        if self.pending and self.name == self.holder and self.own.complete:
            self.rpc_client.ask(
                EVALUATE, dict.fromkeys(self.parties, self._request()), self._answered
            )

    def _request(self) -> bytes:
        """The run, and the term of a token that was regenerated: blocks of an older term are not of
        this model."""
        if not self.own.term:
            return self.run
        return self.run + b" %d" % self.own.term

    def _give_up(self, awaited: set[str]) -> None:
        """End without a result if one of the awaited parties is unreachable."""
        # Only if a link is down: a slow party has until the later timeout.
        link = self.rpc.link
        if away := awaited & (link.peers - link.up):
            self._announce(self._without(away))

    @property
    def pending(self) -> bool:
        """Whether this party still waits for the result."""
        return self._then is not None and not self.known

    def _is_new(self, outcome: Outcome) -> bool:
        """Whether the outcome counts: the first one, or a result after a missing one; none if the
        end was undone."""
        return self.own.term is not None and (self.pending or (self._missing and not outcome.away))

    def _conclude(self, outcome: Outcome) -> None:
        if self._is_new(outcome) and self._then is not None:
            self.known, self._missing = True, bool(outcome.away)
            if not outcome.away:
                self._store.keep_final_check(outcome.diverged, self._confirmed)
            self._then(outcome)

    # The holder

    def _answered(self, answers: Answers) -> None:
        own = self._evidence()
        if DIVERGED.encode() in answers.values() or not fits(own, self.clients):
            self._announce(Outcome(diverged=True))
            return
        if not self.parties:
            self._announce(Outcome(self.own.has_diverged(own)))
            return

        invalid = {name for name, answer in answers.items() if not self._is_valid(name, answer)}
        if invalid:
            self._announce(self._without(invalid))  # as if they were unreachable
        elif not self.known or self._missing:
            certificates = {name: b64encode(answer).decode() for name, answer in answers.items()}
            certificates[self.name] = b64encode(self._certificate()).decode()
            self._receiver.begin(own.shape, certificates, self._evaluate)

    def _is_valid(self, name: str, certificate: bytes) -> bool:
        assert self.rpc.seal is not None  # parties have one
        try:
            self.rpc.seal.key_of(name, certificate)
        except WireError as error:
            self.rpc.note_refused(name, "certificate", error)
            return False
        return True

    def _evaluate(self, others: Sums) -> None:
        self._announce(Outcome(self.own.has_diverged(from_sums(others + self._sums()))))

    def _announce(self, outcome: Outcome) -> None:
        """Conclude; the holder announces the outcome to the parties that have not confirmed it."""
        if self._is_new(outcome):
            self._conclude(outcome)
            if self.name == self.holder:
                # Those that confirmed may have left.
                groups = []
                for group in farthest_first(self.config):
                    left = [name for name in group if name not in self._confirmed]
                    if left:
                        groups.append(left)
                self._announce_to(outcome, groups)

    def _announce_to(self, outcome: Outcome, groups: list[list[str]]) -> None:
        """Announce the outcome to one group after the other; after a timeout, continue without an
        answer."""
        if not groups:
            return
        now, *later = groups
        continued = False

        def proceed(_: Answers | None = None) -> None:
            nonlocal continued
            if not continued:
                continued = True
                self._announce_to(outcome, later)

        # Only a result is confirmed: a missing one may still come.
        def confirmed(name: str) -> None:
            if not outcome.away:
                self._confirmed.add(name)
                self._store.keep_final_check(outcome.diverged, self._confirmed)

        body = self.run + b" " + str(outcome).encode()
        self.rpc_client.ask(RESULT, dict.fromkeys(now, body), proceed, confirmed)
        self.loop.later(GROUP_TIMEOUT_SECONDS, proceed)

    # The others

    def _send_certificate(self, request: IncomingRequest) -> None:
        """Answer with the certificate for the pass; or that this party's numbers are not finite, or
        too large."""
        if request.sender != self.holder or request.body.partition(b" ")[0] != self.run:
            raise WireError("sender", "is not the label holder of this run")
        if self._then is None or self.own.term is None or request.body != self._request():
            request.drop()  # the run has not ended here, or not with this token: the holder retries
        else:
            answer = DIVERGED.encode()
            if fits(self._evidence(), self.clients):
                answer = self._certificate()
            request.answer(answer)

    def _receive_result(self, request: IncomingRequest) -> None:
        run, _, text = request.body.partition(b" ")
        if request.sender != self.holder or run != self.run or not text.isascii():
            raise WireError("result", "is not valid, or not from the label holder")
        outcome = Outcome.read(text.decode(), [*self.config.parties, SERVER])
        # Not ended here yet: the holder sends it again.
        if self._then is None:
            request.drop()
            return
        self._conclude(outcome)
        request.answer()

    def _sums(self) -> Sums:
        if self._then is None:
            raise WireError("pass", "comes before the end")
        return to_sums(self._evidence())

    def _evidence(self) -> NDArray[np.float64]:
        """This party's part, computed once: a network has to represent all samples."""
        if self._part is None:
            self._part = self.own.evidence()
        return self._part

    def _certificate(self) -> bytes:
        assert self.rpc.seal is not None  # parties have one
        return self.rpc.seal.certificate


def farthest_first(config: BundleConfig) -> list[list[str]]:
    """All other parties, grouped by distance, the farthest first and the server last.

    A party may exit once it knows the result, and nearer parties relay it to farther ones.
    """
    graph = nx.Graph(config.links)
    graph.add_nodes_from(config.parties)
    links = nx.single_source_shortest_path_length(graph, config.name)
    others = [name for name in config.parties if name != config.name]
    # Without a path to it, a party counts as farther than any other.
    far = {name: links.get(name, len(others) + 1) for name in others}
    groups = []
    for distance in sorted(set(far.values()), reverse=True):
        groups.append([name for name in others if far[name] == distance])
    # The server last: it relays to all.
    if SERVER in config.peers:
        groups.append([SERVER])
    return groups
