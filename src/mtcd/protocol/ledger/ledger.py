"""The ledger: counts of messages by kind of link. Prices are in the cost model.

Two accounts are kept. **Sent** is what really left a party. **Charged** is what the paper counts:
it also charges a hop for a token that stays where it is (a lazy walk may), and for the hop before a
sync, where the token goes up to the server instead of on to a neighbour.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Literal

CLIENT_CLIENT, UPLINK, DOWNLINK = 0, 1, 2
LINKS = ("client_client", "uplink", "downlink")
WIDE_BYTES = 8

Account = Literal["charged", "sent"]
Totals = dict[str, int]


@dataclass(slots=True)
class Ledger:
    """A count of messages and floats by kind of link.

    Signals that carry no floats ('done', 'your turn') are not counted, and neither is the fixed
    handful of header numbers of a message (token, iteration, hop, penalty).

    Parameters
    ----------
    message_counts : list of int
        Messages by kind of link: between clients, to the server, from the server.
    float_counts : list of int
        The numbers in them.
    hops : int, default 0
        The hops of all tokens.
    unsent_hops : int, default 0
        Hops that the paper charges and that were not sent: a lazy walk stays where it is, and
        before a sync the token goes to the server instead.
    unsent_floats : int, default 0
        The numbers of these hops.
    float_bytes : int, default 8
        The bytes of a number: 8, or 4 in single precision.
    wide_counts : list of int
        Numbers that take eight bytes although ``float_bytes`` is 4.
    unchanged : int, default 0
        Hops after visits that changed nothing, such as a party's whose trees would not lower the
        loss.

    Examples
    --------
    >>> ledger = Ledger()
    >>> ledger.record(UPLINK, floats=1000)
    >>> ledger.record_unsent_hop(floats=1000)
    >>> ledger.messages("sent"), ledger.messages("charged")["client_client"]
    ({'client_client': 0, 'uplink': 1, 'downlink': 0}, 1)
    """

    message_counts: list[int] = field(default_factory=lambda: [0, 0, 0])
    float_counts: list[int] = field(default_factory=lambda: [0, 0, 0])
    hops: int = 0
    unsent_hops: int = 0
    unsent_floats: int = 0
    float_bytes: int = 8
    """The bytes of one number: 8, or 4 in single precision (split networks, ``transport:
    float32``)."""
    wide_counts: list[int] = field(default_factory=lambda: [0, 0, 0])
    """Where ``float_bytes`` is not 8: numbers that take 8 bytes each all the same, by kind of
    link."""
    unchanged: int = 0
    """Hops after visits that changed nothing: a party whose trees would not lower the loss passes
    the token on."""

    def record(self, link: int, floats: int, messages: int = 1, wide: int = 0) -> None:
        """Record a message (or several) of ``floats`` numbers over this kind of link; ``wide`` of
        them take 8 bytes."""
        self.message_counts[link] += messages
        self.float_counts[link] += floats * messages
        self.wide_counts[link] += wide * messages

    def record_unsent_hop(self, floats: int) -> None:
        """Record a hop that the paper charges, and that sends nothing."""
        self.unsent_hops += 1
        self.unsent_floats += floats

    @staticmethod
    def total(ledgers: Iterable[Ledger]) -> Ledger:
        """The sum of the ledgers of several parties."""
        # By parties, not by messages: each keeps its own ledger, and sees only what it sends.
        whole = Ledger()
        for one in ledgers:
            whole.message_counts = _added(whole.message_counts, one.message_counts)
            whole.float_counts = _added(whole.float_counts, one.float_counts)
            whole.wide_counts = _added(whole.wide_counts, one.wide_counts)
            whole.hops += one.hops
            whole.unsent_hops += one.unsent_hops
            whole.unchanged += one.unchanged
            whole.unsent_floats += one.unsent_floats
            whole.float_bytes = one.float_bytes
        return whole

    def messages(self, account: Account = "charged") -> Totals:
        """Messages by kind of link."""
        totals = dict(zip(LINKS, self.message_counts, strict=True))
        if account == "charged":  # the paper charges a hop also where the token stays
            totals["client_client"] += self.unsent_hops
        return totals

    def floats(self, account: Account = "charged") -> Totals:
        """Numbers carried, by kind of link."""
        totals = dict(zip(LINKS, self.float_counts, strict=True))
        if account == "charged":
            totals["client_client"] += self.unsent_floats
        return totals

    def bytes(self, account: Account = "charged") -> Totals:
        """The same in bytes."""
        wide = dict(zip(LINKS, self.wide_counts, strict=True))
        # Numbers that are wide under every transport take what is missing to eight bytes.
        floats = self.floats(account)
        return {
            link: floats[link] * self.float_bytes + wide[link] * (WIDE_BYTES - self.float_bytes)
            for link in LINKS
        }

    def to_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        return asdict(self)


def _added(counts: list[int], others: list[int]) -> list[int]:
    """Counts of two parties, link by link; lists of different kinds of links are refused."""
    return [a + b for a, b in zip(counts, others, strict=True)]
