"""mtcd inspect, for split networks: the clients' networks, and the sizes of messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, get_args

from mtcd.config.build import Setup
from mtcd.core.errors import ConfigError
from mtcd.methods.mtcd.mtcd import MTCD
from mtcd.models.splitnet.setup import split_parties, split_sizes
from mtcd.network.spectrum import facts
from mtcd.protocol.ledger.costs import Per, Sizes


def examine_split(setup: Setup) -> dict[str, Any]:
    """The facts, as plain values; settings that ``mtcd train`` refuses are refused here too."""
    from mtcd.models.splitnet.model import SplitModel
    from mtcd.models.splitnet.training import FLOAT_BYTES, check_split, outside_guarantee
    from mtcd.training.compute import Compute

    model, method, config = setup.model, setup.method, setup.config
    if not isinstance(model, SplitModel):
        raise ConfigError("The model is not a split network.")
    check_split(method, setup.stop)
    problem = model.problem(setup.samples, setup.compute or Compute(), config.seed)
    parties = split_parties(method, problem, setup.network, config.seed)
    plan, theta_0 = parties.clients[0].plan, problem.fusion.size
    widths = problem.around.aggregation.widths
    hop = plan.floats + theta_0
    return {
        "method": method.describe(),
        "model": model.describe(),
        "device": str(problem.device),
        "samples": problem.samples,
        "test_samples": 0 if problem.data.test is None else problem.data.test.samples,
        "classes": None if problem.classes is None else list(problem.classes),
        "clients": {
            client: {
                "shape": list(problem.data.shapes[client]),
                "parameters": net.size,
                "width": width,
            }
            for client, net, width in zip(problem.clients, problem.nets, widths, strict=True)
        },
        "fusion_parameters": theta_0,
        "network": asdict(facts(setup.network)),
        "tokens": plan.tokens if isinstance(method, MTCD) else 0,
        "uplink_floats": [plan.batches.length * width if parties.server else 0 for width in widths],
        "downlink_floats": plan.aggregate_floats + theta_0 if parties.server else 0,
        "hop_floats": hop if plan.charges_hops else 0,
        "float_bytes": FLOAT_BYTES,
        "iterations_per_epoch": None if method.batch is None else plan.batches.per_epoch,
        "first_pass": max(0, len(plan.first_pass) - 1),
        **iteration_costs(setup, plan.tokens, split_sizes(plan, widths, theta_0)),
        "notes": [*setup.notes, *problem.data.notes, *problem.notes, *outside_guarantee(method)],
    }


def iteration_costs(setup: Setup, tokens: int, sizes: Sizes) -> dict[str, Any]:
    """The cost of an iteration at the prices of the config, and per message and per float."""
    method, network, costs = setup.method, setup.network, setup.costs
    each = {
        per: method.iteration_cost(network, tokens, costs.by(per), sizes) for per in get_args(Per)
    }
    return {"cost_per_iteration": each[costs.per], "iteration_cost_per": each}


def cost_row(found: Mapping[str, Any]) -> str:
    """The cost of an iteration as text."""
    each = found["iteration_cost_per"]
    return (
        f"{each['message']:.6g} per message, {each['float']:.6g} per float, as the paper charges it"
    )


def held_by(client: Mapping[str, Any]) -> str:
    """The sample shape and the network of a client as text."""
    shape = " x ".join(map(str, client["shape"]))
    return f"{shape} -> {client['width']} numbers, {client['parameters']:,} parameters"


def network_rows(found: Mapping[str, Any]) -> dict[str, str]:
    """The properties of the network as text."""
    net = found["network"]
    diameter = "none" if net["diameter"] is None else f"{net['diameter']}"
    return {
        "network": f"{net['clients']} clients, {net['edges']:,} links, "
        + ("connected" if net["connected"] else f"NOT connected: {net['components']} pieces"),
        "changes": "; ".join(found.get("changes", ())) or "none",
        "degrees": f"{net['degree_min']} to {net['degree_max']}, {net['degree_mean']:.3g} on average",
        "diameter": diameter
        if net["diameter_exact"] or net["diameter"] is None
        else f"at least {diameter}",
        "algebraic connectivity": f"{net['algebraic_connectivity']:.4g}",
    }


def split_rows(found: Mapping[str, Any]) -> dict[str, str]:
    """All facts as text."""
    size = found["float_bytes"]
    classes = found["classes"]

    def sized(floats: int) -> str:
        return f"{floats:,} floats, {floats * size:,} bytes" if floats else "none"

    return {
        "method": found["method"],
        "model": f"{found['model']}; {found['fusion_parameters']:,} fusion parameters",
        "device": found["device"],
        "data": f"{found['samples']:,} samples, {found['test_samples']:,} for the test"
        + ("" if classes is None else f", {len(classes)} classes"),
        **network_rows(found),
        "uplink": sized(max(found["uplink_floats"]))
        + (", of one client" if any(found["uplink_floats"]) else ""),
        "downlink": sized(found["downlink_floats"]),
        "hop": sized(found["hop_floats"])
        + (f"; {found['tokens']} token(s)" if found["tokens"] else ""),
        "epoch": "none"
        if found["iterations_per_epoch"] is None
        else f"{found['iterations_per_epoch']:,} iterations",
        "first pass": f"{found['first_pass']} messages" if found["first_pass"] else "none",
        "cost of an iteration": cost_row(found),
    }
