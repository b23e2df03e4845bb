"""Private tours as a method: ``mtcd`` in sealed mode with ``privacy.dp``."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace

import numpy as np

from mtcd.errors import ConfigError
from mtcd.methods.private.plan import PrivatePlan
from mtcd.methods.sealed.plan import SealedPlan
from mtcd.methods.sealed.settings import SealedSizes, SealedTours
from mtcd.model.linear import LinearProblem
from mtcd.network.topology import Network
from mtcd.objective.losses.logistic import Logistic
from mtcd.privacy import DP
from mtcd.privacy.budget import Budget, plan_budget
from mtcd.protocol.model import Problem


@dataclass(frozen=True)
class PrivateTours(SealedTours):
    """Sealed tours in which the server adds noise to every gradient that it decrypts for a client.

    ``secret``: noise from the operating system, as in a federation; otherwise it follows from the seed.
    """

    dp: DP = field(kw_only=True)
    secret: bool = False

    noisy = True
    steps = "each update is a step of fixed size against a gradient with noise"

    def __post_init__(self) -> None:
        if not self.server:
            raise ConfigError(
                "privacy.dp: stcd gives the key to the label holder, a party that then sees the scores of the others "
                "without noise. Use method: {kind: mtcd, walk: tour}: its server keeps the key."
            )

    def describe(self) -> str:
        return f"Private tours, T={self.dp.tours}, key at the server"

    def check_network(self, network: Network) -> None:
        super().check_network(network)
        self.dp.check_parties(network.clients)

    def check_problem(self, problem: Problem) -> None:
        super().check_problem(problem)
        assert isinstance(problem, LinearProblem)
        if not isinstance(problem.loss, Logistic):
            raise ConfigError(
                "privacy.dp is for model.kind: logistic, whose derivative is at most 1: with an unbounded one, as of "
                "ridge, a row could change the gradients by any amount."
            )

    def budget(self, network: Network) -> Budget:
        """The noise of all parties."""
        return plan_budget(self.dp, network.clients)

    def most_iterations(self, problem: Problem) -> int:
        return self.dp.tours

    def most_tours(self, sizes: SealedSizes) -> int:
        return self.dp.tours

    def in_federation(self, holder: int) -> PrivateTours:
        return replace(self, holder=holder, secret=True)

    def notes(self, network: Network) -> tuple[str, ...]:
        budget, dp, K = self.budget(network), self.dp, network.size
        noise = by_party(budget.multipliers, network.clients, "{:.1f}")
        spending = by_party(budget.spent(dp.tours), network.clients, "{:.3g}")
        source = () if self.secret else (SEEDED,)
        return (
            *super().notes(network),
            f"Differential privacy: {dp.tours} tours, with a noisy gradient for each of {K} parties, {dp.tours * K} "
            f"releases in all. Noise in clipping lengths: {noise}. Spends epsilon {spending} at delta {dp.delta:g}, "
            "for one changed row of a party's features; the server, which sees scores, is not covered.",
            ADD_UP,
            *source,
        )

    def end_notes(self, network: Network, iterations: int) -> tuple[str, ...]:
        """What was spent; ``iterations``: also one that was begun, in which some parties have their gradients."""
        tours = min(iterations, self.dp.tours)
        spent = by_party(self.budget(network).spent(tours), network.clients, "{:.3g}")
        over = "The budget is spent, and the training has ended" if tours == self.dp.tours else "Spent so far"
        return (f"{over}: epsilon {spent} at delta {self.dp.delta:g} after {tours} of {self.dp.tours} tours.",)

    def token_numbers(self, samples: int) -> int:
        return 2 * samples

    def plan(self, problem: LinearProblem, network: Network, seed: int, agreed: SealedSizes | None) -> SealedPlan:
        sealed = super().plan(problem, network, seed, agreed)
        given = {one.name: getattr(sealed, one.name) for one in fields(sealed)}
        return PrivatePlan(**given, dp=self.dp, budget=self.budget(network), secret=self.secret)


ADD_UP = (
    "Trainings on the same rows add up: together they spend the sum of their epsilons, at the sum of their deltas. "
    "Nothing counts them from one training to the next: keep account of what each table has spent."
)
SEEDED = (
    "In one process the noise follows from the seed, so that a training can be repeated: who knows the seed can take "
    "it off. Keep the seed secret, or train in a federation, where the server draws noise from its operating system."
)
MOST_NAMED = 8


def by_party(values: tuple[float, ...], names: tuple[str, ...], form: str) -> str:
    """One number if all are the same, otherwise by party."""
    if np.ptp(values) <= 1e-9 * max(values):
        return form.format(values[0])  # no mutants: all are the same
    if len(values) > MOST_NAMED:
        return f"{form.format(min(values))} to {form.format(max(values))}"
    return ", ".join(f"{form.format(value)} ({name})" for name, value in zip(names, values, strict=True))
