"""mtcd inspect, for additive models: the parties' families, and the sizes of messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from mtcd.cli.theory import theory_of
from mtcd.config.build import Setup
from mtcd.core.errors import ConfigError
from mtcd.core.terminal.findings import as_plain
from mtcd.data.vertical import VerticalData
from mtcd.methods.mtcd.mtcd import MTCD
from mtcd.models.splitnet.inspect import cost_row, iteration_costs, network_rows
from mtcd.models.trees.choice import MOST, SHARE
from mtcd.models.trees.families.family import Family
from mtcd.models.trees.model import Additive
from mtcd.models.trees.problem import AdditiveProblem
from mtcd.models.trees.training import additive_method, check_additive
from mtcd.network.changes import describe_changes
from mtcd.network.spectrum import facts


def examine_additive(setup: Setup) -> dict[str, Any]:
    """The facts, as plain values; settings that ``mtcd train`` refuses are refused here too."""
    data, model, seed = setup.data, setup.model, setup.config.seed
    if not isinstance(data, VerticalData) or not isinstance(model, Additive):
        raise ConfigError("The model is not an additive one.")
    families = model.families(data.clients)
    check_additive(setup.method, families, setup.stop)
    method = additive_method(setup.method, families)
    assert isinstance(method, MTCD)
    problem = AdditiveProblem.of(model, data, seed)
    plan = method.plan(problem.samples, problem.outputs, setup.network, seed)
    held = zip(
        data.clients, data.columns, families, data.categorical, data.keeps_missing, strict=True
    )
    return {
        "method": method.describe(),
        "loss": model.loss,
        "constant": problem.shift.tolist(),
        "samples": data.samples,
        "test_samples": 0 if data.test is None else data.test.samples,
        "features": data.features,
        "clients": {
            name: {
                "columns": list(columns),
                "family": described(family),
                "categories": [columns[j] for j in categorical],
                "keeps_missing": missing,
            }
            for name, columns, family, categorical, missing in held
        },
        "network": asdict(facts(setup.network)),
        "changes": describe_changes(setup.network),
        "tokens": plan.tokens,
        "token_floats": plan.floats,
        "trees_per_visit": plan.local_updates,
        "compares_gains": bool(plan.features),
        **iteration_costs(setup, plan.tokens, plan.sizes),
        "theory": as_plain(theory_of(setup, method, plan)),
        "notes": [*setup.notes, *data.notes, *method.notes(setup.network)],
    }


def described(family: Family) -> str:
    """A family and its settings in a few words."""
    own = {one.name: getattr(family, one.name) for one in fields(family)}  # type: ignore[arg-type]
    shared = ("loss", "delta", "quantile", "positive", "class_weight", "threads")
    return f"{family.kind} ({', '.join(f'{name} {value}' for name, value in own.items() if name not in shared)})"


def holds(client: Mapping[str, Any]) -> str:
    """The columns and the family of a client as text."""
    categories = f", {len(client['categories'])} of categories" if client["categories"] else ""
    return f"{len(client['columns'])} columns{categories}: {client['family']}"


def visit_row(found: Mapping[str, Any]) -> str:
    """What a visit does, as text."""
    Q, other = found["trees_per_visit"], "or local updates of another family"
    if not found["compares_gains"]:
        return f"{Q} round(s) of boosting, {other}"
    return (
        f"{Q} round(s) of boosting, {other}; none before all gains are known, or where the gain is "
        f"below {SHARE:.0%} "
        f"of the largest of other parties, up to {Q * MOST} while it is the largest (adaptive)"
    )


def additive_rows(found: Mapping[str, Any]) -> dict[str, str]:
    """All facts as text."""
    rows = {
        "method": found["method"],
        "loss": f"{found['loss']}, from the constant {found['constant']}",
        "data": f"{found['samples']:,} samples, {found['test_samples']:,} for the test, {found['features']:,} columns",
        **network_rows(found),
        "token": f"{found['token_floats']:,} floats; {found['tokens']} token(s)",
        "visit": visit_row(found),
        "cost of an iteration": cost_row(found),
    }
    return rows | {
        fact["title"]: f"{fact['shown']}: {fact['meaning']}" for fact in found["theory"].values()
    }
