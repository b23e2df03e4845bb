"""Parties of a federation, each with its own part of some data, for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from federations import changed
from mtcd.data.vertical import VerticalData
from mtcd.federation.credentials.bundle_schema import BundleConfig, bundle_config
from mtcd.federation.file import check_keys
from mtcd.federation.participant.table import PartyTable
from mtcd.models.glm.model import Glm
from mtcd.models.glm.party.problem import OwnPart, own_part
from mtcd.network.topology import make_network


def bundles(clients: tuple[str, ...], **changes: Any) -> dict[str, BundleConfig]:
    """The bundles of all parties, and that of the server."""
    places: dict[str, Any] = {name: f"127.0.0.1:{7001 + k}" for k, name in enumerate(clients)}
    held_by, network_kind = (
        changes.pop("held_by", clients[0]),
        changes.pop("network_kind", "complete"),
    )
    file = changed(
        parties=places, network={"kind": network_kind}, labels__held_by=held_by, **changes
    )
    federation = check_keys(file, "the file")
    names = [*clients, "server"] if federation.server is not None else list(clients)
    network = make_network(network_kind, list(clients))
    return {
        name: bundle_config(federation, name, network, {other: other for other in names})
        for name in names
    }


def model_section(model: Glm) -> dict[str, Any]:
    """A model as a file names it."""
    section = {
        "kind": model.kind,
        "l1": model.l1,
        "l2": model.l2_weight,
        "intercept": model.intercept,
    }
    weights = {} if model.class_weight is None else {"class_weight": model.class_weight}
    return section | weights | ({"delta": model.delta} if model.kind == "huber" else {})


def own_parts(
    data: VerticalData, model: Glm, seed: int = 0, standardise: bool = False
) -> list[OwnPart]:
    """What each party makes of its own table, in which the samples come in an order of its own."""
    bundle_of = bundles(data.clients, model=model_section(model), standardise=standardise)
    rng, parts = np.random.default_rng(seed), []
    for k, name in enumerate(data.clients):
        shuffled = rng.permutation(data.samples)
        table = PartyTable(
            Path(f"{name}.csv"), None, data.columns[k], np.asarray(data.blocks[k])[shuffled]
        )
        parts.append(
            own_part(bundle_of[name], table, np.argsort(shuffled).tolist(), data.labels.copy())
        )
    return parts
