"""Predictions in a federation: as by one model, and only for whom they are."""

import csv
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from live import federate, in_process
from mtcd.core.errors import DataError, MtcdError, WireError
from mtcd.data.vertical import VerticalData
from mtcd.federation.credentials.bundle import Bundle
from mtcd.federation.node.chunks import wrap
from mtcd.federation.node.link import NO, OK, IncomingRequest
from mtcd.federation.node.passing import (
    SumContributor,
    SumReceiver,
    from_sums,
    order_of,
    read_sums,
    to_sums,
)
from mtcd.federation.node.predicting import (
    New,
    Predictor,
    check_out,
    classes_from,
    new_samples,
    run_number,
    server_decides,
    writer,
)
from mtcd.federation.participant.table import PartyTable
from mtcd.models.predicted import class_name
from own_parts import model_section
from problems import MODELS, make_data
from waiting import PATIENCE

RIDGE, LOGISTIC, MULTINOMIAL = MODELS[3], MODELS[5], MODELS[7]
METHOD = {"kind": "mtcd", "tokens": 2, "hops": 4, "stepsize": 0.01, "combine": "average"}


def predictors(
    folder: Path, told: Any, fresh: VerticalData, shuffled: list[np.ndarray]
) -> dict[str, Predictor]:
    made = {}
    for name, bundle in told.bundles.items():
        out = folder / f"{name}.csv"
        if bundle.config.is_server:
            if bundle.config.seen_by == "server":
                decide = server_decides(bundle, folder / "runs" / name)
                made[name] = Predictor(bundle, None, writer(bundle.config, out), decide, None)
            continue
        k = fresh.clients.index(name)
        made[name] = Predictor(
            bundle,
            New(new_table(bundle, fresh, shuffled[k]), told.blocks[name]),
            writer(bundle.config, out),
            None,
            None,
        )
    return made


def new_table(bundle: Bundle, fresh: VerticalData, order: np.ndarray) -> PartyTable:
    k = fresh.clients.index(bundle.config.name)
    ids = tuple(f"id{i}" for i in order) if bundle.config.alignment != "given order" else None
    return PartyTable(
        Path(f"{bundle.config.name}.csv"), ids, fresh.columns[k], np.asarray(fresh.blocks[k])[order]
    )


def run_all(made: dict[str, Predictor]) -> None:
    with ThreadPoolExecutor(len(made)) as pool:
        for future in [pool.submit(one.run) for one in made.values()]:
            future.result(PATIENCE)


@pytest.mark.parametrize(
    ("model", "alignment", "seen_by", "network"),
    [
        (RIDGE, "hashed", None, {"kind": "path"}),
        (LOGISTIC, "psi", "c2", {"kind": "cycle"}),
        (MULTINOMIAL, "given order", "server", {"kind": "complete"}),
        (RIDGE, "given order", "server", {"kind": "path"}),
    ],
    ids=["ridge", "logistic", "multinomial", "ridge at the server"],
)
def test_predictions_are_those_of_one_model(
    model: Any, alignment: str, seen_by: str | None, network: dict[str, str], tmp_path: Path
) -> None:
    data, fresh = (
        make_data(model, 24, [2, 1, 3, 2], seed=3),
        make_data(model, 9, [2, 1, 3, 2], seed=4),
    )
    told = federate(
        tmp_path,
        data,
        model=model_section(model),
        method=METHOD,
        stop={"iterations": 16},
        alignment=alignment,
        network=network,
        **({} if seen_by is None else {"predictions": {"seen_by": seen_by}}),
    )
    rng = np.random.default_rng(0)
    given = alignment == "given order"
    shuffled = [np.arange(9) if given else rng.permutation(9) for _ in data.clients]
    run_all(predictors(tmp_path, told, fresh, shuffled))
    seer = seen_by or data.clients[0]
    assert [path.stem for path in tmp_path.glob("*.csv")] == [seer]
    with open(tmp_path / f"{seer}.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    expected = in_process(data, told.bundles["c0"]).predict(fresh)
    names = [str(i + 1) for i in range(9)] if given else sorted(f"id{i}" for i in range(9))
    assert [row["row" if given else "id"] for row in rows] == names
    places = [int(name) - 1 if given else int(name[2:]) for name in names]
    found = np.array([row["prediction"] for row in rows])
    if model.kind == "ridge":
        np.testing.assert_allclose(found.astype(float), expected[places], rtol=1e-7, atol=1e-7)
    else:
        assert found.tolist() == [str(label) for label in expected[places].tolist()]
        trained = in_process(data, told.bundles["c0"])
        names = [name for name in rows[0] if name.startswith("p_")]
        assert names == [f"p_{class_name(one)}" for one in trained.classes]
        chances = np.array([[float(row[name]) for name in names] for row in rows])
        np.testing.assert_allclose(
            chances, trained.predict_proba(fresh)[places], rtol=1e-6, atol=1e-7
        )


def test_sums_are_exact_and_what_is_too_large_is_refused() -> None:
    values = np.random.default_rng(1).standard_normal((50, 3)) * 1e3
    mask = np.random.default_rng(2).integers(0, 2**64, (50, 3), dtype=np.uint64)
    others = -values[::-1] / 3
    total = from_sums(to_sums(values) + mask + to_sums(others) - mask)
    np.testing.assert_allclose(total, values + others, rtol=0, atol=2.0**-32)
    for bad in (np.nan, np.inf, 2.0**30):
        with pytest.raises(DataError, match="too large"):
            to_sums(np.array([[bad]]))
    with pytest.raises(WireError, match="size"):
        read_sums(b"\0" * 16, (3, 1))


def test_a_pass_that_leaves_somebody_out_is_refused(tmp_path: Path) -> None:
    """Otherwise the seer could have one party's part alone."""
    data = make_data(RIDGE, 12, [2, 1, 3], seed=3)
    told = federate(
        tmp_path, data, model=model_section(RIDGE), method=METHOD, stop={"iterations": 4}
    )
    fresh = make_data(RIDGE, 5, [2, 1, 3], seed=4)
    made = predictors(tmp_path, told, fresh, [np.arange(5)] * 3)
    victim, seer = made["c1"], made["c0"]
    victim.rows, answers = range(5), []
    order = order_of(told.bundles["c0"].config)
    assert sorted(order) == ["c1", "c2"]
    for wrong in (["c1"], ["c1", "c1"], [*order, "c0"], order[::-1], []):
        body = wrap({"pass": "p", "order": wrong, "certificates": {}}, bytes(40))
        victim.context.rpc._handle(asked("c0", body, answers))
    assert answers == ["refused"] * 5
    assert victim.context.log.tail[-1]["sender"] == "c0"
    for one in (*made.values(),):
        one.context.rpc.link.close()
    assert seer.finished is False


NAMES = ("a", "b", "c", "d")
GRAPHS = {
    "path": [("a", "b"), ("b", "c"), ("c", "d")],
    "star": [("b", "a"), ("b", "c"), ("b", "d")],
    "cycle": [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")],
}


class Sealed:
    """In the place of encryption: sums pass as they are."""

    def lock(self, to: str, certificate: bytes, content: bytes) -> bytes:
        return content

    def unlock(self, content: bytes) -> bytes:
        return content


class Stubs:
    """Both sides of RPC of one party in a pass, without links: what it asks of others is kept."""

    def __init__(self, name: str, links: list[tuple[str, str]], seen_by: str) -> None:
        self.seal, self.handlers, self.asked = Sealed(), {}, []
        self.config: Any = SimpleNamespace(
            name=name, links=links, parties=list(NAMES), seen_by=seen_by
        )

    def on(self, kind: str, handler: Any) -> None:
        self.handlers[kind] = handler

    def ask(self, kind: str, bodies: dict[str, bytes]) -> None:
        self.asked.append((kind, bodies))

    def head(self, number: str = "p1") -> dict[str, Any]:
        certificates = {name: b64encode(name.encode()).decode() for name in NAMES}
        return {"pass": number, "order": order_of(self.config), "certificates": certificates}


@pytest.mark.parametrize("links", GRAPHS.values(), ids=GRAPHS)
@pytest.mark.parametrize("seen_by", ["a", "c", "server"])
def test_a_party_adds_its_part_for_its_predecessor_alone(links: Any, seen_by: str) -> None:
    """Anybody else could send a sum that it knows, and find the part in what the party passes
    on."""
    order = order_of(Stubs("a", links, seen_by).config)
    for place, name in enumerate(order):
        before = seen_by if place == 0 else order[place - 1]
        stubs, answers = Stubs(name, links, seen_by), []
        asked_for: list[str] = []

        def own(name: str = name, asked_for: list[str] = asked_for) -> Any:
            asked_for.append(name)
            return np.array([7, 9], dtype=np.uint64)

        SumContributor(stubs, stubs, stubs.config, own)  # type: ignore[arg-type]
        body = wrap(stubs.head(), np.array([1, 2], dtype=np.uint64).tobytes())

        for other in {*NAMES, "server"} - {before}:
            with pytest.raises(WireError, match="not the predecessor"):
                stubs.handlers["add"](asked(other, body, answers))
        assert (asked_for, stubs.asked, answers) == ([], [], [])

        stubs.handlers["add"](asked(before, body, answers))
        # sent again: answered, and not added twice
        stubs.handlers["add"](asked(before, body, answers))
        assert asked_for == [name]
        assert answers == ["answered"] * 2
        [(kind, sent)] = stubs.asked
        last = place == len(order) - 1
        assert (kind, list(sent)) == (("sum", [seen_by]) if last else ("add", [order[place + 1]]))
        [passed_on] = sent.values()
        assert passed_on.endswith(np.array([8, 11], dtype="<u8").tobytes())


@pytest.mark.parametrize("links", GRAPHS.values(), ids=GRAPHS)
def test_the_receiver_takes_the_sum_of_the_last_party_alone(links: Any) -> None:
    """A sum of another one would be of some parts only."""
    stubs, found, answers = Stubs("a", links, "a"), [], []
    receiver = SumReceiver(stubs, stubs, stubs.config)  # type: ignore[arg-type]
    receiver.begin((2,), stubs.head()["certificates"], found.append)
    total = receiver._mask + np.array([8, 11], dtype=np.uint64)
    body = wrap(stubs.head(receiver._number), total.tobytes())
    *others, last = receiver.order
    for other in others:
        with pytest.raises(WireError, match="not the last"):
            stubs.handlers["sum"](asked(other, body, answers))
    stale = wrap(stubs.head("another"), total.tobytes())
    stubs.handlers["sum"](asked(last, stale, answers))
    assert found == []
    stubs.handlers["sum"](asked(last, body, answers))
    assert [one.tolist() for one in found] == [[8, 11]]
    assert answers == ["answered"] * 2


def test_blocks_of_others_and_of_other_runs_are_refused(tmp_path: Path) -> None:
    """Their columns may be named alike: the predictions would be wrong, and nobody would see it."""
    data = make_data(RIDGE, 12, [2, 1, 3], seed=3)
    told = federate(
        tmp_path, data, model=model_section(RIDGE), method=METHOD, stop={"iterations": 4}
    )
    with pytest.raises(MtcdError, match=r"a run of c1.*--run"):
        new_samples(told.bundles["c0"], tmp_path / "runs" / "c1", tmp_path / "new.csv", None)
    with pytest.raises(MtcdError, match="--run"):
        run_number(tmp_path)
    numbers = {run_number(tmp_path / "runs" / name) for name in told.bundles}
    assert len(numbers) == 1
    bundle, new = (
        told.bundles["c1"],
        New(new_table(told.bundles["c1"], data, np.arange(12)), told.blocks["c1"]),
    )
    made = []
    for run in ("one", "two"):
        log = tmp_path / f"{run}.jsonl"
        made.append(
            Predictor(bundle, new, writer(bundle.config, tmp_path / "p.csv"), None, None, log, run)
        )
        made[-1].context.close()
        assert log.is_file()
    here = made[0]
    answers: list[str] = []
    for one in made:
        body = wrap({"agreement": one.alignment.agreement}, b"")
        here.context.rpc._handle(asked("c0", body, answers, "align"))
    assert answers == ["answered", "refused"]
    assert "different runs" in here.context.log.tail[-1]["text"]


def asked(sender: str, body: bytes, answers: list[str], kind: str = "add") -> IncomingRequest:
    """A request that notes how it was answered."""
    words = {b"": "let go", OK: "answered", NO: "refused"}
    return IncomingRequest(sender, kind, body, lambda answer: answers.append(words[answer[:1]]))


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"pass": 7}, "is not the id of a pass"),
        ({"pass": ""}, "is not the id of a pass"),
        ({"pass": "p" * 65}, "is not the id of a pass"),
        ({"pass": "../p"}, "is not the id of a pass"),
        ({"pass": "ü"}, "is not the id of a pass"),
        ({"certificates": {}}, "are not those of all parties"),
        ({"certificates": list(NAMES)}, "are not those of all parties"),
        ({"certificates": dict.fromkeys([*NAMES, "e"], "YQ==")}, "are not those of all parties"),
        ({"certificates": dict.fromkeys(NAMES, "")}, "lack that of a"),
        ({"certificates": dict.fromkeys(NAMES, "?")}, "lack that of a"),
        ({"certificates": dict.fromkeys(NAMES, 3)}, "lack that of a"),
    ],
)
def test_the_head_of_a_pass_is_checked_before_it_is_passed_on(
    changes: dict[str, Any], told: str
) -> None:
    stubs, answers = Stubs("b", GRAPHS["path"], "a"), []
    order = ["a", *order_of(stubs.config)]
    before = order[order.index("b") - 1]
    added: list[str] = []

    def own() -> Any:
        added.append("b")
        return np.array([7], dtype=np.uint64)

    SumContributor(stubs, stubs, stubs.config, own)  # type: ignore[arg-type]
    with pytest.raises(WireError, match=told):
        stubs.handlers["add"](asked(before, wrap(stubs.head() | changes, bytes(8)), answers))
    assert (added, stubs.asked, answers) == ([], [], [])
    stubs.handlers["add"](asked(before, wrap(stubs.head(), bytes(8)), answers))
    assert added == ["b"]


def collecting(**sizes: Any) -> list[Any]:
    """The shapes of the passes that a server starts when it is asked for sums of these sizes; a
    message has at most one megabyte."""
    head = {"samples": 5, "width": 1, "classes": None, "certificates": {}, **sizes}
    server, begun = object.__new__(Predictor), []
    server.config = SimpleNamespace(limits=SimpleNamespace(message_mb=1))  # type: ignore[assignment]
    server.alignment = SimpleNamespace(read=lambda *asked: (head, []))  # type: ignore[assignment]
    server._start_pass = lambda shape, *more: begun.append(shape)  # type: ignore[method-assign]
    server._collect(None)  # type: ignore[arg-type]
    return begun


@pytest.mark.parametrize("name", ["samples", "width"])
@pytest.mark.parametrize("size", [0, -1, 2**30, True, 1.0, "3", None])
def test_a_server_collects_no_sums_of_a_size_that_is_none(name: str, size: Any) -> None:
    with pytest.raises(WireError, match=f"{name} is out of range"):
        collecting(**{name: size})


def test_a_server_collects_what_fits_into_a_message() -> None:
    assert collecting(samples=2**16, width=2) == [(2**16, 2)]
    with pytest.raises(WireError, match="are more than fit into a message"):
        collecting(samples=2**16 + 1, width=2)


def test_a_party_adds_nothing_before_it_knows_the_samples() -> None:
    party = object.__new__(Predictor)
    party.new, party.rows = SimpleNamespace(), None  # type: ignore[assignment]
    with pytest.raises(WireError, match="comes before the announcement of samples"):
        party._own_part()


@pytest.mark.parametrize("classes", [None, "ab", {"a": 1}, [None], ["a", ["b"]], [{}]])
def test_classes_of_the_leader_that_are_none_are_refused(classes: Any) -> None:
    assert classes_from(["a", 1, 2.5]) == ("a", 1, 2.5)
    with pytest.raises(DataError, match="did not send the classes"):
        classes_from(classes)


def test_where_no_file_can_be_written_is_told_before_anybody_is_asked(tmp_path: Path) -> None:
    check_out(tmp_path / "p.csv")
    for out in (tmp_path, tmp_path / "none" / "p.csv"):
        with pytest.raises(DataError, match=rf"{out} cannot be written: give a file"):
            check_out(out)


@pytest.mark.parametrize("number", ["p", "p" * 64])
def test_the_id_of_a_pass_has_1_to_64_letters(number: str) -> None:
    stubs, answers = Stubs("b", GRAPHS["path"], "a"), []
    order = ["a", *order_of(stubs.config)]
    SumContributor(stubs, stubs, stubs.config, lambda: np.array([7], dtype=np.uint64))  # type: ignore[arg-type]
    body = wrap(stubs.head(number), bytes(8))
    stubs.handlers["add"](asked(order[order.index("b") - 1], body, answers))
    assert answers == ["answered"]


def test_sums_are_of_the_shape_that_was_asked_for() -> None:
    sums = np.arange(6, dtype=np.uint64)
    assert read_sums(sums.tobytes(), (2, 3)).tolist() == [[0, 1, 2], [3, 4, 5]]
    for content in (sums.tobytes()[:-1], sums.tobytes() + bytes(8), b""):
        with pytest.raises(WireError, match="sum is of another size"):
            read_sums(content, (2, 3))


def test_notes_on_new_samples_are_said_once_however_often_a_pass_is_restarted() -> None:
    party: Any = object.__new__(Predictor)
    told: list[str] = []
    party.context = SimpleNamespace(log=SimpleNamespace(say=lambda event, text: told.append(text)))
    party.new = SimpleNamespace(notes=lambda rows: [f"on {rows}"], part=lambda rows: np.ones(2))
    party.noted, party.rows = False, [0, 2]
    for _ in range(2):
        assert from_sums(party._own_part()).tolist() == [1.0, 1.0]
    assert told == ["on [0, 2]"]


def test_predictions_are_for_their_owner_only(tmp_path: Path) -> None:
    config: Any = SimpleNamespace(alignment="hashed", is_server=False)
    out = tmp_path / "p.csv"
    said = writer(config, out)(["x", "y"], {"prediction": np.array([1.0, 2.0])})
    assert said == f"2 predictions are in {out}."
    assert out.read_text().split() == ["id,prediction", "x,1.0", "y,2.0"]
    assert out.stat().st_mode & 0o777 == 0o600
