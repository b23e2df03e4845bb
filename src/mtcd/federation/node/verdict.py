"""After the end: has the training diverged? The objective takes what all parties hold, and nobody has that.

The holder of the labels asks the others whether they have ended; then a token pass adds up their representations (and
penalties, of a linear model), as for predictions: only the holder learns the sum. It evaluates the objective, as a
training in one process does at its end, and tells everybody the verdict. Until then no block is kept. Where somebody is
away, the holder does not wait for long, and the run ends with the status that its limit gave.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
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
FINE = b"fine"
FOR_THE_GONE = 5.0  # seconds that a party whose link is down is waited for ...
FOR_THE_SLOW = 15.0  # ... and any other
FOR_THE_HOLDER = 20.0
FOR_A_GROUP = 1.0


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
    """Of one party, or of the server. ``then`` is called once, with whether the training has diverged."""

    def __init__(self, station: Station, config: KitConfig, run: str, own: Evidence) -> None:
        self.mail, self.questions, self.loop, self.log = station.mail, station.questions, station.loop, station.log
        self.run, self.own, self.config, self.name = run.encode(), own, config, config.name
        self.holder = config.labels.held_by
        self.parties = [name for name in config.parties if name != self.holder]
        self.clients = len(config.parties)
        self._then: Callable[[bool], None] | None = None
        self._part: NDArray[np.float64] | None = None
        self.known = False
        seen = config.model_copy(update={"predictions": config.predictions.model_copy(update={"seen_by": self.holder})})
        if self.name == self.holder:
            self._seeing = Seeing(self.mail, self.questions, seen)
            return
        self.mail.on(VERDICT, self._hear)
        if not config.is_server:
            Passing(self.mail, self.questions, seen, self._sums)
            self.mail.on(JUDGE, self._be_asked)

    def begin(self, then: Callable[[bool], None]) -> None:
        """This party has ended."""
        self._then, self._part, self.known = then, None, False
        if self.name == self.holder:
            self.loop.later(FOR_THE_GONE, lambda: self._give_up(self.questions.waits_for))
            self.loop.later(FOR_THE_SLOW, lambda: self._tell(diverged=False))
            self.proceed()
        else:
            self.loop.later(FOR_THE_GONE, lambda: self._give_up({self.holder}))
            self.loop.later(FOR_THE_HOLDER, lambda: self._conclude(diverged=False))

    def proceed(self) -> None:
        """Evaluate the objective, if this is the holder and it is complete: when it has ended, or has become so."""
        if self.pending and self.name == self.holder and self.own.complete:
            self.questions.ask(JUDGE, dict.fromkeys(self.parties, self.run), self._answered)

    def _give_up(self, awaited: set[str]) -> None:
        """If one of them is away: there is no telling when it is back."""
        link = self.mail.link
        if awaited & (link.peers - link.up):
            self._tell(diverged=False) if self.name == self.holder else self._conclude(diverged=False)

    @property
    def pending(self) -> bool:
        """Whether it is still to come."""
        return self._then is not None and not self.known

    def _conclude(self, diverged: bool) -> None:
        if self.pending and self._then is not None:
            self.known = True
            self._then(diverged)

    # The holder

    def _answered(self, answers: Answers) -> None:
        own = self._evidence()
        if DIVERGED.encode() in answers.values() or not fits(own, self.clients):
            self._tell(diverged=True)
        elif not self.parties:
            self._tell(self.own.has_diverged(own))
        elif not all(self._is_sound(name, told) for name, told in answers.items()):
            self._tell(diverged=False)  # as if that party were away
        elif not self.known:
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
        self._tell(self.own.has_diverged(from_sums(others + self._sums())))

    def _tell(self, diverged: bool) -> None:
        if self.pending:
            body = self.run + b" " + (DIVERGED.encode() if diverged else FINE)
            self._conclude(diverged)
            self._tell_next(body, farthest_first(self.config))

    def _tell_next(self, body: bytes, groups: list[list[str]]) -> None:
        """One group after the other; if somebody does not answer, the next is told nevertheless."""
        if not groups:
            return
        now, *later = groups
        gone_on = False

        def go_on(_: Answers | None = None) -> None:
            nonlocal gone_on
            if not gone_on:
                gone_on = True
                self._tell_next(body, later)

        self.questions.ask(VERDICT, dict.fromkeys(now, body), go_on)
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
        verdicts = {self.run + b" " + DIVERGED.encode(): True, self.run + b" " + FINE: False}
        if asked.sender != self.holder or asked.body not in verdicts:
            raise WireError("verdict", "is none, or not from the one who gives it")
        if self._then is None:
            asked.let_go()
            return
        self._conclude(verdicts[asked.body])
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
