"""What the traffic on a ledger would cost."""

from __future__ import annotations

from dataclasses import dataclass

from mtcd.checks import check_number
from mtcd.errors import ConfigError
from mtcd.ledger.ledger import Account, Ledger


@dataclass(frozen=True)
class Costs:
    """A message between client and server costs 1, one between clients 1/ratio (the paper's R_C).

    ``account`` says which account is priced: 'charged' as in the paper, or what was really 'sent'.

    >>> ledger = Ledger([200, 3, 3], [0, 0, 0])
    >>> Costs(ratio=100).total(ledger)
    8.0
    """

    ratio: float = 100.0
    account: Account = "charged"

    def __post_init__(self) -> None:
        check_number("costs.ratio", self.ratio, above=1e-9)
        if self.account not in ("charged", "sent"):
            raise ConfigError(f"costs.account is 'charged' or 'sent', but is {self.account!r}.")

    def total(self, ledger: Ledger, account: Account | None = None) -> float:
        """(uplinks + downlinks) + client-client messages / ratio."""
        messages = ledger.messages(account or self.account)
        return messages["uplink"] + messages["downlink"] + messages["client_client"] / self.ratio
