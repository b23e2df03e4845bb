"""mtcd inspect."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.table import Table

from mtcd.cli.theory import guarantee, lone_guarantee, theory_of, tree_finding
from mtcd.config.build import Setup, build
from mtcd.config.read import read_config, refuse_code
from mtcd.config.schema import AdditiveSection, SplitSection
from mtcd.core.errors import listing
from mtcd.core.terminal.findings import Finding, as_plain
from mtcd.core.terminal.screen import screen, show_notes
from mtcd.core.terminal.table import ScreenTable
from mtcd.core.terminal.text import escape
from mtcd.data.standardise import standardise
from mtcd.methods.method import Method, resolve_stepsize
from mtcd.methods.mtcd.mtcd import MTCD
from mtcd.methods.tree_cg.tree_cg import TreeCG
from mtcd.models.glm.block_smoothness import BlockSmoothness
from mtcd.models.splitnet.inspect import (
    cost_row,
    examine_split,
    held_by,
    iteration_costs,
    network_rows,
    split_rows,
)
from mtcd.models.trees.inspect import additive_rows, examine_additive, holds
from mtcd.network.changes import describe_changes
from mtcd.network.spectrum import facts
from mtcd.network.topology import Network
from mtcd.privacy.sealed.dp.cost import privacy_facts, privacy_row
from mtcd.privacy.sealed.settings import SealedTours
from mtcd.theory.stepsize import Smoothness, stability_limit


def inspect_config(
    path: Path, changes: list[str], seed: int | None, as_json: bool, run_code: bool = False
) -> None:
    """Show what a config would train. Custom networks are built, which runs their code, only with
    ``run_code``."""
    config = read_config(path, changes, seed)
    if not run_code:
        refuse_code(config, f"inspect it with its code: mtcd inspect {path} --run-code")
    setup = build(config)
    model = setup.config.model
    looked: tuple[Callable[[Setup], dict[str, Any]], Callable[[dict[str, Any]], dict[str, str]]] = (
        examine,
        _linear_rows,
    )
    if isinstance(model, SplitSection):
        looked = examine_split, split_rows
    elif isinstance(model, AdditiveSection):
        looked = examine_additive, additive_rows
    found = looked[0](setup)
    if as_json:
        print(json.dumps(found, allow_nan=False))  # noqa: T201
        return
    show_notes(found["notes"])
    screen.print(_clients_table(setup.network, found["clients"]))
    screen.print(_facts_table(looked[1](found)))


def examine(setup: Setup) -> dict[str, Any]:
    """The facts, as plain values; settings that ``mtcd train`` refuses are refused here too."""
    data, model = setup.linear()
    data = standardise(data)[0] if setup.config.data.standardise else data
    problem = model.problem(data)
    smoothness = BlockSmoothness(problem)
    method, seed = setup.method, setup.config.seed
    method.check_network(setup.network)
    method.check_problem(problem)
    method.most_iterations(problem)  # refuses numbers of columns that a method cannot have
    setup.stop.check(method, setup.network, setup.costs)
    theory: list[Finding] = []
    sizes = method.sizes(problem.samples, problem.outputs, setup.network, seed)
    tokens, floats = 0, int(sizes.hop if isinstance(method, SealedTours) else sizes.downlink)
    if isinstance(method, MTCD):  # plan() raises on invalid settings
        plan = method.with_stepsize(1.0).plan(problem.samples, problem.outputs, setup.network, seed)
        tokens, floats = plan.tokens, plan.floats
        theory = theory_of(setup, method, plan)
        chosen = resolve_stepsize(method, smoothness)[0].resolved_stepsize()
        theory += guarantee(theory, method, smoothness, chosen)
        theory += lone_guarantee(
            theory, method, smoothness, chosen, changes=bool(setup.network.changes)
        )
    if isinstance(method, TreeCG):
        theory.append(tree_finding(setup.network))
    return {
        "method": method.describe(),
        "samples": data.samples,
        "features": data.features,
        "clients": {
            name: list(columns) for name, columns in zip(data.clients, data.columns, strict=True)
        },
        "network": asdict(facts(setup.network)),
        "changes": describe_changes(setup.network),
        "tokens": tokens,
        "token_floats": floats,
        "smoothness": {
            "overall": smoothness.overall,
            "largest_block": float(smoothness.blocks.max()),
            "blocks": smoothness.blocks.tolist(),
        },
        **_stepsizes(method, smoothness),
        **iteration_costs(setup, tokens, sizes),
        "privacy": privacy_facts(setup),
        "theory": as_plain(theory),
        "notes": [*setup.notes, *data.notes, *method.notes(setup.network)],
    }


def _stepsizes(method: Method, smoothness: Smoothness) -> dict[str, Any]:
    """The step size and its limits; None for a method without a step size."""
    if method.stepsize is None:
        return {"stepsize": None, "steps": method.steps}
    limit, auto = method.stepsize_limit(smoothness), method.auto_stepsize(smoothness)
    return {
        "stepsize": auto.value if isinstance(method.stepsize, str) else method.stepsize,
        "stepsize_limit": limit.value,
        "stepsize_limit_rule": limit.reason,
        "stepsize_auto": auto.value,
        "stepsize_auto_rule": auto.reason,
        "stepsize_stability": stability_limit(smoothness),
    }


def _clients_table(network: Network, clients: Mapping[str, Any]) -> ScreenTable:
    rows, limit = [], 20
    for k, (name, held) in enumerate(clients.items()):
        if k == limit:
            rows.append([f"and {network.size - limit} more", "", ""])
            break
        near = listing([network.clients[j] for j in network.neighbours[k]], 3)
        rows.append([name, _holding(held), near or "none"])
    titles = ["client", "holds", "neighbours"]
    return ScreenTable(titles, rows, words=titles)


def _holding(held: Any) -> str:
    """What a client holds, as text."""
    if not isinstance(held, dict):
        return f"{len(held)}: {listing(held, 4)}"
    return holds(held) if "family" in held else held_by(held)


def _linear_rows(found: dict[str, Any]) -> dict[str, str]:
    smooth = found["smoothness"]
    rows = {
        "method": found["method"],
        "data": f"{found['samples']:,} samples, {found['features']:,} columns",
        **network_rows(found),
        "token": f"{found['token_floats']:,} floats"
        + (f"; {found['tokens']} token(s)" if found["tokens"] else ""),
        "smoothness": f"L = {smooth['overall']:.4g}, largest block {smooth['largest_block']:.4g}",
        **_stepsize_rows(found),
        "cost of an iteration": cost_row(found),
    }
    if found["privacy"] is not None:
        rows["differential privacy"] = privacy_row(found["privacy"])
    return rows | {
        fact["title"]: f"{fact['shown']}: {fact['meaning']}" for fact in found["theory"].values()
    }


def _stepsize_rows(found: dict[str, Any]) -> dict[str, str]:
    if found["stepsize"] is None:
        return {"step size": f"none: {found['steps']}"}
    return {
        "step size": f"{found['stepsize']:.4g}",
        "step size, auto": f"{found['stepsize_auto']:.4g}, which is {found['stepsize_auto_rule']}",
        "step-size "
        "limit": f"{found['stepsize_limit']:.4g}, which is {found['stepsize_limit_rule']}",
    }


def _facts_table(rows: Mapping[str, str]) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows.items():
        table.add_row(name, escape(value))
    return table
