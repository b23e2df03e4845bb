"""Spectral gap, mixing time, hitting and cover times of a walk that is a Markov chain on
clients."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.csgraph import dijkstra
from scipy.sparse.linalg import ArpackNoConvergence, eigsh

from mtcd.core.arrays import Array
from mtcd.core.errors import ConfigError
from mtcd.core.seeding import stream
from mtcd.network.spectrum import DENSE_LIMIT, LANCZOS_RESTARTS, fiedler_sparse
from mtcd.network.walks.facts import Chain, is_irreducible

DISTANCE = 0.25  # the usual distance at which a walk counts as mixed
ROUNDING = 1e-12


def spectral_gap(P: sp.csr_array, pi: Array) -> float:
    """1 - max(|lambda_2|, |lambda_K|), the rate at which the walk approaches its stationary
    distribution pi.

    The walk must be reversible (pi_k P_kj = pi_j P_jk), as lazy and Metropolis walks are: then
    D^1/2 P D^-1/2, D = diag(pi), is symmetric with the same eigenvalues. 0 if the network is
    disconnected, or if the walk alternates between two halves of it; 1 for one client.
    """
    K = P.shape[0]
    if K == 1:
        return 1.0
    if not _forgets(P):
        return 0.0

    if not is_reversible(P, pi):
        # Eigenvalues of a walk that is not reversible may be complex; the gap then bounds nothing.
        raise ConfigError(
            "this walk is not reversible, so its spectral gap says nothing: use mixing_time "
            "instead."
        )

    root = np.sqrt(pi)
    M = sp.csr_array(sp.diags_array(root) @ P @ sp.diags_array(1 / root))
    if K <= DENSE_LIMIT:
        values = scipy.linalg.eigvalsh(M.toarray())
        return float(1 - max(abs(values[0]), abs(values[-2])))

    second = 1.0 - fiedler_sparse(sp.csr_array(sp.eye_array(K) - M))[0]

    # By Gershgorin no eigenvalue is below this: often enough to know that the lowest does not
    # matter, as it is slow to find.
    lowest = 2 * P.diagonal().min() - 1
    if abs(lowest) > second:
        lowest = _lowest_eigenvalue(M)

    return float(1 - max(abs(lowest), second))


def mixing_bounds(
    gap: float, least_stationary: float, distance: float = DISTANCE
) -> tuple[float, float]:
    """Lower and upper bound of the mixing time of a reversible walk, in hops.

    (1/gap - 1) log(1/(2 distance)) <= t_mix <= log(1/(distance least_stationary)) / gap; infinite
    for gap 0.
    """
    if gap <= 0:
        return math.inf, math.inf

    low = (1 / gap - 1) * math.log(1 / (2 * distance))
    high = math.log(1 / (distance * least_stationary)) / gap
    return max(low, 0.0), high


def mixing_time(P: sp.csr_array, pi: Array, distance: float = DISTANCE) -> float:
    """The hops after which the walk is within ``distance`` of pi in total variation, wherever it
    started.

    min t with max_k 1/2 sum_j |(P^t)_kj - pi_j| <= distance; infinite where the gap is 0.
    """
    return mixing_times(P, pi, [distance])[0]


def mixing_times(P: sp.csr_array, pi: Array, distances: Sequence[float]) -> list[float]:
    """The mixing time for each of these distances, from one decomposition of the chain."""
    # Never near its long run: powers of the matrix would be formed without end.
    if not _forgets(P):
        return [math.inf] * len(distances)

    find: Callable[[float], int]
    if is_reversible(P, pi):
        find = _by_spectrum(P, pi)
    else:
        find = partial(_by_squaring, P, pi)

    times: list[float] = []
    for distance in distances:
        # At a single client the walk is 1 - pi_k from the long run, at worst at the rarest one.
        if 1.0 - pi.min() <= distance + ROUNDING:
            times.append(0)
        else:
            times.append(find(distance))

    return times


def is_reversible(P: sp.csr_array, pi: Array) -> bool:
    """Whether pi_k P_kj = pi_j P_jk."""
    flow = sp.csr_array(sp.diags_array(pi) @ P)
    return bool(abs(flow - flow.T).max() <= 1e-9 * pi.max())


def _by_spectrum(P: sp.csr_array, pi: Array) -> Callable[[float], int]:
    """For a reversible walk: the distance after t hops, from the eigenvalues and -vectors of D^1/2
    P D^-1/2 = U V U^T.

    (P^t)_kj - pi_j = sqrt(pi_j/pi_k) sum over i of v_i^t u_ki u_ji, without the eigenvalue 1. At
    the t that matter few v_i^t are above rounding, so a t takes little time, and the bounds from
    the gap say between which to look.
    """
    root = np.sqrt(pi)
    M = sp.diags_array(root) @ P @ sp.diags_array(1 / root)
    values, U = np.linalg.eigh((M + M.T).toarray() / 2)

    # The last one is the eigenvalue 1, which is the long run itself.
    values = values[:-1]
    U = U[:, :-1]

    def is_near(t: int, distance: float) -> bool:
        powers = values**t
        kept = np.abs(powers) > 1e-14 * root.min()  # only saves time; the rest is 1e-14
        apart = (U[:, kept] * powers[kept]) @ U[:, kept].T
        return float((np.abs(apart) @ root / root).max()) / 2 <= distance + ROUNDING

    def find(distance: float) -> int:
        gap = 1 - float(np.abs(values).max())
        low, high = mixing_bounds(gap, float(pi.min()), distance)
        far = max(0, int(low) - 1)
        near = math.ceil(high) + 1

        # Rounding, on a long walk, may put the time outside of the bounds.
        if far > 0 and is_near(far, distance):
            # Above all of them: the answer is found by halving between a t that is too early and
            # one that is late enough.
            far = 0
        while not is_near(near, distance):
            near *= 2

        while near - far > 1:
            middle = (far + near) // 2
            if is_near(middle, distance):
                near = middle
            else:
                far = middle

        return near

    return find


def _by_squaring(P: sp.csr_array, pi: Array, distance: float) -> int:
    """For any walk. The distance never grows with t: P, P^2, P^4, ... are formed until one is near
    enough, and t is then found bit by bit."""

    def near(Pt: Array) -> bool:
        return float(np.abs(Pt - pi).sum(axis=1).max()) / 2 <= distance + ROUNDING

    powers = [P.toarray()]
    while not near(powers[-1]):
        powers.append(powers[-1] @ powers[-1])

    # The longest walk so far that is not near enough, and its length.
    steps = 0
    far = np.eye(len(pi))
    for bit in reversed(range(len(powers) - 1)):
        further = far @ powers[bit]
        if not near(further):
            steps += 2**bit
            far = further

    return steps + 1


def _forgets(P: sp.csr_array) -> bool:
    """Whether the walk is irreducible and aperiodic.

    Its period is the greatest common divisor of level_k + 1 - level_j over all hops k -> j, where
    level is the number of hops from any one client.
    """
    if not is_irreducible(P):
        return False

    hops = sp.coo_array(P)
    anywhere = 0  # the divisor is the same from every client
    level = dijkstra(P, indices=anywhere, unweighted=True).astype(np.int64)
    return bool(np.gcd.reduce(level[hops.row] + 1 - level[hops.col]) == 1)


def _lowest_eigenvalue(M: sp.csr_array) -> float:
    # A start of our own: that of ARPACK is random, and the last digits would differ between runs.
    noise = stream(0, "spectral gap").standard_normal(M.shape[0])  # any noise will do
    try:
        [lowest] = eigsh(
            M, k=1, which="SA", v0=noise, maxiter=LANCZOS_RESTARTS, return_eigenvectors=False
        )
    except ArpackNoConvergence:
        # The eigenvalue is close to others, as on a long cycle: there its inverse is quick.
        below = -1 - 1 / M.shape[0] ** 2  # anything just below the lowest
        [lowest] = eigsh(M.tocsc(), k=1, sigma=below, v0=noise, return_eigenvectors=False)

    return float(lowest)


def longest_hitting_time(chain: Chain) -> float:
    """The largest expected number of hops from one client to another.

    With the fundamental matrix Z = (I - P + 1 share^T)^-1 it is (Z_jj - Z_kj)/share_j from k to j.
    Infinite on a disconnected network.
    """
    P, share = chain
    if not is_irreducible(P):
        return math.inf

    # I - P is singular; any multiple of share makes it regular, and cancels below.
    away = np.eye(share.size) - P.toarray()
    Z = np.linalg.inv(away + share)  # any multiple of share
    return float(((Z.diagonal() - Z) / share).max())


def cover_bound(hitting_time: float, K: int) -> float:
    """An upper bound on the expected number of hops until all K clients have been visited, from any
    start.

    Matthews' bound: the longest hitting time times 1 + 1/2 + ... + 1/(K - 1).

    Examples
    --------
    >>> cover_bound(10.0, 4)
    18.333333333333332
    """
    if K <= 1:
        return 0.0  # not infinity * 0: a lone client has been visited at the start

    return hitting_time * sum(1.0 / k for k in range(1, K))
