"""What parties tell each other, the operator and their logs comes in one order, whatever order a set
gives: logs can be compared, and a simulation repeats."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("cryptography")

from mtcd.core.errors import ConfigError
from mtcd.federation.credentials.credentials import refuse_strangers
from mtcd.federation.delivery.policy import RecoveryPolicy
from mtcd.federation.names import OPERATOR
from mtcd.federation.node.control import answer_operator
from mtcd.federation.node.ending import Leaving
from mtcd.federation.node.exit_status import ExitStatusGossip
from mtcd.federation.node.final_check import FinalCheck
from mtcd.federation.node.monitoring import Monitoring, _peers_up
from mtcd.federation.node.node import Node
from mtcd.federation.node.overview import _places
from mtcd.federation.node.predicting import Predictor
from mtcd.federation.node.refusal import Refusal
from mtcd.federation.recovery.lone_token import LoneToken
from mtcd.protocol.ledger.ledger import Ledger

NUMBERED = {number: f"p{number}" for number in range(20)}
"""So many that no set of them is in order by chance; by number they are in another order."""
NAMES = sorted(NUMBERED.values())
EVERYBODY = set(NAMES)


def without_init(kind: type, **attributes: Any) -> Any:
    """An object of this class with nothing but these attributes."""
    made = object.__new__(kind)
    vars(made).update(attributes)
    return made


def in_training() -> Any:
    """A node in training that has everybody in all of its sets."""
    reliable = SimpleNamespace(
        down=set(NUMBERED),
        ended=None,
        ledger=Ledger(),
        policy=SimpleNamespace(waits_for=frozenset(NUMBERED)),
    )
    link = SimpleNamespace(up=EVERYBODY, peers=EVERYBODY)
    return without_init(
        Node,
        bundle=SimpleNamespace(config=SimpleNamespace(name="me", peers=dict.fromkeys(NAMES))),
        following=None,
        gossip=SimpleNamespace(known=SimpleNamespace(signed=list)),
        leading=None,
        log=SimpleNamespace(tail=["one", "two"]),
        loop=SimpleNamespace(now=lambda: 1.0, turned=1.0),
        lost={},
        rpc=SimpleNamespace(link=link),
        rpc_client=SimpleNamespace(waits_for=EVERYBODY),
        trainer=SimpleNamespace(
            known_ended=EVERYBODY, names=NUMBERED, reliable=reliable, run="run"
        ),
        watch=SimpleNamespace(facts=dict, tokens=list),
        watched=SimpleNamespace(asked=lambda: None),
    )


def asked_by_operator(node: Any, kind: str) -> Any:
    handlers: dict[str, Any] = {}
    node.rpc.on = handlers.__setitem__
    answer_operator(node)
    answers: list[bytes] = []
    request = SimpleNamespace(sender=OPERATOR, direct=True, answer=answers.append)
    handlers[f"control/{kind}"](request)
    return json.loads(answers[0])


@pytest.mark.parametrize("key", ["connected", "gone", "heard_end", "waiting_for"])
def test_the_operator_is_told_names_in_order(key: str) -> None:
    assert asked_by_operator(in_training(), "status")[key] == NAMES


def test_the_operator_is_told_events_in_order() -> None:
    assert asked_by_operator(in_training(), "logs") == ["one", "two"]


def test_who_starts_others_names_those_it_waits_for_in_order() -> None:
    node = in_training()
    node.leading = object()
    assert node.waits_for() == NAMES
    node.trainer = None
    assert node.waits_for() == NAMES


def test_peers_are_exposed_in_order() -> None:
    node = in_training()
    node.rpc.link.up = {"p3"}
    assert _peers_up(node) == [((name,), name == "p3") for name in NAMES]
    _, facts = without_init(Monitoring, _node=node).health()
    assert facts["missing_peers"] == [name for name in NAMES if name != "p3"]


def test_those_who_took_no_part_in_the_evaluation_are_named_in_order() -> None:
    assert without_init(FinalCheck)._without(EVERYBODY).away == tuple(NAMES)


def test_those_who_were_not_reached_at_the_end_are_named_in_order() -> None:
    told: list[str] = []
    leaving = without_init(
        Leaving,
        trainer=SimpleNamespace(log=SimpleNamespace(say=lambda event, text: told.append(text))),
        leave=lambda: told.append("left"),
        _commit=lambda: told.append("committed"),
    )
    leaving._leave(EVERYBODY)
    assert told[0].startswith(f"Unreachable at the end of the run: {', '.join(NAMES)}. ")
    assert told[1:] == ["committed", "left"]
    leaving._leave(set())
    assert told[3:] == ["committed", "left"]


def test_a_refusal_goes_to_the_peers_in_order_and_names_those_who_know_in_order() -> None:
    asked: list[tuple[str, Any]] = []
    refusal = without_init(
        Refusal,
        _asked=set(),
        _aware=set(EVERYBODY),
        _content=None,
        _heard_from="p0",
        _told=set(),
        context=SimpleNamespace(bundle=SimpleNamespace(config=SimpleNamespace(parties=NAMES))),
        loop=SimpleNamespace(later=lambda seconds, act: None),
        rpc=SimpleNamespace(
            ask=lambda peer, kind, body, done, direct: asked.append((peer, json.loads(body))),
            link=SimpleNamespace(up=EVERYBODY),
        ),
    )
    refusal._report_back()
    assert [peer for peer, _ in asked] == NAMES
    assert all(body == {"aware": NAMES} for _, body in asked)

    answers: list[bytes] = []
    body = json.dumps({"party": "p1", "reason": "no table"}).encode()
    refusal._receive(SimpleNamespace(sender="p2", direct=True, body=body, answer=answers.append))
    assert json.loads(answers[0]) == NAMES


def test_exit_statuses_go_to_the_peers_in_order() -> None:
    asked: list[str] = []
    gossip = without_init(
        ExitStatusGossip,
        _for_server=None,
        _pending=0,
        _told={},
        known=SimpleNamespace(
            statuses={"me": SimpleNamespace(time=1)}, signed=lambda names: list(names)
        ),
        me="me",
        rpc=SimpleNamespace(
            ask=lambda peer, *more: asked.append(peer), link=SimpleNamespace(up=EVERYBODY)
        ),
    )
    gossip.tell()
    assert asked == NAMES


def test_a_leader_names_those_it_waits_for_in_order() -> None:
    told: list[list[str]] = []
    predictor = without_init(
        Predictor,
        context=SimpleNamespace(
            loop=SimpleNamespace(later=lambda seconds, act: None),
            rpc_client=SimpleNamespace(waits_for=EVERYBODY),
            say_waiting=told.append,
        ),
        finished=False,
        leader="me",
        leads=True,
    )
    predictor._say_waiting()
    assert told == [NAMES]


def test_tokens_are_listed_by_number() -> None:
    tokens = [{"token": index, "sync": 0, "hop": index} for index in (2, 0, 1)]
    assert list(_places({"a": {"tokens": tokens}})) == ["0", "1", "2"]


def test_the_first_stranger_by_name_is_named() -> None:
    config: Any = SimpleNamespace(parties=["a"])
    for _ in range(3):
        with pytest.raises(ConfigError, match="'p0' is not a party of the federation"):
            refuse_strangers(config, EVERYBODY, "party.yaml")  # type: ignore[arg-type]


def test_a_training_waits_for_names_in_order() -> None:
    policy = RecoveryPolicy()
    policy.delivery = SimpleNamespace(down=frozenset(NUMBERED))  # type: ignore[assignment]
    assert policy.waiting_reason(NUMBERED) == f"Training waits for {', '.join(NAMES)}."


def test_a_lone_token_names_in_the_order_of_clients_whom_it_waits_for() -> None:
    """Sets of small numbers give 8 before 1."""
    lone = without_init(
        LoneToken,
        delivery=SimpleNamespace(down=frozenset({3})),
        history=SimpleNamespace(arrival=(2, frozenset({8, 1})), last_sent=None),
        near=frozenset({8, 1, 3}),
        network=SimpleNamespace(neighbours=None),
        promises=SimpleNamespace(is_bound_to=lambda k: False),
        search=None,
    )
    assert "avoid p1, p8. Start p2 again." in lone.waiting_reason(NUMBERED)
    lone.search = SimpleNamespace(
        to=3, missing=lambda neighbours: [frozenset({8, 1}), frozenset({2})]
    )
    assert "that they lack it: p1 or p8, p2. Or start p3" in lone.waiting_reason(NUMBERED)
