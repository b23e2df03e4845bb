"""Requests to any party of the federation: direct to a peer, or relayed from neighbour to
neighbour.

Relays cannot change a request, and the server cannot read it: it is encrypted (see
``federation/relay_encryption.py``). Handlers see whether a request came direct or relayed, and
decide which they accept; tokens are never relayed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from hashlib import blake2b

import networkx as nx

from mtcd.core.errors import ConfigError, DataError, MtcdError, WireError
from mtcd.core.received import is_whole, read_json
from mtcd.federation.credentials.bundle import Bundle
from mtcd.federation.names import SERVER
from mtcd.federation.node.counters import Counters, reason_of
from mtcd.federation.node.link import NO, NO_ANSWER, OK, Connect, IncomingRequest, Link
from mtcd.federation.node.log import Log, in_words, tidy
from mtcd.federation.node.loop import Loop
from mtcd.federation.relay_encryption import Seal

RELAY, HELLO, UNABLE = "relay", "hello", "unable"
NOT_KNOWN = "has no handler in this phase"
LONGEST_HEAD_BYTES = 300  # per party
Done = Callable[[bytes | None, str], None]
"""Called with the answer; without one, with None and the reason if the receiver refused."""
Handler = Callable[[IncomingRequest], None]


class Rpc:
    """The requests of one party. ``on`` adds a handler; a handler that raises an error refuses the
    request."""

    def __init__(
        self,
        bundle: Bundle,
        loop: Loop,
        log: Log,
        on_change: Callable[[str, bool], None],
        connect: Connect = Link,
    ) -> None:
        self.bundle, self.loop, self.log = bundle, loop, log
        config = bundle.config
        self.me = config.name
        self.members = [*config.parties, SERVER]
        self._graph = nx.Graph(config.links)
        self._graph.add_nodes_from(config.parties)
        self.seal = None if config.is_server else Seal(bundle)
        self._handlers: dict[str, Handler] = {}
        self._ending = False
        self.incompatible: dict[str, str] = {}
        """By peer that speaks another protocol: a sentence that says so. All else that it sends is
        refused."""
        self.counters = Counters(config.peers)
        self.link = connect(bundle, loop, self._on_request, on_change, self.counters)
        self.link.tell = log.throttled

    def on(self, kind: str, handler: Handler) -> None:
        """Register the handler of a kind of requests."""
        self._handlers[kind] = handler

    def end(self) -> None:
        """From now on drop all requests but greetings and refusals: this party is about to end."""
        self._ending = True

    def ask(self, to: str, kind: str, body: bytes, done: Done, direct: bool = False) -> None:
        """Send a request; the caller retries if there is no answer. ``direct``: never relay it."""
        # A server has no seal, so that nothing can be relayed to or from it: what is down waits.
        if to in self.link.up or (to in self.link.peers and self.seal is None):
            self.link.post(to, kind, body, partial(_report, done))
        elif direct or self.seal is None or to == SERVER:
            # the server has no seal, and a link to every party
            done(None, "")
        else:
            sealed = self.seal.seal(to, kind, body)
            self._relay(to, sealed, self._opened(to, _answer_to(kind, sealed), done), frozenset())

    def _relay(
        self, to: str, sealed: bytes, opened: Callable[[bytes | None], None], tried: frozenset[str]
    ) -> None:
        """Try one neighbour after the other until there is an answer: each knows only its own
        links."""
        near = self._towards(to, tried)
        if near is None:
            opened(None)
            return

        def answered(answer: bytes | None) -> None:
            if answer is None:
                self._relay(to, sealed, opened, tried | {near})
            else:
                opened(answer)

        # Twice the members: one way there, and as many detours around links that are cut.
        self.link.post(near, RELAY, _head(to, 2 * len(self.members), [self.me]) + sealed, answered)

    def _opened(self, to: str, kind: str, done: Done) -> Callable[[bytes | None], None]:
        """Opens the sealed answer to a request; its kind names the request."""

        def opened(answer: bytes | None) -> None:
            assert self.seal is not None
            try:
                # Bound to the request by its kind: an old answer of the same party is refused.
                inside = None if not answer else self.seal.open(answer, expect_from=to)
                if inside is not None and inside.kind != kind:
                    raise WireError("kind", "is not that of the answer to this request")
            except MtcdError as error:
                self.note_refused(to, "sealed answer", error)
                inside = None
            _report(done, None if inside is None else inside.body)

        return opened

    def _towards(self, to: str, by: Collection[str] = ()) -> str | None:
        """The next hop towards a party: a neighbour if possible, otherwise the server.

        Never one of ``by``, through which the request came: it may know of a cut link unknown here.
        """
        graph = self._graph.copy()
        graph.remove_nodes_from(by)
        if self.me in graph:
            graph.remove_edges_from(
                [(self.me, p) for p in list(graph[self.me]) if p not in self.link.up]
            )
            if to in graph and nx.has_path(graph, self.me, to):
                return str(nx.shortest_path(graph, self.me, to)[1])
        if SERVER in self.link.up and SERVER not in by:
            return SERVER
        if to in self.link.up:
            return to
        return None

    def _on_request(self, request: IncomingRequest) -> None:
        """Handle or relay a request that arrived over a link."""
        # Greetings and refusals keep their form in all versions.
        if request.sender in self.incompatible and request.kind not in (HELLO, UNABLE):
            request.reply(NO + self.incompatible[request.sender].encode())
        elif request.kind == RELAY:
            self._forward(request)
        else:
            self._handle(request)

    def _handle(self, request: IncomingRequest) -> None:
        if self._ending and request.kind not in (HELLO, UNABLE):
            request.drop()
            return
        handler = self._handlers.get(request.kind)
        try:
            if handler is None:
                raise WireError("kind", NOT_KNOWN)
            handler(request)
        # Other errors are this party's own, and end it.
        except (WireError, DataError, ConfigError) as error:
            self.refuse(request, "message" if handler is None else request.kind, error)

    def refuse(self, request: IncomingRequest, kind: str, error: MtcdError) -> None:
        """Refuse a request: log the reason, and send it to the sender."""
        self.note_refused(request.sender, kind, error)
        request.refuse(getattr(error, "shared", None) or str(error))

    def note_refused(self, sender: str, what: str, error: MtcdError) -> None:
        """Log that a message is refused, and count it."""
        self.log.refused(sender, what, str(error))
        self.counters.refused[reason_of(error)] += 1

    def _forward(self, request: IncomingRequest) -> None:
        try:
            body = request.body
            to, left, by, start = _read_head(body, self.members)
            if to == self.me:
                self._unseal(request, body[start:])
                return
            # Not back to where it came from, but the receiver itself may be among those passed.
            near = self._towards(to, {*by, request.sender} - {self.me, to}) if left > 0 else None
            if near is None or near == request.sender:
                request.drop()
                return
            passed_on = _head(to, left - 1, [*by, self.me]) + body[start:]
            self.link.post(near, RELAY, passed_on, partial(_return, request))
        except MtcdError as error:
            self.note_refused(request.sender, RELAY, error)
            request.drop()

    def _unseal(self, request: IncomingRequest, sealed: bytes) -> None:
        seal = self.seal
        if seal is None:
            raise WireError("receiver", "is the server, which accepts no relayed requests")
        inside = seal.open(sealed)

        def reply(answer: bytes) -> None:
            if answer == NO_ANSWER:  # it has no content that could be sealed
                request.drop()
            else:
                request.reply(seal.seal(inside.origin, _answer_to(inside.kind, sealed), answer))

        self._handle(IncomingRequest(inside.origin, inside.kind, inside.body, reply, direct=False))


def _answer_to(kind: str, sealed: bytes) -> str:
    """The kind of the answer to one request. It includes a digest, so that no replayed answer has
    it."""
    return f"{kind}/answer/{blake2b(sealed, digest_size=16).hexdigest()}"


def _return(request: IncomingRequest, answer: bytes | None) -> None:
    request.reply(NO_ANSWER if answer is None else answer)


def _report(done: Done, answer: bytes | None) -> None:
    if answer is None or answer[:1] not in (OK, NO):
        done(None, "")
    elif answer[:1] == NO:
        done(None, tidy(answer[1:].decode(errors="replace")))
    else:
        done(answer[1:], "")


def _head(to: str, left: int, by: list[str]) -> bytes:
    return json.dumps({"to": to, "left": left, "by": by}).encode() + b"\n"


def _read_head(body: bytes, members: list[str]) -> tuple[str, int, list[str], int]:
    """The receiver, the hops left, the parties passed, and the offset of the sealed part."""
    end = body.find(b"\n", 0, LONGEST_HEAD_BYTES * (1 + len(members)))
    head = read_json(body[: max(end, 0)])
    if not isinstance(head, dict) or not {"to", "left", "by"} <= head.keys():
        raise WireError("head", "is not that of a relayed request")
    to, left, by = head["to"], head["left"], head["by"]
    are_members = isinstance(by, list) and all(name in members for name in [to, *by])
    if not are_members or not is_whole(left, 0, 2 * len(members)):
        raise WireError("head", "names an unknown party, or has too many hops left")
    return to, left, by, end + 1


RETRY_SECONDS = 0.3
REFUSED_RETRY_SECONDS = 3.0

Answers = dict[str, bytes]


class RpcClient:
    """The pending requests of one party."""

    def __init__(self, rpc: Rpc, loop: Loop, log: Log) -> None:
        self.rpc, self.loop, self.log = rpc, loop, log
        self._asked: list[set[str]] = []
        self._over = False

    def give_up(self) -> None:
        """Ask nothing any more, and act on no answer: this party is about to end."""
        self._asked, self._over = [], True

    @property
    def waits_for(self) -> set[str]:
        """The parties with a pending request."""
        # Sets that change while requests are answered: united anew each time.
        return set().union(*self._asked)

    def ask_when_made(
        self,
        kind: str,
        names: Iterable[str],
        make: Callable[[], Mapping[str, bytes]],
        then: Callable[[Answers], None],
    ) -> None:
        """Like ``ask``, but ``make`` computes the bodies in a thread; ``names`` count as pending
        meanwhile."""
        waited_for = set(names)
        self._asked.append(waited_for)

        def made(bodies: Mapping[str, bytes]) -> None:
            # By identity: two requests may wait for the same parties.
            self._asked = [names for names in self._asked if names is not waited_for]
            self.ask(kind, bodies, then)

        self.loop.work(make, made)

    def ask(
        self,
        kind: str,
        bodies: Mapping[str, bytes],
        then: Callable[[Answers], None] = lambda answers: None,
        each: Callable[[str], None] = lambda name: None,
        refused: Callable[[str, str], bytes | None] = lambda name, why: None,
    ) -> None:
        """Send each party its body; call ``each`` per answer, and ``then`` with all answers in the
        order of bodies.

        ``refused`` gets a party that refuses, and why: what it returns is taken as its answer.
        Otherwise it is asked again.
        """
        answers: Answers = {}
        missing = set(bodies)
        if self._over:
            return
        if not bodies:
            then(answers)
            return
        self._asked.append(missing)

        def ask(name: str) -> None:
            self.rpc.ask(name, kind, bodies[name], lambda answer, why: answered(name, answer, why))

        def answered(name: str, answer: bytes | None, why: str) -> None:
            # An earlier attempt may be answered after a later one.
            if name in answers or self._over:  # a duplicate, or nobody waits for it any more
                return
            if answer is None and why:
                answer = refused(name, why)
            if answer is None:
                if why:
                    refusal = f"{name} refuses {in_words(kind)}: {why}"
                    self.log.throttled(("waiting", kind, name, why), refusal, often=1)
                self.loop.later(REFUSED_RETRY_SECONDS if why else RETRY_SECONDS, lambda: ask(name))
                return
            answers[name] = answer
            missing.discard(name)
            each(name)
            if not missing:
                self._asked = [names for names in self._asked if names is not missing]
                # In the order of the bodies: sums of floats depend on it.
                then({one: answers[one] for one in bodies})

        for name in bodies:
            ask(name)
