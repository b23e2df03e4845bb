"""What a node does when its run, or its process, ends: by hand, without a training."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("cryptography")

from mtcd.core.errors import DataError, WireError
from mtcd.federation.node.ending import Ending, finite
from mtcd.federation.node.exit_status import FAILED, FINISHED, INTERRUPTED
from mtcd.federation.node.final_check import Outcome
from mtcd.federation.node.refusal import UnableError
from mtcd.federation.participant.keeping import STOPPED
from mtcd.protocol.codec.envelopes import End
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.training.divergence import DIVERGED


class Ended:
    """The node of a, with peers b and server, after the end of a run."""

    def __init__(self, status: str | None = "iterations", *, begun: bool = True) -> None:
        self.said: list[Any] = []
        self.asked: list[Any] = []
        self.called: list[Any] = []
        self.left: list[Any] = []
        self.kept = status
        ending: Any = object.__new__(Ending)
        end = None if status is None else End(status, 2, 7)
        ledger = Ledger()
        self.reliable = SimpleNamespace(
            correct_status=lambda how: self.said.append(("corrected", how)),
            ended=end,
            ended_here=True,
            ledger=ledger,
            terms={},
        )
        ending.trainer = SimpleNamespace(reliable=self.reliable) if begun else None
        ending.bundle = SimpleNamespace(
            config=SimpleNamespace(
                holdout=None, name="a", parties=["a", "b", "c"], peers={"b": 1, "server": 1}
            )
        )
        ending.final_check = None
        ending.folder = SimpleNamespace(final_check=lambda: None, has_run=True, path="run")
        ending.gossip = SimpleNamespace(
            leave=self.left.append,
            say=lambda how, **facts: self.said.append((how, facts)),
            say_at_once=lambda how, **facts: self.said.append(("at once", how, facts)),
        )
        ending.log = SimpleNamespace(
            say=lambda event, text, **facts: self.said.append((event, text))
        )
        ending.loop = SimpleNamespace(
            call=self.called.append,
            later=lambda seconds, act: self.left.append((seconds, act)),
            stop=None,
        )
        ending.outcome = Outcome()
        self.participant = SimpleNamespace(
            accept_final_module=lambda module: module == b"new",
            awaits_final_module=False,
            final_module=lambda: b"module",
            keep=self.keep,
            restore=lambda path: self.said.append(("restored", path)),
        )
        ending.participant = self.participant
        ending.refusal = SimpleNamespace(tell=lambda error: self.said.append(("told", error)))
        ending.role = SimpleNamespace(judged=True, notes=())
        ending.rpc_client = SimpleNamespace(
            ask=lambda *asked: self.asked.append(asked), waits_for=set()
        )
        ending.staying, ending.stay_seconds = False, 0.0
        ending.status = None
        ending.watch = SimpleNamespace(iteration=7)
        ending.watched = SimpleNamespace(leave=lambda then: self.left.append(("watched", then)))
        self.ending: Ending = ending

    def keep(self, path: Any, reliable: Any, watch: Any, notes: Any, unjudged: str) -> Any:
        return SimpleNamespace(
            iterations=7, message=f"Ended.{unjudged}", objective=math.inf, status=self.kept
        )


@pytest.mark.parametrize(
    ("status", "how"),
    [("iterations", FINISHED), ("plateau", FINISHED), (DIVERGED, DIVERGED), (STOPPED, STOPPED)],
)
def test_a_run_ends_with_its_block_kept_and_its_status_told(status: str, how: str) -> None:
    node = Ended(status)
    node.ending._conclude(Outcome())
    assert node.said == [
        ("ended", "Ended."),
        (how, {"status": status, "iteration": 7, "objective": None}),
    ]
    assert node.ending.status == status


def test_an_evaluation_corrects_the_status_and_what_is_missing_is_said() -> None:
    node = Ended()
    node.ending._conclude(Outcome(diverged=True))
    assert node.said[0] == ("corrected", DIVERGED)
    node.said.clear()
    node.ending._conclude(Outcome(away=("c",)))
    assert node.said[0][1].startswith(
        "Ended.The held-out samples are not evaluated: c took no part"
    )


@pytest.mark.parametrize(
    ("error", "opening", "said"),
    [
        (DataError("value 7"), False, ("at once", FAILED, {"status": "DataError", "iteration": 7})),
        (KeyboardInterrupt(), False, ("at once", INTERRUPTED, {"status": "", "iteration": 7})),
        (KeyboardInterrupt(), True, ("at once", INTERRUPTED, {"status": "", "iteration": 7})),
        (DataError("value 7"), True, (FAILED, {"status": "DataError", "iteration": 7})),
        (UnableError("c", "x"), False, (FAILED, {"status": "c cannot take part", "iteration": 7})),
    ],
)
def test_a_process_that_fails_tells_the_others_and_in_the_opening_all_of_them(
    error: BaseException, opening: bool, said: Any
) -> None:
    node = Ended()
    node.ending.folder.has_run = not opening  # type: ignore[misc]
    node.ending._failed(error)
    told = [] if said[0] == "at once" else [("told", error)]
    assert node.said == [said, *told]


def test_what_has_ended_stays_as_it_was_told_though_the_process_fails() -> None:
    node = Ended()
    node.ending.status = "iterations"
    node.ending._failed(DataError("x"))
    assert node.said == []
    before = Ended()
    before.ending.watch = None
    before.ending._failed(DataError("x"))
    assert before.said == [("at once", FAILED, {"status": "DataError", "iteration": None})]


def test_a_party_that_stays_answers_the_operator_until_its_time_is_over() -> None:
    node = Ended()
    node.ending._leave()
    assert node.left == [node.ending._leave_operator]
    assert not node.ending.staying
    node.left.clear()
    node.ending.stay_seconds = 30.0
    node.ending._leave()
    assert node.left[0] == (30.0, None)
    assert node.ending.staying
    node.left[1]()  # nothing more
    assert node.said == [("staying", "Staying for 30 s, to answer the operator.")]


def test_training_has_begun_once_something_counts() -> None:
    assert not Ended(begun=False).ending._has_begun()
    assert Ended().ending._has_begun()
    node = Ended(None)
    assert not node.ending._has_begun()
    node.reliable.ledger.record(0, 8)
    assert node.ending._has_begun()


@pytest.mark.parametrize(
    ("terms", "judged", "term"), [({}, True, 0), ({3: 1, 5: 0}, True, 5), ({3: 1}, False, 0)]
)
def test_the_term_of_an_end_is_the_latest_of_a_lone_token(
    terms: dict[int, int], judged: bool, term: int
) -> None:
    node = Ended()
    node.reliable.terms, node.ending.role.judged = terms, judged  # type: ignore[misc]
    assert node.ending.term == term
    node.reliable.ended = None
    assert node.ending.term is None


def test_who_ended_the_training_sends_the_last_module_to_all_other_parties() -> None:
    node = Ended()
    node.ending._end = Ending._end.__get__(node.ending)  # type: ignore[method-assign]
    node.ending._conclude = lambda outcome: node.said.append(outcome)  # type: ignore[method-assign]
    node.ending.trainer = SimpleNamespace(  # type: ignore[assignment]
        loop=SimpleNamespace(now=lambda: 0.0), reliable=node.reliable, rpc=None
    )
    node.ending._end()
    assert node.said == [("restored", "run"), Outcome()]
    sends, _leaving = node.called
    sends()
    assert node.asked == [("fusion_module", {"b": b"module", "c": b"module"})]


@pytest.mark.parametrize(("here", "status"), [(False, "iterations"), (True, DIVERGED)])
def test_nobody_sends_the_module_of_another_or_of_a_diverged_training(
    here: bool, status: str
) -> None:
    node = Ended(status)
    node.reliable.ended_here = here
    node.ending._conclude = lambda outcome: None  # type: ignore[method-assign]
    node.ending.trainer = SimpleNamespace(  # type: ignore[assignment]
        loop=SimpleNamespace(now=lambda: 0.0), reliable=node.reliable, rpc=None
    )
    node.ending._end()
    assert len(node.called) == 1, "to leave"


class Check:
    """The evaluation at the end."""

    def __init__(self, pending: bool = True) -> None:
        self.pending = pending
        self.happened: list[str] = []

    def begin(self, then: Any) -> None:
        self.happened.append("begun")

    def proceed(self) -> None:
        self.happened.append("proceeded")


@pytest.mark.parametrize(
    ("status", "before", "begins"),
    [("iterations", None, True), (DIVERGED, None, False), (DIVERGED, (True, set()), True)],
)
def test_an_end_is_evaluated_unless_the_training_diverged_on_the_way(
    status: str, before: Any, begins: bool
) -> None:
    node, check = Ended(status), Check()
    node.ending.final_check = check  # type: ignore[assignment]
    node.ending.folder.final_check = lambda: before  # type: ignore[method-assign]
    node.ending._conclude = lambda outcome: check.happened.append("concluded")  # type: ignore[method-assign]
    node.ending.trainer = SimpleNamespace(  # type: ignore[assignment]
        loop=SimpleNamespace(now=lambda: 0.0), reliable=node.reliable, rpc=None
    )
    node.ending._end()
    assert check.happened == ["begun" if begins else "concluded"]


@pytest.mark.parametrize(
    ("status", "module", "pending", "awaits"),
    [
        ("iterations", False, False, False),
        ("iterations", True, False, True),
        ("iterations", False, True, True),
        (DIVERGED, True, True, False),
        (None, True, False, True),
    ],
)
def test_reports_are_awaited_until_module_and_result_are_there(
    status: str | None, module: bool, pending: bool, awaits: bool
) -> None:
    node = Ended(status)
    node.participant.awaits_final_module = module
    node.ending.final_check = Check(pending)  # type: ignore[assignment]
    assert node.ending._awaits_reports() == awaits
    assert node.ending.complete is not module


def received(node: Ended, body: bytes, sender: str = "server") -> str:
    """What becomes of a module that arrives."""
    happened: list[str] = []
    request: Any = SimpleNamespace(
        answer=lambda: happened.append("answered"),
        body=body,
        drop=lambda: happened.append("dropped"),
        sender=sender,
    )
    node.ending._receive_final_module(request)
    return happened[0]


def test_a_last_module_is_taken_after_the_end_from_the_server_if_there_is_one() -> None:
    assert received(Ended(None), b"new") == "dropped"
    assert received(Ended(begun=False), b"new") == "dropped"
    with pytest.raises(WireError, match="sender is not the party that ended the training"):
        received(Ended(), b"new", sender="b")
    alone = Ended()
    alone.ending.bundle.config.peers = {"b": 1}  # type: ignore[misc, dict-item]
    assert received(alone, b"new", sender="b") == "answered"


@pytest.mark.parametrize(
    ("body", "pending", "happened"),
    [(b"new", True, ["proceeded"]), (b"known", True, []), (b"new", False, [])],
)
def test_with_the_module_the_evaluation_proceeds(
    body: bytes, pending: bool, happened: list[str]
) -> None:
    node, check = Ended(), Check(pending)
    node.ending.final_check = check  # type: ignore[assignment]
    assert received(node, body) == "answered"
    assert check.happened == happened


@pytest.mark.parametrize("value", [None, math.nan, math.inf, -math.inf])
def test_only_finite_numbers_are_told(value: float | None) -> None:
    assert finite(value) is None
    assert finite(0.0) == 0.0
