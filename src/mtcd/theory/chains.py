"""Hitting and cover times of walks that are Markov chains on clients."""

from __future__ import annotations

import math

import numpy as np

from mtcd.network.walks.facts import Chain, is_irreducible


def longest_hitting_time(chain: Chain) -> float:
    """The largest expected number of hops from one client to another.

    With the fundamental matrix Z = (I - P + 1 share^T)^-1 it is (Z_jj - Z_kj)/share_j from k to j.
    Infinite on a disconnected network.
    """
    P, share = chain
    if not is_irreducible(P):
        return math.inf
    away = np.eye(share.size) - P.toarray()
    Z = np.linalg.inv(
        away + share
    )  # no mutants: any multiple of share makes it regular and cancels below
    return float(((Z.diagonal() - Z) / share).max())


def cover_bound(hitting_time: float, K: int) -> float:
    """An upper bound on the expected number of hops until all K clients have been visited, from any
    start.

    Matthews' bound: the longest hitting time times 1 + 1/2 + ... + 1/(K - 1).

    >>> cover_bound(10.0, 4)
    18.333333333333332
    """
    return hitting_time * sum(1.0 / k for k in range(1, K)) if K > 1 else 0.0
