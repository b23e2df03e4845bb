"""Break-even ratios at which an iteration of MTCD is cheaper, or faster, than a round of
client-server VFL.

Counted as in the paper, with U uplinks in MTCD: U = K with mini-batches, U = Gamma with the full
batch.

                     client-server                          MTCD
    cost     K C_CS + K C_CS                     U C_CS + Gamma C_CS + S Gamma C_CC
    time     K tau_t + K tau_t + P tau_q         U tau_t + Gamma tau_t + S tau_s + P tau_q

Assumed: a representation is as large as a token; the server's bandwidth is shared, so that l
messages take l tau_t; tokens hop in parallel; both do P = S Q local updates in a row, and so have
the same step-size limit. (The progress of an iteration may differ: the bounds agree if pi = 1, as
when each token tours a cycle of S = K/Gamma clients.)
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from mtcd.core.checks import check_whole


@dataclass(frozen=True)
class Comparison:
    """One iteration of MTCD and one client-server round.

    Parameters
    ----------
    clients, tokens, hops, local_updates
        K, Gamma, S and Q.
    full_batch
        Whether every iteration is on all samples, so that only the clients with a token upload.
    uplink, downlink, hop
        The sizes of MTCD's messages, in representations; those of the client-server round are one
        each. For costs per float; times are of messages of the same size.

    Examples
    --------
    >>> Comparison(clients=80, tokens=2, hops=64).cost_ratio  # S Gamma/(K - Gamma)
    1.641025641025641
    """

    clients: int
    tokens: int
    hops: int
    local_updates: int = 1
    full_batch: bool = False
    uplink: float = 1.0
    downlink: float = 1.0
    hop: float = 1.0

    def __post_init__(self) -> None:
        for name in ("clients", "tokens", "hops", "local_updates"):
            check_whole(name, getattr(self, name))

    @property
    def server_messages(self) -> int:
        """U + Gamma, the uplinks and downlinks of an iteration of MTCD."""
        if self.full_batch:
            return self.tokens + self.tokens

        return self.clients + self.tokens

    @property
    # Uplinks are what remains of the messages when each token came down once.
    def server_traffic(self) -> float:
        """The same, weighted by the sizes of the messages."""
        uplinks = self.server_messages - self.tokens
        return uplinks * self.uplink + self.tokens * self.downlink

    def cost(self, C_CS: float, C_CC: float) -> float:
        """The cost of an iteration of MTCD: C_CS per message to or from the server, C_CC between
        clients."""
        return self.server_traffic * C_CS + self.hops * self.tokens * self.hop * C_CC

    def client_server_cost(self, C_CS: float) -> float:
        """The cost of a client-server round: K uplinks and K downlinks."""
        return 2 * self.clients * C_CS

    def time(self, tau_t: float, tau_s: float, tau_q: float) -> float:
        """The time of an iteration of MTCD: tau_t for a message at the server, tau_s a hop, tau_q a
        local update."""
        return self.server_messages * tau_t + self.hops * (tau_s + self.local_updates * tau_q)

    def client_server_time(self, tau_t: float, tau_q: float) -> float:
        """The time of a client-server round with as many local updates, S Q."""
        return 2 * self.clients * tau_t + self.hops * self.local_updates * tau_q

    @property
    def cost_ratio(self) -> float:
        """The C_CS/C_CC from which MTCD is not more expensive: S Gamma/(K - Gamma), half with the
        full batch.

        Infinite for Gamma >= K: with a token for every client no message to the server is saved.
        (Both are for messages of one size.)
        """
        saved = 2 * self.clients - self.server_traffic
        return _per_saved(self.hops * self.tokens * self.hop, saved)

    @property
    def time_ratio(self) -> float:
        """The tau_t/tau_s from which MTCD is no slower: S/(K - Gamma), half of it with the full
        batch.

        With S = K/Gamma this is the paper's K/(Gamma (K - Gamma)). Infinite for Gamma >= K.
        """
        return _per_saved(self.hops, 2 * self.clients - self.server_messages)


def _per_saved(hops: float, saved: float) -> float:
    # No message to the server is saved: no ratio of prices makes up for the hops.
    if saved <= 0:
        return inf

    return hops / saved
