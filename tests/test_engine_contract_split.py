"""The engine contract of split networks: every party trains its own module, and all is as in one
process."""

from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import pytest

pytest.importorskip("zenoh")
pytest.importorskip("torch")

from live import Federated, make_kits, unobserved
from mtcd.core.errors import MtcdError
from mtcd.data.dataset import VerticalDataset
from mtcd.federation.credentials.bundle import Kit
from mtcd.federation.participant.node_table import settings_of
from mtcd.federation.participant.participant import Role
from mtcd.federation.participant.table import PartyTable
from mtcd.models.splitnet.config import split_model
from mtcd.models.splitnet.party.block import read_network_block
from mtcd.models.splitnet.party.networks import section_of
from mtcd.models.splitnet.party.participant import SplitParticipant
from mtcd.testing.federation_engine import FederationEngine
from mtcd.training.run import Run
from mtcd.training.train import train
from split_problems import assert_same_modules, samples

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


def table_of(data: VerticalDataset, kit: Kit) -> PartyTable | None:
    name = kit.config.name
    if kit.config.is_server:
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
) -> tuple[dict[str, Kit], Federated]:
    """The kits, and what everybody kept."""
    kits = kits_for(folder, iterations, **settings)
    engine = FederationEngine(
        kits, folder / "runs", lambda kit: Participant(kit, table_of(data, kit))
    )
    return kits, unobserved(engine)


def kits_for(folder: Path, iterations: int, **settings: Any) -> dict[str, Kit]:
    lone = settings["method"]["kind"] == "stcd"
    return make_kits(
        folder,
        tuple("abcd"),
        **({"server": None} if lone else {}),
        labels={"held_by": "a", "shared_with": "parties" if lone else ["parties", "server"]},
        network={"kind": "cycle"},
        stop={"iterations": iterations},
        seed=5,
        **settings,
    )


def in_process(data: VerticalDataset, kit: Kit) -> Run:
    config = kit.config
    method, stop, costs = settings_of(config)
    model = split_model(section_of(config), data, config.seed, False)
    return train(data, model, config.network, method, stop, costs, config.seed)


def assert_same_networks(folder: Path, kits: dict[str, Kit], same: Run) -> None:
    for name, kit in kits.items():
        block = read_network_block(kit.config, kit.code, folder / "runs" / name)
        assert block.knows_fusion
        assert_same_modules(block.trained.fusion, same.fusion)
        if name != "server":
            assert_same_modules(block.trained.modules[name], same.modules[name])


@pytest.mark.parametrize("case", CASES)
def test_a_federation_trains_networks_as_one_process_does(case: str, tmp_path: Path) -> None:
    data = four_clinics()
    model = {"kind": "split", "client": "mlp", "optimiser": {"kind": "SGD", "momentum": 0.5}}
    kits, told = federate(tmp_path, data, 12, model=model, method=CASES[case])
    same = in_process(data, kits["a"])
    assert told.ledger == same.ledger
    assert_same_networks(tmp_path, kits, same)
    expected = {f"train_{name}": value for name, value in same.evaluate(data).items()}
    assert told.summaries["a"].metrics == pytest.approx(expected, rel=1e-4), "of the label holder"
    assert not any(one.metrics for name, one in told.summaries.items() if name != "a")


def test_an_engine_does_not_collect_the_networks_of_others(tmp_path: Path) -> None:
    data = four_clinics()
    kits = kits_for(
        tmp_path, 12, model={"kind": "split", "client": "mlp"}, method=CASES["full batch"]
    )
    with FederationEngine(
        kits, tmp_path / "runs", lambda kit: Participant(kit, table_of(data, kit))
    ) as engine:
        assert next(engine.run()).hop == 0
        with pytest.raises(MtcdError, match="networks stay with their parties"):
            engine.parameters()
