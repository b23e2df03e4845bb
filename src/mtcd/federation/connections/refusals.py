"""Connections without a certificate: how many there may be, and those that were refused, counted by
reason and told a few times a second at most."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from threading import Lock
from time import monotonic
from typing import Protocol, TypeVar

CLOSED, TLS, CERTIFICATE, NAME = "closed", "tls", "certificate", "name"
DEADLINE, LIMIT, RESOURCES, FRAME = "deadline", "limit", "resources", "frame"
REASONS = (CLOSED, TLS, CERTIFICATE, NAME, DEADLINE, LIMIT, RESOURCES, FRAME)
"""Why a connection is refused: a fixed set, whatever strangers send."""
INTERVAL_SECONDS = 1.0


@dataclass
class Refused:
    """Connections that were refused for one reason since it was told last."""

    count: int = 0
    address: str = ""
    """Where the last one came from."""
    why: str = ""


class Refusals:
    """Collects refusals from several threads, and passes them on together.

    Parameters
    ----------
    tell
        Gets the refusals by reason. Called by whoever calls ``add`` or ``pass_on``.
    """

    def __init__(self, tell: Callable[[dict[str, Refused]], None]) -> None:
        self._tell = tell
        self._lock = Lock()
        self._new: dict[str, Refused] = {}
        self._told = -INTERVAL_SECONDS

    def add(self, reason: str, address: str, why: str) -> None:
        """Count a refusal, one of ``REASONS``; it is told now, or with others a little later."""
        with self._lock:
            one = self._new.setdefault(reason, Refused())
            one.count += 1
            one.address, one.why = address, why
        self.pass_on()

    def pass_on(self, now: bool = False) -> None:
        """Tell what is new, if that was not done within the last second; else only if ``now``."""
        with self._lock:
            moment = monotonic()
            if not self._new or (not now and moment - self._told < INTERVAL_SECONDS):
                return
            # Taken under the lock, told outside of it: who is told may refuse something.
            new, self._new, self._told = self._new, {}, moment
        self._tell(new)


# Limits on connections that have not shown a certificate yet: at each address, and in all.
#
# If there are too many, an older one is closed, and the new one is taken: a member, whose
# handshake takes milliseconds, gets in between strangers at the same address, who would otherwise
# hold all places. Of those at an address, one that has sent nothing goes first.


MOST_PER_ADDRESS = 64
MOST = 512


class Waiting(Protocol):
    """A connection in the state before its certificate is known."""

    group: str
    has_spoken: bool


W = TypeVar("W", bound=Waiting)


def group_of(address: str) -> str:
    """The addresses that count as one: of IPv6, a network of 64 bits, which one host may have.

    >>> group_of("10.0.0.1"), group_of("2001:db8::1"), group_of("::ffff:10.0.0.1")
    ('10.0.0.1', '2001:db8::', '10.0.0.1')
    """
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if not isinstance(found, IPv6Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(IPv6Address(int(found) >> 64 << 64))


class Places:
    """The accepted connections that have not shown a certificate, the oldest first."""

    def __init__(self, most_per_address: int = MOST_PER_ADDRESS, most: int = MOST) -> None:
        self._most_per_address, self._most = most_per_address, most
        self._taken: dict[int, Waiting] = {}
        self._by_group: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._taken)

    def add(self, one: Waiting) -> Waiting | None:
        """Give a connection a place; the one that has to go for it, if any."""
        goes = None
        if self._by_group[one.group] >= self._most_per_address:
            goes = self._first_of(one.group)
        # All places are taken, by many addresses: that with most of them gives one up.
        elif len(self._taken) >= self._most:
            goes = self.most_expendable()
        if goes is not None:
            self.remove(goes)
        self._taken[id(one)] = one
        self._by_group[one.group] += 1
        return goes

    def remove(self, one: Waiting) -> None:
        """Take the place away, if it has one."""
        if self._taken.pop(id(one), None) is not None:
            self._by_group[one.group] -= 1
            if not self._by_group[one.group]:
                del self._by_group[one.group]

    def most_expendable(self) -> Waiting | None:
        """An old one of the address that has most; None if there is none at all."""
        if not self._taken:
            return None
        ((group, _),) = self._by_group.most_common(1)
        return self._first_of(group)

    def _first_of(self, group: str) -> Waiting:
        here = [one for one in self._taken.values() if one.group == group]
        # A member speaks at once; who holds a place in silence is most likely none.
        return next((one for one in here if not one.has_spoken), here[0])
