"""The trainings of split networks of the engine contract."""

from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import pytest

from live import Federated, make_bundles, unobserved
from mtcd.data.dataset import VerticalDataset
from mtcd.federation.credentials.bundle import Bundle
from mtcd.federation.participant.node_table import settings_of
from mtcd.federation.participant.participant import Role
from mtcd.federation.participant.table import PartyTable
from mtcd.models.splitnet.configured import split_model
from mtcd.models.splitnet.party.block import read_network_block
from mtcd.models.splitnet.party.networks import section_of
from mtcd.models.splitnet.party.participant import SplitParticipant
from mtcd.testing.federation_engine import FederationEngine
from mtcd.training.run import Run
from mtcd.training.train import train
from split_problems import assert_same_modules, samples

pytest.importorskip("cryptography")
pytest.importorskip("torch")

MTCD = {
    "kind": "mtcd",
    "stepsize": 0.05,
    "local_updates": 2,
    "hops": 3,
    "clusters": [["a", "b"], ["c", "d"]],
}


CASES: dict[str, dict[str, Any]] = {
    "full batch": MTCD,
    "batches": {**MTCD, "batch": 5},
    "svfl": {"kind": "svfl", "stepsize": 0.05, "batch": 6},
    "stcd": {"kind": "stcd", "stepsize": 0.05, "fusion_client": "each"},
    "stcd, empty start": {"kind": "stcd", "stepsize": 0.05, "first_pass": False},
}


ONE_AT_A_TIME = Lock()


class Participant(SplitParticipant):
    """Networks begin with numbers from PyTorch's one generator of a process, which parties in
    threads share."""

    def facts(self, *given: Any) -> bytes:
        with ONE_AT_A_TIME:
            return super().facts(*given)

    def role(self, *given: Any) -> Role:
        with ONE_AT_A_TIME:
            return super().role(*given)


def table_of(data: VerticalDataset, bundle: Bundle) -> PartyTable | None:
    name = bundle.config.name
    if bundle.config.is_server:
        return None
    values = np.asarray(data.features[name], dtype=float)
    columns = tuple(f"x{j}" for j in range(values.shape[1]))
    return PartyTable(
        Path(f"{name}.csv"), None, columns, values, data.labels if name == "a" else None
    )


def four_clinics() -> VerticalDataset:
    made = samples(4, 13)
    features = dict(zip("abcd", made.features.values(), strict=True))
    return VerticalDataset(features, np.array(["low", "mid", "top"])[made.labels])


def federate(
    folder: Path, data: VerticalDataset, iterations: int, **settings: Any
) -> tuple[dict[str, Bundle], Federated]:
    """The bundles, and what everybody kept."""
    bundles = bundles_for(folder, iterations, **settings)
    engine = FederationEngine(
        bundles, folder / "runs", lambda bundle: Participant(bundle, table_of(data, bundle))
    )
    return bundles, unobserved(engine)


def bundles_for(folder: Path, iterations: int, **settings: Any) -> dict[str, Bundle]:
    lone = settings["method"]["kind"] == "stcd"
    return make_bundles(
        folder,
        tuple("abcd"),
        **({"server": None} if lone else {}),
        labels={"held_by": "a", "shared_with": "parties" if lone else ["parties", "server"]},
        network={"kind": "cycle"},
        stop={"iterations": iterations},
        seed=5,
        **settings,
    )


def in_process(data: VerticalDataset, bundle: Bundle) -> Run:
    config = bundle.config
    method, stop, costs = settings_of(config)
    model = split_model(section_of(config), data, config.seed, False)
    return train(data, model, config.network, method, stop, costs, config.seed)


def assert_same_networks(folder: Path, bundles: dict[str, Bundle], same: Run) -> None:
    for name, bundle in bundles.items():
        block = read_network_block(bundle.config, bundle.code, folder / "runs" / name)
        assert block.knows_fusion
        assert_same_modules(block.trained.fusion, same.fusion)
        if name != "server":
            assert_same_modules(block.trained.modules[name], same.modules[name])
