"""Each party with its own part only: together they do what the parties of one process do, bit for
bit."""

import json
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtcd.core.errors import ConfigError, DataError, MtcdError, WireError
from mtcd.data.standardise import standardise
from mtcd.data.vertical import VerticalData
from mtcd.engines.local import LocalEngine
from mtcd.federation.participant.labels import labels_from_bytes, labels_to_bytes
from mtcd.federation.participant.table import PartyTable
from mtcd.methods.dcpa.dcpa import DCPA
from mtcd.methods.method import Method
from mtcd.methods.mtcd.mtcd import MTCD, STCD
from mtcd.methods.svfl.svfl import SVFL
from mtcd.models.glm.config import GlmSection
from mtcd.models.glm.model import Glm
from mtcd.models.glm.party.kind import LINEAR
from mtcd.models.glm.party.problem import glm_of, own_part, server_problem
from mtcd.network.topology import Network, make_network
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.protocol.party import Parties
from own_parts import bundles, model_section, own_parts
from problems import MODELS, make_data

METHODS: dict[str, Method] = {
    "stcd": STCD(stepsize=0.02, local_updates=3),
    "clusters": MTCD(clusters=[[0, 1], [2, 3]], hops=3, stepsize=0.02, local_updates=3),
    "average": MTCD(tokens=3, hops=3, stepsize=0.02, local_updates=3),
    "visitors": MTCD(tokens=2, hops=3, stepsize=0.02, combine="visitors"),
    "mini-batch": MTCD(tokens=2, hops=2, stepsize=0.02, batch=4),
    "optimal": MTCD(tokens=2, hops=3, stepsize=0.02, combine="optimal"),
    "touring": STCD(stepsize=0.02, walk="tour", acceleration="momentum"),
    "accelerated": MTCD(
        clusters=[[0, 1], [2, 3]], hops=4, stepsize=0.02, walk="tour", acceleration="momentum"
    ),
    "svfl": SVFL(stepsize=0.01),
    "dcpa": DCPA(stepsize=0.05),
}
# dcpa has one number per sample
PAIRS = [
    (name, model)
    for name in METHODS
    for model in MODELS
    if name != "dcpa" or model.kind != "multinomial"
]
KNOW_LABELS = ("optimal", "accelerated")
WIDTHS = [2, 1, 3, 2]


def told_apart(
    data: VerticalData, model: Glm, method: Method, network: Network, informed: bool, **kw: Any
) -> Parties:
    """The parties of which every party was made by itself."""
    all_parties = [
        method.parties(part.problem, network, 7) for part in own_parts(data, model, **kw)
    ]
    clients = [parties.clients[k] for k, parties in enumerate(all_parties)]
    if all_parties[0].server is None:
        return Parties(clients, None, all_parties[-1].opening)
    bundle = bundles(data.clients, model=model_section(model))["server"]
    classes = len(np.unique(data.labels)) if model.kind == "multinomial" else 1
    knows = server_problem(bundle, data.samples, classes, data.labels if informed else None)
    parties = method.parties(knows, network, 7)
    return Parties(clients, parties.server, parties.opening)


def moments(parties: Parties, ledger: Ledger, count: int) -> list[Any]:
    """What is told on the way, and what the clients hold then."""
    told = []
    for progress in islice(LocalEngine(parties, ledger).run(), count):
        aggregate = None if progress.aggregate is None else progress.aggregate.tobytes()
        held = [client.parameters().tobytes() for client in parties.clients]
        told.append((progress.hop, aggregate, float(progress.penalty), held))
    return told


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize(("name", "model"), PAIRS, ids=str)
def test_parties_made_apart_do_the_same_bit_by_bit(name: str, model: Glm, scaled: bool) -> None:
    data = make_data(model, 12, WIDTHS, seed=3)
    network = make_network("complete", data.clients)
    apart = told_apart(data, model, METHODS[name], network, name in KNOW_LABELS, standardise=scaled)
    problem = model.problem(standardise(data)[0] if scaled else data)
    together = METHODS[name].parties(problem, network, 7)
    ledgers = Ledger(), Ledger()
    found = moments(apart, ledgers[0], 12)
    assert found == moments(together, ledgers[1], 12)
    assert found[-1][3] != found[0][3]
    assert ledgers[0] == ledgers[1]


def test_a_party_has_no_column_of_another() -> None:
    model = Glm("logistic", l2=0.2, intercept=True)
    for k, part in enumerate(own_parts(make_data(model, 12, WIDTHS, seed=3), model)):
        own = WIDTHS[k] + (k == 0)
        assert [block.shape[1] for block in part.problem.blocks] == [
            own if j == k else 0 for j in range(4)
        ]


def test_a_server_without_labels_says_so_where_it_would_need_them() -> None:
    problem = server_problem(bundles(("a", "b"))["server"], samples=5, outputs=1)
    with pytest.raises(MtcdError, match="shared_with"):
        _ = problem.fit


@pytest.mark.parametrize(("outputs", "classes"), [(1, ()), (2, (0.0, 1.0)), (3, (0.0, 1.0, 2.0))])
def test_a_server_without_labels_knows_their_sizes(
    outputs: int, classes: tuple[float, ...]
) -> None:
    config = bundles(("a", "b"), model={"kind": "multinomial"})["server"]
    problem = server_problem(config, samples=5, outputs=outputs)
    assert (problem.samples, problem.classes) == (5, classes)
    assert problem.labels.shape == ((5,) if outputs == 1 else (5, outputs))


def test_tables_of_different_length_in_given_order_are_refused() -> None:
    table = PartyTable(Path("b.csv"), None, ("x",), np.ones((12, 1)))
    with pytest.raises(DataError, match="12 rows for 11 labels"):
        own_part(bundles(("a", "b"))["b"], table, None, np.arange(11.0))


LABELS = st.one_of(
    st.lists(st.floats(-1e99, 1e99), min_size=2, max_size=9),
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=2, max_size=9),
    st.lists(st.integers(0, 2**64 - 1).map(np.uint64), min_size=2, max_size=9),
    st.lists(st.booleans(), min_size=2, max_size=9),
    st.lists(
        st.text(st.characters(exclude_characters="\0", codec="utf-8"), min_size=1),
        min_size=2,
        max_size=9,
    ),
).filter(lambda labels: len(set(labels)) > 1)


@given(LABELS)
def test_labels_arrive_as_they_were(labels: list[Any]) -> None:
    sent = np.array(labels)
    arrived, _ = labels_from_bytes(labels_to_bytes(sent), len(sent))
    assert arrived.tolist() == sent.tolist()
    for model in (Glm("multinomial"), Glm("ridge")):
        if sent.dtype.kind != "U" or model.kind == "multinomial":
            mine, theirs = model.loss.encode(sent), model.loss.encode(arrived)
            assert mine[0].tobytes() == theirs[0].tobytes()
            assert mine[1] == theirs[1]


HEADS: list[Any] = [
    None, [], {}, {"kind": "f"}, {"kind": "x"}, {"kind": 3}, {"kind": ["f"]}, {"kind": "text"},
    {"kind": "text", "texts": None}, {"kind": "text", "texts": []}, {"kind": "text", "texts": ["a"]},
    {"kind": "text", "texts": ["b", "a"]}, {"kind": "text", "texts": ["a", "a"]}, {"kind": "text", "texts": ["a", 1]},
    {"kind": "text", "texts": ["a", "b", "c"]}, {"kind": "text", "texts": ["a", ""]},
    {"kind": "text", "texts": ["a", "b\0"]}, {"kind": "text", "texts": ["a", "\ud800"]},
    {"kind": "text", "texts": ["a", "b" * 1001]}, {"kind": "text", "texts": ["a", "b"], "more": 1},
]  # fmt: skip


@pytest.mark.parametrize("head", HEADS, ids=lambda head: json.dumps(head)[:50])
def test_labels_with_a_wrong_head_are_refused(head: Any) -> None:
    _, _, numbers = labels_to_bytes(np.array(["a", "b", "a"])).partition(b"\n")
    if head == {"kind": "f"}:
        numbers = np.array([1.0, np.nan, 2.0]).tobytes()
    with pytest.raises(WireError) as refused:
        labels_from_bytes(json.dumps(head).encode() + b"\n" + numbers, 3)
    assert refused.value.field == "labels"


@settings(max_examples=300)
@given(st.integers(0, 3), st.data())
def test_damaged_labels_are_refused_or_are_labels(kind: int, data: st.DataObject) -> None:
    sent = [
        np.array([0.5, 1.5, 2.5]),
        np.array([1, 2, 3]),
        np.array(["x", "yes", "x"]),
        np.array([1.0, 0.0, 1.0]),
    ][kind]
    content = bytearray(labels_to_bytes(sent))
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.sampled_from([len(content), len(content) - 1, 0, len(content) // 2]))
    try:
        arrived, _ = labels_from_bytes(bytes(content[:cut]), 3)
    except WireError:
        return
    assert len(arrived) == 3
    assert arrived.dtype.kind == "U" or np.isfinite(arrived).all()


def test_labels_that_cannot_be_sent_are_refused_by_the_holder() -> None:
    with pytest.raises(DataError, match="1000"):
        labels_to_bytes(np.array(["a", "b" * 1001]))


def test_what_a_bundle_and_a_table_say_is_in_the_part_of_a_party() -> None:
    config = bundles(("a", "b"), model={"kind": "logistic", "l2": 0.1}, labels__positive="yes")["b"]
    assert glm_of(config).positive == "yes"
    labels, weights = np.array(["no", "yes", "no"]), np.array([1.0, 2.0, 0.5])
    values = np.arange(6.0).reshape(3, 2)
    table = PartyTable(Path("b.csv"), None, ("x", "y"), values, notes=("A note.",))
    part = own_part(config, table, [2, 0, 1], labels, weights=weights)
    assert (part.number, part.data.notes, part.preparation) == (1, ("A note.",), None)
    np.testing.assert_array_equal(part.problem.blocks[1], values[[2, 0, 1]])
    np.testing.assert_array_equal(part.data.weights, weights)
    np.testing.assert_array_equal(part.problem.loss.sample_weights, weights)
    server = server_problem(config, 3, 1, labels, weights)
    np.testing.assert_array_equal(server.loss.sample_weights, weights)
    np.testing.assert_array_equal(server.labels, part.problem.labels)
    assert server.labels.tolist() == [0.0, 1.0, 0.0]


def test_a_positive_class_of_numbers_is_refused_when_bundles_are_made() -> None:
    for positive, kind in (("yes", "logistic"), (None, "ridge")):
        rehearsed(kind, positive)
    with pytest.raises(ConfigError, match="positive"):
        rehearsed("ridge", "yes")


def rehearsed(kind: str, positive: str | None) -> None:
    network = make_network("complete", ["a", "b"])
    labels = SimpleNamespace(positive=positive)
    federation: Any = SimpleNamespace(model=GlmSection(kind=kind), labels=labels, seed=0)
    method = MTCD(stepsize=0.1, tokens=1, hops=2)
    LINEAR.rehearse(federation, method, method, network)
