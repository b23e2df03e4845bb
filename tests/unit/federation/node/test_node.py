"""How a node begins: with the run of its folder, or with the opening of a new one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("cryptography")

from mtcd.federation.node import node as nodes
from mtcd.federation.node.node import ADVICE_SECONDS, OTHER_RUN, WAITING_NOTE_SECONDS, Node
from mtcd.federation.node.opening import Agreed

AGREED = Agreed("run", {}, b"", b"")


class Beginning:
    """The node of ``name``; a holds the labels. What it does is kept."""

    def __init__(
        self, name: str, monkeypatch: pytest.MonkeyPatch, known: tuple[Agreed, float] | None
    ) -> None:
        self.happened: list[Any] = []
        self.made: list[Any] = []
        node: Any = object.__new__(Node)
        node.bundle = SimpleNamespace(
            config=SimpleNamespace(
                is_server=name == "server", labels=SimpleNamespace(held_by="a"), name=name
            )
        )
        node.folder = SimpleNamespace(agreed=lambda: known, confirmed=set)
        node.following = node.leading = node.trainer = None
        node.gossip = SimpleNamespace(begin=lambda run: self.happened.append(("gossip", run)))
        node.log = SimpleNamespace(say=lambda event, text: self.happened.append(event))
        node.participant = SimpleNamespace(role=lambda agreed, log: f"role in {agreed.run}")
        node.rpc = node.rpc_client = None
        node._say_waiting = lambda: self.happened.append("waiting")
        node._train = self.train
        monkeypatch.setattr(nodes, "OpeningFollower", self.follower)
        monkeypatch.setattr(nodes, "OpeningLeader", self.leader)
        self.node: Node = node

    def train(self, *given: Any, **more: Any) -> str:
        self.happened.append((*given, more))
        return "b"

    def follower(self, *given: Any) -> Any:
        self.made.append(given)
        return SimpleNamespace(agreed=None)

    def leader(self, *given: Any) -> Any:
        return SimpleNamespace(
            lead=lambda: self.happened.append("leads"),
            start_others=lambda *asked: self.happened.append(("starts", *asked)),
        )


TRAINS = (AGREED, "role in run", 5.0, {"resumed": True})


def test_a_party_that_was_in_a_run_goes_on_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    party = Beginning("b", monkeypatch, (AGREED, 5.0))
    party.node._begin()
    assert party.happened == ["resumed", TRAINS, "waiting"]
    assert party.node.following is not None
    assert party.node.following.agreed is AGREED


def test_the_label_holder_starts_the_others_again(monkeypatch: pytest.MonkeyPatch) -> None:
    holder = Beginning("a", monkeypatch, (AGREED, 5.0))
    holder.node._begin()
    assert holder.happened == ["resumed", TRAINS, ("starts", AGREED, "b"), "waiting"]
    assert holder.node.following is None


@pytest.mark.parametrize(("name", "leads"), [("a", ["leads"]), ("b", []), ("server", [])])
def test_in_a_new_folder_the_label_holder_leads_and_the_others_follow(
    name: str, leads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    party = Beginning(name, monkeypatch, None)
    party.node._begin()
    assert party.happened == [("gossip", ""), *leads, "waiting"]
    assert (party.node.following is None) == (name == "a")
    if name != "a":
        part = None if name == "server" else party.node.participant
        assert party.made[0][2] is part, "a server has no samples"


class Waiting:
    """The node of b, which waits for a."""

    def __init__(self, missing: tuple[str, ...] = ()) -> None:
        self.moment = 100.0
        self.said: list[Any] = []
        self.timers: list[float] = []
        node: Any = object.__new__(Node)
        node.bundle = SimpleNamespace(config=SimpleNamespace(labels=SimpleNamespace(held_by="a")))
        node.context = SimpleNamespace(
            missing=lambda: list(missing), say_waiting=lambda waits: self.said.append(waits)
        )
        node.log = SimpleNamespace(
            throttled=lambda kind, text, **facts: self.said.append((kind, text, facts))
        )
        node.loop = SimpleNamespace(
            later=lambda seconds, act: self.timers.append(seconds), now=lambda: self.moment
        )
        node.leading = node.trainer = node._early = None
        node.rpc_client = SimpleNamespace(waits_for={"c"})
        node._began = 100.0
        self.node: Node = node

    def says(self, after: float) -> list[Any]:
        self.moment += after
        self.said.clear()
        self.node._say_waiting()
        return list(self.said)


def test_a_party_names_whom_it_waits_for_until_it_trains() -> None:
    party = Waiting()
    assert party.says(0.0) == [["a"]]
    assert party.timers == [WAITING_NOTE_SECONDS]
    party.node.trainer = SimpleNamespace()  # type: ignore[assignment]
    assert party.says(0.0) == []
    assert len(party.timers) == 1
    party.node.leading = object()  # type: ignore[assignment]
    assert party.says(0.0) == [["c"]], "it starts the others"


def test_who_is_asked_to_train_before_it_began_says_that_the_others_are_in_another_run() -> None:
    party = Waiting()
    request: Any = SimpleNamespace(direct=True, drop=lambda: None)
    party.node._too_early(request)
    party.moment += 1.0
    party.node._too_early(request)  # since the first one
    assert party.says(WAITING_NOTE_SECONDS - 1.1) == [["a"]]
    assert party.says(0.2) == [["a"], (("early",), OTHER_RUN, {})]
    alone = Waiting(missing=("a",))
    alone.node._early = 0.0
    assert len(alone.says(0.0)) == 1, "the label holder is not there to ask"


def test_after_a_while_without_a_connection_it_says_how_to_find_out_why() -> None:
    party = Waiting(missing=("a", "c"))
    assert party.says(ADVICE_SECONDS - 0.1) == [["a"]]
    waits, (kind, text, facts) = party.says(0.2)
    assert (waits, kind) == (["a"], ("unreached", "a", "c"))
    assert text.startswith("Still no connection to a, c: ")
    assert facts == {"missing": ["a", "c"], "often": 1}
    assert len(Waiting().says(ADVICE_SECONDS + 1)) == 1
