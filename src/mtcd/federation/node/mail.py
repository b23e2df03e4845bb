"""Requests to anybody in the federation: straight to a peer, or from neighbour to neighbour to one who is none.

Those who pass a request on cannot change it, and the server cannot read it: it is sealed (see ``sealed.py``). Tokens
never go this way: what may, is up to the handlers, who are told whether a request came straight.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from hashlib import blake2b
from typing import Any

import networkx as nx

from mtcd.errors import ConfigError, DataError, MtcdError, WireError
from mtcd.federation.kit import Kit
from mtcd.federation.names import SERVER
from mtcd.federation.node.link import Connect, Link, Request
from mtcd.federation.node.log import Log, tidy
from mtcd.federation.node.loop import Loop
from mtcd.federation.sealed import Seal

RELAY = "relay"
LONGEST_HEAD = 300
OK, NO = b"\0", b"\1"
Done = Callable[[bytes | None, str], None]
"""Called with the answer; or with None and, if the other refused, why."""


class Asked:
    """A request, as handlers get it. ``straight``: it came from a peer over their own link."""

    __slots__ = ("_answer", "body", "let_go", "sender", "straight")

    def __init__(
        self, sender: str, body: bytes, answer: Callable[[bytes], None], let_go: Callable[[], None], straight: bool
    ) -> None:
        self.sender, self.body, self._answer, self.let_go, self.straight = sender, body, answer, let_go, straight

    def answer(self, body: bytes = b"") -> None:
        """Answer it."""
        self._answer(OK + body)

    def refuse(self, why: str) -> None:
        """Tell the other why there is no answer."""
        self._answer(NO + tidy(why).encode())


Handler = Callable[[Asked], None]


class Mail:
    """Of one party. Handlers are added by ``on``; one that raises an error refuses the request."""

    def __init__(
        self, kit: Kit, loop: Loop, log: Log, changed: Callable[[str, bool], None], connect: Connect = Link
    ) -> None:
        self.kit, self.loop, self.log = kit, loop, log
        config = kit.config
        self.me = config.name
        self.everybody = [*config.parties, SERVER]
        self._graph = nx.Graph(config.links)
        self._graph.add_nodes_from(config.parties)
        self.seal = None if config.is_server else Seal(kit)
        self._handlers: dict[str, Handler] = {}
        self.link = connect(kit, loop, self._heard, changed)

    def on(self, kind: str, handler: Handler) -> None:
        """Requests of this kind go there."""
        self._handlers[kind] = handler

    def ask(self, to: str, kind: str, body: bytes, done: Done, straight: bool = False) -> None:
        """Ask somebody. Without an answer it is for the asker to try again. ``straight``: over the own link or not."""
        if to in self.link.up or (to in self.link.peers and self.seal is None):
            self.link.post(to, kind, body, lambda answer: _tell(done, answer))
        elif straight or self.seal is None or to == SERVER:  # which has no seal: everybody talks to it straight
            done(None, "")
        else:
            sealed = self.seal.seal(to, kind, body)
            self._relay(to, sealed, self._opened(to, _answer_to(kind, sealed), done), frozenset())

    def _relay(self, to: str, sealed: bytes, opened: Callable[[bytes | None], None], tried: frozenset[str]) -> None:
        """Over one neighbour after the other, until there is an answer: only they know which of their links are up."""
        near = self._towards(to, tried)
        if near is None:
            opened(None)
            return

        def answered(answer: bytes | None) -> None:
            if answer is None:
                self._relay(to, sealed, opened, tried | {near})
            else:
                opened(answer)

        self.link.post(near, RELAY, _head(to, 2 * len(self.everybody), [self.me]) + sealed, answered)

    def _opened(self, to: str, kind: str, done: Done) -> Callable[[bytes | None], None]:
        """The answer to a sealed request is sealed too; its kind says to which."""

        def opened(answer: bytes | None) -> None:
            assert self.seal is not None
            try:
                inside = None if not answer else self.seal.open(answer, expect_from=to)
                if inside is not None and inside.kind != kind:
                    raise WireError("kind", "is not that of the answer to this request")
            except MtcdError as error:
                self.log.refused(to, "sealed answer", str(error))
                inside = None
            _tell(done, None if inside is None else inside.body)

        return opened

    def _towards(self, to: str, by: Collection[str] = ()) -> str | None:
        """The neighbour over whom somebody can be reached: over parties if possible, else over the server.

        Not over those ``by`` whom it came: they know of a cut that we may not know of.
        """
        graph = self._graph.copy()
        graph.remove_nodes_from(by)
        if self.me in graph:
            graph.remove_edges_from([(self.me, p) for p in list(graph[self.me]) if p not in self.link.up])
            if to in graph and nx.has_path(graph, self.me, to):
                return str(nx.shortest_path(graph, self.me, to)[1])
        return SERVER if SERVER in self.link.up and SERVER not in by else to if to in self.link.up else None

    def _heard(self, request: Request) -> None:
        """A request over a link: for us, or to be passed on."""
        if request.kind == RELAY:
            self._pass_on(request)
        else:
            self._handle(request.kind, Asked(request.sender, request.body, request.answer, request.let_go, True))

    def _handle(self, kind: str, asked: Asked) -> None:
        handler = self._handlers.get(kind)
        try:
            if handler is None:
                raise WireError("kind", "is none that is answered now")
            handler(asked)
        except (WireError, DataError, ConfigError) as error:
            self.refuse(asked, "message" if handler is None else kind, error)

    def refuse(self, asked: Asked, kind: str, error: MtcdError) -> None:
        """Do not do what was asked for, and say why, here and there."""
        self.log.refused(asked.sender, kind, str(error))
        asked.refuse(str(error))

    def _pass_on(self, request: Request) -> None:
        try:
            to, left, by, start = _read_head(request.body, self.everybody)
            if to == self.me:
                self._unseal(request, request.body[start:])
                return
            near = self._towards(to, {*by, request.sender} - {self.me, to}) if left > 0 else None
            if near is None or near == request.sender:
                request.let_go()
                return
            body = _head(to, left - 1, [*by, self.me]) + request.body[start:]
            self.link.post(near, RELAY, body, lambda answer: _pass_back(request, answer))
        except MtcdError as error:
            self.log.refused(request.sender, RELAY, str(error))
            request.let_go()

    def _unseal(self, request: Request, sealed: bytes) -> None:
        seal = self.seal
        if seal is None:
            raise WireError("receiver", "is the server, to whom everybody talks straight")
        inside = seal.open(sealed)

        def answer(body: bytes) -> None:
            request.answer(seal.seal(inside.origin, _answer_to(inside.kind, sealed), body))

        self._handle(inside.kind, Asked(inside.origin, inside.body, answer, request.let_go, False))


def _answer_to(kind: str, sealed: bytes) -> str:
    """The kind of the answer to one request: no other answer, kept from an earlier time, has it."""
    return f"{kind}/answer/{blake2b(sealed, digest_size=16).hexdigest()}"


def _pass_back(request: Request, answer: bytes | None) -> None:
    request.let_go() if answer is None else request.answer(answer)


def _tell(done: Done, answer: bytes | None) -> None:
    if answer is None or answer[:1] not in (OK, NO):
        done(None, "")
    elif answer[:1] == NO:
        done(None, tidy(answer[1:].decode(errors="replace")))
    else:
        done(answer[1:], "")


def _head(to: str, left: int, by: list[str]) -> bytes:
    return json.dumps({"to": to, "left": left, "by": by}).encode() + b"\n"


def _read_head(body: bytes, everybody: list[str]) -> tuple[str, int, list[str], int]:
    """To whom, how many more may pass it on, who has passed it on, and where the sealed part starts."""
    end = body.find(b"\n", 0, LONGEST_HEAD * (1 + len(everybody)))
    try:
        head: Any = json.loads(body[:end]) if end >= 0 else None
        to, left, by = head["to"], head["left"], head["by"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise WireError("head", "is not that of a relayed request") from None
    if (
        to not in everybody
        or not isinstance(by, list)
        or not all(name in everybody for name in by)
        or not isinstance(left, int)
        or isinstance(left, bool)
        or not 0 <= left <= 2 * len(everybody)
    ):
        raise WireError("head", "names nobody here, or goes too far")
    return to, left, by, end + 1
