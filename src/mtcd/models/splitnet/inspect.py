"""mtcd inspect, for split networks: the clients' networks, and the sizes of messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mtcd.inspection.facts import Inspection, cost_facts, cost_row, network_facts, network_rows
from mtcd.methods.mtcd.mtcd import MTCD
from mtcd.models.splitnet.setup import split_parties, split_sizes
from mtcd.models.splitnet.training import FLOAT_BYTES, check_split, outside_guarantee
from mtcd.training.compute import Compute
from mtcd.training.kinds import Request


def inspect_split(asked: Request) -> Inspection:
    """The facts about a split network; settings that ``train`` refuses are refused here, too."""
    model = asked.model
    method = asked.method
    network = asked.network
    stop = asked.stop
    assert stop is not None
    check_split(method, stop)
    problem = model.problem(asked.data, asked.compute or Compute(), asked.seed)
    # Parties are made for their plan: what is shown here is what they would do.
    parties = split_parties(method, problem, network, asked.seed)
    plan = parties.clients[0].plan

    widths = problem.around.aggregation.widths
    fusion = problem.fusion.size
    clients = {}
    for client, net, width in zip(problem.clients, problem.nets, widths, strict=True):
        shape = list(problem.data.shapes[client])
        clients[client] = {"shape": shape, "parameters": net.size, "width": width}
    uplinks = [plan.batches.length * width for width in widths]
    downlink = plan.aggregate_floats + fusion
    if not parties.server:
        uplinks = [0] * len(widths)
        downlink = 0

    facts = {
        "method": method.describe(),
        "model": model.describe(),
        "device": str(problem.device),
        "samples": problem.samples,
        "test_samples": 0 if problem.data.test is None else problem.data.test.samples,
        "classes": None if problem.classes is None else list(problem.classes),
        "clients": clients,
        "fusion_parameters": fusion,
        **network_facts(network),
        "tokens": plan.tokens if isinstance(method, MTCD) else 0,
        "uplink_floats": uplinks,
        "downlink_floats": downlink,
        "hop_floats": plan.floats + fusion if plan.charges_hops else 0,
        "float_bytes": FLOAT_BYTES,
        "iterations_per_epoch": None if method.batch is None else plan.batches.per_epoch,
        "first_pass": max(0, len(plan.first_pass) - 1),
        **cost_facts(asked, plan.tokens, split_sizes(plan, widths, fusion)),
        "notes": [*problem.data.notes, *problem.notes, *outside_guarantee(method)],
    }
    holdings = {name: held_by(client) for name, client in clients.items()}
    return Inspection(facts, split_rows(facts), holdings, network)


def held_by(client: Mapping[str, Any]) -> str:
    """The sample shape and the network of a client as text."""
    shape = " x ".join(map(str, client["shape"]))
    return f"{shape} -> {client['width']} numbers, {client['parameters']:,} parameters"


def split_rows(found: Mapping[str, Any]) -> dict[str, str]:
    """All facts as text."""
    size = found["float_bytes"]

    def sized(floats: int) -> str:
        if not floats:
            return "none"
        return f"{floats:,} floats, {floats * size:,} bytes"

    samples = f"{found['samples']:,} samples, {found['test_samples']:,} for the test"
    classes = f", {len(found['classes'])} classes" if found["classes"] is not None else ""
    one_client = ", of one client" if any(found["uplink_floats"]) else ""
    tokens = f"; {found['tokens']} token(s)" if found["tokens"] else ""

    epoch = "none"
    if found["iterations_per_epoch"] is not None:
        epoch = f"{found['iterations_per_epoch']:,} iterations"

    return {
        "method": found["method"],
        "model": f"{found['model']}; {found['fusion_parameters']:,} fusion parameters",
        "device": found["device"],
        "data": f"{samples}{classes}",
        **network_rows(found),
        "uplink": sized(max(found["uplink_floats"])) + one_client,
        "downlink": sized(found["downlink_floats"]),
        "hop": sized(found["hop_floats"]) + tokens,
        "epoch": epoch,
        "first pass": f"{found['first_pass']} messages" if found["first_pass"] else "none",
        **cost_row(found),
    }
