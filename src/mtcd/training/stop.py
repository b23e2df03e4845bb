"""When to stop: the first limit that is reached."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

from mtcd.core.checks import check_number, check_whole
from mtcd.core.errors import ConfigError, check_known
from mtcd.core.mappings import attributes
from mtcd.methods.method import Method
from mtcd.network.topology import Network
from mtcd.protocol.ledger.costs import Costs
from mtcd.training.history import Measurement
from mtcd.training.plateau import Plateau
from mtcd.training.rules import Gap, Kept, Limit, StopRule, TrainingFacts

FOR_EVER = 10_000_000
# limits, and the columns of a measurement to which they apply
MEASURED = {"iterations": "iteration", "epochs": "epoch", "seconds": "seconds", "cost": "cost"}


@dataclass(frozen=True)
class Stop:
    """When a training ends: at the first limit that is reached.

    It ends at the first moment, at or after the limit, when the parties hold one model. A gap alone
    gives up after ten million iterations.

    Parameters
    ----------
    gap : float, optional
        The relative gap (f - f*)/|f*|; the optimum f* is then computed before training.
    iterations : int, optional
        Hops per token.
    seconds : float, optional
        Seconds of training, without those of measuring.
    cost : float, optional
        Communication cost, as ``costs`` of :func:`train` price it.
    epochs : float, optional
        Passes over all samples. With the full batch an epoch is a sync, a round of SVFL, an
        iteration of DCPA, or a hop of STCD.
    plateau : Plateau, mapping of its settings, or float, optional
        The end where f no longer improves. A number is the relative improvement that ten epochs
        must exceed.

    Examples
    --------
    >>> import mtcd
    >>> mtcd.Stop(gap=1e-6, iterations=1000).iterations
    1000
    """

    gap: float | None = None
    iterations: int | None = None
    seconds: float | None = None
    cost: float | None = None
    epochs: int | None = None
    plateau: Plateau | Mapping[str, Any] | float | None = None

    def __post_init__(self) -> None:
        # the class is frozen, but its settings may be given in several forms
        object.__setattr__(self, "plateau", _as_plateau(self.plateau))
        limits = attributes(self, ("gap", "plateau", *MEASURED))
        # whole numbers: half a hop is none
        for name in ("iterations", "epochs"):
            if limits[name] is not None:
                check_whole(f"stop.{name}", limits[name], least=0)
        for name in ("gap", "seconds", "cost"):
            if limits[name] is not None:
                check_number(f"stop.{name}", limits[name])
        # A training without a limit would never end.
        if all(value is None for value in limits.values()):
            raise ConfigError(
                "stop: give at least one of gap, iterations, epochs, seconds, cost, plateau."
            )
        if self.iterations is self.epochs is self.seconds is self.cost is None:
            object.__setattr__(self, "iterations", FOR_EVER)  # a gap may never be reached

    def at_most(self, iterations: int | None) -> Stop:
        """The same, and at the latest after so many iterations; None: no other limit."""
        if iterations is None:
            return self
        return replace(self, iterations=min(self.iterations or iterations, iterations))

    def epoch(self, method: Method, samples: int) -> int | None:
        """The iterations of an epoch; None with the full batch, unless a limit on epochs needs
        them."""
        without = method.batch is None and self.epochs is None and self.plateau is None
        if without:
            return None
        return method.timeline().epoch(samples)

    def check(self, method: Method, network: Network, costs: Costs) -> None:
        """Reject a limit on the cost that is never reached, if it is the only limit; with noise,
        limits on f."""
        # an end that depends on f tells something of the data that the budget does not count
        if method.conditions.noisy:
            for name, limit in (("gap", self.gap), ("plateau", self.plateau)):
                if limit is not None:
                    raise ConfigError(
                        f"stop.{name}: with privacy.dp the end of a training must not depend on "
                        "the data. It ends after privacy.dp.tours; stop.iterations may end it "
                        "earlier."
                    )

        # a hop is charged even if the token stays
        charged = method.kind == "stcd" and costs.account == "charged"
        silent = network.size == 1 and not method.has_server and not charged
        others = (self.iterations, self.epochs, self.seconds)
        if self.cost and silent and others == (None, None, None):
            raise ConfigError(
                f"stop.cost is never reached: {method.kind} with one client sends nothing. Use "
                "stop.iterations."
            )

    def rules(self) -> tuple[StopRule, ...]:
        """The limits of a training that is measured, in the order in which they are asked."""
        rules: list[StopRule] = []
        if self.gap is not None:
            rules.append(Gap(self.gap))
        for name, column in MEASURED.items():
            most = getattr(self, name)
            if most is not None:
                rules.append(Limit(name, column, most))
        return tuple(rules)

    def rules_in_iterations(
        self, epoch: int, per_sync: int, cost: float, opening_cost: float = 0.0
    ) -> tuple[Limit, ...]:
        """The limits of a party, which counts iterations and seconds only.

        Parameters
        ----------
        epoch : int
            The iterations of an epoch.
        per_sync : int
            The iterations from one sync to the next.
        cost : float
            The cost of these, as planned.
        opening_cost : float, default 0.0
            The cost of what is sent before the first of them.
        """
        limits = []
        if self.iterations is not None:
            limits.append(Limit("iterations", "iteration", self.iterations))
        if self.epochs is not None:
            limits.append(Limit("epochs", "iteration", self.epochs * epoch))
        # a party knows no costs of others: as many iterations as the money lasts for, as planned
        if self.cost is not None and cost > 0:
            # Whole syncs: a party cannot end between two of them.
            left = max(0.0, self.cost - opening_cost)
            limits.append(Limit("cost", "iteration", math.ceil(left / cost) * per_sync))
        if self.seconds is not None:
            limits.append(Limit("seconds", "seconds", self.seconds))
        return tuple(limits)

    def reached(self, now: Measurement) -> str | None:
        """The status by the limit that has been reached, or None."""
        moment = TrainingFacts(now.iteration, partial(getattr, now), Kept())
        for rule in self.rules():
            status = rule.reached(moment)
            if status is not None:
                return status
        return None

    def next_window(self, iteration: int, epoch: int | None) -> float:
        """The iteration that the plateau rule needs a measurement of."""
        if isinstance(self.plateau, Plateau) and epoch:
            return self.plateau.next(iteration, epoch)
        return math.inf

    def nearly(self, now: Measurement) -> bool:
        """Whether the requested gap is close."""
        return self.gap is not None and now.gap is not None and now.gap <= 1.05 * self.gap

    def fraction(self, now: Measurement, first_gap: float | None) -> float:
        """How far along the nearest limit is, for a progress bar: 0 to 1."""
        parts = [0.0]
        for name, column in MEASURED.items():
            limit, value = getattr(self, name), getattr(now, column)
            if limit and value:
                parts.append(value / limit)

        # On a log scale: most methods lower the gap by about the same factor in the same time.
        gap = now.gap
        if gap is not None and gap > 0 and self.gap and first_gap and first_gap > self.gap:
            parts.append(math.log(first_gap / gap) / math.log(first_gap / self.gap))
        return min(max(parts), 1.0)


def _as_plateau(given: Plateau | Mapping[str, Any] | float | None) -> Plateau | None:
    """The plateau rule from what users write for it."""
    if given is None or isinstance(given, Plateau):
        return given
    if not isinstance(given, Mapping):
        check_number("stop.plateau", given)
        return Plateau(min_improvement=float(given))

    known = [field.name for field in fields(Plateau)]
    for name in given:
        check_known(name, known, f"stop.plateau has no key {name!r};")
    return Plateau(**given)
