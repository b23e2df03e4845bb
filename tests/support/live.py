"""Whole federations in this process, for tests: every party a node of its own in a thread, over
real links."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from federations import written
from mtcd.data.vertical import VerticalData
from mtcd.federation.administrator import init_federation
from mtcd.federation.credentials.bundle import Bundle, read_bundle
from mtcd.federation.node.node import Node
from mtcd.federation.participant.keeping import Summary, read_summary
from mtcd.federation.participant.kinds import participant_of, party_kind
from mtcd.federation.participant.node_table import settings_of
from mtcd.federation.participant.table import PartyTable
from mtcd.models.glm.party.block import PartyBlock
from mtcd.models.glm.party.own_block import NPZ
from mtcd.models.glm.party.problem import glm_of
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.testing.federation_engine import FederationEngine
from mtcd.training.run import Run
from mtcd.training.train import train
from ports import reserved_ports
from waiting import PATIENCE


@dataclass
class Federated:
    """What a federation left behind."""

    bundles: dict[str, Bundle]
    summaries: dict[str, Summary]
    blocks: dict[str, PartyBlock]

    @property
    def ledger(self) -> Ledger:
        """What all have sent."""
        return Ledger.total([summary.ledger for summary in self.summaries.values()])


def make_bundles(folder: Path, clients: tuple[str, ...], **changes: Any) -> dict[str, Bundle]:
    """Bundles on free ports; the first client holds the labels."""
    folder.mkdir(parents=True, exist_ok=True)
    ports = reserved_ports(len(clients) + 1)
    places = {
        name: {"address": f"127.0.0.1:{port}"} for name, port in zip(clients, ports, strict=False)
    }
    settings = {
        "server": f"127.0.0.1:{ports[-1]}",
        "labels__held_by": clients[0],
        "alignment": "given order",
        "network": {"kind": "complete"},
        "limits": {"lease_ms": 30_000},  # on a busy machine nobody is to be taken for dead
        **changes,
    }
    file = written(folder, parties=places, **settings)
    init_federation(file, folder / "bundles", 90)
    server = ["server"] if settings["server"] is not None else []
    return {name: read_bundle(folder / "bundles" / name) for name in [*clients, *server]}


def own_table_of(data: VerticalData, bundle: Bundle) -> PartyTable | None:
    """A party's own part of the data; the server has none."""
    if bundle.config.is_server:
        return None
    k = data.clients.index(bundle.config.name)
    ids = (
        None
        if bundle.config.alignment == "given order"
        else tuple(f"id{i}" for i in range(data.samples))
    )
    labels, weights = (
        (data.labels, data.weights)
        if bundle.config.name == bundle.config.labels.held_by
        else (None, None)
    )
    path, block = Path(f"{data.clients[k]}.csv"), np.asarray(data.blocks[k])
    return PartyTable(path, ids, data.columns[k], block, labels, weights=weights)


def nodes_of(
    folder: Path,
    bundles: dict[str, Bundle],
    data: VerticalData,
    killed: str = "",
    kind: type[Node] = Node,
) -> dict[str, Node]:
    """A node for each bundle, with its own part of the data; of this kind, if it is killed."""
    return {
        name: (kind if name == killed else Node)(
            bundle,
            folder / "runs" / name,
            participant_of(bundle, own_table_of(data, bundle)),
            None,
        )
        for name, bundle in bundles.items()
    }


def run_all(nodes: dict[str, Node]) -> dict[str, str]:
    """Run everybody at the same time."""
    with ThreadPoolExecutor(len(nodes)) as pool:
        futures = {name: pool.submit(node.run) for name, node in nodes.items()}
        wait(futures.values(), PATIENCE)
        stuck = [name for name, future in futures.items() if not future.done()]
        for node in nodes.values():
            node.loop.stop()
        assert not stuck, stuck
        return {name: future.result() for name, future in futures.items()}


def engine_of(folder: Path, data: VerticalData, **changes: Any) -> FederationEngine:
    """All parties of a linear model as nodes of this process."""
    bundles = make_bundles(folder, data.clients, **changes)
    return FederationEngine(
        bundles, folder / "runs", lambda bundle: participant_of(bundle, own_table_of(data, bundle))
    )


def _kept(engine: FederationEngine, name: str) -> Any:
    """The block that a party has kept."""
    bundle = engine.bundles[name]
    return party_kind(bundle.config.model).block(bundle, engine.folder / name)


def unobserved(engine: FederationEngine) -> Federated:
    """Train with nobody observing: the parties end by their own rules. Read what everybody kept."""
    end = monotonic() + PATIENCE
    with engine:
        engine.skip_to(math.inf)
        for progress in engine.run(pausing=True):
            assert progress is None
            assert monotonic() < end, engine.statuses
    summaries = {name: read_summary(engine.folder / name) for name in engine.bundles}
    assert engine.statuses == {name: summary.status for name, summary in summaries.items()}
    assert engine.ledger == Ledger.total([summary.ledger for summary in summaries.values()])
    kept = [name for name in engine.bundles if (engine.folder / name / NPZ).exists()]
    return Federated(dict(engine.bundles), summaries, {name: _kept(engine, name) for name in kept})


def federate(folder: Path, data: VerticalData, **changes: Any) -> Federated:
    """Train a linear model as the file says."""
    return unobserved(engine_of(folder, data, **changes))


def in_process(data: VerticalData, bundle: Bundle) -> Run:
    """The same training by mtcd.train."""
    config = bundle.config
    method, stop, costs = settings_of(config)
    return train(
        data, glm_of(config), config.network, method, stop, costs, config.seed, config.standardise
    )
