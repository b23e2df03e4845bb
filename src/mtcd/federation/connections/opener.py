"""Opens the connections of a member: it accepts those of its peers, and calls the others, in a
thread.

Whatever strangers do, this thread neither waits for one of them nor ends. What a stranger can hold
is limited: a place among few, for a few seconds.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from random import uniform
from selectors import EVENT_READ, EVENT_WRITE
from threading import Thread
from time import monotonic

from mtcd.federation.connections.handshake import Handshake, RefusedError
from mtcd.federation.connections.refusals import (
    DEADLINE,
    LIMIT,
    NAME,
    RESOURCES,
    TLS,
    Places,
    Refusals,
)
from mtcd.federation.connections.tls import calling_context, listening_context
from mtcd.federation.connections.wakeable import WakeableSelector
from mtcd.federation.credentials.credentials import Credentials
from mtcd.federation.names import Address, parse_address
from mtcd.federation.transport import admitted, calls

HANDSHAKE_SECONDS = 5.0
ACCEPTED_AT_A_TIME = 16  # then those that are accepted go on
LISTEN_AGAIN_SECONDS = 0.05  # after an error of the system
LONGEST_WAIT_SECONDS = 0.5
EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class Opener:
    """The connections that come about.

    Parameters
    ----------
    bundle
        Of this member.
    listeners
        The sockets at which it listens.
    opened
        Gets each handshake that is complete. Called in the thread of the opener.
    refusals
        Gets what is refused.
    """

    def __init__(
        self,
        bundle: Credentials,
        listeners: list[socket.socket],
        opened: Callable[[Handshake], None],
        refusals: Refusals,
    ) -> None:
        config = bundle.config
        self._opened, self._refusals = opened, refusals
        self._listeners = listeners
        self._selector = WakeableSelector()
        self._places = Places()
        self._handshakes: dict[Handshake, Call | None] = {}
        """The oldest first: all have the same time."""
        self._calls = {
            name: Call(name, parse_address(address)) for name, address in calls(config).items()
        }
        self.reached: dict[str, bool] = {}
        """By peer that was called: whether its host accepts connections. For any thread."""
        self._begin = partial(Handshake, federation=config.federation, me=config.name)
        self._revoked = bundle.revoked
        self._admitted = admitted(config)
        self._expected = {name: {str(config.peers[name].certificate): name} for name in self._calls}
        self._contexts = listening_context(bundle.folder), calling_context(bundle.folder)
        self._spare = os.open(os.devnull, os.O_RDONLY)
        """A descriptor to be given back when there is no other one left."""
        self._listen_at = monotonic()
        self._is_listening = self._ends = False
        self._thread = Thread(target=self._run, name="mtcd handshakes", daemon=True)

    def start(self) -> None:
        """Start the thread that calls and accepts peers, and makes handshakes with them."""
        self._thread.start()

    def lost(self, peer: str) -> None:
        """Call a peer again, if it is one that is called; from any thread."""
        call = self._calls.get(peer)
        if call is not None:
            self._selector.call(call.lost)

    def close(self) -> None:
        """Open no connections any more, and wait for the thread."""
        self._selector.call(self._end)
        self._thread.join()

    # In the thread

    def _end(self) -> None:
        self._ends = True

    def _run(self) -> None:
        while not self._ends:
            for data, _ in self._selector.wait(self._until_next()):
                # Asked again after each event: the end may have come with one of them.
                if self._ends:
                    break
                if isinstance(data, Handshake):
                    self._go_on(data)
                else:
                    self._accept(data)
            self._act_by_time()

        for one in [*self._listeners, *(handshake.tls.plain for handshake in self._handshakes)]:
            one.close()
        os.close(self._spare)
        self._selector.close()
        self._refusals.pass_on(now=True)

    def _until_next(self) -> float:
        due = [call.due for call in self._calls.values() if not call.is_busy]
        if not self._is_listening:
            due.append(self._listen_at)
        oldest = next(iter(self._handshakes), None)
        if oldest is not None:
            due.append(oldest.began + HANDSHAKE_SECONDS)
        return min(LONGEST_WAIT_SECONDS, *(moment - monotonic() for moment in due), 1.0)

    def _act_by_time(self) -> None:
        now = monotonic()
        for handshake in list(self._handshakes):
            # The oldest come first, and all have the same time.
            if now - handshake.began < HANDSHAKE_SECONDS:
                break
            self._refuse(handshake, DEADLINE, "the handshake took too long")
        for call in self._calls.values():
            if not call.is_busy and call.due <= now:
                call.resolve(partial(self._selector.call, partial(self._try_next, call)))
        if not self._is_listening and self._listen_at <= now:
            self._listen(True)
        self._refusals.pass_on()

    def _listen(self, wanted: bool) -> None:
        self._is_listening = wanted
        for one in self._listeners:
            if wanted:
                self._selector.watch(one, EVENT_READ, one)
            else:
                self._selector.forget(one)
        self._listen_at = monotonic() + LISTEN_AGAIN_SECONDS

    # Connections that are accepted

    def _accept(self, listener: socket.socket) -> None:
        for _ in range(ACCEPTED_AT_A_TIME):
            try:
                plain, where = listener.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in EXHAUSTED:
                    # Without a descriptor the listener stays ready, and the thread would turn
                    # without end.
                    self._make_room(listener)
                elif error.errno not in (errno.ECONNABORTED, errno.EINTR, errno.EPROTO):
                    self._listen(False)
                return
            try:
                self._take(plain, str(where[0]))
            except OSError:  # it has ended meanwhile
                plain.close()

    def _take(self, plain: socket.socket, address: str) -> None:
        # Before anything is read: nothing in this thread may wait.
        plain.setblocking(False)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        handshake = self._begin(
            plain,
            self._contexts[0],
            None,
            address,
            names=self._admitted,
            revoked=self._revoked,
        )
        # A place first: the limit must hold while the handshake runs.
        goes = self._places.add(handshake)
        if isinstance(goes, Handshake):
            self._refuse(goes, LIMIT, "more connections than can wait for a handshake")
        self._handshakes[handshake] = None
        self._selector.watch(plain, EVENT_READ, handshake)

    def _make_room(self, listener: socket.socket) -> None:
        """The process has no descriptors left: close an older handshake, or the new connection."""
        why = "this process has as many files open as it may"
        goes = self._places.most_expendable()
        if isinstance(goes, Handshake):
            self._refuse(goes, RESOURCES, why)
            return
        os.close(self._spare)
        with suppress(OSError):
            plain, where = listener.accept()
            plain.close()
            self._refusals.add(RESOURCES, str(where[0]), why)
        try:
            self._spare = os.open(os.devnull, os.O_RDONLY)
        except OSError:
            # Any descriptor serves: it only has to be there to be given back.
            self._spare = os.dup(self._listeners[0].fileno())

    # Connections that are called

    def _try_next(self, call: Call) -> None:
        """Call the next of the addresses of a peer."""
        while call.addresses:
            family, where = call.addresses.pop(0)
            plain = None
            try:
                plain = socket.socket(family, socket.SOCK_STREAM)
                plain.setblocking(False)
                plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                with suppress(BlockingIOError):
                    plain.connect(where)
                handshake = self._begin(
                    plain,
                    self._contexts[1],
                    call.place.host,
                    str(where[0]),
                    names=self._expected[call.peer],
                    revoked=self._revoked,
                )
            except OSError:
                if plain is not None:
                    plain.close()
                continue
            self._handshakes[handshake] = call
            self._selector.watch(plain, EVENT_WRITE, handshake)
            return
        self.reached[call.peer] = False
        call.wait()

    # All connections that come about

    def _go_on(self, handshake: Handshake) -> None:
        if handshake not in self._handshakes:  # it was refused a moment ago
            return
        was_connecting = handshake.is_connecting
        call = self._handshakes[handshake]
        try:
            is_complete = handshake.go_on()
        except RefusedError as error:
            self._refuse(handshake, error.reason, str(error))
            return
        except Exception as error:  # whatever a stranger has found: the thread goes on
            self._refuse(handshake, TLS, type(error).__name__)
            return

        if was_connecting and call is not None:
            self.reached[call.peer] = True
            self._selector.watch(handshake.tls.plain, EVENT_READ, handshake)
        if is_complete:
            self._complete(handshake)

    def _complete(self, handshake: Handshake) -> None:
        """Pass a connection on. One to a peer that is called, and connected, is a second one."""
        # Both ends may open one at the same time; the end that calls keeps its own.
        call = self._calls.get(handshake.peer)
        if call is not None and call.is_open and not handshake.calls:
            self._refuse(handshake, NAME, f"{handshake.peer} is connected already")
            return
        if call is not None:
            call.opened()
        self._forget(handshake)
        self._opened(handshake)

    def _forget(self, handshake: Handshake) -> None:
        del self._handshakes[handshake]
        self._places.remove(handshake)
        # Forgotten before it is closed: the system gives its number to the next socket.
        self._selector.forget(handshake.tls.plain)

    def _refuse(self, handshake: Handshake, reason: str, why: str) -> None:
        call = self._handshakes.get(handshake)
        self._forget(handshake)
        handshake.tls.plain.close()
        if call is None:
            self._refusals.add(reason, handshake.address, why)
            return
        if handshake.is_connecting:  # the host does not accept connections
            self._try_next(call)
            return
        self._refusals.add(reason, f"{call.peer} ({call.place})", why)
        call.wait()


FIRST_DELAY_SECONDS, LONGEST_DELAY_SECONDS = 0.05, 0.5
STABLE_SECONDS = 2.0  # after so long, a connection that is lost is called again at once


@dataclass
class Call:
    """One peer to be called."""

    peer: str
    place: Address
    due: float = 0.0
    delay: float = FIRST_DELAY_SECONDS
    is_busy: bool = False
    """Whether it is being called, or is connected."""
    is_open: bool = False
    """Whether it is connected."""
    addresses: list[tuple[int, tuple[object, ...]]] = field(default_factory=list)
    """What is still to be tried: families and addresses of sockets."""

    since: float = 0.0
    """When the last connection was opened."""

    def opened(self) -> None:
        """Note that the connection stands."""
        self.addresses, self.is_busy, self.is_open = [], True, True
        self.since = monotonic()

    def lost(self) -> None:
        """Call again: at once, unless the connection did not last."""
        if monotonic() - self.since > STABLE_SECONDS:
            self.delay = FIRST_DELAY_SECONDS
        self.wait()

    def wait(self) -> None:
        """Call again later, and later each time. Not all at the same moment."""
        self.is_busy = self.is_open = False
        # Spread over a fifth: after a cut all parties would call at the same moments.
        self.due = monotonic() + self.delay * uniform(0.8, 1.0)
        self.delay = min(2 * self.delay, LONGEST_DELAY_SECONDS)

    def resolve(self, found: Callable[[], None]) -> None:
        """Look the addresses up, and call ``found``: at once for a number, from a thread for a
        name, which may take long."""
        self.is_busy = True
        if self.place.ip is not None:
            self._look_up()
            found()
            return

        def run() -> None:
            self._look_up()
            found()

        Thread(target=run, daemon=True).start()

    def _look_up(self) -> None:
        try:
            # A name is looked up again for each call: its host may have moved.
            listed = socket.getaddrinfo(self.place.host, self.place.port, type=socket.SOCK_STREAM)
        except OSError:
            listed = []
        self.addresses = [(int(family), where) for family, _, _, _, where in dict.fromkeys(listed)]
