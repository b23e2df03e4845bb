"""Cheats among those who train split networks: as in ``test_hostile_messages.py``, and what is told
after the end."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from cheats import Cheats
from hubs import Done, Hub, Passing, holds
from live import make_bundles
from mtcd.core.errors import WireError
from mtcd.federation.credentials.bundle import Bundle
from mtcd.federation.node.ending import FINAL_MODULE
from mtcd.federation.node.opening import Agreed
from mtcd.federation.node.rpc import OK
from mtcd.federation.participant.labels import labels_to_bytes
from mtcd.federation.participant.table import PartyTable
from mtcd.models.splitnet.party.block import read_network_block
from mtcd.models.splitnet.party.participant import SplitParticipant
from split_problems import samples

CLIENTS = ("a", "b", "c")
CASES: dict[str, dict[str, Any]] = {
    "mtcd": {"kind": "mtcd", "stepsize": 0.05, "hops": 3, "tokens": 1, "batch": 5},
    "stcd": {"kind": "stcd", "stepsize": 0.05, "fusion_client": "each"},
}


def brings(bundle: Bundle) -> SplitParticipant:
    made, name = samples(3, 10), bundle.config.name
    if bundle.config.is_server:
        return SplitParticipant(bundle, None)
    values = np.asarray(list(made.features.values())[CLIENTS.index(name)], dtype=float)
    columns = tuple(f"x{j}" for j in range(values.shape[1]))
    return SplitParticipant(
        bundle,
        PartyTable(
            Path(f"{name}.csv"), None, columns, values, made.labels if name == "a" else None
        ),
    )


class Gossips(Cheats):
    """They also say how it ended, each time that it is said."""

    def before(self, passing: Passing) -> None:
        if passing.kind != FINAL_MODULE:
            super().before(passing)
            return
        has_ended = self.hub.nodes[passing.to].status is not None
        for wrong in (
            b"",
            passing.body[:-1],
            passing.body + b"0",
            bytes(len(passing.body)),
            b"{}",
            bytes(10**6),
        ):
            if has_ended:
                self.refused(passing._replace(body=wrong))
        others = [name for name in self.hub.clients if name not in (passing.sender, passing.to)]
        for other in others if passing.sender == "server" else ():
            self.refused(passing._replace(sender=other))

    def spoil_answer(self, passing: Passing, answer: bytes | None, done: Done) -> None:
        super().spoil_answer(passing, answer, done)
        node = self.hub.nodes[passing.to]
        if passing.kind == FINAL_MODULE and answer == OK and not node.loop._stopped:
            before = holds(node)
            assert self.hub.ask(passing) == OK  # it is known
            assert holds(node) == before
            self.sent["said again"] += 1


def trained(folder: Path, case: str, cheating: bool) -> tuple[Any, Cheats | None]:
    server = case == "mtcd"
    with Hub(
        folder,
        CLIENTS,
        brings,
        **({} if server else {"server": None}),
        labels={"held_by": "a", "shared_with": ["parties", "server"] if server else "parties"},
        model={"kind": "split", "client": "mlp"},
        method=CASES[case],
        network={"kind": "path"},
        stop={"iterations": 6},
        seed=5,
    ) as hub:
        cheats = Gossips(hub) if cheating else None
        hub.train()
    blocks = [
        read_network_block(hub.bundles[name].config, hub.bundles[name].code, folder / "runs" / name)
        for name in CLIENTS
    ]
    assert all(block.knows_fusion for block in blocks)
    return [block.trained.weights() for block in blocks], cheats


@pytest.mark.long
@pytest.mark.parametrize("case", CASES)
def test_split_networks_are_trained_as_if_nobody_cheated(case: str, tmp_path: Path) -> None:
    honest, _ = trained(tmp_path / "honest", case, False)
    spoilt, cheats = trained(tmp_path / "cheated", case, True)
    for one, other in zip(honest, spoilt, strict=True):
        assert one.keys() == other.keys()
        assert all((one[name] == other[name]).all() for name in one)
    assert cheats.sent["envelope"] >= 40
    assert cheats.sent["start"] >= 100
    assert cheats.sent["said again"]


def test_weights_of_samples_are_refused(tmp_path: Path) -> None:
    labels = {"held_by": "a", "shared_with": ["parties", "server"]}
    bundles = make_bundles(
        tmp_path,
        CLIENTS,
        labels=labels,
        model={"kind": "split", "client": "mlp"},
        method=CASES["mtcd"],
    )
    told = labels_to_bytes(np.arange(10) % 2, np.ones(10))
    settings = {
        "samples": 10,
        "widths": [1, 1, 1],
        "stepsize": 0.05,
        "notes": [],
        "fusion_code": None,
    }
    log: Any = None
    with pytest.raises(WireError, match="weights"):
        brings(bundles["b"]).facts(range(10), told)
    for name in ("b", "server"):
        with pytest.raises(WireError, match="weights"):
            brings(bundles[name]).role(Agreed("run", settings, told, b""), log)
