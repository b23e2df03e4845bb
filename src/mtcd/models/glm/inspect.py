"""mtcd inspect, for linear models: smoothness and step sizes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mtcd.core.errors import listing
from mtcd.core.terminal.findings import as_plain
from mtcd.data.standardise import standardise
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
from mtcd.methods.method import Method
from mtcd.models.glm.block_smoothness import BlockSmoothness
from mtcd.theory.stepsize import Smoothness, stability_limit
from mtcd.training.kinds import Request


def inspect_linear(asked: Request) -> Inspection:
    """The facts about a linear model; settings that ``train`` refuses are refused here, too."""
    data, method, network = asked.data, asked.method, asked.network
    if asked.standardise:
        data = standardise(data)[0]

    problem = asked.model.problem(data)
    method.check(network, problem)
    # refuses numbers of columns that a method cannot have
    method.conditions.most_iterations(problem)

    smoothness = BlockSmoothness(problem)
    setting = Setting(asked, problem.samples, problem.outputs, smoothness)
    own = method_facts(method, setting)
    columns = dict(zip(data.clients, data.columns, strict=True))

    facts = {
        "method": method.describe(),
        "samples": data.samples,
        "features": data.features,
        "clients": {name: list(own_columns) for name, own_columns in columns.items()},
        **network_facts(network),
        "tokens": own.tokens,
        "token_floats": own.token_floats,
        "smoothness": {
            "overall": smoothness.overall,
            "largest_block": float(smoothness.blocks.max()),
            "blocks": smoothness.blocks.tolist(),
        },
        **stepsize_facts(method, smoothness),
        **cost_facts(asked, own.tokens, own.sizes),
        "privacy": None,
        **own.facts,
        "theory": as_plain(own.findings),
        "notes": [*data.notes, *method.notes(network)],
    }
    holdings = {name: f"{len(own)}: {listing(own, 4)}" for name, own in columns.items()}
    rows = {**linear_rows(facts), **own.rows, **theory_rows(own.findings)}
    return Inspection(facts, rows, holdings, network)


def stepsize_facts(method: Method, smoothness: Smoothness) -> dict[str, Any]:
    """The step size and its limits; None for a method without a step size."""
    if method.stepsize is None:
        return {"stepsize": None, "steps": method.steps}

    rules = method.stepsize_rules(smoothness)
    limit, auto = rules.limit, rules.auto
    chosen = auto.value if isinstance(method.stepsize, str) else method.stepsize
    return {
        "stepsize": chosen,
        "stepsize_limit": limit.value,
        "stepsize_limit_rule": limit.reason,
        "stepsize_auto": auto.value,
        "stepsize_auto_rule": auto.reason,
        "stepsize_stability": stability_limit(smoothness),
    }


def linear_rows(found: Mapping[str, Any]) -> dict[str, str]:
    """The facts as text, without those of the method."""
    smooth = found["smoothness"]
    tokens = f"; {found['tokens']} token(s)" if found["tokens"] else ""
    return {
        "method": found["method"],
        "data": f"{found['samples']:,} samples, {found['features']:,} columns",
        **network_rows(found),
        "token": f"{found['token_floats']:,} floats{tokens}",
        "smoothness": f"L = {smooth['overall']:.4g}, largest block {smooth['largest_block']:.4g}",
        **_stepsize_rows(found),
        **cost_row(found),
    }


def _stepsize_rows(found: Mapping[str, Any]) -> dict[str, str]:
    if found["stepsize"] is None:
        return {"step size": f"none: {found['steps']}"}

    return {
        "step size": f"{found['stepsize']:.4g}",
        "step size, auto": f"{found['stepsize_auto']:.4g}, which is {found['stepsize_auto_rule']}",
        "step-size limit": f"{found['stepsize_limit']:.4g}, which is {found['stepsize_limit_rule']}",
    }
