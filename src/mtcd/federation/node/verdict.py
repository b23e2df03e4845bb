"""After the end: has the training diverged? The objective takes what all parties hold, and nobody has that.

The holder of the labels asks the others whether they have ended; then a token pass adds up their representations (and
penalties, of a linear model), as for predictions: only the holder learns the sum. It evaluates the objective, as a
training in one process does at its end, and tells everybody the verdict. Until then no block is kept. Every party
writes the verdict down, so that it is the same after a restart. Where somebody is away, the holder does not wait for
long: the run ends with the status that its limit gave, and says that the verdict is missing. When all are started
again, the objective is evaluated again.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from mtcd.divergence import DIVERGED
from mtcd.errors import WireError
from mtcd.federation.kit_schema import KitConfig
from mtcd.federation.names import SERVER
from mtcd.federation.node.asking import Answers
from mtcd.federation.node.mail import Asked
from mtcd.federation.node.passing import Passing, Seeing, Sums, fits, from_sums, to_sums
from mtcd.federation.node.station import Station

JUDGE, VERDICT = "judge", "verdict"
FINE, MISSING = "fine", "missing"
FOR_THE_GONE = 5.0  # seconds that a party whose link is down is waited for ...
FOR_THE_SLOW = 15.0  # ... and any other
FOR_THE_HOLDER = 20.0
FOR_A_GROUP = 1.0


@dataclass(frozen=True)
class Outcome:
    """Whether the training has diverged; or that this is not known, as ``away`` took no part."""

    diverged: bool = False
    away: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """Why there is no verdict, and what to do; nothing where there is one."""
        if not self.away:
            return ""
        return (
            f"Whether the training has diverged is not known: {', '.join(self.away)} took no part when the objective "
            "was evaluated at the end. Start all again at the same time, with the same folders: it is evaluated then. "
            "Do not rely on the model before."
        )

    def __str__(self) -> str:
        return " ".join([MISSING, *self.away]) if self.away else DIVERGED if self.diverged else FINE

    @staticmethod
    def read(told: str, names: Iterable[str]) -> Outcome:
        """From what ``str`` gave; these names are known."""
        if told in (DIVERGED, FINE):
            return Outcome(told == DIVERGED)
        kind, *away = told.split(" ")
        if kind != MISSING or not away or not set(away) <= set(names):
            raise WireError("verdict", "is none")
        return Outcome(away=tuple(away))


class Kept(Protocol):
    """Where a party keeps the verdict, and the holder whom it has told."""

    def verdict(self) -> tuple[bool, set[str]] | None:
        """Whether the training has diverged, and who has confirmed to know; None while it is not known."""

    def keep_verdict(self, diverged: bool, told: set[str]) -> None:
        """Write that down."""


class Evidence(Protocol):
    """What a party can say of the end."""

    @property
    def complete(self) -> bool:
        """Whether nothing but the sum of all parts is missing here. theta_0 may still have to be told."""

    def evidence(self) -> NDArray[np.float64]:
        """Its part of what the objective is made of; all parts are added up."""

    def has_diverged(self, total: NDArray[np.float64]) -> bool:
        """Whether the training has diverged, given the sum of all parts."""


class Verdict:
    """Of one party, or of the server. ``then`` is called with what came of it; again if the verdict comes late."""

    def __init__(self, station: Station, config: KitConfig, run: str, own: Evidence, kept: Kept) -> None:
        self.mail, self.questions, self.loop, self.log = station.mail, station.questions, station.loop, station.log
        self.run, self.own, self.config, self.name = run.encode(), own, config, config.name
        self.holder = config.labels.held_by
        self.parties = [name for name in config.parties if name != self.holder]
        self.clients = len(config.parties)
        self._then: Callable[[Outcome], None] | None = None
        self._kept = kept
        self._told: set[str] = set()
        self._part: NDArray[np.float64] | None = None
        self.known = self._missing = False
        seen = config.model_copy(update={"predictions": config.predictions.model_copy(update={"seen_by": self.holder})})
        if self.name == self.holder:
            self._seeing = Seeing(self.mail, self.questions, seen)
            return
        self.mail.on(VERDICT, self._hear)
        if not config.is_server:
            Passing(self.mail, self.questions, seen, self._sums)
            self.mail.on(JUDGE, self._be_asked)

    def begin(self, then: Callable[[Outcome], None]) -> None:
        """This party has ended. If it knew the verdict before it was started again, that stands."""
        self._then, self._part, self.known, self._missing = then, None, False, False
        kept = self._kept.verdict()
        if kept is not None:
            diverged, self._told = kept
            self._tell(Outcome(diverged))
        elif self.name == self.holder:
            self.loop.later(FOR_THE_GONE, lambda: self._give_up(self._awaited()))
            self.loop.later(FOR_THE_SLOW, lambda: self._tell(self._without(self._awaited())))
            self.proceed()
        else:
            self.loop.later(FOR_THE_GONE, lambda: self._give_up({self.holder}))
            self.loop.later(FOR_THE_HOLDER, lambda: self._tell(self._without({self.holder})))

    def _awaited(self) -> set[str]:
        """Whom the holder waits for: those who have not answered, or who have not told how theta_0 ended."""
        told_last = {SERVER} & set(self.config.peers) if not self.own.complete else set()
        return (self.questions.waits_for | told_last) or set(self.parties)

    def _without(self, away: set[str]) -> Outcome:
        return Outcome(away=tuple(sorted(away)))

    def proceed(self) -> None:
        """Evaluate the objective, if this is the holder and it is complete: when it has ended, or has become so."""
        if self.pending and self.name == self.holder and self.own.complete:
            self.questions.ask(JUDGE, dict.fromkeys(self.parties, self.run), self._answered)

    def _give_up(self, awaited: set[str]) -> None:
        """If one of them is away: there is no telling when it is back."""
        link = self.mail.link
        if away := awaited & (link.peers - link.up):
            self._tell(self._without(away))

    @property
    def pending(self) -> bool:
        """Whether it is still to come."""
        return self._then is not None and not self.known

    def _is_new(self, outcome: Outcome) -> bool:
        """A verdict that comes late still counts, if there was none before."""
        return self.pending or (self._missing and not outcome.away)

    def _conclude(self, outcome: Outcome) -> None:
        if self._is_new(outcome) and self._then is not None:
            self.known, self._missing = True, bool(outcome.away)
            if not outcome.away:
                self._kept.keep_verdict(outcome.diverged, self._told)
            self._then(outcome)

    # The holder

    def _answered(self, answers: Answers) -> None:
        own = self._evidence()
        if DIVERGED.encode() in answers.values() or not fits(own, self.clients):
            self._tell(Outcome(diverged=True))
        elif not self.parties:
            self._tell(Outcome(self.own.has_diverged(own)))
        elif unsound := {name for name, told in answers.items() if not self._is_sound(name, told)}:
            self._tell(self._without(unsound))  # as if they were away
        elif not self.known or self._missing:
            certificates = {name: b64encode(told).decode() for name, told in answers.items()}
            certificates[self.name] = b64encode(self._certificate()).decode()
            self._seeing.begin(own.shape, certificates, self._see)

    def _is_sound(self, name: str, certificate: bytes) -> bool:
        assert self.mail.seal is not None  # it is a party
        try:
            self.mail.seal.key_of(name, certificate)
        except WireError as error:
            self.log.refused(name, "certificate", str(error))
            return False
        return True

    def _see(self, others: Sums) -> None:
        self._tell(Outcome(self.own.has_diverged(from_sums(others + self._sums()))))

    def _tell(self, outcome: Outcome) -> None:
        """It is known; the holder tells those who do not know yet."""
        if self._is_new(outcome):
            self._conclude(outcome)
            if self.name == self.holder:
                groups = [[name for name in one if name not in self._told] for one in farthest_first(self.config)]
                self._tell_next(outcome, [one for one in groups if one])

    def _tell_next(self, outcome: Outcome, groups: list[list[str]]) -> None:
        """One group after the other; if somebody does not answer, the next is told nevertheless."""
        if not groups:
            return
        now, *later = groups
        gone_on = False

        def go_on(_: Answers | None = None) -> None:
            nonlocal gone_on
            if not gone_on:
                gone_on = True
                self._tell_next(outcome, later)

        def confirmed(name: str) -> None:
            if not outcome.away:
                self._told.add(name)
                self._kept.keep_verdict(outcome.diverged, self._told)

        body = self.run + b" " + str(outcome).encode()
        self.questions.ask(VERDICT, dict.fromkeys(now, body), go_on, confirmed)
        self.loop.later(FOR_A_GROUP, go_on)

    # The others

    def _be_asked(self, asked: Asked) -> None:
        """For the certificate to lock sums with; or this party's numbers are such that no sum is needed."""
        if asked.sender != self.holder or asked.body != self.run:
            raise WireError("sender", "is not the one who asks for this")
        if self._then is None:
            asked.let_go()  # to be asked again, when it has ended here too
        else:
            asked.answer(self._certificate() if fits(self._evidence(), self.clients) else DIVERGED.encode())

    def _hear(self, asked: Asked) -> None:
        run, _, told = asked.body.partition(b" ")
        if asked.sender != self.holder or run != self.run or not told.isascii():
            raise WireError("verdict", "is none, or not from the one who gives it")
        outcome = Outcome.read(told.decode(), [*self.config.parties, SERVER])
        if self._then is None:
            asked.let_go()
            return
        self._conclude(outcome)
        asked.answer()

    def _sums(self) -> Sums:
        if self._then is None:
            raise WireError("pass", "comes before the end")
        return to_sums(self._evidence())

    def _evidence(self) -> NDArray[np.float64]:
        """Computed once: networks have to represent all samples for it."""
        if self._part is None:
            self._part = self.own.evidence()
        return self._part

    def _certificate(self) -> bytes:
        assert self.mail.seal is not None  # it is a party
        return self.mail.seal.certificate


def farthest_first(config: KitConfig) -> list[list[str]]:
    """All but this party, by the number of links to them, the server last.

    Who has heard the verdict may leave, and those who are nearer pass it on to those who are farther away.
    """
    graph = nx.Graph(config.links)
    graph.add_nodes_from(config.parties)
    links = nx.single_source_shortest_path_length(graph, config.name)
    others = [name for name in config.parties if name != config.name]
    far = {name: links.get(name, len(others) + 1) for name in others}
    groups = [[name for name in others if far[name] == one] for one in sorted(set(far.values()), reverse=True)]
    return [*groups, *([[SERVER]] if SERVER in config.peers else [])]
