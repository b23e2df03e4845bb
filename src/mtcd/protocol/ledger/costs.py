"""The prices of the messages on a ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeVar, get_args

from mtcd.core.checks import check_number
from mtcd.core.errors import ConfigError
from mtcd.protocol.ledger.ledger import Account, Ledger

Per = Literal["message", "float"]
T = TypeVar("T")


@dataclass(frozen=True)
class Sizes:
    """Numbers in a message: in uplinks, in downlinks, and in hops between clients."""

    uplink: float = 1.0
    downlink: float = 1.0
    hop: float = 1.0

    @staticmethod
    def same(floats: float) -> Sizes:
        """All messages are of this size."""
        return Sizes(floats, floats, floats)


UNIT = Sizes()


@dataclass(frozen=True)
class Costs:
    """The price of messages: one between client and server costs 1, one between clients 1/ratio.

    Parameters
    ----------
    ratio : float, default 100.0
        The paper's R_C: how many messages between clients cost as much as one with the server.
    account : 'charged' or 'sent', default 'charged'
        Which account is priced: messages as the paper charges them, or those really sent.
    per : 'message' or 'float', default 'message'
        Whether a message has the price, or each number in it: the paper lets C^h and C^Z differ.

    Examples
    --------
    >>> ledger = Ledger([200, 3, 3], [2000, 30, 30])
    >>> Costs(ratio=100).total(ledger), Costs(ratio=100, per="float").total(ledger)
    (8.0, 80.0)
    """

    ratio: float = 100.0
    account: Account = "charged"
    per: Per = "message"

    def __post_init__(self) -> None:
        # Above 0 by so much that its inverse is a finite number.
        check_number("costs.ratio", self.ratio, above=1e-9)
        for name, known in (("account", get_args(Account)), ("per", get_args(Per))):
            value = getattr(self, name)
            if value not in known:
                raise ConfigError(
                    f"costs.{name} is {known[0]!r} or {known[1]!r}, but is {value!r}."
                )

    def total(self, ledger: Ledger, account: Account | None = None) -> float:
        """(uplinks + downlinks) + client-client messages / ratio; with ``per`` 'float', of the
        numbers in them."""
        return self.of(self.priced(ledger.messages, ledger.floats)(account or self.account))

    def of(self, totals: Mapping[str, float]) -> float:
        """The same, from totals by kind of link."""
        return totals["uplink"] + totals["downlink"] + totals["client_client"] / self.ratio

    def priced(self, messages: T, floats: T) -> T:
        """The unit that is priced."""
        if self.per == "message":
            return messages
        return floats

    def with_server(self, floats: float) -> float:
        """The cost of one message between client and server with this many numbers."""
        return self.priced(1.0, floats)

    def between_clients(self, floats: float) -> float:
        """The cost of one message between clients."""
        return self.priced(1.0, floats) / self.ratio

    def by(self, per: Per) -> Costs:
        """The same prices, for messages or for numbers."""
        return replace(self, per=per)

    def both(self, ledger: Ledger) -> dict[str, float]:
        """The total per message and per float."""
        return {per: self.by(per).total(ledger) for per in get_args(Per)}

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)
