"""Private tours as a method: ``mtcd`` in sealed mode with ``privacy.dp``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from mtcd.core.errors import ConfigError
from mtcd.methods.conditions import Account
from mtcd.models.glm.model import LinearProblem
from mtcd.models.losses.logistic import Logistic
from mtcd.network.topology import Network
from mtcd.privacy.sealed.checks import SealedChecks
from mtcd.privacy.sealed.conditions import SealedConditions, SealedSizes
from mtcd.privacy.sealed.dp.account import PartyAccount, TableAccounts
from mtcd.privacy.sealed.dp.budget import Budget, plan_budget
from mtcd.privacy.sealed.dp.noise import Secret, insecure_secret
from mtcd.privacy.sealed.dp.plan import PrivatePlan
from mtcd.privacy.sealed.plan import SealedPlan
from mtcd.privacy.sealed.settings import SealedTours
from mtcd.privacy.settings import DP
from mtcd.protocol.model import Problem


class PrivateChecks(SealedChecks):
    """The checks that are left where gradients have noise."""

    def problem(self, problem: Problem) -> None:
        super().problem(problem)
        assert isinstance(problem, LinearProblem)
        if not isinstance(problem.loss, Logistic):
            raise ConfigError(
                "privacy.dp is for model.kind: logistic, whose derivative is at most 1: with an "
                "unbounded one, as of ridge, a row could change the gradients by any amount."
            )

    def block(self, X: Any, party: str) -> None:
        """Refuse nothing: noise hides every row, and what is refused for one row would tell it."""

    def resolution(self, plan: SealedPlan, X: Any, party: str) -> None:
        """Refuse nothing: rows are clipped, and what is refused for one row would tell it."""

    def width(self, columns: int, samples: int, party: str) -> None:
        """Refuse nothing: gradients have noise, so that labels cannot be read from them, however
        many they are."""


@dataclass(frozen=True)
class PrivateTours(SealedTours):
    """Sealed tours in which the server adds noise to every gradient that it decrypts for a
    client."""

    dp: DP = field(kw_only=True)

    tells_label_sums = False
    steps = "each update is a step of fixed size against a gradient with noise"

    def __post_init__(self) -> None:
        if not self.server:
            raise ConfigError(
                "privacy.dp: stcd gives the key to the label holder, a party that then sees the "
                "scores of the others without noise. Use method: {kind: mtcd, walk: tour}: its "
                "server keeps the key."
            )

    def describe(self) -> str:
        return f"Private tours, T={self.dp.tours}, key at the server"

    def check(self, network: Network, problem: Problem | None = None) -> None:
        super().check(network)
        self.dp.check_parties(network.clients)
        if problem is not None:
            self.checks.problem(problem)

    def budget(self, network: Network) -> Budget:
        """The noise of all parties."""
        return plan_budget(self.dp, network.clients)

    @property
    def conditions(self) -> PrivateConditions:  # type: ignore[override]
        """The budget, and the account beside each table."""
        return PrivateConditions(self)

    @property
    def checks(self) -> PrivateChecks:
        """Less is refused, since gradients have noise."""
        return PrivateChecks(self)

    def most_tours(self, columns: Sequence[int]) -> int:
        return self.dp.tours

    def in_federation(self, holder: int) -> PrivateTours:
        # Seeds of a federation are known to all parties.
        if self.dp.insecure_seeded_noise:
            raise ConfigError(
                "privacy.dp.insecure_seeded_noise is for studies in one process: in a federation, "
                "every party could take the noise off. Leave it out."
            )
        return replace(self, holder=holder)

    def notes(self, network: Network) -> tuple[str, ...]:
        budget, dp, K = self.budget(network), self.dp, network.size
        noise = by_party(budget.multipliers, network.clients, "{:.1f}")
        spending = by_party(budget.spent(dp.tours), network.clients, "{:.3g}")
        source: tuple[str, ...] = ()
        if dp.insecure_seeded_noise:
            source = (INSECURE,)
        return (
            *super().notes(network),
            f"Differential privacy: {dp.tours} tours, with a noisy gradient for each of {K} "
            f"parties, {dp.tours * K} releases in all. Noise in clipping lengths: {noise}. Spends "
            f"epsilon {spending} at delta {dp.delta:g}, for one changed row of a party's features; "
            "the server, which sees scores, is not covered.",
            ADD_UP,
            *source,
        )

    def spent_note(self, network: Network, iterations: int) -> str:
        """What tours that were begun have spent, for the user."""
        tours = min(iterations, self.dp.tours)
        spent = by_party(self.budget(network).spent(tours), network.clients, "{:.3g}")
        over = "Spent so far"
        if tours == self.dp.tours:
            over = "The budget is spent, and the training has ended"
        return (
            f"{over}: epsilon {spent} at delta {self.dp.delta:g} after {tours} of {self.dp.tours} "
            "tours."
        )

    def token_numbers(self, samples: int) -> int:
        return 2 * samples

    def plan(
        self, problem: LinearProblem, network: Network, seed: int, agreed: SealedSizes | None
    ) -> SealedPlan:
        sealed = super().plan(problem, network, seed, agreed)
        # All that the plan of sealed tours has, with what the budget adds.
        given = {one.name: getattr(sealed, one.name) for one in fields(sealed)}
        secret = None  # drawn from the operating system, by the key holder
        if self.dp.insecure_seeded_noise:
            secret = self._insecure_secret(problem, network, seed)
        return PrivatePlan(**given, dp=self.dp, budget=self.budget(network), insecure_secret=secret)

    def _insecure_secret(self, problem: LinearProblem, network: Network, seed: int) -> Secret:
        # Sorted: the same settings in another order are the same training.
        dp = replace(self.dp, parties=dict(sorted(self.dp.parties.items())))
        settings = repr(
            (dp, problem.loss, problem.penalties, network.clients, self.walk, self.holder)
        )
        return insecure_secret(seed, settings, (problem.labels, *problem.blocks))


ADD_UP = (
    "Trainings on the same rows add up. A file beside each table counts what they have spent "
    "together: mtcd budget TABLE shows it."
)
INSECURE = (
    "insecure_seeded_noise: the noise follows from the seed, so that this training can be "
    "repeated, and protects nobody. Leave it out for a model that others may have."
)
MOST_NAMED = 8


def by_party(values: tuple[float, ...], names: tuple[str, ...], form: str) -> str:
    """One number if all are the same, otherwise by party."""
    # Equal but for rounding: one number says it.
    if np.ptp(values) <= 1e-9 * max(values):
        return form.format(values[0])
    if len(values) > MOST_NAMED:
        return f"{form.format(min(values))} to {form.format(max(values))}"
    return ", ".join(
        f"{form.format(value)} ({name})" for name, value in zip(names, values, strict=True)
    )


# What a privacy budget asks of a training: as many tours as it is for, which a file beside each
# table counts.


class PrivateConditions(SealedConditions):
    """The budget of all parties, and what trainings have spent of it.

    Parameters
    ----------
    tours
        The method.
    """

    noisy = True

    def __init__(self, tours: PrivateTours) -> None:
        super().__init__(tours)
        self._private = tours

    def most_iterations(self, problem: Problem) -> int:
        return self._private.dp.tours

    def account(
        self,
        network: Network,
        tables: Sequence[Path],
        iterations: int | None,
        place: Path | None,
        resumes: bool,
    ) -> Account:
        # All planned tours, unless the stop rule ends it before: an account must never be too low.
        most = self._private.dp.tours if iterations is None else iterations
        return TableAccounts(self._private, network, tables, most, place, resumes)

    def end_notes(
        self,
        network: Network,
        iterations: int,
        most: int | None = None,
        objectives: Sequence[tuple[int, float]] = (),
    ) -> tuple[str, ...]:
        """What was spent; ``iterations``: also one that was begun, in which some parties have their
        gradients."""
        return (self._private.spent_note(network, iterations),)

    def party_account(
        self, network: Network, number: int, table: Path, bundle: Path
    ) -> PartyAccount:
        return PartyAccount(self._private, network, number, table, bundle)

    def ended_tours(self, begun: int, finished: int) -> int:
        return begun  # some parties have their gradients of the tour that is under way
