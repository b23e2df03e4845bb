"""The tracer: records which token went from whom to whom, of a training whose parties are in one
process.

An engine shows it every message as it is sent (``mtcd.protocol.engine.Listener``). A hop takes
about ten microseconds, so most messages are only counted. Messages are kept in windows of
consecutive ones, evenly spread over the training: whenever there are too many windows, every second
one is dropped, and the next ones come half as often.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import make_dataclass
from functools import cache
from typing import Any, NamedTuple

from mtcd.core.mappings import attributes
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.protocol.party import SERVER, Message

WINDOW = 256
MOST_WINDOWS = 32
MOST_COUNTED = 2000
"""Clients; of more, their visits at the beginning of each window are not kept."""

Sent = tuple[int, int, int, int]
"""Token, sender, receiver, iteration."""


class Tracer:
    """What was sent so far between ``clients`` clients and perhaps a server.

    Traced are messages that carry a token, or the signal that its roam has ended; of methods
    without tokens, all messages that carry numbers, as if each client had a token of its own.
    ``hops_per_sync``: iterations, as histories count them, from one sync to the next.
    """

    state_fields = (
        "total",
        "tokens",
        "rounds",
        "visits",
        "last_hops",
        "polls",
        "last_polls",
        "windows",
        "spacing",
    )

    def __init__(self, clients: int, hops_per_sync: int, ledger: Ledger) -> None:
        self.clients = clients
        self.hops_per_sync = hops_per_sync
        self.ledger = ledger
        self.total = 0
        """The messages that were traced, kept or not."""
        self.tokens = 0
        """The tokens that were seen; 0: the method has none."""
        self.rounds = 0
        """Rounds in which all neighbours exchanged messages; these are not told one by one."""
        self.visits = [0] * (clients + 1)  # here and below, the last one is the server's
        self.last_hops = [0] * (clients + 1)
        """The hops on the ledger when the last visit of each client ended."""
        self.polls = [0] * (clients + 1)
        """The messages from the server to each client."""
        self.last_polls = [0] * (clients + 1)
        """The syncs, or rounds, of the last ones."""
        self.windows: list[list[Sent]] = []
        """Window i begins at message ``i * spacing``."""
        self.spacing = WINDOW
        self.before: list[list[int]] = []
        """The visits of each client that had ended when each window began; empty where there are
        too many clients."""
        self.latest_before: list[int] | None = None
        """The same for the messages that ``latest`` returned."""
        self._latest: list[tuple[int, Sent]] | None = None  # see latest()
        # the number of the message that begins the present window, or the next one; and of the
        # first that is kept
        self._watched_before: list[int] | None = None
        self._next = self._open = 0
        self._iteration = 0
        self._window: list[Sent] = []  # the present window, unless it is full
        self._known: Any = None  # the class of the last payload that was kept, if it has a place

    def see(self, message: Message) -> None:
        """A message is being sent from one party to another, or to itself."""
        sender = message.sender
        if message.hop_floats:
            self.visits[sender] += 1
            self.last_hops[sender] = self.ledger.hops
        elif sender == message.to or not self._traced(message):
            return
        elif sender == SERVER:
            self.polls[message.to] += 1
            self.last_polls[message.to] = message.payload.t  # type: ignore[attr-defined]

        # nearly all messages end here: between windows they are only counted
        number = self.total
        self.total = number + 1
        if number < self._open:
            return

        payload: Any = message.payload
        if (
            self._latest is None
            and message.hop_floats
            and self._window
            and type(payload) is self._known
        ):
            # The usual case, in one call: a token of a class that was seen before, in a window that
            # is not yet full.
            self._iteration = payload.t * self.hops_per_sync + payload.hop
            if payload.index >= self.tokens:
                self.tokens = payload.index + 1
            self._window.append((payload.index, sender, message.to, self._iteration))
            if len(self._window) < WINDOW:
                return
            self._full()
            return
        self._keep(message, number)

    def see_rounds(self, done: int) -> None:
        """So many rounds are done, in each of which all neighbours exchanged messages."""
        self.rounds = done

    def recorder(self) -> type[TraceLog]:
        """What keeps the messages of another process."""
        return TraceLog

    def replay(self, recorded: Iterable[list[Traced]]) -> None:
        """See the messages that other processes have logged, in the order of iterations, hops and
        tokens.

        The ledger is the one before these messages. The engine adds them to it afterwards.
        """
        placed: list[tuple[tuple[int, int, int], Traced]] = []
        for log in recorded:
            placed += zip(_places(log), log, strict=True)

        before = self.ledger.hops
        for _, one in sorted(placed, key=lambda pair: pair[0]):
            self.ledger.hops += bool(one.hop_floats)
            payload = _stub(one.names)(*one.values)
            self.see(Message(one.sender, one.to, payload, one.floats, one.hop_floats))

        self.ledger.hops = before

    def latest(self) -> list[tuple[int, Sent]]:
        """The messages since this was called before, with their numbers, up to a window of them.

        For somebody who watches, in another thread. The first call returns none.
        """
        # taken over as a whole: the training adds to a new list from now on
        seen = self._latest or []
        self._latest = []
        self._open = 0
        self.latest_before = self._watched_before
        self._watched_before = None
        return seen

    def _traced(self, message: Message) -> bool:
        """Whether a message counts that ends no visit."""
        tokens = _carries_token(type(message.payload))  # type: ignore[arg-type]
        # what was sent before is a warm start: the sum of the first token
        if tokens and not self.tokens:
            self.tokens = 1
            self.total = 0
            self.windows = []
            self.before = []
            self._next = self._open = 0
            self._window = []
        return tokens or (not self.tokens and message.floats > 0)

    def _keep(self, message: Message, number: int) -> None:
        sent = self._sent(message)
        latest = self._latest
        watched = latest is not None and len(latest) < WINDOW
        if watched:
            if not latest:
                self._watched_before = self._visits_before(message)
            latest.append((number, sent))  # type: ignore[union-attr]
        if number >= self._next:
            self._keep_in_window(message, number, sent)
        if not watched:
            self._open = self._next

    def _keep_in_window(self, message: Message, number: int, sent: Sent) -> None:
        if number == self._next:
            self.windows.append([])
            if self.clients <= MOST_COUNTED:
                self.before.append(self._visits_before(message))

        self._window = self.windows[-1]
        self._window.append(sent)
        # what see() needs to keep the next ones by itself
        kind: Any = type(message.payload)
        self._known = None
        if _has_place(kind):
            self._known = kind
        if len(self._window) == WINDOW:
            self._full()

    def _full(self) -> None:
        """The present window is full: the next one begins later."""
        if len(self.windows) == MOST_WINDOWS:
            # those that stay are as far apart as the new spacing
            self.windows = self.windows[::2]
            self.spacing = 2 * self.spacing
            self.before = self.before[::2]
        self._next = len(self.windows) * self.spacing
        self._window = []
        if self._latest is None:
            self._open = self._next

    def _visits_before(self, message: Message) -> list[int]:
        """The visits of the clients that had ended before this message was sent."""
        visits = self.visits[: self.clients]
        if message.hop_floats and message.sender >= 0:
            visits[message.sender] -= 1  # see() has counted the visit that this message ends
        return visits

    def _sent(self, message: Message) -> Sent:
        payload: Any = message.payload
        sender, to = message.sender, message.to
        kind: Any = type(payload)
        if _has_place(kind):
            token = payload.index
            self._iteration = payload.t * self.hops_per_sync + payload.hop
            if token >= self.tokens:
                self.tokens = token + 1
            return token, sender, to, self._iteration

        # one that says nothing of its place belongs to the iteration of the one before it
        if hasattr(payload, "t"):
            self._iteration = payload.t * self.hops_per_sync
        elif hasattr(payload, "iteration"):
            self._iteration = payload.iteration
        client = sender
        if sender == SERVER:
            client = to
        return getattr(payload, "index", client), sender, to, self._iteration

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps: plain values."""
        state = attributes(self, self.state_fields)
        if self.before:
            state["before"] = self.before
        return state

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a checkpoint."""
        for name in self.state_fields:
            setattr(self, name, state[name])
        self.before = state.get("before", [])  # checkpoints of before have none
        self._window = []
        begun = bool(self.windows) and len(self.windows[-1]) < WINDOW
        self._next = self._open = (len(self.windows) - begun) * self.spacing


@cache
def _carries_token(kind: type) -> bool:
    """Whether payloads of this class have the number of a token."""
    return hasattr(kind, "index")


@cache
def _has_place(kind: type) -> bool:
    """Whether payloads of this class also have a place: an iteration and a hop."""
    return hasattr(kind, "index") and hasattr(kind, "hop")


class Traced(NamedTuple):
    """A message as a log keeps it: without the numbers that it carries."""

    names: tuple[str, ...]
    """Of the attributes of its payload that say where it belongs."""
    values: tuple[int, ...]
    sender: int
    to: int
    floats: int
    hop_floats: int


class TraceLog:
    """Keeps the messages of another process for ``Tracer.replay``."""

    def __init__(self) -> None:
        self._kept: list[Traced] = []

    def see(self, message: Message) -> None:
        """A message is being sent."""
        payload = message.payload
        sender = message.sender
        to = message.to
        names = _place_names(type(payload))  # type: ignore[arg-type]
        if message.hop_floats or (sender != to and (message.floats or "index" in names)):
            values = tuple([getattr(payload, name) for name in names])
            self._kept.append(Traced(names, values, sender, to, message.floats, message.hop_floats))

    def take(self) -> list[Traced]:
        """The messages since the last call."""
        kept = self._kept
        self._kept = []
        return kept


@cache
def _place_names(kind: type) -> tuple[str, ...]:
    """The attributes of a payload class that a tracer reads."""
    return tuple(name for name in ("index", "t", "hop", "iteration") if hasattr(kind, name))


@cache
def _stub(names: tuple[str, ...]) -> Any:
    """A class of payloads with these attributes only."""
    return make_dataclass("Stub", names, slots=True)


def _places(log: Iterable[Traced]) -> Iterable[tuple[int, int, int]]:
    """Iteration, hop and token of each message; one that has none follows the message before it."""
    t = hop = 0
    for one in log:
        known = dict(zip(one.names, one.values, strict=True))
        place = known.get("t", known.get("iteration"))
        if place is not None:
            t, hop = place, known.get("hop", 0)
        yield t, hop, known.get("index", one.sender)
