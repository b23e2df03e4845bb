"""Walks that are Markov chains on clients: how long they take from client to client."""

from __future__ import annotations

import math

import numpy as np

from mtcd.network.walks.declared import in_one_piece
from mtcd.network.walks.facts import Chain


def longest_hitting_time(chain: Chain) -> float:
    """The hops, on average, from one client to another, for the pair that takes longest.

    With the fundamental matrix Z = (I - P + 1 share^T)^-1 they are (Z_jj - Z_kj)/share_j from k to j. Infinite
    where the network is in pieces.
    """
    P, share = chain
    if not in_one_piece(P):
        return math.inf
    away = np.eye(share.size) - P.toarray()
    Z = np.linalg.inv(away + share)  # no mutants: any multiple of share makes it regular and cancels below
    return float(((Z.diagonal() - Z) / share).max())


def cover_bound(hitting_time: float, K: int) -> float:
    """The hops, on average, until all K clients have been visited are at most this many, wherever a walk starts.

    Matthews' bound: the longest hitting time times 1 + 1/2 + ... + 1/(K - 1).

    >>> cover_bound(10.0, 4)
    18.333333333333332
    """
    return hitting_time * sum(1.0 / k for k in range(1, K)) if K > 1 else 0.0
