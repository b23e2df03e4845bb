"""A transcript: what happens in a simulated federation, line by line, for readers.

Envelopes arrive in the order in which they were sent, unless the story says otherwise; acks arrive
at once, and are not shown. What each party holds at the end is read from its journal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mtcd.protocol.codec.envelopes import (
    Ack,
    Cancelled,
    End,
    Envelope,
    HolderLost,
    Prepare,
    Promise,
    Release,
    ResendTokens,
    Undeliverable,
)
from mtcd.protocol.codec.payloads import Payload
from mtcd.protocol.codec.records import pack, unpack
from mtcd.protocol.gathering import Fresh
from mtcd.protocol.party import SERVER, Progress
from mtcd.protocol.token import Token
from mtcd.testing.simulator.invariants import (
    PRECISION,
    at_last_sync,
    check_lone_token,
    check_server,
    the_token,
)
from mtcd.testing.simulator.world import Arrival, Crash, World, receiver

MOST_STEPS = 2000
OUTCOMES = {
    Arrival.PROCESSED: "",
    Arrival.DUPLICATE: ": a duplicate, acknowledged again and ignored",
    Arrival.STALE: ": stale, rejected for ever",
}
Condition = Callable[[], bool]


class Transcript:
    """Runs a world and writes down what happens. Parties are called by their numbers, SERVER for
    the server."""

    def __init__(self, world: World, problem: Any, title: str, setting: str) -> None:
        self.world, self.problem = world, problem
        self.lines = [title, "=" * len(title), setting, ""]
        self._arrived: set[tuple[int, int, int]] = set()
        self._event = 0
        self._reported = len(world.reports)

    def text(self) -> str:
        """All lines of the transcript as one text."""
        return "\n".join(self.lines) + "\n"

    def name(self, k: int) -> str:
        """The name of a party."""
        if k == SERVER:
            return "server"
        return f"c{k}"

    def say(self, text: str) -> None:
        """Add a remark between the events."""
        self.lines.append(f"     {text}")

    def event(self, text: str) -> None:
        """Something that happens, with the next number."""
        self._event += 1
        self.lines.append(f"{self._event:3}  {text}")

    # Events of a script

    def deliver(self, count: int = 1, sender: int | None = None, to: int | None = None) -> None:
        """The next envelopes arrive; of these parties, if they are given."""
        for _ in range(count):
            envelope = self._next(sender, to)
            what, before = self._what(envelope), set(self._outbox(envelope.to))
            try:
                outcome = self.world.arrive(envelope, pack(envelope))
            except Crash:
                self.world.crash(envelope.to)
                self.event(f"{what}: {self.name(envelope.to)} crashes")
            else:
                how = OUTCOMES.get(outcome, f": {outcome.value}")
                self.event(f"{what}{how}{self._sent(envelope.to, before)}")
                self._write_reports()

    def until(self, condition: Condition) -> None:
        """Envelopes arrive until the condition holds."""
        for _ in range(MOST_STEPS):
            if condition():
                return
            self.deliver()
        raise AssertionError(f"it does not come to this: {self.lines[-1]}")

    def next_receiver(self) -> int:
        """The party that the next envelope goes to."""
        envelope = self._next(None, None)
        # back where it was: looking at it changes nothing
        self.world.in_flight.insert(0, pack(envelope))
        return envelope.to

    def lose(self, sender: int | None = None, to: int | None = None) -> None:
        """The next envelope is lost."""
        self.event(f"{self._what(self._next(sender, to))}: lost on the way")

    def duplicate(self, sender: int | None = None, to: int | None = None) -> None:
        """The next envelope will arrive twice."""
        envelope = self._next(sender, to)
        self.world.in_flight[:0] = [pack(envelope), pack(envelope)]
        self.event(f"{self._what(envelope)}: the link duplicates it")

    def crash(self, k: int) -> None:
        """A party crashes: what is not in its journal is lost."""
        self.world.crash(k)
        self.event(f"{self.name(k)} crashes")

    def crash_at_commit(self, k: int, after: bool) -> None:
        """A party will crash at its next commit, just before or just after it."""
        # the journal asks twice, before and after it writes; then never again
        checks = iter([True])
        if after:
            checks = iter([False, True])
        self.world.journals[k].crashes = lambda: next(checks, False)

    def restart(self, k: int) -> None:
        """A party that has crashed starts again from its journal."""
        before = set(self._outbox(k))
        self.world.start(k)
        self.event(f"{self.name(k)} restarts from its journal{self._sent(k, before)}")

    def notice(self, k: int, down: bool, observers: Sequence[int]) -> None:
        """The links of these parties report that party k is down, or up."""
        names = ", ".join(self.name(observer) for observer in observers)
        state = "up"
        if down:
            state = "down"
        self.event(f"{names}: the link reports that {self.name(k)} is {state}")
        for observer in observers:
            before = set(self._outbox(observer))
            self.world.report(observer, k, down)
            sent = self._sent(observer, before)
            if sent:
                self.say(sent.removeprefix(". "))

    def cut(self, one: int, other: int) -> None:
        """The link between two parties is cut."""
        self.world.cuts[frozenset({one, other})] = MOST_STEPS
        self.event(f"the link between {self.name(one)} and {self.name(other)} is cut")

    def mend(self, one: int, other: int) -> None:
        """The link works again."""
        del self.world.cuts[frozenset({one, other})]
        self.event(f"the link between {self.name(one)} and {self.name(other)} works again")

    def hang(self, k: int) -> None:
        """A party hangs: nothing arrives there."""
        self.world.hung[k] = MOST_STEPS
        self.event(f"{self.name(k)} hangs")

    def wake(self, k: int) -> None:
        """A hung party resumes."""
        del self.world.hung[k]
        self.event(f"{self.name(k)} resumes")

    def drop_in_flight(self) -> None:
        """All that is on its way is lost."""
        self.world.in_flight.clear()

    # Invariants at the end

    def holds(self) -> None:
        """Write the state of each party, and check the invariants."""
        world, problem = self.world, self.problem
        clients = [k for k in world.numbers if k != SERVER]
        self.lines += ["", "What each party holds"]
        if SERVER not in world.numbers:
            token, held = the_token(world)
            check_lone_token(world, problem)
            owner, aggregate, penalty = "the token", token.aggregate, token.penalty
            self.lines.append(f"  token   hop {token.hop}, term {max(self._terms(), default=0)}")
        else:
            server = world.journals[SERVER].last()["party"]
            owner, aggregate, penalty = "the server", server["aggregate"], server["penalty"]
            if "t" in server:
                held = at_last_sync(world)
                check_server(world, problem)
                self.lines.append(
                    f"  server  iteration {server['t']}, terms "
                    f"{world.journals[SERVER].last()['terms']}"
                )
            else:
                held = world.parameters()
                self.lines.append(f"  server  round {server['round']}")
        for k in clients:
            state = "down"
            if k in world.parties:
                state = "up"
            self.lines.append(f"  {self.name(k)}      {state:5} theta = {float(held[k][0]):7.4f}")

        # the invariant of the whole library, which no fault may break
        difference = abs(problem.aggregate(held) - aggregate).max()
        fits = f"no, {difference:.1e} apart"
        if difference < PRECISION:
            fits = "yes"
        self.lines.append(
            f"  The sum of h_k(theta_k) over all clients is the aggregate of {owner}: {fits}."
        )

        twice = sum(count > 1 for count in world.processed.values())
        self.lines.append(
            f"  Envelopes processed twice: {twice}. Objective: "
            f"{problem.read_off(aggregate, penalty):.4f}."
        )

    def _terms(self) -> dict[int, int]:
        terms: dict[int, int] = {}
        for journal in self.world.journals.values():
            terms |= journal.last()["terms"]
        return terms

    # Formatting

    def _outbox(self, k: int) -> Sequence[tuple[int, int]]:
        party = self.world.parties.get(k)
        if party is None:  # it is down
            return []
        return list(party.outbox)

    def _next(self, sender: int | None, to: int | None) -> Envelope:
        """The next envelope in flight; acks before it arrive."""
        world = self.world
        for _ in range(2):
            for data in list(world.in_flight):
                thing: Envelope | Ack = unpack(data)
                if isinstance(thing, Ack):
                    world.in_flight.remove(data)
                    if receiver(thing) not in world.hung:
                        world.arrive(thing, data)
                elif (sender is None or thing.sender == sender) and (to is None or thing.to == to):
                    if thing.to in world.hung:
                        continue
                    world.in_flight.remove(data)
                    return thing
            # nothing of these is on its way: all send again what waits for an ack
            for k, party in world.parties.items():
                if k not in world.hung:
                    world.in_flight += [pack(envelope) for envelope in party.unacknowledged()]
        raise AssertionError("nothing is on its way")

    def _what(self, envelope: Envelope) -> str:
        key = envelope.sender, envelope.to, envelope.sequence
        again = ""
        if key in self._arrived:
            again = " again"
        self._arrived.add(key)

        way = f"{self.name(envelope.sender)} -> {self.name(envelope.to)}"
        return f"{way}: {describe(envelope)}{again}"

    def _write_reports(self) -> None:
        for message in self.world.reports[self._reported :]:
            progress = message.payload
            if isinstance(progress, Progress):
                value = self.problem.read_off(progress.aggregate, progress.penalty)
                self.say(f"The server syncs: iteration {progress.t} begins, f = {value:.4f}.")
        self._reported = len(self.world.reports)

    def _sent(self, k: int, before: set[tuple[int, int]]) -> str:
        """The envelopes that a party has put into its outbox since ``before``."""
        party = self.world.parties.get(k)
        new = (
            []
            if party is None
            else [one for place, one in party.outbox.items() if place not in before]
        )
        receivers: dict[str, list[str]] = {}
        for envelope in new:
            receivers.setdefault(describe(envelope), []).append(self.name(envelope.to))
        sent = [f"{what} to {', '.join(names)}" for what, names in receivers.items()]
        return f". {self.name(k)} sends {'; '.join(sent)}" if sent else ""


def describe(envelope: Envelope) -> str:
    """A short description of the payload of an envelope."""
    payload, term, when = envelope.message.payload, "", ""
    if envelope.term:
        term = f", term {envelope.term}"
    if envelope.iteration:
        when = f"iteration {envelope.iteration}, "
    match payload:
        case Token():
            return f"token {payload.index} ({when}hop {payload.hop}{term})"
        case Prepare() if payload.binding:
            return f"prepare {payload.ballot}"
        case Prepare():
            return f"probe {payload.ballot}"
        case Promise():
            return f"promise {payload.ballot} (hop {payload.hop})"
        case Release():
            return f"release {payload.ballot}"
        case Cancelled():
            return "cancelled"
        case Undeliverable():
            return "undeliverable token"
        case HolderLost():
            return f"c{payload.client} is down with a token"
        case ResendTokens():
            return f"resend tokens{term}"
        case Payload() if payload.opens_round:
            return f"aggregate of round {payload.rounds_ended}"
        case Fresh():
            return f"upload of round {envelope.iteration}"
        case End():
            return f"end ({payload.status})"
    return type(payload).__name__.lower()
