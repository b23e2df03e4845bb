"""Custody without a server: the one who sent the token last may make it anew. Why only one token ever counts.

**Words.** The token goes from stay to stay: it comes to a client, is visited with there, and is passed on to another.
The stays that count, in order, are the *line*. Whoever passes the token on keeps it as it was then (``passed``), and
everybody keeps what it was itself before its last stay (``before``). To make the token anew is to cut the line: the
one who does it, the initiator, sends its copy out again, and all stays after its own do not count. A *term* tells of
it: term g of the token, made anew after r visits. Envelopes tell all terms that their sender knows of, and a
token of an older term than one has heard of is not taken in. Whoever hears of a term undoes its last stay, if
that began after r visits or more.

**The question.** The initiator asks everybody. First without harm, to see whether the token is elsewhere and whether
those who matter are there; then firmly: whoever has answered takes in no token until the initiator says that it is
over. A client that is asked firmly by two lets the one with the later hop wait. Questions have numbers, no two the
same, the number is the term if the token is made anew, and a client that has answered a firm question with a higher
number says so: the initiator then asks once more, with a higher one.

**When the initiator s, which passed the token on to d, may decide.** Nobody has said that it had the token later, and

1. d itself has answered that it has not had it (the link is cut, but d is there); or
2. all have answered that d may have passed the token on to, and also some witness: the client p from which s had the
   token, or one of those that s may pass it on to.

Those that d may pass it on to are its neighbours, but for those that s told it to go round (``Envelope.gone``). A
client obeys that for the whole of its stay, even if it knows better; when it passes the token on, it says whom the
next one shall go round. So clients may die one after the other, also neighbours, and the last one is not asked for
the first.

**At most one stay is cut off, and it can be undone.** Were there two stays after that of s, the second would be with
somebody that d may have passed the token on to. It has answered, and had no later stay then, and takes in none since.
So there is at most the stay of d; that is its last, so d has what it was before, whether it ever comes back or not.

**Two initiators.** Let s decide, and p as well, about s being gone; others cannot, by the above. For p, all must answer
that s may pass the token on to: so the witness of s is asked by both, or is p itself. If p is first, the witness lets
s wait until it knows what came of it, and s hears of the term before it decides. If s is first, p hears of the number
of s, and decides with a higher one or not at all. Then whatever s makes is stale: those that it may be passed on to
have answered p, so they take it in neither before they hear of the term of p nor after. So of all terms, the highest
is the last of the line, and one with a lower number and a later hop than another is of a line that was cut: it is
dropped. Nobody has acted on it but its maker, whose stay is undone.

**Nothing is lost either.** Making the token anew and the term are one commit, and so are a visit and passing the
token on. Whoever comes back, goes on with its question or hears that it is stale.

**Who is waited for.** The initiator, if it stays dead while its firm question is open, which is not for long.
Neighbours that die together, if the token was at one of them: one of the two. Those at the other side of a network
that has fallen apart: nobody can tell whether the token is there. Who passed the token on to a client and told it to
go round all of its other neighbours, and died: the token then stays with that client. ``unreachable`` says so."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from mtcd.federation.delivery.envelopes import Envelope, Prepare, Promise, Release, Terms
from mtcd.federation.delivery.reliable_party import Delivery
from mtcd.federation.recovery.search import Decision, Search
from mtcd.federation.recovery.token_history import TokenHistory, live_terms
from mtcd.protocol.party import Message
from mtcd.protocol.token import Token


class LoneTokenClient(TokenHistory):
    """Of a client of stcd."""

    kept = (*TokenHistory.kept, "moved_on", "asked", "over", "highest", "search")

    def __init__(self, *given: Any) -> None:
        self.moved_on = False
        """Whether the token that was passed on is known to have been passed on once more."""
        self.asked: dict[int, tuple[Prepare, int]] = {}
        """Open questions, by who asks; with the term that it knew of."""
        self.over: dict[int, int] = {}
        """By who asked, the number of the last question that is over."""
        self.highest = 0
        """The highest term, or number of a firm question, heard of."""
        self.search: Search | None = None
        super().__init__(*given)

    def deliver(self, envelope: Envelope) -> Delivery:
        if self.learn_terms(envelope.terms):  # first of all: who waits for what is over, need not
            self.commit()
        return super().deliver(envelope)

    def _take_in(self, envelope: Envelope) -> list[Message]:
        if isinstance(envelope.message.payload, Release):  # heard even after the end, which may turn out not to count
            self._forget(envelope.sender, envelope.message.payload.ballot)
            return []
        return super()._take_in(envelope)

    def must_defer(self, envelope: Envelope) -> bool:
        """No token while others look for it. Of two who look, the one with the earlier hop is answered first."""
        firm = [prepare.hop for prepare, _ in self.asked.values() if prepare.binding]
        if self.search is not None and self.search.binding:
            firm.append(self.search.hop)
        match envelope.message.payload:
            case Prepare() as prepare:
                return prepare.binding and any(hop < prepare.hop for hop in firm)
            case Token():
                return bool(firm) and not self.is_stale(envelope)
        return False

    def process(self, envelope: Envelope) -> list[Message]:
        match envelope.message.payload:
            case Prepare() as prepare:
                self._be_asked(envelope.sender, prepare, envelope.term)
            case Promise() as told:
                if self.search is not None:
                    self.search.hear(envelope.sender, envelope.sequence, told)
                    self._go_on_searching()
            case _:
                if envelope.sender != self.number:
                    self.moved_on = False
                    self._stop_searching()
                return super().process(envelope)
        return []

    def learn_terms(self, terms: Terms) -> bool:
        """Whatever was cut off is over: stays, questions, and also an end of the training."""
        restart = self.cut(terms)
        if restart is None:
            return False
        self.highest = max(self.highest, *self.terms)
        self.moved_on = False
        self.asked = {who: one for who, one in self.asked.items() if not is_superseded(*one, self.terms)}
        if self.ended is not None and self.ended.hop > restart:  # of what does not count
            self.ended, self.ended_here = None, False
            if self.search is not None:
                self._ask(binding=False)
        self.cancel_stale()
        self._look()
        return True

    # Asked by others

    def _be_asked(self, who: int, prepare: Prepare, term: int) -> None:
        last = self.asked[who][0].ballot if who in self.asked else self.over.get(who, 0)
        if prepare.ballot <= last or is_superseded(prepare, term, self.terms):  # the ack tells why
            return
        self.asked[who] = prepare, term
        if prepare.binding:
            self.highest = max(self.highest, prepare.ballot)
        self._answer(who)

    def _answer(self, who: int) -> None:
        self._tell(who, Promise(self.asked[who][0].ballot, self.hop, self.highest, self.near & self.down))

    def _forget(self, who: int, ballot: int) -> None:
        self.over[who] = max(self.over.get(who, 0), ballot)
        if who in self.asked and self.asked[who][0].ballot <= ballot:
            del self.asked[who]

    # Asking others

    def peer_lost(self, k: int) -> None:
        """If the token was passed on to it, it is looked for."""
        if k not in self.down:
            super().peer_lost(k)
            self._links_changed()

    def peer_found(self, k: int) -> None:
        """The token need not be looked for any more, if it was passed on to this one."""
        if k in self.down:
            super().peer_found(k)
            self._links_changed()

    def _links_changed(self) -> None:
        for who in self.asked:
            self._answer(who)
        self._look()
        self.commit()

    def _look(self) -> None:
        """Begin to search, or go on, or give it up: as the links, the terms and the last stay are now."""
        if self.passed is None or self.passed.to not in self.down or self.ended is not None:
            self._stop_searching()
        elif self.search is None and not self.moved_on:
            to, near = self.passed.to, self.network.neighbours
            witnesses = None if self.came is None else frozenset({self.came[0], *self.near} - self.came[1])
            asked = frozenset(near[to]) - {self.number} - self.passed.gone
            token = self.passed.message.payload
            assert isinstance(token, Token)
            self.search = Search(token.hop, to, asked, witnesses)
            self._ask(binding=False)
        self._go_on_searching()

    def _go_on_searching(self) -> None:
        if self.search is None:
            return
        self.search.down[self.number] = self.near & self.down
        self.search.highest = max(self.search.highest, self.highest)
        match self.search.decision(self.network.neighbours):
            case Decision.ELSEWHERE:
                self.moved_on = True
                self._stop_searching()
            case Decision.PROBE:
                self._ask(binding=False)
            case Decision.PREPARE:
                self._ask(binding=True)
            case Decision.REGENERATE:
                self._regenerate(self.search)

    def _ask(self, binding: bool) -> None:
        assert self.search is not None
        others = self.network.size
        self.highest = max(self.highest, self.search.highest)
        ballot = (self.highest // others + 1) * others + self.number  # nobody else has such a number
        self.search.ask(ballot, binding)
        self.highest = self.search.highest = ballot
        self._tell_all(Prepare(self.search.hop, ballot, binding))

    def _stop_searching(self) -> None:
        if self.search is not None:
            ballot, self.search = self.search.ballot, None
            self._tell_all(Release(ballot))

    def _regenerate(self, search: Search) -> None:
        """From the copy, in the next term."""
        assert self.passed is not None
        again: Message = deepcopy(self.passed.message)
        self.terms = live_terms(self.terms | {search.ballot: search.hop})
        self.cancel_stale()
        self._stop_searching()
        self.passed, self.moved_on = None, False
        self.put(self.routed(again), 0)

    def _tell_all(self, payload: Prepare | Release) -> None:
        for k in self._others():
            self._tell(k, payload)

    def _tell(self, to: int, payload: Any) -> None:
        self.put(Message(self.number, to, payload), 0)

    def _others(self) -> list[int]:
        return [k for k in range(self.network.size) if k != self.number]

    @property
    def waits_for(self) -> frozenset[int]:
        """Those who are gone, and without whose answers the token that it passed on cannot be made anew."""
        if self.search is None:
            return frozenset()
        near = self.network.neighbours
        return frozenset().union(*self.search.missing(near)) & self.search.gone(near)

    def waiting_reason(self) -> str | None:
        """For whom the token waits, as far as is known here, and what a person can do; None for nobody."""
        names = self.network.clients
        for k in self.down.intersection(self.asked):
            if self.asked[k][0].binding:
                return f"{names[k]} is gone, and was looking for the token, which waits for it. Start {names[k]} again."
        if self.search is not None:
            to, missing = names[self.search.to], self.search.missing(self.network.neighbours)
            told = f"The token was passed on to {to}, which cannot be reached. "
            if not missing:
                return told + "The others are being asked where it is."
            groups = ", ".join(" or ".join(names[k] for k in sorted(group)) for group in missing)
            return told + f"It is made anew when these have said that they lack it: {groups}. Or start {to} again."
        back = self.near - self.down
        if self.came is not None and self.passed is None and back and back <= self.came[1]:
            who = ", ".join(names[k] for k in sorted(back))
            return f"The token stays here until {names[self.came[0]]} is back: it came with the word to go round {who}."
        return None


def is_superseded(prepare: Prepare, term: int, terms: Terms) -> bool:
    """Whether a question is over: it led to a term, or its asker, who knew of ``term``, was cut off by one."""
    return any(
        (g >= prepare.ballot and hop <= prepare.hop) or (g > term and hop < prepare.hop) for g, hop in terms.items()
    )
