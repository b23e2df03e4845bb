"""What the theorems promise: how small the gradient gets, and what that asks for."""

from __future__ import annotations

import math
from dataclasses import dataclass

from mtcd.checks import check_number, check_whole
from mtcd.errors import ConfigError


@dataclass(frozen=True)
class Guarantee:
    """Both theorems: for a step size eta of at most 1/(2 L S Q), after T iterations,

        1/T sum over t < T of E|grad f(theta^t)|^2  <=  2 Delta/(eta pi T) + eta S^2 Q^2 sigma^2 L/(pi B).

    ``delta`` is f(theta^0) - f*, ``pi`` the least probability that a token visits a client in an iteration
    (``LeastVisits.per_token``, for whatever walk it takes), ``variance`` the bound sigma^2/B, at B = 1, on the error
    of a mini-batch gradient: 0 for the full batch, when the second term is gone.

    >>> Guarantee(delta=10.0, stepsize=0.01, pi=0.5, hops=5, local_updates=2, smoothness=4.0).after(1000)
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
        limit = 1 / (2 * self.smoothness * self.hops * self.local_updates)
        if self.stepsize > limit * (1 + 1e-9):
            raise ConfigError(
                f"the theorems hold for step sizes up to 1/(2 L S Q) = {limit:.4g}, but this one is "
                f"{self.stepsize:.4g}: make it smaller, or the hops or local updates fewer."
            )

    @property
    def floor(self) -> float:
        """eta S^2 Q^2 sigma^2 L/(pi B): what is left however long one trains; 0 for the full batch."""
        return self._noise / self.batch

    def after(self, iterations: int) -> float:
        """The right-hand side for T ``iterations``."""
        check_whole("iterations", iterations)
        return 2 * self.delta / (self.stepsize * self.pi * iterations) + self.floor

    def iterations(self, target: float) -> int:
        """The least T for which the right-hand side is at most ``target``: 2 Delta/(eta pi (target - floor))."""
        check_number("target", target, above=0)
        if self.floor >= target:
            raise ConfigError(
                f"with this batch the bound stays at {self.floor:.4g}, above the target {target:.4g}, for ever: "
                f"a batch above {self.batch_size(target):,} is needed, or a smaller step size."
            )
        return max(1, math.ceil(2 * self.delta / (self.stepsize * self.pi * (target - self.floor)) * (1 - 1e-12)))

    def batch_size(self, error: float) -> int:
        """The least B for which the second term is at most ``error``: sigma^2/error * eta S^2 Q^2 L/pi."""
        check_number("error", error, above=0)
        return max(1, math.ceil(self._noise / error * (1 - 1e-12)))  # not one more for a rounding error

    @property
    def _noise(self) -> float:
        return self.stepsize * (self.hops * self.local_updates) ** 2 * self.variance * self.smoothness / self.pi
