"""The bounds of the theorems on the gradient norm, and the iterations and batch sizes that follow
from them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from mtcd.core.checks import check_number, check_whole
from mtcd.core.errors import ConfigError


@dataclass(frozen=True)
class Guarantee:
    """Both theorems: for a step size eta of at most 1/(2 L S Q), after T iterations,

        1/T sum over t < T of E|grad f(theta^t)|^2  <=  2 Delta/(eta pi T) + eta S^2 Q^2 sigma^2
        L/(pi B).

    Parameters
    ----------
    delta
        f(theta^0) - f*.
    stepsize
        eta.
    pi
        The least probability that a token visits a client in an iteration
        (``LeastVisits.per_token``, for whatever walk it takes).
    hops, local_updates
        S and Q.
    smoothness
        L.
    variance
        sigma^2, the bound on the squared error of the gradient of a single sample: 0 for the full
        batch, for which the second term is 0.
    batch
        B.

    Examples
    --------
    >>> bound = Guarantee(
    ...     delta=10.0, stepsize=0.01, pi=0.5, hops=5, local_updates=2, smoothness=4.0
    ... )
    >>> bound.after(1000)
    4.0
    """

    delta: float
    stepsize: float
    pi: float
    hops: int
    local_updates: int
    smoothness: float
    variance: float = 0.0
    batch: int = 1

    def __post_init__(self) -> None:
        for name in ("delta", "variance"):
            check_number(name, getattr(self, name))
        for name in ("stepsize", "pi", "smoothness"):
            check_number(name, getattr(self, name), above=0)
        for name in ("hops", "local_updates", "batch"):
            check_whole(name, getattr(self, name))
        if self.pi > 1:
            raise ConfigError(f"pi is a probability, so at most 1, but is {self.pi}.")

        # A step size at the limit itself may be above it by rounding.
        limit = 1 / (2 * self.smoothness * self.hops * self.local_updates)
        if self.stepsize > limit * (1 + 1e-9):
            raise ConfigError(
                f"the theorems hold for step sizes up to 1/(2 L S Q) = {limit:.4g}, but this one "
                f"is {self.stepsize:.4g}: make it smaller, or the hops or local updates fewer."
            )

    @property
    def floor(self) -> float:
        """eta S^2 Q^2 sigma^2 L/(pi B), the limit of the bound for T to infinity; 0 for the full
        batch."""
        return self._noise / self.batch

    def after(self, iterations: int) -> float:
        """The right-hand side for T ``iterations``."""
        check_whole("iterations", iterations)
        return 2 * self.delta / (self.stepsize * self.pi * iterations) + self.floor

    def iterations(self, target: float) -> int:
        """The least T for which the right-hand side is at most ``target``: 2 Delta/(eta pi (target
        - floor))."""
        check_number("target", target, above=0)
        # More rounds do not help below the floor; the error says what does.
        if self.floor >= target:
            raise ConfigError(
                f"with this batch the bound stays at {self.floor:.4g}, above the target "
                f"{target:.4g}, for ever: a batch above {self.batch_size(target):,} is needed, or "
                f"a smaller step size."
            )

        needed = 2 * self.delta / (self.stepsize * self.pi * (target - self.floor))
        return _whole(needed)

    def batch_size(self, error: float) -> int:
        """The least B for which the second term is at most ``error``: sigma^2/error * eta S^2 Q^2
        L/pi."""
        check_number("error", error, above=0)
        return _whole(self._noise / error)

    @property
    def _noise(self) -> float:
        return (
            self.stepsize
            * (self.hops * self.local_updates) ** 2
            * self.variance
            * self.smoothness
            / self.pi
        )


@dataclass(frozen=True)
class LoneGuarantee:
    """Equation (5), for STCD: for a step size eta below 2/L_b, after r local updates,

        E[min over i = 1..r of |grad f(theta^i)|^2]  <=  (Omega_1 (Q tau - 1)^2 + Omega_2) Delta/r

        Omega_1 = 4 eta L^2/(pi_min (1 - eta L_b/2)),     Omega_2 = 4/(pi_min eta (1 - eta L_b/2)).

    The paper leaves Omega_1 and Omega_2 open; docs/theory.md derives these.

    Parameters
    ----------
    delta
        f(theta^0) - f*.
    stepsize
        eta.
    pi_min
        The least share of a client in the long run of the walk.
    mixing_time
        tau, the hops until the walk is within pi_min/2 of its long run in total variation, wherever
        it started.
    local_updates
        Q.
    smoothness, block_smoothness
        L, and L_b, the largest of the clients' L_k.

    Examples
    --------
    >>> bound = LoneGuarantee(
    ...     delta=3.0,
    ...     stepsize=0.5,
    ...     pi_min=0.25,
    ...     mixing_time=1,
    ...     local_updates=2,
    ...     smoothness=2.0,
    ...     block_smoothness=2.0,
    ... )
    >>> bound.after(100)
    3.84
    """

    delta: float
    stepsize: float
    pi_min: float
    mixing_time: float
    local_updates: int
    smoothness: float
    block_smoothness: float

    def __post_init__(self) -> None:
        for name in ("delta", "mixing_time"):
            check_number(name, getattr(self, name))
        for name in ("stepsize", "pi_min", "smoothness", "block_smoothness"):
            check_number(name, getattr(self, name), above=0)
        check_whole("local_updates", self.local_updates)
        if self.pi_min > 1:
            raise ConfigError(f"pi_min is a share of the time, so at most 1, but is {self.pi_min}.")
        if self.stepsize >= 2 / self.block_smoothness:
            raise ConfigError(
                f"the bound holds for step sizes below 2/max_k L_k = "
                f"{2 / self.block_smoothness:.4g}, but this one is {self.stepsize:.4g}: make it "
                "smaller."
            )

    @property
    def omega_1(self) -> float:
        """Omega_1, the factor of (Q tau - 1)^2."""
        return self.stepsize**2 * self.smoothness**2 * self.omega_2

    @property
    def omega_2(self) -> float:
        """Omega_2, the constant if the next client does not depend on the last one."""
        return 4 / (self.pi_min * self.stepsize * (1 - self.stepsize * self.block_smoothness / 2))

    @property
    def constant(self) -> float:
        """C of the bound C/r."""
        # tau = 0: one client, visited all the time
        # The Q updates at each of the tau hops until the walk has mixed, without the one that is
        # looked at.
        waits = max(self.local_updates * self.mixing_time - 1, 0)
        return (self.omega_1 * waits**2 + self.omega_2) * self.delta

    def after(self, updates: int) -> float:
        """The right-hand side for r local ``updates``: Q at every hop."""
        check_whole("updates", updates)
        return self.constant / updates

    def updates(self, target: float) -> int:
        """The least r for which the right-hand side is at most ``target``."""
        check_number("target", target, above=0)
        return _whole(self.constant / target)


def _whole(needed: float) -> int:
    """The least whole number that is enough, and not one more for a rounding error."""
    return max(1, math.ceil(needed * (1 - 1e-12)))
