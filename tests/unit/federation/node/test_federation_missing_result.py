"""When somebody is away at the end, the run says that nobody can tell whether it has diverged; a
result that is known stays the same, whoever is started again."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from killed_at_end import KilledAtEnd, KilledBeforeVerdict, run_killing
from killed_at_end import impatient as impatient
from live import in_process, make_bundles, nodes_of, run_all
from mtcd.core.errors import MtcdError, WireError
from mtcd.federation.credentials.bundle import Bundle
from mtcd.federation.node import final_check
from mtcd.federation.node.final_check import Outcome
from mtcd.federation.node.folder import RunFolder
from mtcd.federation.node.node import Node
from mtcd.federation.participant.keeping import Summary, read_summary
from mtcd.training.divergence import DIVERGED
from own_parts import model_section
from problems import MODELS, make_data

MODEL = MODELS[0]
DATA = make_data(MODEL, 20, [2, 1, 3, 2], seed=3)
HOLDER, OTHER, _, LAST = DATA.clients
KEPT = "iterations"
FINE_STEP, LARGE_STEP = 0.04, 0.06  # the second ends above the start, with finite numbers
METHOD = {"kind": "svfl", "local_updates": 2}


pytestmark = pytest.mark.usefixtures("impatient")


def bundles_for(folder: Path, stepsize: float) -> dict[str, Bundle]:
    settings = {
        "model": model_section(MODEL),
        "method": {**METHOD, "stepsize": stepsize},
        "seed": 5,
    }
    return make_bundles(folder, DATA.clients, stop={"iterations": 3}, **settings)


def run_with(folder: Path, bundles: dict[str, Bundle], killed: type[Node]) -> None:
    """Everybody, the last party as this kind, which does not come to an end."""
    run_killing(nodes_of(folder, bundles, DATA, LAST, killed), LAST)


def summaries(folder: Path, names: Any) -> list[Summary]:
    return [read_summary(folder / "runs" / name) for name in names]


@pytest.mark.long
@pytest.mark.parametrize(("stepsize", "status"), [(FINE_STEP, KEPT), (LARGE_STEP, DIVERGED)])
def test_a_party_away_at_the_end_is_named_and_a_restart_of_all_gives_the_result(
    stepsize: float, status: str, tmp_path: Path
) -> None:
    bundles = bundles_for(tmp_path, stepsize)
    assert in_process(DATA, bundles[HOLDER]).status == status
    run_with(tmp_path, bundles, KilledAtEnd)
    for told in summaries(tmp_path, [name for name in bundles if name != LAST]):
        assert told.status == KEPT
        assert f"is not known: {LAST} took no part" in told.message
        assert "Start all parties again" in told.message
    assert set(run_all(nodes_of(tmp_path, bundles, DATA)).values()) == {status}
    assert {(one.status, one.unjudged) for one in summaries(tmp_path, bundles)} == {(status, "")}
    assert len(list(tmp_path.glob("runs/*/block.npz"))) == (0 if status == DIVERGED else 4)


@pytest.mark.parametrize(("stepsize", "status"), [(FINE_STEP, KEPT), (LARGE_STEP, DIVERGED)])
def test_a_party_started_again_alone_says_what_it_said_before(
    stepsize: float, status: str, tmp_path: Path
) -> None:
    bundles = bundles_for(tmp_path, stepsize)
    assert set(run_all(nodes_of(tmp_path, bundles, DATA)).values()) == {status}
    for name in (HOLDER, OTHER, "server"):
        assert run_all(nodes_of(tmp_path, {name: bundles[name]}, DATA)) == {name: status}
    assert {(one.status, one.unjudged) for one in summaries(tmp_path, bundles)} == {(status, "")}


@pytest.mark.parametrize(("stepsize", "status"), [(FINE_STEP, KEPT), (LARGE_STEP, DIVERGED)])
def test_who_missed_the_result_hears_it_when_the_holder_is_there_again(
    stepsize: float, status: str, tmp_path: Path
) -> None:
    bundles = bundles_for(tmp_path, stepsize)
    run_with(tmp_path, bundles, KilledBeforeVerdict)
    others = [name for name in bundles if name != LAST]
    assert {one.status for one in summaries(tmp_path, others)} == {status}
    back = nodes_of(tmp_path, {name: bundles[name] for name in (HOLDER, LAST)}, DATA)
    assert set(run_all(back).values()) == {status}
    assert {(one.status, one.unjudged) for one in summaries(tmp_path, bundles)} == {(status, "")}


def test_who_missed_the_result_and_is_alone_names_the_holder(tmp_path: Path) -> None:
    bundles = bundles_for(tmp_path, LARGE_STEP)
    run_with(tmp_path, bundles, KilledBeforeVerdict)
    (tmp_path / "runs" / LAST / "final_check.json").unlink(missing_ok=True)
    assert run_all(nodes_of(tmp_path, {LAST: bundles[LAST]}, DATA)) == {LAST: KEPT}
    assert f"is not known: {HOLDER} took no part" in read_summary(tmp_path / "runs" / LAST).message


class Answering(SimpleNamespace):
    """A request that can be answered."""

    def answer(self) -> None:
        self.answered = True


def test_a_result_that_comes_late_still_counts_and_only_once(tmp_path: Path) -> None:
    bundle, concluded = bundles_for(tmp_path, FINE_STEP)[OTHER], list[Outcome]()
    loop, kept = SimpleNamespace(later=lambda seconds, act: act()), RunFolder(tmp_path / "run")
    link = SimpleNamespace(peers={HOLDER}, up=set())
    rpc = SimpleNamespace(on=lambda kind, handler: None, link=link, seal=object())
    context: Any = SimpleNamespace(
        rpc=rpc, rpc_client=SimpleNamespace(waits_for=set()), loop=loop, log=None
    )
    one = final_check.FinalCheck(context, bundle.config, "run-7", SimpleNamespace(term=0), kept)  # type: ignore[arg-type]
    one.begin(concluded.append)
    for told in ("missing " + HOLDER, "diverged", "fine"):
        asked: Any = Answering(sender=HOLDER, body=b"run-7 " + told.encode())
        one._receive_result(asked)
        assert asked.answered
    assert concluded == [Outcome(away=(HOLDER,)), Outcome(diverged=True)]
    assert kept.final_check() == (True, set())
    kept.close()


@pytest.mark.parametrize(
    "outcome", [Outcome(), Outcome(diverged=True), Outcome(away=("a",)), Outcome(away=("a", "b"))]
)
def test_an_outcome_is_read_as_it_was_told(outcome: Outcome) -> None:
    assert Outcome.read(str(outcome), ["a", "b", "server"]) == outcome


@pytest.mark.parametrize("told", ["", "good", "missing", "missing x", "missing a ", "fine a"])
def test_what_is_no_outcome_is_refused(told: str) -> None:
    with pytest.raises(WireError):
        Outcome.read(told, ["a", "b", "server"])


def test_a_result_that_cannot_be_read_says_what_to_do(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    assert folder.final_check() is None
    folder.keep_final_check(True, {"b", "a"})
    assert folder.final_check() == (True, {"a", "b"})
    (tmp_path / "final_check.json").write_text("{}")
    with pytest.raises(MtcdError, match="remove it and restart all"):
        folder.final_check()
    folder.close()
