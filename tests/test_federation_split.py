"""Split networks in a federation: each party makes its own part alone, and all is as in one process, bit by bit."""

from itertools import islice
from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch

from mtcd.engines.local import LocalEngine
from mtcd.errors import MtcdError
from mtcd.federation.custody.journal import Journal
from mtcd.federation.custody.postman import Postman
from mtcd.federation.custody.records import pack, unpack
from mtcd.ledger.ledger import Ledger
from mtcd.protocol.party import SERVER, Cast
from simulated import Faults, World
from split_parties import CASES, Clinics, Watched, everything, one_thread
from wired import told

assert one_thread  # a fixture for all tests here
LAST = torch.channels_last
EVERYTHING = Faults(loss=0.1, double=0.1, crash=0.02, cut=0.02, hang=0.02)


@pytest.mark.parametrize("name", CASES)
def test_parties_from_their_own_parts_train_as_in_one_process(name: str, tmp_path: Path) -> None:
    clinics = Clinics(tmp_path, name)
    (whole, problem), (ours, own) = clinics.whole(), clinics.put_together()
    ledgers = Ledger(), Ledger()
    engines = [LocalEngine(cast, ledger).run() for cast, ledger in zip((whole, ours), ledgers, strict=True)]
    for theirs, mine in islice(zip(*engines, strict=True), 12):
        assert told(theirs) == told(mine)
        assert ledgers[0].to_dict() == ledgers[1].to_dict()
    whole.parameters()
    for k, net in enumerate(problem.nets):
        ours.clients[k].settle(ours.clients[k].t)
        mine = own[k].net.finished().state_dict()
        for key, value in net.finished().state_dict().items():
            assert torch.equal(value, mine[key]), key
    if SERVER in own:
        mine = own[SERVER].fusion.finished().state_dict()
        assert all(torch.equal(value, mine[key]) for key, value in problem.fusion.finished().state_dict().items())


@pytest.mark.parametrize(("seed", "name"), list(enumerate(CASES)))
def test_with_any_faults_that_pass_all_messages_are_those_of_one_process(name: str, seed: int, tmp_path: Path) -> None:
    clinics = Clinics(tmp_path, name)
    whole, noted = clinics.whole()[0], []

    def make(number: int, cast: Cast, journal: Journal) -> Postman:
        return Watched(clinics, noted, number, journal)

    world = World(lambda: whole, seed, make, EVERYTHING)
    moments = 12 if SERVER in world.numbers else 50
    while len({message.payload.hop for message in world.told}) < moments:
        world.step()
        assert world.time < 60_000, world.happened
    expected = list(everything(whole, moments + 5))
    assert {sent for sent, _ in noted} <= {sent for sent, _ in expected}
    assert {knows for _, knows in noted} <= {knows for _, knows in expected}
    assert min(world.happened[kind] for kind in ("crash", "loss", "double", "cut", "hang")) > 3


def test_tensors_of_any_kind_come_back_from_a_record() -> None:
    kinds = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.uint8, torch.bool]
    kept = [torch.tensor([[0.0, 1.0], [2.5, -3.0]]).to(kind) for kind in kinds]
    kept += [torch.tensor(3.0), torch.zeros(0, 2), torch.arange(48.0).reshape(2, 2, 3, 4).to(memory_format=LAST)]
    kept += [torch.arange(6.0).reshape(2, 3).T, torch.ones(2, requires_grad=True)]
    for before, after in zip(kept, unpack(pack({"kept": kept}))["kept"], strict=True):
        assert after.dtype == before.dtype
        assert after.shape == before.shape
        assert torch.equal(after, before)
    with pytest.raises(MtcdError, match="cannot be kept"):
        pack(torch.zeros(2, dtype=torch.complex64))
