"""Exit statuses: finished is told from dead, and nobody can speak for another, or of another run."""

import json
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import live
from bundles_on_disk import found
from live import make_bundles, own_table_of
from mtcd.core.errors import MtcdError, WireError
from mtcd.federation.administrator import revoke
from mtcd.federation.credentials.bundle import read_bundle
from mtcd.federation.credentials.credentials import read_credentials
from mtcd.federation.node import refusal
from mtcd.federation.node.exit_status import (
    FILE,
    FINISHED,
    RUNNING,
    STEP_SECONDS,
    WAIT_SECONDS,
    ExitStatus,
    ExitStatuses,
    ExitStatusGossip,
    Signed,
    Signer,
)
from mtcd.federation.node.node import Node
from mtcd.federation.node.operator import ask_everybody, operator_bundle
from mtcd.federation.node.overview import learn_statuses, learn_statuses_beside, summarise
from mtcd.models.glm.party.participant import LinearParticipant
from own_parts import model_section
from problems import MODELS, make_data
from waiting import PATIENCE, until

DATA = make_data(MODELS[0], 12, [2, 1, 3], seed=3)
NAMES = [*DATA.clients, "server"]


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return found(tmp_path_factory.mktemp("words") / "f")


def word(party: str = "a", **changes: Any) -> ExitStatus:
    facts = {
        "run": "r1",
        "outcome": FINISHED,
        "time": 1000,
        "status": "iterations",
        "iteration": 7,
        "objective": 0.5,
    }
    return ExitStatus.model_validate({"party": party, **facts, **changes})


def signed(bundles: Path, party: str = "a", by: str | None = None, **changes: Any) -> Signed:
    return Signer(read_bundle(bundles / (by or party))).sign(word(party, **changes))


def known(bundles: Path, tmp_path: Path, name: str = "operator") -> ExitStatuses:
    return ExitStatuses(read_bundle(bundles / name), tmp_path / FILE)


def test_a_word_is_read_by_everybody_and_kept_over_restarts(bundles: Path, tmp_path: Path) -> None:
    for reader in ("b", "server", "operator"):
        (tmp_path / reader).mkdir()
        words = known(bundles, tmp_path / reader, reader)
        for party in ("a", "server"):
            one = signed(bundles, party)
            assert words.add(words.read(one), one)
        assert known(bundles, tmp_path / reader, reader).statuses == {
            "a": word(),
            "server": word("server"),
        }


def test_a_forged_word_is_refused(bundles: Path, tmp_path: Path) -> None:
    words, good = known(bundles, tmp_path), signed(bundles)
    other = found(tmp_path / "other")
    bad: dict[str, Any] = {
        "another's key": signed(bundles, "a", by="b"),
        "another federation's authority": signed(other),
        "the operator": signed(bundles, "operator"),
        "another text": {**good, "word": word(outcome="failed").model_dump_json()},
        "another certificate": {**good, "certificate": signed(bundles, "b")["certificate"]},
        "no signature": {**good, "signature": ""},
        "not hex": {**good, "signature": "?"},
        "nonsense": {"word": "[]", "certificate": "", "signature": ""},
        "a text": "x",
        "a key missing": {"word": good["word"]},
    }
    for one in bad.values():
        with pytest.raises(WireError):
            words.read(one)
    assert words.read(good) == word()


def test_a_revoked_party_has_no_word(tmp_path: Path) -> None:
    bundles = found(tmp_path / "f")
    one = signed(bundles)
    assert known(bundles, tmp_path).read(one) == word()
    revoke(bundles, "a")
    with pytest.raises(WireError, match="revoked"):
        known(bundles, tmp_path).read(one)


def test_the_latest_word_counts_and_other_runs_do_not(bundles: Path, tmp_path: Path) -> None:
    words = known(bundles, tmp_path)
    learn_statuses(
        words,
        {
            "b": {
                "run": "r1",
                "exit_statuses": [signed(bundles, time=2000, outcome=RUNNING), signed(bundles)],
            }
        },
    )
    assert words.statuses["a"].outcome == RUNNING
    learn_statuses(words, {"b": {"run": "r2", "exit_statuses": [signed(bundles, time=3000)]}})
    assert not words.statuses
    learn_statuses(
        words,
        {
            "b": {"run": "r2", "exit_statuses": [signed(bundles, run="r2")]},
            "c": "nonsense",
            "server": {},
        },
    )
    assert words.statuses["a"].run == "r2"
    learn_statuses(words, {})  # nobody answers
    assert words.statuses["a"].run == "r2"


@pytest.mark.parametrize("bad", [None, 3, "x", [None], [{}], [["x"]], [{"word": 3}], {"a": 1}])
def test_words_of_liars_are_ignored(bad: Any, bundles: Path, tmp_path: Path) -> None:
    words = known(bundles, tmp_path)
    learn_statuses(
        words,
        {
            "b": {"run": "r1", "exit_statuses": bad},
            "c": {"run": "r1", "exit_statuses": [signed(bundles)]},
        },
    )
    assert words.statuses == {"a": word()}


def test_of_one_moment_the_fuller_status_counts_and_the_file_is_for_its_owner(
    bundles: Path, tmp_path: Path
) -> None:
    words, file = known(bundles, tmp_path), tmp_path / FILE
    plain, full = signed(bundles, objective=None), signed(bundles)
    older, later = signed(bundles, time=999), signed(bundles, time=1001, objective=None)
    taken = [words.add(words.read(one), one) for one in (plain, plain, full, full, plain, older)]
    assert taken == [True, False, True, False, False, False]
    assert words.add(words.read(later), later)
    assert stat.S_IMODE(file.stat().st_mode) & 0o077 == 0
    file.unlink()
    words.keep_runs({"r1"})
    assert not file.exists(), "nothing has changed"
    words.keep_runs({"r2"})
    assert json.loads(file.read_text()) == []


def test_a_party_that_ran_again_is_not_finished(bundles: Path) -> None:
    config = operator_bundle(bundles, read_credentials).config
    left = {
        "a": word(),
        "b": word("b", outcome=RUNNING),
        "c": word("c", outcome="failed", status="DataError"),
    }
    parties = summarise(config, {}, {}, left)["parties"]
    phases = {name: one["phase"] for name, one in parties.items()}
    assert phases == {"a": "finished", "b": "not reached", "c": "failed", "server": "not reached"}
    assert parties["a"]["time"] == "1970-01-01T00:00:01+00:00"


def nodes_of(folder: Path, **changes: Any) -> dict[str, Node]:
    method = {"kind": "mtcd", "tokens": 1, "hops": 3, "stepsize": 0.01}
    settings = {
        "model": model_section(MODELS[0]),
        "method": method,
        "network": {"kind": "path"},
        **changes,
    }
    bundles = make_bundles(folder, DATA.clients, stop={"iterations": 30}, **settings)
    return live.nodes_of(folder, bundles, DATA)


def test_the_operator_knows_who_has_finished_from_one_that_stays(tmp_path: Path) -> None:
    nodes = nodes_of(tmp_path)
    nodes["server"].stay_seconds = 600.0
    bundle = operator_bundle(tmp_path / "bundles", read_credentials)
    with ThreadPoolExecutor(len(nodes)) as pool:
        running = {name: pool.submit(node.run) for name, node in nodes.items()}
        try:
            assert until(lambda: all(running[name].done() for name in DATA.clients))
            words = ExitStatuses(bundle, bundle.folder / FILE)
            answers = ask_everybody(bundle, "status")
            assert list(answers) == ["server"]
            learn_statuses(words, answers)
            ask_everybody(bundle, "stop")
            assert running["server"].result() == "iterations"
        finally:
            for node in nodes.values():
                node.loop.stop()
    again = ExitStatuses(bundle, bundle.folder / FILE).statuses  # when nobody answers any more
    parties = summarise(bundle.config, {}, {}, again)["parties"]
    assert {
        name: (one["phase"], one["ended"], one["iteration"]) for name, one in parties.items()
    } == dict.fromkeys(NAMES, ("finished", "iterations", 30))
    at_server = json.loads((tmp_path / "runs" / "server" / FILE).read_text())
    # it has no labels
    assert all(ExitStatus.model_validate_json(one["word"]).objective is None for one in at_server)
    at_neighbour = ExitStatuses(nodes["c1"].bundle, tmp_path / "runs" / "c1" / FILE).statuses
    assert at_neighbour["c0"].objective == pytest.approx(at_neighbour["c2"].objective)


def test_without_a_server_words_are_passed_on(tmp_path: Path) -> None:
    """c0 and c2 are no neighbours."""
    nodes = nodes_of(tmp_path, server=None, method={"kind": "stcd", "stepsize": 0.01})
    nodes["c0"].stay_seconds = 600.0
    with ThreadPoolExecutor(len(nodes)) as pool:
        running = [pool.submit(node.run) for node in nodes.values()]
        try:
            assert until(lambda: len(nodes["c0"].gossip.known.statuses) == 3)
        finally:
            nodes["c0"].loop.stop()
        assert {one.result() for one in running} == {"iterations"}
    assert {one.outcome for one in nodes["c0"].gossip.known.statuses.values()} == {FINISHED}


def test_an_interruption_is_told_and_a_restart_supersedes_it(tmp_path: Path) -> None:
    nodes = nodes_of(tmp_path)
    leaving = nodes.pop("c2")
    bundles = {name: node.bundle for name, node in [*nodes.items(), ("c2", leaving)]}

    def interrupt() -> None:
        raise KeyboardInterrupt

    with ThreadPoolExecutor(len(bundles)) as pool:
        running = [pool.submit(node.run) for node in nodes.values()]
        left = pool.submit(leaving.run)
        try:
            assert until(lambda: "c1" in leaving.rpc.link.up)
            leaving.loop.call(interrupt)
            with pytest.raises(KeyboardInterrupt):
                left.result()
            heard = nodes["c1"].gossip.known
            assert until(lambda: heard.statuses.get("c2") is not None)
            assert heard.statuses["c2"].outcome == "interrupted"
            participant = LinearParticipant(bundles["c2"], own_table_of(DATA, bundles["c2"]))
            back = Node(bundles["c2"], tmp_path / "runs" / "c2", participant, None)
            nodes["c2"] = back
            running.append(pool.submit(back.run))
            assert {one.result() for one in running} == {"iterations"}
        finally:
            for node in nodes.values():
                node.loop.stop()
    assert (
        ExitStatuses(bundles["c1"], tmp_path / "runs" / "c1" / FILE).statuses["c2"].outcome
        == FINISHED
    )


def test_a_failure_in_the_opening_is_told_as_a_word_without_its_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # c0, without which no run begins, is never told
    monkeypatch.setattr(refusal, "OWN_SECONDS", 2.0)
    nodes = nodes_of(tmp_path)
    nodes.pop("c0").close()

    def fail() -> None:
        raise MtcdError("a secret of c2")

    with ThreadPoolExecutor(len(nodes)) as pool:
        running = {name: pool.submit(node.run) for name, node in nodes.items()}
        assert until(lambda: "c1" in nodes["c2"].rpc.link.up)
        nodes["c2"].loop.call(fail)
        errors = {name: one.exception(PATIENCE) for name, one in running.items()}
    assert str(errors.pop("c2")) == "a secret of c2"
    for error in errors.values():
        assert "c2 cannot take part" in str(error)
        assert "MtcdError" in str(error)
        assert "secret" not in str(error)
    word = ExitStatuses(nodes["c1"].bundle, tmp_path / "runs" / "c1" / FILE).statuses["c2"]
    assert (word.outcome, word.status) == ("failed", "MtcdError")


def test_words_in_a_run_folder_beside_are_of_their_owner_and_of_the_run_of_those_who_answer(
    tmp_path: Path,
) -> None:
    bundles = found(tmp_path / "f")
    for name in ("a", "b"):
        (bundles / name / "run").mkdir()
    in_folder = [signed(bundles), signed(bundles, "b"), "nonsense"]
    (bundles / "a" / "run" / FILE).write_text(json.dumps(in_folder))
    (bundles / "b" / "run" / FILE).write_text("[")

    def learned(answers: dict[str, Any], place: str) -> set[str]:
        (tmp_path / place).mkdir()
        words = known(bundles, tmp_path / place)
        learn_statuses_beside(words, read_bundle(bundles / "operator"), answers)
        return set(words.statuses)

    assert learned({}, "nobody answers") == {"a"}
    assert learned({"c": {"run": "r1", "exit_statuses": []}}, "in the run") == {"a"}
    assert learned({"c": {"run": "r2", "exit_statuses": []}}, "in another run") == set()
    assert learned({"a": {"run": "r1", "exit_statuses": []}}, "it answers itself") == set()


class Gossip:
    """The statuses that a knows, on a path of a, b and c, with or without a server."""

    def __init__(self, *up: str, server: bool = False) -> None:
        self.asked: list[tuple[str, list[str]]] = []
        self.answers: list[Any] = []
        self.added: list[str] = []
        self.timers: list[tuple[float, Any]] = []
        self.moment = 100.0
        gossip: Any = object.__new__(ExitStatusGossip)
        gossip.me, gossip.run = "a", "r1"
        gossip.bundle = SimpleNamespace(config=SimpleNamespace(parties=["a", "b", "c"]))
        gossip._for_server, gossip._told, gossip._pending = None, {}, 0
        gossip._near = {frozenset("ab"), frozenset("bc")}
        gossip._forwards = not server
        gossip.known = SimpleNamespace(
            add=lambda status, signed: self.added.append(status.party),
            read=self.read,
            signed=list,
            statuses={},
        )
        gossip.loop = SimpleNamespace(
            now=lambda: self.moment, later=lambda seconds, act: self.timers.append((seconds, act))
        )
        gossip.rpc = SimpleNamespace(ask=self.ask, link=SimpleNamespace(up=set(up)))
        self.gossip: ExitStatusGossip = gossip

    def read(self, signed: Any) -> Any:
        party, run = signed.split("/")
        return SimpleNamespace(party=party, run=run, time=7)

    def knows(self, *parties: str) -> None:
        self.gossip.known.statuses = {  # type: ignore[misc]
            name: SimpleNamespace(party=name, time=5) for name in parties
        }

    def ask(self, peer: str, kind: str, body: bytes, done: Any, direct: bool) -> None:
        assert direct
        self.asked.append((peer, json.loads(body)))
        self.answers.append(done)

    def gets(self, brought: Any, sender: str = "b", direct: bool = True) -> list[bytes]:
        answers: list[bytes] = []
        body = brought if isinstance(brought, bytes) else json.dumps(brought).encode()
        request: Any = SimpleNamespace(
            answer=lambda content=b"": answers.append(content),
            body=body,
            direct=direct,
            sender=sender,
        )
        self.gossip._receive(request)
        return answers


@pytest.mark.parametrize(("server", "told"), [(False, ["a", "c"]), (True, ["a"])])
def test_a_peer_is_sent_what_it_has_from_nobody_else_and_once(
    server: bool, told: list[str]
) -> None:
    """b has no link to d: of it, it hears from a, unless the server tells everybody."""
    party = Gossip("b", server=server)
    party.gossip._near = {frozenset("ab")}
    party.knows("a", "b", "c")
    party.gossip.tell()
    party.gossip.tell()
    assert party.asked == [("b", told)]


def test_a_neighbour_of_both_hears_of_each_from_itself() -> None:
    party = Gossip("b")
    party.knows("a", "b", "c")
    party.gossip.tell()
    assert party.asked == [("b", ["a"])]


def test_what_was_lost_is_sent_again_and_what_was_refused_is_not() -> None:
    party = Gossip("b")
    party.knows("a")
    for why in ("", "it is of another run"):
        party.gossip.tell()
        party.answers[-1](None, why)
        assert party.gossip._pending == 0
    party.gossip.tell()
    assert party.asked == 2 * [("b", ["a"])]


def test_the_server_is_sent_the_status_without_the_objective() -> None:
    party = Gossip("server", server=True)
    party.knows("a")
    party.gossip._for_server = "without the objective"  # type: ignore[assignment]
    party.gossip.tell()
    assert party.asked == [("server", ["without the objective"])]


def test_statuses_of_others_are_kept_and_passed_on_but_not_back() -> None:
    party = Gossip("b", "c")
    assert party.gets(["a/r1", "b/r1", "c/r1"]) == [b""]
    assert party.added == ["b", "c"], "of itself it knows best"
    assert party.gossip._told["b"] == {("b", 7), ("c", 7)}


@pytest.mark.parametrize(
    ("brought", "direct"),
    [
        (b"", True),
        (b"{", True),
        ({}, True),
        ([], True),
        (["a/r1", "b/r1", "c/r1", "server/r1", "x/r1"], True),
        (["b/r1"], False),
        (b"[" * 10**5, True),
    ],
)
def test_a_message_brings_a_status_of_each_member_at_most(brought: Any, direct: bool) -> None:
    party = Gossip("b")
    with pytest.raises(WireError, match="exit statuses are not readable"):
        party.gets(brought, direct=direct)
    assert party.gets(["a/r1", "b/r1", "c/r1", "server/r1"]) == [b""]


@pytest.mark.parametrize(
    ("brought", "why"),
    [(["b/r1", "b/r1"], "hold two of one party"), (["b/r1", "c/r2"], "another one")],
)
def test_of_what_does_not_fit_nothing_is_kept(brought: list[str], why: str) -> None:
    party = Gossip("b")
    with pytest.raises(WireError, match=why):
        party.gets(brought)
    assert party.added == []


def test_a_party_leaves_when_its_status_has_arrived_or_after_a_while() -> None:
    for arrives in (True, False):
        party, left = Gossip("b"), []
        party.knows("a")
        party.gossip.leave(lambda left=left: left.append("left"))
        assert left == []
        assert party.timers[0][0] == STEP_SECONDS
        party.moment += 0 if arrives else WAIT_SECONDS + 0.1
        if arrives:
            party.answers[0](b"", "")
        party.timers[0][1]()
        assert left == ["left"]
    alone = Gossip()
    alone.gossip.leave(lambda: left.append("alone"))
    assert left[-1] == "alone"


@pytest.mark.parametrize(("before", "moment"), [(None, 5250), (5000, 5250), (6000, 6001)])
def test_a_status_has_its_time_in_milliseconds_and_is_later_than_the_one_before(
    before: int | None, moment: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mtcd.federation.node.exit_status.time", lambda: 5.25)
    party, said = Gossip(), list[ExitStatus]()
    party.gossip._signer = SimpleNamespace(sign=said.append)  # type: ignore[assignment]
    if before is not None:
        party.gossip.known.statuses["a"] = word(time=before)
    party.gossip.say(RUNNING, objective=0.5)
    assert [one.time for one in said] == [moment, moment]
    assert [one.objective for one in said] == [0.5, None], "the server is not told"
