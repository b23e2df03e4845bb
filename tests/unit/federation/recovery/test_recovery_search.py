"""Who looks for a lone token: what follows from the answers so far, and who has to wait for whom;
case by case."""

import numpy as np
import pytest

from lone_worlds import DATA, NAMES
from mtcd.federation.recovery.search import Decision, Search, is_superseded
from mtcd.federation.recovery.token_history import live_terms
from mtcd.network.topology import make_network
from mtcd.protocol.codec.envelopes import Ack, End, Envelope, Prepare, Promise, Release
from mtcd.protocol.party import Message
from mtcd.protocol.token import Token
from searching_clients import BINDING, PROBE, Client, asked, others, passed_on

NEAR = make_network("cycle", DATA.clients).neighbours  # five clients
INITIATOR, TO, BEYOND, FROM, OTHER = 0, 1, 2, 4, 3
HOP = 10


def search(
    binding: bool, *answers: int, hop: int = HOP, down: bool = True, ballot: int = 20
) -> Search:
    """Client 0 had the token from 4, passed it on to 1, and believes that one gone; these have
    answered."""
    made = Search(HOP, TO, frozenset({BEYOND}), frozenset({FROM, TO}))
    made.ask(ballot, binding)
    made.down[INITIATOR] = frozenset({TO})
    for sequence, k in enumerate(answers):
        gone = frozenset({TO}) if down and TO in NEAR[k] else frozenset()
        made.record(k, sequence, Promise(ballot, hop, 0, gone))
    return made


@pytest.fixture
def client() -> Client:
    return Client()


@pytest.mark.parametrize(
    ("binding", "answers", "verdict"),
    [
        (PROBE, (), Decision.WAIT),
        (PROBE, (BEYOND,), Decision.WAIT),  # the witness is missing
        (PROBE, (FROM, OTHER), Decision.WAIT),  # the one beyond is missing
        (PROBE, (BEYOND, FROM), Decision.PREPARE),
        (PROBE, (TO,), Decision.WAIT),  # nobody else has told whether it is there
        (BINDING, (), Decision.WAIT),
        (BINDING, (BEYOND,), Decision.WAIT),
        (BINDING, (BEYOND, FROM), Decision.REGENERATE),
        (BINDING, (TO,), Decision.REGENERATE),
    ],
)
def test_what_the_answers_allow(binding: bool, answers: tuple[int, ...], verdict: Decision) -> None:
    assert search(binding, *answers).decision(NEAR) is verdict


def test_somebody_who_had_the_token_later_ends_the_search() -> None:
    for firm in (PROBE, BINDING):
        assert search(firm, OTHER, hop=HOP + 1).decision(NEAR) is Decision.ELSEWHERE
        assert search(firm, OTHER, hop=HOP).decision(NEAR) is Decision.WAIT


def test_a_receiver_that_is_there_after_all_and_has_not_had_the_token_is_enough() -> None:
    assert search(PROBE, TO, BEYOND, down=False).decision(NEAR) is Decision.PREPARE
    assert search(PROBE, BEYOND, down=False).decision(NEAR) is Decision.WAIT


def test_as_long_as_a_neighbour_believes_the_receiver_there_nobody_is_asked_firmly() -> None:
    heard = search(PROBE, BEYOND, FROM, down=False)
    assert heard.decision(NEAR) is Decision.WAIT
    heard.record(BEYOND, 5, Promise(20, HOP, 0, frozenset({TO})))
    assert heard.decision(NEAR) is Decision.PREPARE
    heard.record(BEYOND, 3, Promise(20, HOP, 0, frozenset()))  # it went before the other one
    assert heard.decision(NEAR) is Decision.PREPARE


def test_whoever_answered_a_firm_question_with_a_higher_number_has_to_be_asked_again() -> None:
    for answers in ((), (BEYOND, FROM), (TO,)):
        firm, soft = search(BINDING, *answers), search(PROBE, *answers)
        before = soft.decision(NEAR)
        firm.record(OTHER, 9, Promise(20, HOP, 21, frozenset()))
        soft.record(OTHER, 9, Promise(20, HOP, 21, frozenset()))
        assert firm.decision(NEAR) is Decision.PREPARE
        assert soft.decision(NEAR) is before  # nothing depends on its number yet
    same = search(BINDING, BEYOND, FROM)
    same.record(OTHER, 9, Promise(20, HOP, 20, frozenset()))
    assert same.decision(NEAR) is Decision.REGENERATE


def test_a_firm_question_that_nobody_can_answer_any_more_is_withdrawn() -> None:
    heard = search(BINDING, FROM)
    # all of its neighbours that were heard believe it to be gone
    heard.down[OTHER] = frozenset({BEYOND})
    assert heard.decision(NEAR) is Decision.PROBE
    assert heard.missing(NEAR) == [frozenset({BEYOND})]


def test_answers_to_an_older_question_do_not_count() -> None:
    heard = search(BINDING, BEYOND, FROM)
    heard.ask(25, BINDING)
    assert heard.decision(NEAR) is Decision.WAIT
    heard.record(BEYOND, 7, Promise(20, HOP, 0, frozenset({TO})))
    heard.record(FROM, 7, Promise(25, HOP, 0, frozenset()))
    assert heard.decision(NEAR) is Decision.WAIT


@pytest.mark.parametrize(
    ("terms", "over"),
    [
        ({}, False),
        ({20: HOP}, True),  # it led to this one
        ({25: HOP}, True),
        ({19: HOP}, False),
        ({20: HOP + 1}, False),
        ({6: HOP - 1}, True),  # its asker did not know of it, and is cut off
        ({5: HOP - 1}, False),  # its asker knew of it
        ({6: HOP}, False),
    ],
)
def test_when_a_question_is_over(terms: dict[int, int], over: bool) -> None:
    assert is_superseded(Prepare(HOP, 20, BINDING), 5, terms) is over


def test_of_two_who_ask_firmly_the_one_with_the_later_hop_waits(client: Client) -> None:
    first, second, *_ = others(client)
    assert client.hears(first, Prepare(HOP, 20, BINDING))
    assert not client.hears(second, Prepare(HOP + 1, 26, BINDING))
    assert client.hears(second, Prepare(HOP + 1, 26, PROBE))  # that binds nobody
    assert client.hears(first, Release(20))
    assert client.hears(second, Prepare(HOP + 1, 31, BINDING))
    # which does not wait for its own earlier ballot
    assert client.hears(second, Prepare(HOP + 1, 36, BINDING))
    assert client.answers() == [
        (first, 20, 20),
        (second, 26, 20),
        (second, 31, 31),
        (second, 36, 36),
    ]


def test_the_one_with_the_earlier_hop_is_answered_and_told_of_the_higher_number(
    client: Client,
) -> None:
    first, second, *_ = others(client)
    assert client.hears(first, Prepare(HOP, 57, BINDING))
    assert client.hears(second, Prepare(HOP - 1, 20, BINDING))
    assert client.answers() == [(first, 57, 57), (second, 20, 57)]


def test_no_token_is_taken_in_while_a_firm_question_is_open(client: Client) -> None:
    first, second, *_ = others(client)
    token = Token(0, 0, 3, np.zeros(DATA.samples), 0.0)
    assert client.hears(first, Prepare(HOP, 20, BINDING))
    assert not client.hears(second, token)
    assert client.hears(first, Release(20))
    assert client.hears(second, token)


def test_a_question_without_harm_lets_tokens_in(client: Client) -> None:
    first, second, *_ = others(client)
    assert client.hears(first, Prepare(HOP, 20, PROBE))
    assert client.hears(second, Token(0, 0, 3, np.zeros(DATA.samples), 0.0))


def test_a_question_that_is_over_is_not_answered_again(client: Client) -> None:
    first, *_ = others(client)
    assert client.hears(first, Release(20))  # which came before the question
    assert client.hears(first, Prepare(HOP, 20, BINDING))
    assert client.answers() == []
    assert client.hears(first, Prepare(HOP, 25, BINDING))
    assert client.answers() == [(first, 25, 25)]


def test_a_token_that_may_be_passed_on_to_nobody_who_is_there_waits_and_says_for_whom(
    client: Client,
) -> None:
    first, *rest = others(client)
    client.reliable.peer_lost(first)
    assert client.hears(first, Token(0, 0, 3, np.zeros(DATA.samples), 0.0), gone=frozenset(rest))
    said = client.reliable.policy.waiting_reason(NAMES)
    assert f"until {DATA.clients[first]} is back" in said
    assert f"required it to avoid {', '.join(DATA.clients[k] for k in rest)}." in said
    client.reliable.peer_found(first)
    assert client.reliable.policy.waiting_reason(NAMES) is None


def test_who_asks_after_the_end_is_told_of_it_once(client: Client) -> None:
    first, second, *_ = others(client)
    assert client.hears(first, End("stopped", 0, 7))
    assert client.reliable.ended is not None
    assert not client.reliable.ended_here
    for who, number in ((second, 20), (first, 21), (first, 26)):
        assert client.hears(who, Prepare(HOP, number, PROBE))
    ends = [
        envelope.to
        for envelope in client.reliable.unacknowledged()
        if isinstance(envelope.message.payload, End)
    ]
    assert sorted(ends) == others(client), "the first one too, as it does not seem to know"


def test_as_long_as_answers_are_missing_it_says_whose(client: Client) -> None:
    reliable, names = client.reliable, DATA.clients
    assert reliable.policy.waiting_reason(NAMES) is None
    reliable.policy.search = search(PROBE, BEYOND)
    said = reliable.policy.waiting_reason(NAMES) or ""
    assert f"passed on to {names[TO]}" in said
    assert f"{names[TO]} or {names[FROM]}. Or start {names[TO]} again." in said
    assert names[BEYOND] not in said
    reliable.policy.search = search(PROBE, BEYOND, FROM)
    assert (reliable.policy.waiting_reason(NAMES) or "").endswith(
        "The other clients are being asked where it is."
    )


def test_if_one_who_asked_firmly_is_gone_it_says_so(client: Client) -> None:
    first, *_ = others(client)
    assert client.hears(first, Prepare(HOP, 20, PROBE))
    client.reliable.peer_lost(first)
    assert client.reliable.policy.waiting_reason(NAMES) is None
    client.reliable.peer_found(first)
    assert client.hears(first, Prepare(HOP, 25, BINDING))
    assert client.reliable.policy.waiting_reason(NAMES) is None
    client.reliable.peer_lost(first)
    assert f"Start {DATA.clients[first]} again" in (
        client.reliable.policy.waiting_reason(NAMES) or ""
    )


def test_who_made_the_token_looks_for_it_too() -> None:
    """It has never had it from anybody, so it has never learnt that it has moved on."""
    maker, envelope = passed_on()
    maker.peer_lost(envelope.to)
    assert (maker.policy.search.to, maker.policy.search.witnesses) == (envelope.to, None)
    assert [to for to, _ in asked(maker)] == [k for k in range(5) if k != maker.number]
    maker.peer_found(envelope.to)
    assert maker.policy.search is None


@pytest.mark.parametrize("by_ack", [False, True])
def test_a_term_is_kept_even_if_an_ack_or_a_duplicate_brings_it(
    client: Client, by_ack: bool
) -> None:
    """A process that starts again must not accept a token that is over."""
    first, second, *_ = others(client)
    me, journal = client.reliable.number, client.reliable.journal
    assert client.hears(first, Release(1))
    assert journal.last()["terms"] == {}
    if by_ack:
        client.reliable.acknowledge(Ack(me, first, 99, {20: HOP}))
    else:
        again = Envelope(first, me, 0, 0, 0, {20: HOP}, Message(first, me, Release(1)))
        assert client.reliable.deliver(again).ack is not None
    assert journal.last()["terms"] == {20: HOP}
    token = Token(0, 0, 3, np.zeros(DATA.samples), 0.0)
    assert client.hears(second, token, term=19)
    assert client.reliable.policy.history.hop == 0  # type: ignore[attr-defined]
    assert client.hears(second, token, term=20)
    assert client.reliable.policy.history.hop == 4  # type: ignore[attr-defined]


def test_terms_of_truncated_histories_are_dropped() -> None:
    assert live_terms({}) == {}
    assert live_terms({1: 3, 2: 5, 3: 4}) == {3: 4, 1: 3}
    # a later term comes first, in whatever order they were learned
    assert live_terms({1: 9, 3: 7, 2: 4}) == live_terms({3: 7, 2: 4, 1: 9}) == {3: 7, 2: 4}
    assert live_terms({1: 4, 2: 4}) == {2: 4}
    assert live_terms({1: 1, 2: 2, 3: 3}) == {1: 1, 2: 2, 3: 3}


def test_groups_are_asked_for_in_the_order_of_their_clients() -> None:
    """A set of small numbers gives 8 before 1."""
    search = Search(hop=3, to=2, near=frozenset({8, 1}), witnesses=frozenset({5}))
    assert search.missing([()] * 9) == [frozenset({1}), frozenset({8}), frozenset({5})]
