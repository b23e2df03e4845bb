"""The ballots of other clients for the lone token, as one client has answered them: see
``lone_token.py``."""

from __future__ import annotations

from mtcd.protocol.codec.envelopes import Prepare, Terms


class Promises:
    """The promises of one client."""

    state_fields = ("promised", "released", "highest")

    def __init__(self) -> None:
        self.promised: dict[int, tuple[Prepare, int]] = {}
        """Open ballots, by initiator; with the term that it knew."""
        self.released: dict[int, int] = {}
        """By initiator, its last ballot that is over."""
        self.highest = 0
        """The highest term, or binding ballot, known here."""

    def promise(self, initiator: int, prepare: Prepare, term: int, terms: Terms) -> bool:
        """Take note of a ballot of an initiator that knew ``term``. False if it is over, or an old
        one."""
        last = (
            self.promised[initiator][0].ballot
            if initiator in self.promised
            else self.released.get(initiator, 0)
        )
        if prepare.ballot <= last or is_superseded(prepare, term, terms):
            return False
        self.promised[initiator] = prepare, term
        if prepare.binding:
            self.highest = max(self.highest, prepare.ballot)
        return True

    def release(self, initiator: int, ballot: int) -> None:
        """The ballot is over, and all earlier ones of the initiator."""
        self.released[initiator] = max(self.released.get(initiator, ballot), ballot)
        if initiator in self.promised and self.promised[initiator][0].ballot <= ballot:
            del self.promised[initiator]

    def learn(self, terms: Terms) -> None:
        """These terms are known now: drop the ballots that they end."""
        self.highest = max(self.highest, *terms)
        kept = {}
        for k, (prepare, term) in self.promised.items():
            if not is_superseded(prepare, term, terms):
                kept[k] = prepare, term
        self.promised = kept

    def binding_hops(self) -> list[int]:
        """The hops of the binding ballots that are open."""
        return [prepare.hop for prepare, _ in self.promised.values() if prepare.binding]

    def is_bound_to(self, initiator: int) -> bool:
        """Whether a binding ballot of the initiator is open."""
        return initiator in self.promised and self.promised[initiator][0].binding


def is_superseded(prepare: Prepare, term: int, terms: Terms) -> bool:
    """Whether a ballot is over: it led to a term, or its initiator, which knew ``term``, was
    truncated by one."""
    for new, hop in terms.items():
        led_to_it = new >= prepare.ballot and hop <= prepare.hop
        truncated = new > term and hop < prepare.hop
        if led_to_it or truncated:
            return True
    return False
