"""Split networks in a federation: each party makes its own part alone, and all is as in one
process, bit for bit."""

from itertools import islice
from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch

from mtcd.core.errors import MtcdError
from mtcd.engines.local import LocalEngine
from mtcd.federation.delivery.journal import FileJournal, Journal
from mtcd.federation.delivery.reliable_party import ReliableParty
from mtcd.federation.recovery.choose import make_reliable_party
from mtcd.protocol.codec.records import pack
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.protocol.party import SERVER, Parties
from mtcd.testing.simulator.world import Faults, World
from simulated_ends import run_to_the_end, summed
from split_parties import CASES, Clinics, everything, one_thread, party_of, watched
from wired import told

assert one_thread  # a fixture for all tests here
LAST = torch.channels_last
EVERYTHING = Faults(loss=0.1, duplicate=0.1, crash=0.02, cut=0.02, hang=0.02)


@pytest.mark.parametrize("name", CASES)
def test_parties_from_their_own_parts_train_as_in_one_process(name: str, tmp_path: Path) -> None:
    clinics = Clinics(tmp_path, name)
    (whole, problem), (ours, own) = clinics.whole(), clinics.put_together()
    ledgers = Ledger(), Ledger()
    engines = [
        LocalEngine(parties, ledger).run()
        for parties, ledger in zip((whole, ours), ledgers, strict=True)
    ]
    for theirs, mine in islice(zip(*engines, strict=True), 12):
        assert told(theirs) == told(mine)
        assert ledgers[0].to_dict() == ledgers[1].to_dict()
    whole.parameters()
    for k, net in enumerate(problem.nets):
        ours.clients[k].apply_sync(ours.clients[k].t)
        mine = own[k].net.finished().state_dict()
        for key, value in net.finished().state_dict().items():
            assert torch.equal(value, mine[key]), key
    if SERVER in own:
        mine = own[SERVER].fusion.finished().state_dict()
        assert all(
            torch.equal(value, mine[key])
            for key, value in problem.fusion.finished().state_dict().items()
        )


@pytest.mark.long
@pytest.mark.parametrize(("seed", "name"), list(enumerate(CASES)))
def test_with_any_faults_that_pass_all_messages_are_those_of_one_process(
    name: str, seed: int, tmp_path: Path
) -> None:
    clinics = Clinics(tmp_path, name)
    whole, noted = clinics.whole()[0], []

    def make(number: int, parties: Parties, journal: Journal) -> ReliableParty:
        return watched(clinics, noted, number, journal)

    world = World(lambda: whole, seed, make, EVERYTHING)
    moments = 12 if SERVER in world.numbers else 50
    while len({message.payload.hop for message in world.reports}) < moments:
        world.step()
        assert world.time < 60_000, world.happened
    expected = list(everything(whole, moments + 5))
    assert {sent for sent, _ in noted} <= {sent for sent, _ in expected}
    assert {knows for _, knows in noted} <= {knows for _, knows in expected}
    assert min(world.happened[kind] for kind in ("crash", "loss", "duplicate", "cut", "hang")) > 3


@pytest.mark.parametrize("name", ["clusters, batches", "overlapping", "stcd"])
def test_the_end_is_that_of_one_process(name: str, tmp_path: Path) -> None:
    clinics, hops = Clinics(tmp_path, name), 15
    whole, problem = clinics.whole()

    def make(number: int, parties: Parties, journal: Journal) -> ReliableParty:
        reliable = make_reliable_party(
            number, clinics.own_cast(number)[0], journal, clinics.network
        )
        reliable.limit = lambda told: "iterations" if told.hop >= hops else None
        return reliable

    world = World(lambda: whole, 1, make, EVERYTHING)
    run_to_the_end(world)
    ledger = Ledger()
    next(told for told in LocalEngine(whole, ledger).run() if told.hop >= hops)
    theta_0 = whole.parameters()[-1]
    assert summed(world) == ledger
    parties, own = clinics.put_together()
    for number in world.numbers:
        party_of(parties, number).restore(world.journals[number].last()["party"])
    for k, net in enumerate(problem.nets):
        assert all(map(torch.equal, net.full_state().values(), own[k].net.full_state().values())), k
    for last in theta_0.values():  # without a server, whoever ended it has theta_0
        assert any(
            torch.equal(last, value) for k in own for value in own[k].head.weights().values()
        )
    if SERVER in own:
        assert all(
            map(
                torch.equal,
                problem.fusion.full_state().values(),
                own[SERVER].fusion.full_state().values(),
            )
        )


def test_tensors_of_any_kind_come_back_from_a_journal(tmp_path: Path) -> None:
    kinds = [
        torch.float32,
        torch.float64,
        torch.float16,
        torch.bfloat16,
        torch.int64,
        torch.uint8,
        torch.bool,
    ]
    kept = [torch.tensor([[0.0, 1.0], [2.5, -3.0]]).to(kind) for kind in kinds]
    kept += [
        torch.tensor(3.0),
        torch.zeros(0, 2),
        torch.arange(48.0).reshape(2, 2, 3, 4).to(memory_format=LAST),
    ]
    kept += [torch.arange(6.0).reshape(2, 3).T, torch.ones(2, requires_grad=True)]
    kept += [
        torch.linspace(0, 1, 5000),
        torch.arange(5000) % 2 == 0,
        torch.arange(4099).to(torch.uint8),
    ]
    kept.append(kept[0])  # once more
    FileJournal(tmp_path / "journal").commit({"kept": kept})
    for before, after in zip(kept, FileJournal(tmp_path / "journal").last()["kept"], strict=True):
        assert after.dtype == before.dtype
        assert after.shape == before.shape
        assert torch.equal(after, before)
    with pytest.raises(MtcdError, match="cannot be kept"):
        pack(torch.zeros(2, dtype=torch.complex64))
