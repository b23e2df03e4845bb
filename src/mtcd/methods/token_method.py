"""Methods whose tokens roam: MTCD, STCD, and SVFL for models whose representations are not
linear."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from mtcd.methods.method import Method
from mtcd.network.topology import Network

if TYPE_CHECKING:
    from mtcd.methods.mtcd.plan import Plan

TokenClusters = tuple[tuple[int, ...], ...] | None
"""The clients of each token; None where tokens roam everywhere."""


class TokenMethod(Method):
    """A method that is a plan of tokens which roam, so that a kind of model may bring parties of
    its own for it."""

    def token_clusters(self, network: Network, seed: int) -> TokenClusters:
        """The cluster of each token; None where tokens roam everywhere."""
        return None

    @abstractmethod
    def plan(self, samples: int, outputs: int, network: Network, seed: int) -> Plan:
        """The settings, resolved for a problem and a network."""


def token_clusters(method: Method, network: Network, seed: int) -> TokenClusters:
    """The cluster of each token of any method; None where tokens roam everywhere, or there are
    none."""
    if not isinstance(method, TokenMethod):
        return None
    return method.token_clusters(network, seed)
