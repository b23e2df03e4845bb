"""How fast a walk forgets where it started: spectral gap and mixing time."""

from __future__ import annotations

import math

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import eigsh

from mtcd.errors import ConfigError
from mtcd.network.spectrum import DENSE_LIMIT, fiedler_sparse
from mtcd.seeding import stream

Array = NDArray[np.float64]

DISTANCE = 0.25  # the usual distance at which a walk counts as mixed


def stationary(P: sp.csr_array) -> Array:
    """Of the lazy walk: the share of time at client k, (1 + degree_k) / sum over j of (1 + degree_j).

    >>> stationary(sp.csr_array([[0.5, 0.5, 0.0], [1 / 3, 1 / 3, 1 / 3], [0.0, 0.5, 0.5]])).round(3).tolist()
    [0.286, 0.429, 0.286]
    """
    choices = np.diff(P.indptr)
    return np.asarray(choices / choices.sum(), dtype=np.float64)


def spectral_gap(P: sp.csr_array, pi: Array) -> float:
    """1 - max(|lambda_2|, |lambda_K|): how much nearer to the stationary distribution pi a hop brings the walk.

    The walk must be reversible (pi_k P_kj = pi_j P_jk), as the lazy walk is: then D^1/2 P D^-1/2, D = diag(pi), is
    symmetric with the same eigenvalues. 0 where the network is in pieces; 1 for one client.
    """
    K = P.shape[0]
    if K == 1:
        return 1.0
    if not _in_one_piece(P):
        return 0.0
    M = sp.csr_array(sp.diags_array(np.sqrt(pi)) @ P @ sp.diags_array(1 / np.sqrt(pi)))
    if abs(M - M.T).max() > 1e-9:
        raise ConfigError("this walk is not reversible, so its spectral gap says nothing: use mixing_time instead.")
    if K <= DENSE_LIMIT:
        values = scipy.linalg.eigvalsh(M.toarray())
        return float(1 - max(abs(values[0]), abs(values[-2])))
    second = 1.0 - fiedler_sparse(sp.csr_array(sp.eye_array(K) - M))[0]
    lowest = 2 * P.diagonal().min() - 1  # no eigenvalue is below this: often enough to know that it is not the largest
    if abs(lowest) > second:
        noise = stream(0, "spectral gap").standard_normal(K)
        lowest = eigsh(M, k=1, which="SA", v0=noise, tol=1e-8, return_eigenvectors=False)[0]
    return float(1 - max(abs(lowest), second))


def mixing_bounds(gap: float, least_stationary: float, distance: float = DISTANCE) -> tuple[float, float]:
    """Lower and upper bound of the mixing time of a reversible walk, in hops.

    (1/gap - 1) log(1/(2 distance)) <= t_mix <= log(1/(distance least_stationary)) / gap; infinite for gap 0.
    """
    if gap <= 0:
        return math.inf, math.inf
    low = (1 / gap - 1) * math.log(1 / (2 * distance))
    return max(low, 0.0), math.log(1 / (distance * least_stationary)) / gap


def mixing_time(P: sp.csr_array, pi: Array, distance: float = DISTANCE) -> float:
    """The hops after which the walk is within ``distance`` of pi in total variation, wherever it started.

    min t with max_k 1/2 sum_j |(P^t)_kj - pi_j| <= distance; infinite where the network is in pieces. The distance
    never grows with t: so P, P^2, P^4, ... are formed until one is near enough, and t is then found bit by bit.
    """
    if not _in_one_piece(P):
        return math.inf

    def near(Pt: Array) -> bool:
        return float(np.abs(Pt - pi).sum(axis=1).max()) / 2 <= distance + 1e-12

    if near(np.eye(P.shape[0])):
        return 0
    powers = [P.toarray()]
    while not near(powers[-1]):
        powers.append(powers[-1] @ powers[-1])
    steps, far = 0, np.eye(P.shape[0])  # the longest walk so far that is not near enough, and its length
    for bit in reversed(range(len(powers) - 1)):
        further = powers[bit] if steps == 0 else far @ powers[bit]
        if not near(further):
            steps, far = steps + 2**bit, further
    return steps + 1


def _in_one_piece(P: sp.csr_array) -> bool:
    return int(connected_components(P, directed=False, return_labels=False)) == 1
