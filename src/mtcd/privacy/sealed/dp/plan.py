"""The plan of private tours, which all parties know. The token has 2N numbers: g, which no visit
changes, so that all gradients of a tour are at the same scores, and the change of the scores, which
the clients add up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from mtcd.core.arrays import Array
from mtcd.core.errors import ConfigError, WireError
from mtcd.data.vertical import Block
from mtcd.models.glm.penalty import Penalty
from mtcd.privacy.sealed.bfv.cipher import Integers
from mtcd.privacy.sealed.bfv.parameters import Parameters, choose_parameters
from mtcd.privacy.sealed.block import SealedBlock
from mtcd.privacy.sealed.dp.budget import Budget
from mtcd.privacy.sealed.dp.noise import Secret, draw_secret, gaussian_noise
from mtcd.privacy.sealed.plan import SealedPlan
from mtcd.privacy.sealed.scales import Scales
from mtcd.privacy.sealed.steering import Steering
from mtcd.privacy.settings import DP

FORGOTTEN: Secret = np.zeros(0, np.uint8)


@dataclass(frozen=True, eq=False, kw_only=True)
class PrivatePlan(SealedPlan):
    """``insecure_secret``: what noise follows from, if it is not to be from the operating
    system."""

    dp: DP
    budget: Budget
    insecure_secret: Secret | None

    needs_label_sums: ClassVar[bool] = False
    checks_answers: ClassVar[bool] = False
    """The server adds noise to its answers: no combination of them would fit."""

    def parameters(self) -> Parameters:
        # Two numbers per sample, see above; a tour adds the noise of all its visits.
        chosen = choose_parameters(2 * self.samples, (self.widest,), self.clients + 2)
        return replace(chosen, token_bound=int(self.scales(chosen).unit))

    def scales(self, parameters: Parameters) -> PrivateScales:
        noisiest = max(self.budget.multipliers)
        return PrivateScales(
            parameters,
            self.samples,
            self.loss.curvature,
            self.start,
            self.clients,
            noisiest=noisiest,
        )

    def corrects(self, t: int) -> bool:
        return False  # without a mix, rounding errors are not made use of

    def steering(self) -> Steering:
        return PrivateSteering(self)

    def block(self, X: Block, penalty: Penalty) -> PrivateBlock:
        return PrivateBlock(X, penalty, self.dp)


class PrivateSteering(Steering):
    """The scores, and the noise. A mix of tours, or a step that depends on scores, would tell the
    clients more.

    The secret is kept in checkpoints and in the server's journal, so that a tour that is repeated
    after a restart has the same noise: with other noise, both together would have less. After the
    last tour nobody needs it any more, and it is forgotten: who has it can take the noise off.
    """

    state_fields = (*Steering.state_fields, "secret", "tours")

    def __init__(self, plan: PrivatePlan) -> None:
        super().__init__(plan.loss, plan.samples, 0, plan.start, plan.constant)
        self.plan = plan
        self.secret = draw_secret() if plan.insecure_secret is None else plan.insecure_secret
        self.tours = 0
        """The tours that have ended."""

    def end_tour(
        self, change: Array, sums: Array, label_sum: float | None, rounding: float
    ) -> None:
        self.scores = self.scores + change
        self.tours += 1
        # After the last tour nobody needs it: whoever found it later could take the noise off.
        if self.tours == self.plan.dp.tours:
            self.secret = FORGOTTEN

    def released(self, values: Integers, client: int, t: int) -> Integers:
        """The masked gradient with noise: the mask is uniform, so the key holder adds noise to what
        it cannot read."""
        plan, parameters = self.plan, self.plan.parameters()
        if t > plan.dp.tours or not self.secret.size:
            raise WireError(
                "sealed request", f"is of tour {t}, but the budget is for {plan.dp.tours}"
            )
        deviation = plan.budget.multipliers[client] * plan.scales(parameters).sensitivity
        # Of this client and tour: a request that is repeated gets the same numbers.
        noise = gaussian_noise(deviation, len(values), self.secret, client, t)
        # Modulo t, as the mask is: the sum with noise must not leave the range.
        shifted = (values + noise) % parameters.plain_modulus
        return np.where(shifted > parameters.half, shifted - parameters.plain_modulus, shifted)


# The block of a client in private tours: clipped rows, and parameters that follow from noisy
# gradients alone.
#
# Nothing else of the data may enter the parameters, not even the curvature of the own block: a
# row would change them by more than the noise hides. The result is the mean of the parameters
# after the later half of the tours.
#
# Rows are clipped in gradients only. Scores have whole rows, as predictions have: however long a
# row, the derivative of the loss at its score lies between -1 and 1, which is all that the
# accounting takes.


class PrivateBlock(SealedBlock):
    """theta_k at the start of a tour, its change in this tour, and the sum of those that count for
    the mean."""

    state_fields = ("tour", "theta", "change", "total")

    def __init__(self, X: Block, penalty: Penalty, dp: DP) -> None:
        super().__init__(X, penalty, 0)
        self.dp = dp
        self.total = np.zeros_like(self.theta)
        self.length = clipping_length(self.X.shape[1], penalty.free, dp.clip)
        self.clipped = clip_rows(self.X, penalty.free, dp.clip)

    def use(self, scales: Scales) -> Integers:
        assert isinstance(scales, PrivateScales)
        # Clipped rows as integers; scores use whole rows, in the clear.
        self.scales: PrivateScales = scales
        return scales.rows(self.clipped, self.length)

    def start_tour(self, tour: int, weights: Array, stretch: float) -> None:
        """Keep the change of the last tour; one of the same number, which is undone, is dropped."""
        # The next tour has begun, so this one counts. After a restart it may begin anew.
        if tour == self.tour + 1:
            self.theta, self.total = self._moved()
        self.tour, self.change = tour, np.zeros_like(self.theta)

    def _moved(self) -> tuple[Array, Array]:
        """theta and the sum after this tour."""
        theta = self.theta + self.change
        if self.tour <= self._first_half:
            return theta, self.total
        return theta, self.total + theta

    @property
    def _first_half(self) -> int:
        return self.dp.tours // 2

    def preview(self, tour: int, weights: Array) -> Array:
        theta, total = self.theta, self.total
        if tour != self.tour:
            theta, total = self._moved()

        # before the later half there is no mean yet
        counted = tour - 1 - self._first_half
        if counted <= 0:
            return theta
        return total / counted

    def parameters(self) -> Array:
        weights = np.zeros(0)  # without a mix, nothing uses them
        return self.preview(self.tour + bool(self.change.any()), weights)

    def update(self, products: Array, token: float, draws: Array) -> Integers:
        """A step against the gradient with its noise; returns the change of the scores, beside
        g."""
        # nothing of the data but the products, which have noise, may decide about the step
        scales = self.scales
        gradient = products * (self.length / (scales.radius * token))
        self.penalty.add_gradient(self.theta, gradient)
        # A fixed step, from public numbers alone.
        self.change = gradient * (-self.dp.stepsize / (scales.samples + self.penalty.l2))
        return scales.shifts(self.X @ self.change, draws)


def clipping_length(columns: int, free: int, clip: float) -> float:
    """The most that a row of a block may have; a column of ones, for the intercept, is not
    clipped."""
    return math.sqrt(clip**2 * (columns - free) + free)


def clip_rows(X: Array, free: int, clip: float) -> Array:
    """The rows, shortened to the clipping length; each by itself."""
    columns = X.shape[1] - free
    # Each row by itself: what is done to one must not depend on others.
    lengths = np.sqrt((X[:, :columns] ** 2).sum(axis=1))
    allowed = clip * math.sqrt(columns)
    factors = np.minimum(1.0, allowed / np.maximum(lengths, 1e-300))
    return np.hstack([X[:, :columns] * factors[:, None], X[:, columns:]])


# The fixed point of private tours. It depends on sizes and budgets alone, never on the data.
#
# Every party scales its rows such that the clipping length is `radius` integers, and g lies
# between -`unit` and `unit`. One row of integers then has a product with g of at most `radius` *
# `unit`: this is the sensitivity to which the key holder adds noise, and it need not know how
# many columns a party has.


FEWEST_BITS = 14
"""Of ``radius`` and ``unit`` together."""
TAIL = 9.0
"""Standard deviations that no noise exceeds: ``mtcd.privacy.sealed.dp.noise`` draws none beyond
8.3."""
LARGEST_CHANGE = 2.0**14
"""Of a score in one tour: a party whose change exceeds its share of it clips it, which does not
harm the privacy."""


@dataclass(frozen=True)
class PrivateScales(Scales):
    """``noisiest``: the largest noise multiplier."""

    noisiest: float = field(kw_only=True)

    @property
    def _bits(self) -> int:
        """Of ``radius`` and ``unit`` together, such that no gradient with its noise wraps
        around."""
        # The largest gradient is N products; noise beyond TAIL deviations is never drawn.
        bits = math.floor(math.log2(self.parameters.half / (self.samples + TAIL * self.noisiest)))
        if bits < FEWEST_BITS:
            raise ConfigError(
                f"privacy.dp: noise of {self.noisiest:.3g} clipping lengths on the gradients of "
                f"{self.samples} samples leaves no room for the gradients in the encrypted "
                "integers: use a larger epsilon, or fewer tours."
            )
        return bits

    @property
    def unit(self) -> float:
        """Integers per unit of g."""
        return 2.0 ** (self._bits // 2)

    @property
    def radius(self) -> float:
        """Integers per clipping length."""
        return 2.0 ** (self._bits - self._bits // 2)

    @property
    def sensitivity(self) -> float:
        """The most by which a row of another party moves a gradient: one clipping length, in
        integers."""
        return self.radius * self.unit

    def token(self, objective: float) -> float:
        return self.unit

    @property
    def sums(self) -> float:
        """Integers per unit of the scores."""
        return 2.0 ** math.floor(math.log2(self.parameters.half / LARGEST_CHANGE))

    def rows(self, X: Array, length: float) -> Integers:
        """Rows of at most this length as integers. They are rounded towards zero, so that none gets
        longer."""
        # Towards zero: rounding to the nearest could make a row longer than it may be.
        integers = np.trunc(X * (self.radius / length)).astype(np.int64)
        return np.vstack([integers, np.zeros((self.extras, X.shape[1]), np.int64)])

    def shifts(self, change: Array, draws: Array) -> Integers:
        """What is added to the token for this change of the scores; ``draws`` are for the
        rounding."""
        # A party whose change is clipped harms its own model, and nobody's privacy.
        most = LARGEST_CHANGE / self.visits - 1 / self.sums  # with the rounding
        added = np.floor(np.clip(change, -most, most) * self.sums + draws)
        return np.concatenate([np.zeros(self.samples), added]).astype(np.int64)

    def changes(self, opened: Integers, start: Integers, token: float) -> tuple[Array, Array]:
        """The change of the scores, which lies beside g; no sums."""
        return (opened - start)[self.samples :].astype(float) / self.sums, np.zeros(0)
