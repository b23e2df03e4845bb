"""mtcd inspect, for additive models: the parties' families, and the sizes of messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from mtcd.core.terminal.findings import as_plain
from mtcd.inspection.facts import (
    Inspection,
    Setting,
    cost_facts,
    cost_row,
    method_facts,
    network_facts,
    network_rows,
    theory_rows,
)
from mtcd.methods.mtcd.mtcd import MTCD
from mtcd.models.trees.families.family import Family
from mtcd.models.trees.gains import MOST, SHARE
from mtcd.models.trees.problem import AdditiveProblem
from mtcd.models.trees.training import additive_method, check_additive, compares_gains
from mtcd.training.kinds import Request

SHARED = ("loss", "delta", "quantile", "positive", "class_weight", "threads")
"""Settings that all families of a model have in common."""


def inspect_additive(asked: Request) -> Inspection:
    """The facts about an additive model; settings that ``train`` refuses are refused here, too."""
    data = asked.data
    model = asked.model
    network = asked.network
    stop = asked.stop
    assert stop is not None
    families = model.families(data.clients)
    check_additive(asked.method, families, stop)
    method = additive_method(asked.method, families)
    assert isinstance(method, MTCD)

    # The problem is made, not only described: whatever training refuses is refused here.
    problem = AdditiveProblem.of(model, data, asked.seed)
    own = method_facts(method, Setting(asked, problem.samples, problem.outputs))
    clients = {}
    for k, (name, columns) in enumerate(zip(data.clients, data.columns, strict=True)):
        clients[name] = {
            "columns": list(columns),
            "family": described(families[k]),
            "categories": [columns[j] for j in data.categorical[k]],
            "keeps_missing": data.keeps_missing[k],
        }

    facts = {
        "method": method.describe(),
        "loss": model.loss,
        "constant": problem.shift.tolist(),
        "samples": data.samples,
        "test_samples": 0 if data.test is None else data.test.samples,
        "features": data.features,
        "clients": clients,
        **network_facts(network),
        "tokens": own.tokens,
        "token_floats": own.token_floats,
        "trees_per_visit": method.local_updates,
        "compares_gains": compares_gains(families),
        **cost_facts(asked, own.tokens, own.sizes),
        "theory": as_plain(own.findings),
        "notes": [*data.notes, *method.notes(network)],
    }
    holdings = {name: holds(client) for name, client in clients.items()}
    return Inspection(facts, additive_rows(facts) | theory_rows(own.findings), holdings, network)


def described(family: Family) -> str:
    """A family and its settings in a few words."""
    names = [one.name for one in fields(family) if one.name not in SHARED]  # type: ignore[arg-type]
    settings = ", ".join(f"{name} {getattr(family, name)}" for name in names)
    return f"{family.kind} ({settings})"


def holds(client: Mapping[str, Any]) -> str:
    """The columns and the family of a client as text."""
    categories = f", {len(client['categories'])} of categories" if client["categories"] else ""
    return f"{len(client['columns'])} columns{categories}: {client['family']}"


def visit_row(found: Mapping[str, Any]) -> str:
    """What a visit does, as text."""
    Q = found["trees_per_visit"]
    visit = f"{Q} round(s) of boosting, or local updates of another family"
    if not found["compares_gains"]:
        return visit

    return (
        f"{visit}; none before all gains are known, or where the gain is below {SHARE:.0%} of the "
        f"largest of other parties, up to {Q * MOST} while it is the largest (adaptive)"
    )


def additive_rows(found: Mapping[str, Any]) -> dict[str, str]:
    """The facts as text, except the theory of the method."""
    samples = f"{found['samples']:,} samples, {found['test_samples']:,} for the test"
    return {
        "method": found["method"],
        "loss": f"{found['loss']}, from the constant {found['constant']}",
        "data": f"{samples}, {found['features']:,} columns",
        **network_rows(found),
        "token": f"{found['token_floats']:,} floats; {found['tokens']} token(s)",
        "visit": visit_row(found),
        **cost_row(found),
    }
