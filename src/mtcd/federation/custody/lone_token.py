"""Custody without a server: the one who sent the token last may make it anew. Why only one token ever counts.

**Words.** The token goes from stay to stay: it comes to a client, is visited with there, and is passed on to another.
The stays that count, in order, are the *line*. Whoever passes the token on keeps it as it was then (``passed``), and
everybody keeps what it was itself before its last stay (``before``). To make the token anew is to cut the line: the
one who does it, the seeker, sends its copy out again, and all stays after its own do not count. A *fence* tells of
it: generation g of the token, made anew after r visits. Letters tell all fences that their sender knows of, and a
token of an older generation than one has heard of is not taken in. Whoever hears of a fence undoes its last stay, if
that began after r visits or more.

**The question.** The seeker asks everybody. First without harm, to see whether the token is elsewhere and whether
those who matter are there; then firmly: whoever has answered takes in no token until the seeker says that it is over.
A client that is asked firmly by two lets the one with the later hop wait. Questions have numbers, no two the same,
the number is the generation if the token is made anew, and a client that has answered a firm question with a higher
number says so: the seeker then asks once more, with a higher one.

**When the seeker s, which passed the token on to d, may decide.** Nobody has said that it had the token later, and

1. d itself has answered that it has not had it (the link is cut, but d is there); or
2. all have answered that d may have passed the token on to, and also some witness: the client p from which s had the
   token, or one of those that s may pass it on to.

Those that d may pass it on to are its neighbours, but for those that s told it to go round (``Letter.gone``). A client
obeys that for the whole of its stay, even if it knows better; when it passes the token on, it says whom the next one
shall go round. So clients may die one after the other, also neighbours, and the last one is not asked for the first.

**At most one stay is cut off, and it can be undone.** Were there two stays after that of s, the second would be with
somebody that d may have passed the token on to. It has answered, and had no later stay then, and takes in none since.
So there is at most the stay of d; that is its last, so d has what it was before, whether it ever comes back or not.

**Two seekers.** Let s decide, and p as well, about s being gone; others cannot, by the above. For p, all must answer
that s may pass the token on to: so the witness of s is asked by both, or is p itself. If p is first, the witness lets
s wait until it knows what came of it, and s hears of the fence before it decides. If s is first, p hears of the number
of s, and decides with a higher one or not at all. Then whatever s makes is void: those that it may be passed on to
have answered p, so they take it in neither before they hear of the fence of p nor after. So of all fences, the highest
is the last of the line, and one with a lower number and a later hop than another is of a line that was cut: it is
dropped. Nobody has acted on it but its maker, whose stay is undone.

**Nothing is lost either.** Making the token anew and the fence are one commit, and so are a visit and passing the
token on. Whoever comes back, goes on with its question or hears that it is void.

**Who is waited for.** The seeker, if it stays dead while its firm question is open, which is not for long. Neighbours
that die together, if the token was at one of them: one of the two. Those at the other side of a network that has
fallen apart: nobody can tell whether the token is there. Who passed the token on to a client and told it to go round
all of its other neighbours, and died: the token then stays with that client. ``unreachable`` says so.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from mtcd.federation.custody.letters import Fences, Freeze, Frozen, Letter, Thaw
from mtcd.federation.custody.line import LinePostman, without_cut
from mtcd.federation.custody.postman import Delivery
from mtcd.federation.custody.search import Search, Verdict
from mtcd.protocol.party import Message
from mtcd.protocol.token import Token


class LonePostman(LinePostman):
    """Of a client of stcd."""

    kept = (*LinePostman.kept, "moved_on", "asked", "over", "highest", "search")

    def __init__(self, *given: Any) -> None:
        self.moved_on = False
        """Whether the token that was passed on is known to have been passed on once more."""
        self.asked: dict[int, tuple[Freeze, int]] = {}
        """Open questions, by who asks; with the generation that it knew of."""
        self.over: dict[int, int] = {}
        """By who asked, the number of the last question that is over."""
        self.highest = 0
        """The highest generation, or number of a firm question, heard of."""
        self.search: Search | None = None
        super().__init__(*given)

    def deliver(self, letter: Letter) -> Delivery:
        if self.heed(letter.fences):  # first of all: who waits for what is over, need not
            self.commit()
        return super().deliver(letter)

    def _take_in(self, letter: Letter) -> list[Message]:
        if isinstance(letter.message.payload, Thaw):  # heard even after the end, which may turn out not to count
            self._forget(letter.sender, letter.message.payload.number)
            return []
        return super()._take_in(letter)

    def must_wait(self, letter: Letter) -> bool:
        """No token while others look for it. Of two who look, the one with the earlier hop is answered first."""
        firm = [freeze.hop for freeze, _ in self.asked.values() if freeze.firm]
        if self.search is not None and self.search.firm:
            firm.append(self.search.hop)
        match letter.message.payload:
            case Freeze() as freeze:
                return freeze.firm and any(hop < freeze.hop for hop in firm)
            case Token():
                return bool(firm) and not self.is_void(letter)
        return False

    def process(self, letter: Letter) -> list[Message]:
        match letter.message.payload:
            case Freeze() as freeze:
                self._be_asked(letter.sender, freeze, letter.generation)
            case Frozen() as told:
                if self.search is not None:
                    self.search.hear(letter.sender, letter.sequence, told)
                    self._go_on_searching()
            case _:
                if letter.sender != self.number:
                    self.moved_on = False
                    self._stop_searching()
                return super().process(letter)
        return []

    def heed(self, fences: Fences) -> bool:
        """Whatever was cut off is over: stays, questions, and also an end of the training."""
        restart = self.cut(fences)
        if restart is None:
            return False
        self.highest = max(self.highest, *self.fences)
        self.moved_on = False
        self.asked = {who: one for who, one in self.asked.items() if not is_cut(*one, self.fences)}
        if self.ended is not None and self.ended.hop > restart:  # of what does not count
            self.ended, self.ended_here = None, False
            if self.search is not None:
                self._ask(firm=False)
        self.mark_void()
        self._look()
        return True

    # Asked by others

    def _be_asked(self, who: int, freeze: Freeze, generation: int) -> None:
        last = self.asked[who][0].number if who in self.asked else self.over.get(who, 0)
        if freeze.number <= last or is_cut(freeze, generation, self.fences):  # the receipt tells why
            return
        self.asked[who] = freeze, generation
        if freeze.firm:
            self.highest = max(self.highest, freeze.number)
        self._answer(who)

    def _answer(self, who: int) -> None:
        self._tell(who, Frozen(self.asked[who][0].number, self.hop, self.highest, self.near & self.dead))

    def _forget(self, who: int, number: int) -> None:
        self.over[who] = max(self.over.get(who, 0), number)
        if who in self.asked and self.asked[who][0].number <= number:
            del self.asked[who]

    # Asking others

    def lost(self, k: int) -> None:
        """If the token was passed on to it, it is looked for."""
        if k not in self.dead:
            super().lost(k)
            self._links_changed()

    def found(self, k: int) -> None:
        """The token need not be looked for any more, if it was passed on to this one."""
        if k in self.dead:
            super().found(k)
            self._links_changed()

    def _links_changed(self) -> None:
        for who in self.asked:
            self._answer(who)
        self._look()
        self.commit()

    def _look(self) -> None:
        """Begin to search, or go on, or give it up: as the links, the fences and the last stay are now."""
        if self.passed is None or self.passed.to not in self.dead or self.ended is not None:
            self._stop_searching()
        elif self.search is None and not self.moved_on:
            to, near = self.passed.to, self.network.neighbours
            witnesses = None if self.came is None else frozenset({self.came[0], *self.near} - self.came[1])
            asked = frozenset(near[to]) - {self.number} - self.passed.gone
            self.search = Search(self.passed.message.payload.hop, to, asked, witnesses)
            self._ask(firm=False)
        self._go_on_searching()

    def _go_on_searching(self) -> None:
        if self.search is None:
            return
        self.search.down[self.number] = self.near & self.dead
        self.search.highest = max(self.search.highest, self.highest)
        match self.search.verdict(self.network.neighbours):
            case Verdict.ELSEWHERE:
                self.moved_on = True
                self._stop_searching()
            case Verdict.ASK:
                self._ask(firm=False)
            case Verdict.ASK_FIRMLY:
                self._ask(firm=True)
            case Verdict.ANEW:
                self._make_anew(self.search)

    def _ask(self, firm: bool) -> None:
        assert self.search is not None
        others = self.network.size
        self.highest = max(self.highest, self.search.highest)
        number = (self.highest // others + 1) * others + self.number  # nobody else has such a number
        self.search.ask(number, firm)
        self.highest = self.search.highest = number
        self._tell_all(Freeze(self.search.hop, number, firm))

    def _stop_searching(self) -> None:
        if self.search is not None:
            number, self.search = self.search.number, None
            self._tell_all(Thaw(number))

    def _make_anew(self, search: Search) -> None:
        """From the copy, in the next generation."""
        assert self.passed is not None
        again: Message = deepcopy(self.passed.message)
        self.fences = without_cut(self.fences | {search.number: search.hop})
        self.mark_void()
        self._stop_searching()
        self.passed, self.moved_on = None, False
        self.put(self.routed(again), 0)

    def _tell_all(self, payload: Freeze | Thaw) -> None:
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

    def unreachable(self) -> str | None:
        """For whom the token waits, as far as is known here, and what a person can do; None for nobody."""
        names = self.network.clients
        for k in self.dead.intersection(self.asked):
            if self.asked[k][0].firm:
                return f"{names[k]} is gone, and was looking for the token, which waits for it. Start {names[k]} again."
        if self.search is not None:
            to, missing = names[self.search.to], self.search.missing(self.network.neighbours)
            told = f"The token was passed on to {to}, which cannot be reached. "
            if not missing:
                return told + "The others are being asked where it is."
            groups = ", ".join(" or ".join(names[k] for k in sorted(group)) for group in missing)
            return told + f"It is made anew when these have said that they lack it: {groups}. Or start {to} again."
        back = self.near - self.dead
        if self.came is not None and self.passed is None and back and back <= self.came[1]:
            who = ", ".join(names[k] for k in sorted(back))
            return f"The token stays here until {names[self.came[0]]} is back: it came with the word to go round {who}."
        return None


def is_cut(freeze: Freeze, generation: int, fences: Fences) -> bool:
    """Whether a question is over: it led to a fence, or its asker, who knew of ``generation``, was cut off by one."""
    return any(
        (g >= freeze.number and hop <= freeze.hop) or (g > generation and hop < freeze.hop) for g, hop in fences.items()
    )
