"""What parties keep of a split network: put together, it predicts as the network of a training in
one process."""

from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save

from mtcd.config.schema import ComputeSection
from mtcd.core.errors import ConfigError, DataError, MtcdError, WireError
from mtcd.core.files import WEIGHTS
from mtcd.data.prepare import read_recipe
from mtcd.data.prepare.preparation import fit_columns
from mtcd.engines.local import LocalEngine
from mtcd.federation.credentials.private_files import write_files
from mtcd.federation.participant.held_out import Drawn
from mtcd.federation.participant.labels import labels_to_bytes
from mtcd.federation.participant.table import PartyTable
from mtcd.models.splitnet.own import OwnProblem
from mtcd.models.splitnet.party import participant as participants
from mtcd.models.splitnet.party.block import (
    NetworkBlock,
    fusion_from_bytes,
    fusion_to_bytes,
    read_network_block,
)
from mtcd.models.splitnet.party.networks import (
    WIDEST,
    fusion_code,
    network_for,
    own_network,
    server_network,
)
from mtcd.models.splitnet.party.participant import SplitParticipant, _check_widths, _width
from mtcd.models.splitnet.training import assemble
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.protocol.party import SERVER
from split_parties import Clinics, one_thread, party_of

assert one_thread  # a fixture for all tests here


def trained(clinics: Clinics) -> tuple[Any, dict[int, NetworkBlock]]:
    """The network of one process, and the blocks of all parties, after the same moments."""
    (whole, problem), (ours, own) = clinics.whole(), clinics.put_together()
    for parties in (whole, ours):
        list(islice(LocalEngine(parties, Ledger()).run(), 9))
        for client in parties.clients:
            client.apply_sync(client.t)
    problem.hold(whole.parameters())
    # without a server, the client that was visited last has it
    theta_0 = problem.fusion.values()[0]
    knows = (
        SERVER
        if SERVER in own
        else next(k for k in own if torch.equal(own[k].head.values()[0], theta_0))
    )
    fusion = fusion_to_bytes(own[knows])
    blocks = {
        number: NetworkBlock.of(own[number], clinics.bundle(number), fusion=fusion)
        for number in own
    }
    return assemble(problem), blocks


@pytest.mark.long
@pytest.mark.parametrize("name", ["clusters", "visitors", "svfl", "pictures", "stcd"])
def test_blocks_predict_as_the_whole_network_also_when_read_back(name: str, tmp_path: Path) -> None:
    clinics = Clinics(tmp_path, name)
    model, blocks = trained(clinics)
    for number, block in blocks.items():
        folder = tmp_path / str(number)
        folder.mkdir()
        write_files(folder, block.files(), private=True)
        assert all(file.stat().st_mode & 0o77 == 0 for file in folder.iterdir())
    again = {
        number: read_network_block(clinics.bundle(number), clinics.code, tmp_path / str(number))
        for number in blocks
    }
    new = {client: values[::-1] * 1.1 for client, values in clinics.data.features.items()}
    for held in (blocks, again):
        aggregate = held[0].nothing(13)
        # a token pass, in any order
        for k, client in reversed(list(enumerate(clinics.data.clients))):
            aggregate = held[k].put(aggregate, client, held[k].represent_values(new[client]))
        for block in held.values():
            assert block.finite
            outputs = block.trained.fused(torch.as_tensor(aggregate)).numpy()
            np.testing.assert_allclose(outputs, model.decision(new), rtol=1e-5, atol=1e-6)
            assert block.predict(aggregate).tolist() == model.predict(new).tolist()


def test_a_party_that_was_not_told_theta_0_does_not_predict(tmp_path: Path) -> None:
    clinics = Clinics(tmp_path, "clusters")
    block = NetworkBlock.of(clinics.problem(1), clinics.bundle(1))
    with pytest.raises(MtcdError, match="did not receive the final fusion module"):
        block.predict(block.nothing(2))


def test_new_samples_come_with_the_columns_of_the_training(tmp_path: Path) -> None:
    clinics = Clinics(tmp_path, "clusters")
    values = clinics.data.features["a"].astype(float)
    table = PartyTable(Path("a.csv"), None, ("x", "y"), values)
    network = own_network(clinics.bundle(0), clinics.code, table, range(12, -1, -1))
    np.testing.assert_array_equal(network.features, values[::-1].astype(np.float32))
    block = NetworkBlock.of(
        network.problem(clinics.data.labels, clinics.widths), clinics.bundle(0), network.columns
    )
    h = block.represent(table)
    np.testing.assert_allclose(h, block.represent_values(values))
    with pytest.raises(MtcdError, match="trained on the columns x, y"):
        block.represent(PartyTable(Path("a.csv"), None, ("y", "x"), values))


def test_a_party_prepares_its_columns_for_its_network(tmp_path: Path) -> None:
    clinics = Clinics(tmp_path, "clusters")
    frame = pl.DataFrame({"x": [*"uvwuvwuvwuvwu"], "y": [None, *map(float, range(12))]})
    recipe = read_recipe("auto")
    table = PartyTable(
        Path("a.csv"), None, ("x", "y"), np.empty((13, 0)), frame=frame, recipe=recipe
    )
    network = own_network(clinics.bundle(0), clinics.code, table, range(12, -1, -1))
    preparation, block, _ = fit_columns("a", frame[::-1], recipe)
    assert network.columns == preparation.outputs == ("x=u", "x=v", "x=w", "x=other", "y")
    np.testing.assert_array_equal(network.features, block.astype(np.float32))
    problem = network.problem(clinics.data.labels, clinics.widths)
    kept = NetworkBlock.of(problem, clinics.bundle(0), network.columns, None, network.preparation)
    (tmp_path / WEIGHTS).write_bytes(kept.files()[WEIGHTS])
    again = read_network_block(clinics.bundle(0), clinics.code, tmp_path)
    assert again.inputs == ("x", "y")
    np.testing.assert_array_equal(again.represent(table), kept.represent_values(block[::-1]))
    new = pl.DataFrame({"x": ["never seen"], "y": [None]})
    one = PartyTable(Path("a.csv"), None, ("x", "y"), np.empty((1, 0)), frame=new)
    assert np.isfinite(again.represent(one)).all()


def test_a_diverged_block_is_known(tmp_path: Path) -> None:
    problem = Clinics(tmp_path, "clusters").problem(0)
    problem.net.put([value * np.inf for value in problem.net.values()])
    assert not NetworkBlock.of(problem, Clinics(tmp_path, "clusters").bundle(0)).finite


def test_a_damaged_or_foreign_block_is_refused(tmp_path: Path) -> None:
    clinics = Clinics(tmp_path, "clusters")
    with pytest.raises(MtcdError, match="has not ended"):
        read_network_block(clinics.bundle(1), clinics.code, tmp_path)
    files = NetworkBlock.of(clinics.problem(1), clinics.bundle(1)).files()
    write_files(tmp_path, files, private=True)
    with pytest.raises(MtcdError, match="not a whole block.*of 'b'"):
        read_network_block(clinics.bundle(2), clinics.code, tmp_path)
    (path,) = [tmp_path / name for name in files]
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(MtcdError, match="not a whole block"):
        read_network_block(clinics.bundle(1), clinics.code, tmp_path)


@pytest.fixture(scope="module")
def problem(tmp_path_factory: pytest.TempPathFactory) -> OwnProblem:
    """The server's."""
    return Clinics(tmp_path_factory.mktemp("clinics"), "clusters").problem(SERVER)


@given(st.data())
@settings(max_examples=60)
def test_what_is_told_of_theta_0_is_taken_whole_or_refused(
    problem: OwnProblem, data: st.DataObject
) -> None:
    fusion = bytearray(fusion_to_bytes(problem))
    place = data.draw(st.integers(0, len(fusion) - 1))
    fusion[place] ^= data.draw(st.integers(1, 255))
    known = problem.head.finished().state_dict()
    try:
        told = fusion_from_bytes(bytes(fusion), problem)
    except WireError:
        return
    assert {name: (value.shape, value.dtype) for name, value in told.items()} == {
        name: (value.shape, value.dtype) for name, value in known.items()
    }
    assert all(value.isfinite().all() for value in told.values())


def test_theta_0_of_other_names_shapes_kinds_or_sizes_is_refused(problem: OwnProblem) -> None:
    known = problem.head.finished().state_dict()
    first = next(iter(known))
    for wrong in (
        {**known, "more": torch.zeros(1)},
        {**known, first: known[first].T.contiguous()},
        {**known, first: known[first].double()},
        {**known, first: known[first] / 0},
        {**known, first: torch.zeros(100_000)},
        {name: value for name, value in known.items() if name != first},
    ):
        with pytest.raises(WireError, match="fusion"):
            fusion_from_bytes(save(wrong), problem)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"client": "nets:missing"}, "model.client: 'nets:missing': .*nets.py has no function"),
        ({"client": "elsewhere:make"}, "--code elsewhere.py"),
        ({"client": "nets:flat"}, "no parameters to train"),
        ({"client": "nets:head"}, "model.client: the network cannot be made"),
    ],
)
def test_networks_that_cannot_be_made_here_are_told_in_words(
    changes: Any, said: str, tmp_path: Path
) -> None:
    clinics = Clinics(tmp_path, "clusters")
    bundle = clinics.bundle(0)
    bundle = bundle.model_copy(update={"model": bundle.model.model_copy(update=changes)})
    with pytest.raises(MtcdError, match=said):
        network_for(bundle, clinics.code, np.ones((4, 2)))


def test_what_does_not_belong_together_is_told_in_words(tmp_path: Path) -> None:
    clinics = Clinics(tmp_path, "clusters")
    network, labels = clinics.network_of(0), clinics.data.labels
    for known, widths, words in (
        (labels, [2, 2, 3, 4], "gives 1 numbers per sample, but the parties have agreed on 2"),
        (labels, [1, 2, 3], "not one for every party"),
        (labels[1:], clinics.widths, "13 rows for 12 labels"),
    ):
        with pytest.raises(MtcdError, match=words):
            network.problem(known, widths)
    with pytest.raises(MtcdError, match="columns of a table"):
        network_for(clinics.bundle(0), clinics.code, np.ones((4, 1, 2, 2)))
    gpu = clinics.bundle(0).model_copy(update={"compute": ComputeSection(device="cuda")})
    with pytest.raises(MtcdError, match="trains on the CPU"):
        network_for(gpu, clinics.code, np.ones((4, 2)))


def test_a_width_is_a_whole_number_up_to_the_widest() -> None:
    assert [_width("b", answer) for answer in (b"1", b"1048576")] == [1, WIDEST]
    for answer in (b"0", b"-1", b"1048577", b"true", b"1.0", b"[1]", b"", b"9" * 21):
        with pytest.raises(DataError, match="b did not report the output width"):
            _width("b", answer)


@pytest.mark.parametrize(
    "widths", [None, "12", (1, 2), [0, 1], [1, WIDEST + 1], [True, 1], [1.0, 1], [1], [1, 1, 1]]
)
def test_widths_that_networks_of_two_parties_cannot_have_are_refused(widths: Any) -> None:
    _check_widths([1, WIDEST], 2)
    with pytest.raises(WireError, match="widths"):
        _check_widths(widths, 2)


@pytest.mark.parametrize(("width", "fine"), [(0, False), (WIDEST, True), (WIDEST + 1, False)])
def test_no_fusion_module_is_made_for_a_width_that_cannot_be(
    width: int, fine: bool, tmp_path: Path
) -> None:
    clinics = Clinics(tmp_path, "clusters")
    widths = [*clinics.widths[:-1], width]
    config, labels = clinics.bundle(0), clinics.data.labels
    if fine:
        assert server_network(config, clinics.code, labels, widths).outputs == sum(widths)
        return

    with pytest.raises(MtcdError, match="not one for every party"):
        server_network(config, clinics.code, labels, widths)


def participant(clinics: Clinics, **more: Any) -> Any:
    """What the participant of the first clinic needs for one of its steps."""
    bundle = SimpleNamespace(code=clinics.code)
    return SimpleNamespace(config=clinics.bundle(0), bundle=bundle, **more)


def test_the_fusion_module_of_all_parties_is_one_file(tmp_path: Path) -> None:
    own = participant(Clinics(tmp_path, "clusters"))
    sha256 = fusion_code(own.config, own.bundle.code)
    assert sha256 is not None
    SplitParticipant._check_fusion_code(own, sha256)
    for digest in ("", "0" * 63, "-" * 64, 7, [sha256]):
        with pytest.raises(WireError, match="is no checksum"):
            SplitParticipant._check_fusion_code(own, digest)
    for digest, there in (("0" * 64, "0" * 64), (None, "another one")):
        with pytest.raises(ConfigError, match=f"sha256 {sha256} at a, but {there} at b"):
            SplitParticipant._check_fusion_code(own, digest)


def test_held_out_outputs_that_cannot_be_added_up_are_refused_before_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of training samples at the start and at the end, and those held out at the end."""
    clinics = Clinics(tmp_path, "clusters")
    values = clinics.data.features["a"].astype(float)
    columns = tuple(f"x{j}" for j in range(values.shape[1]))
    table = PartyTable(Path("a.csv"), None, columns, values)
    taken = Drawn([*range(10)], [10, 11, 12])
    known: list[Any] = []
    own = participant(clinics, table=table, drawn=lambda agreed: taken)
    own._held_out_labels = lambda drawn: np.empty(0)
    monkeypatch.setattr(participants, "check_fits", lambda *given: known.append(given))
    agreed = SimpleNamespace(labels=labels_to_bytes(clinics.data.labels[:10]))
    SplitParticipant._make_networks(own, agreed, 10, clinics.widths)
    assert known == [((2 * 10 + 3) * own.problem.outputs, own.config)]
    with pytest.raises(WireError, match="not those that the parties have told"):
        SplitParticipant._make_networks(own, agreed, 10, [5, *clinics.widths[1:]])
    weighted = SimpleNamespace(labels=labels_to_bytes(clinics.data.labels[:10], np.ones(10)))
    with pytest.raises(WireError, match="come with weights"):
        SplitParticipant._make_networks(own, weighted, 10, clinics.widths)


HELD: dict[int, dict[str, Any]] = {
    0: {
        "t": 3,
        "start": {"w": torch.ones(2)},
        "copies": {1: {"w": torch.zeros(2)}},
        "in_hand": 1,
    },
    SERVER: {
        "uploads": {2: torch.ones(3)},
        "awaited": {0, 1},
        "fused": 4,
        "start_loss": 0.5,
        "losses": 2.5,
    },
}


@pytest.mark.parametrize("number", HELD)
def test_what_a_party_holds_between_two_visits_is_in_its_state(number: int, tmp_path: Path) -> None:
    clinics = Clinics(tmp_path, "overlapping")
    one, again = (party_of(clinics.own_cast(number)[0], number) for _ in range(2))
    for name, value in HELD[number].items():
        setattr(one, name, value)

    again.restore(one.state())
    assert {name: getattr(again, name) for name in HELD[number]} == HELD[number]
