"""What differential privacy will cost: the noise of each party, the releases and the spending,
before training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mtcd.config.build import Setup
from mtcd.core.terminal.table import ScreenTable
from mtcd.inspection.facts import MethodFacts, Setting
from mtcd.privacy.sealed.dp.account import entry_of, holders
from mtcd.privacy.sealed.dp.budget import plan_budget
from mtcd.privacy.sealed.dp.settings import PrivateTours, by_party
from mtcd.privacy.sealed.dp.spending import TableBudget, composed
from mtcd.privacy.sealed.inspect import inspect_sealed
from mtcd.training.kinds import Request, resolved


def inspect_private(method: PrivateTours, setting: Setting) -> MethodFacts:
    """What a private training says of itself: see ``mtcd.inspection.facts``."""
    facts = privacy_facts(setting.asked)
    return replace(
        inspect_sealed(method, setting),
        facts={"privacy": facts},
        rows={"differential privacy": privacy_row(facts)},
    )


def privacy_facts(asked: Request) -> dict[str, Any]:
    """The facts, as plain values."""
    method, names = asked.method, asked.network.clients
    budget, limit = method.budget(asked.network), asked.stop and asked.stop.iterations
    tours = method.dp.tours
    # A training that stops earlier spends less.
    if limit is not None:
        tours = min(limit, tours)
    return {
        "tours": method.dp.tours,
        "releases": method.dp.tours * len(names),
        "delta": budget.delta,
        "epsilon": dict(zip(names, budget.epsilons, strict=True)),
        "noise_multiplier": dict(zip(names, budget.multipliers, strict=True)),
        "tours_until_stop": tours,
        "expected_spending": dict(zip(names, budget.spent(tours), strict=True)),
        "insecure_seeded_noise": method.dp.insecure_seeded_noise,
        "tables": _tables(asked, tours),
    }


def _tables(asked: Request, tours: int) -> dict[str, Any]:
    """What each table has spent before, and what it will have spent with this training."""
    delta, found = asked.method.dp.delta, {}
    for path, clients in holders(getattr(asked.data, "tables", ())).items():
        budget = TableBudget(path)
        entry = entry_of(asked.method, asked.network, clients, path, tours)
        # Trainings with seeded noise protect nobody, and do not count.
        before = [one for one in budget.entries() if not one.seeded]
        counted = [*before]
        if not entry.seeded:
            counted.append(entry)
        found[str(path)] = {
            "file": str(budget.path),
            "trainings": len(before),
            "spent": composed(before, delta),
            "spent_with_this": composed(counted, delta),
        }
    return found


def privacy_row(found: dict[str, Any]) -> str:
    """The facts as text."""
    multipliers, spent = found["noise_multiplier"], found["expected_spending"]
    noise = by_party(tuple(multipliers.values()), tuple(multipliers), "{:.3g}")
    spending = by_party(tuple(spent.values()), tuple(spent), "{:.3g}")
    return (
        f"{found['tours']} tours, {found['releases']} releases; noise in clipping lengths: "
        f"{noise}; spends epsilon {spending} at delta {found['delta']:g} in "
        f"{found['tours_until_stop']} tours{_before(found)}"
    )


def _before(found: dict[str, Any]) -> str:
    """What the tables have spent, as the end of a sentence."""
    if found["insecure_seeded_noise"]:
        return "; insecure_seeded_noise: it protects nobody"
    if not found["tables"]:
        return (
            ", on top of what earlier trainings on the same rows have spent, which nothing counts "
            "without a table"
        )
    parts = []
    for name, one in found["tables"].items():
        before = f"{one['spent']:.3g} before ({one['trainings']})"
        parts.append(f"{Path(name).name}: {before}, {one['spent_with_this']:.3g} with this one")
    return "; spent by trainings (how many) on " + ", ".join(parts)


def plan_private(asked: Request) -> dict[str, Any]:
    """What the training costs, and the noise with other numbers of tours; there are no other
    methods to choose from."""
    data, method, network = asked.data, asked.method, asked.network
    method.check(network, asked.model.problem(data))

    found = privacy_facts(asked)
    sizes = method.messages(network, asked.seed, data.samples, 1).sizes
    cost = method.prices(network, 1).iteration(asked.costs, sizes)

    noise_by_tours = {}
    for tours in sorted({5, 10, 20, 40, 80, 160, method.dp.tours}):
        budget = plan_budget(replace(method.dp, tours=tours), network.clients)
        noise_by_tours[str(tours)] = dict(zip(network.clients, budget.multipliers, strict=True))

    return {
        **found,
        "cost_per_tour": cost,
        "cost": cost * found["tours_until_stop"],
        "noise_by_tours": noise_by_tours,
        "notes": [*data.notes, *method.notes(network)],
    }


@dataclass(frozen=True)
class PrivateCost:
    """What a private training costs, as ``mtcd plan`` shows it.

    With noise there is no gap to reach, and no other method keeps the promise: the config is used
    as it is.
    """

    facts: dict[str, Any]
    """See :func:`plan_private`."""

    @property
    def notes(self) -> Sequence[str]:
        """Notes for the user."""
        notes: Sequence[str] = self.facts["notes"]
        return notes

    def said(self) -> str:
        """The noise, the spending and the cost."""
        return f"{privacy_row(self.facts)}; cost {self.facts['cost']:.4g}."

    def table(self) -> ScreenTable:
        """The noise by the number of tours."""
        return tours_table(self.facts)

    def summary(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return self.facts

    def yaml(self) -> None:
        """None: the config is used as it is."""
        return


class PrivatePlans:
    """The plans of private tours in ``mtcd plan``."""

    refused: Mapping[str, str] = dict.fromkeys(
        ("links", "target", "machines", "out"),
        "is not for privacy.dp: noise and cost follow from its settings. Leave it out.",
    )

    def plan(self, setup: Setup, budget: float, ratio: float | None, watch: object) -> PrivateCost:
        """What the training of a config costs; nothing is trained."""
        # Only a price was asked for: nothing is trained, as each pilot would spend budget.
        if ratio is not None:
            setup = replace(setup, costs=replace(setup.costs, ratio=ratio))

        asked = resolved(Request(**setup.arguments()))[0]
        facts = plan_private(asked)
        return PrivateCost({**facts, "notes": [*setup.notes, *facts["notes"]]})


PLANS = PrivatePlans()


def tours_table(found: dict[str, Any]) -> ScreenTable:
    """The noise by the number of tours."""
    rows = []
    for tours, noise in found["noise_by_tours"].items():
        text = by_party(tuple(noise.values()), tuple(noise), "{:.3g}")
        yours = ""
        if int(tours) == found["tours"]:
            yours = " (yours)"
        rows.append([tours + yours, text, f"{int(tours) * found['cost_per_tour']:.4g}"])
    titles = ["tours", "noise, in clipping lengths", "cost"]
    return ScreenTable(titles, rows, words=titles[:2])
