"""How fast a walk forgets where it started: spectral gap and mixing time."""

from __future__ import annotations

import math

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import ArpackNoConvergence, eigsh

from mtcd.errors import ConfigError
from mtcd.network.spectrum import DENSE_LIMIT, LANCZOS_RESTARTS, fiedler_sparse
from mtcd.seeding import stream
from mtcd.theory.chains import in_one_piece

Array = NDArray[np.float64]

DISTANCE = 0.25  # the usual distance at which a walk counts as mixed


def spectral_gap(P: sp.csr_array, pi: Array) -> float:
    """1 - max(|lambda_2|, |lambda_K|): how much nearer to the stationary distribution pi a hop brings the walk.

    The walk must be reversible (pi_k P_kj = pi_j P_jk), as lazy and Metropolis walks are: then D^1/2 P D^-1/2,
    D = diag(pi), is symmetric with the same eigenvalues. 0 where the network is in pieces, or the walk alternates
    between two halves of it; 1 for one client.
    """
    K = P.shape[0]
    if K == 1:
        return 1.0
    if not _forgets(P):
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
        lowest = _lowest_eigenvalue(M)
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

    min t with max_k 1/2 sum_j |(P^t)_kj - pi_j| <= distance; infinite where the gap is 0. The distance never grows
    with t: so P, P^2, P^4, ... are formed until one is near enough, and t is then found bit by bit.
    """
    if not _forgets(P):
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


def _forgets(P: sp.csr_array) -> bool:
    """Whether the walk gets everywhere, and not only at every other hop.

    It does if every client can be reached in an even and in an odd number of hops. Where it never stays, and every
    link leads from one half of the clients to the other, the parity of the hops tells for ever where it started.
    """
    return in_one_piece(sp.csr_array(sp.block_array([[None, P], [P, None]])))


def _lowest_eigenvalue(M: sp.csr_array) -> float:
    noise = stream(0, "spectral gap").standard_normal(M.shape[0])
    try:
        return float(eigsh(M, k=1, which="SA", v0=noise, maxiter=LANCZOS_RESTARTS, return_eigenvectors=False)[0])
    except ArpackNoConvergence:  # close to others, as on a long cycle: there its inverse is quick
        below = -1 - 1 / M.shape[0] ** 2
        return float(eigsh(M.tocsc(), k=1, sigma=below, v0=noise, return_eigenvectors=False)[0])
