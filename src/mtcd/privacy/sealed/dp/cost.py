"""What differential privacy will cost: the noise of each party, the releases and the spending,
before training."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from mtcd.config.build import Setup
from mtcd.core.terminal.table import ScreenTable
from mtcd.privacy.sealed.dp.account import entry_of, holders
from mtcd.privacy.sealed.dp.budget import plan_budget
from mtcd.privacy.sealed.dp.settings import PrivateTours, by_party
from mtcd.privacy.sealed.dp.spending import TableBudget, composed


def privacy_facts(setup: Setup) -> dict[str, Any] | None:
    """The facts, as plain values; None without differential privacy."""
    method, names = setup.method, setup.network.clients
    if not isinstance(method, PrivateTours):
        return None
    budget, limit = method.budget(setup.network), setup.stop.iterations
    tours = method.dp.tours if limit is None else min(limit, method.dp.tours)
    return {
        "tours": method.dp.tours,
        "releases": method.dp.tours * len(names),
        "delta": budget.delta,
        "epsilon": dict(zip(names, budget.epsilons, strict=True)),
        "noise_multiplier": dict(zip(names, budget.multipliers, strict=True)),
        "tours_until_stop": tours,
        "expected_spending": dict(zip(names, budget.spent(tours), strict=True)),
        "insecure_seeded_noise": method.dp.insecure_seeded_noise,
        "tables": _tables(setup, method, tours),
    }


def _tables(setup: Setup, method: PrivateTours, tours: int) -> dict[str, Any]:
    """What each table has spent before, and what it will have spent with this training."""
    delta, found = method.dp.delta, {}
    for path, clients in holders(getattr(setup.data, "tables", ())).items():
        budget, entry = TableBudget(path), entry_of(method, setup.network, clients, path, tours)
        before = [one for one in budget.entries() if not one.seeded]
        counted = before if entry.seeded else [*before, entry]
        found[str(path)] = {
            "file": str(budget.path),
            "trainings": len(before),
            "spent": composed(before, delta),
            "spent_with_this": composed(counted, delta),
        }
    return found


def privacy_row(found: dict[str, Any]) -> str:
    """The facts as text."""
    noise, spending = (
        by_party(tuple(found[name].values()), tuple(found[name]), form)
        for name, form in (("noise_multiplier", "{:.3g}"), ("expected_spending", "{:.3g}"))
    )
    return (
        f"{found['tours']} tours, {found['releases']} releases; noise in clipping lengths: "
        f"{noise}; spends epsilon "
        f"{spending} at delta {found['delta']:g} in {found['tours_until_stop']} "
        f"tours{_before(found)}"
    )


def _before(found: dict[str, Any]) -> str:
    """What the tables have spent, as the end of a sentence."""
    if found["insecure_seeded_noise"]:
        return "; insecure_seeded_noise: it protects nobody"
    if not found["tables"]:
        return ", on top of what earlier trainings on the same rows have spent, which nothing counts without a table"
    parts = [
        f"{Path(name).name}: {one['spent']:.3g} before ({one['trainings']}), "
        f"{one['spent_with_this']:.3g} with this one"
        for name, one in found["tables"].items()
    ]
    return "; spent by trainings (how many) on " + ", ".join(parts)


def plan_private(setup: Setup) -> dict[str, Any]:
    """What the training costs, and the noise with other numbers of tours; there are no other
    methods to choose from."""
    method, network = setup.method, setup.network
    assert isinstance(method, PrivateTours)
    method.check_network(network)
    data, model = setup.linear()
    method.check_problem(model.problem(data))
    found = privacy_facts(setup)
    assert found is not None
    sizes = method.sizes(data.samples, 1, network, setup.config.seed)
    cost = method.iteration_cost(network, 1, setup.costs, sizes)
    tried = sorted({5, 10, 20, 40, 80, 160, method.dp.tours})
    noise = {
        tours: plan_budget(replace(method.dp, tours=tours), network.clients).multipliers
        for tours in tried
    }
    others = {
        str(tours): dict(zip(network.clients, one, strict=True)) for tours, one in noise.items()
    }
    notes = [*setup.notes, *data.notes, *method.notes(network)]
    more = {
        "cost_per_tour": cost,
        "cost": cost * found["tours_until_stop"],
        "noise_by_tours": others,
    }
    return found | more | {"notes": notes}


def tours_table(found: dict[str, Any]) -> ScreenTable:
    """The noise by the number of tours."""
    rows = []
    for tours, noise in found["noise_by_tours"].items():
        text = by_party(tuple(noise.values()), tuple(noise), "{:.3g}")
        yours = " (yours)" if int(tours) == found["tours"] else ""
        rows.append([tours + yours, text, f"{int(tours) * found['cost_per_tour']:.4g}"])
    titles = ["tours", "noise, in clipping lengths", "cost"]
    return ScreenTable(titles, rows, words=titles[:2])
