"""The tracer on a few messages: what it counts, which messages it keeps, and where those of other
processes belong."""

import json
from typing import Any

import numpy as np
import pytest

from mtcd.methods.dcpa.dcpa import Offer
from mtcd.methods.mtcd.client import Done, Share
from mtcd.methods.svfl.svfl import Shared
from mtcd.protocol.gathering import Fresh
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.protocol.party import SERVER, Begin, Message
from mtcd.protocol.token import Token
from mtcd.reporting.trace.tracer import MOST_WINDOWS, WINDOW, Traced, TraceLog, Tracer, _places


def token(index: int = 0, t: int = 0, hop: int = 0, length: int = 2, **others: Any) -> Token:
    return Token(index, t, hop, np.zeros(length), 0.0, **others)


def fresh(*numbers: float, penalty: float = 0.0) -> Fresh:
    return Fresh(np.array(numbers), penalty)


def test_a_tracer_starts_with_nothing_and_a_place_for_the_server() -> None:
    tracer = Tracer(3, 2, Ledger())
    expected = {
        "total": 0,
        "tokens": 0,
        "rounds": 0,
        "visits": [0, 0, 0, 0],
        "last_hops": [0, 0, 0, 0],
        "polls": [0, 0, 0, 0],
        "last_polls": [0, 0, 0, 0],
        "windows": [],
        "spacing": WINDOW,
    }
    assert tracer.state() == expected
    again = Tracer(3, 2, Ledger())
    again.restore(expected)
    again.see(Message(0, 1, token(0, 4, 1), 2, 2))
    assert again.windows == [[(0, 0, 1, 9)]]


def test_a_tracer_counts_visits_tokens_and_messages_of_the_server() -> None:
    ledger = Ledger()
    tracer = Tracer(3, 5, ledger)
    ledger.hops = 7
    for message in (
        Message(SERVER, 2, token(0, 3), 2),
        Message(SERVER, 2, token(1, 3), 2),
        Message(2, 1, token(0, 3, 1), 2, 2),
        Message(1, 1, token(0, 3, 2), 2, 2),  # stays, and is a visit all the same
        Message(2, 2, token(1, 3, 1), 2),  # no visit, and it goes nowhere
        Message(1, SERVER, Done(0)),  # carries no number but ends a roam
        Message(2, SERVER, fresh(1.0, 2.0), 2),  # carries no token
        Message(SERVER, 0, Share(4)),
    ):
        tracer.see(message)
    assert tracer.windows == [
        [(0, -1, 2, 15), (1, -1, 2, 15), (0, 2, 1, 16), (0, 1, 1, 17), (0, 1, -1, 17)]
    ]
    assert (tracer.total, tracer.tokens) == (5, 2)
    assert tracer.visits == [0, 1, 1, 0]
    assert tracer.last_hops == [0, 7, 7, 0]
    assert tracer.polls == [0, 0, 2, 0]
    assert tracer.last_polls == [0, 0, 3, 0]


def test_a_token_is_counted_at_its_first_hop_or_when_it_is_mentioned() -> None:
    hopping = Tracer(3, 5, Ledger())
    hopping.see(Message(0, 1, token(0, 0, 1), 2, 2))
    assert hopping.tokens == 1
    mentioned = Tracer(3, 5, Ledger())
    mentioned.see(Message(0, SERVER, Done(0)))
    assert (mentioned.tokens, mentioned.total) == (1, 1)
    assert mentioned.windows == [[(0, 0, SERVER, 0)]]


def test_without_tokens_each_client_counts_as_having_one() -> None:
    tracer = Tracer(3, 5, Ledger())
    for message in (
        Message(1, SERVER, fresh(1.0), 1),  # of no iteration: those of the start
        Message(SERVER, 2, Shared(3, np.zeros(2)), 2),
        Message(0, SERVER, fresh(1.0), 1),  # of the one before
        Message(0, 1, Offer(4, np.zeros(2)), 2),
        Message(0, 0, Offer(5, np.zeros(2)), 2),
        Message(0, 2, Begin()),
    ):
        tracer.see(message)
    assert tracer.windows == [[(1, 1, -1, 0), (2, -1, 2, 15), (0, 0, -1, 15), (0, 0, 1, 4)]]
    assert (tracer.total, tracer.tokens) == (4, 0)
    assert tracer.polls == [0, 0, 1, 0]
    assert tracer.last_polls == [0, 0, 3, 0]


@pytest.mark.parametrize("before", [3, WINDOW + 3])
def test_what_is_sent_before_the_first_token_is_forgotten(before: int) -> None:
    tracer = Tracer(3, 5, Ledger())
    for number in range(before):
        tracer.see(Message(number % 3, SERVER, fresh(1.0), 1))
    assert tracer.total == before
    for number in range(2):
        tracer.see(Message(SERVER, number, token(0, number), 2))
    assert (tracer.total, tracer.tokens) == (2, 1)
    assert tracer.windows == [[(0, -1, 0, 0), (0, -1, 1, 5)]]


def test_windows_of_a_long_training_are_twice_as_far_apart() -> None:
    tracer = Tracer(3, 1, Ledger())
    total = (MOST_WINDOWS + 1) * WINDOW + 10
    for number in range(total):
        tracer.see(Message(0, 1, token(0, number, 0), 2, 2))
    assert tracer.spacing == 2 * WINDOW
    assert tracer.total == total
    expected = [
        range(start, start + WINDOW) for start in range(0, (MOST_WINDOWS + 1) * WINDOW, 2 * WINDOW)
    ]
    assert [[sent[3] for sent in window] for window in tracer.windows] == [
        list(window) for window in expected
    ]
    assert tracer.latest() == []
    for number in range(total, total + 3):  # between two windows, and now somebody watches
        tracer.see(Message(0, 1, token(0, number, 0), 2, 2))
    assert [number for number, _ in tracer.latest()] == [total, total + 1, total + 2]
    assert [len(window) for window in tracer.windows] == [WINDOW] * len(expected)


def test_one_who_watches_from_the_start_sees_a_window_at_a_time_at_most() -> None:
    tracer = Tracer(3, 1, Ledger())
    assert tracer.latest() == []
    for number in range(WINDOW + 2):
        tracer.see(Message(0, 1, token(0, number, 0), 2, 2))
    assert tracer.latest() == [(number, (0, 0, 1, number)) for number in range(WINDOW)]
    assert tracer.latest() == []
    tracer.see(Message(0, 1, token(0, 9, 0), 2, 2))
    assert tracer.latest() == [(WINDOW + 2, (0, 0, 1, 9))]
    assert [len(window) for window in tracer.windows] == [WINDOW, 3]


@pytest.mark.parametrize(
    ("message", "kept"),
    [
        (Message(0, 0, token(), 2, 2), True),  # a visit that ends where it began
        (Message(0, 0, token(), 2), False),
        (Message(0, SERVER, Done(0)), True),  # names a token, without numbers
        (Message(0, SERVER, fresh(1.0), 1), True),  # numbers, without a token
        (Message(SERVER, 0, Share(1)), False),
        (Message(0, 0, Begin()), False),
    ],
)
def test_a_log_keeps_what_a_tracer_may_need(message: Message, kept: bool) -> None:
    log = TraceLog()
    log.see(message)
    assert len(log.take()) == kept
    assert log.take() == []


def test_logs_say_where_a_message_belongs() -> None:
    log = TraceLog()
    for message in (
        Message(2, SERVER, fresh(1.0), 1),  # before anything else: the start
        Message(2, 1, token(1, 4, 3), 2, 2),
        Message(2, SERVER, fresh(1.0), 1),
        Message(2, SERVER, Done(0)),
        Message(2, 1, Offer(6, np.zeros(2)), 2),  # has no hop
        Message(SERVER, 1, Shared(7, np.zeros(2)), 2),
    ):
        log.see(message)
    kept = log.take()
    assert kept[1] == Traced(("index", "t", "hop"), (1, 4, 3), 2, 1, 2, 2)
    assert list(_places(kept)) == [
        (0, 0, 2),
        (4, 3, 1),
        (4, 3, 2),
        (4, 3, 0),
        (6, 0, 2),
        (7, 0, SERVER),
    ]


def test_logs_of_several_processes_are_replayed_in_the_order_of_iterations_hops_and_tokens() -> (
    None
):
    rng, messages = np.random.default_rng(0), []
    at = [0, 1]
    for t in range(5):
        for hop in range(1, 4):
            for index in range(2):
                to = int(rng.integers(3))
                messages.append(
                    Message(at[index], to, Token(index, t, hop, np.zeros(2), 0.0), 2, 2)
                )
                at[index] = to
    ledger = Ledger()
    direct = Tracer(3, 3, ledger)
    for message in messages:
        ledger.hops += 1
        direct.see(message)
    logs = [TraceLog() for _ in range(3)]
    for message in messages:
        logs[message.sender].see(message)
    total = Ledger()
    replayed = Tracer(3, 3, total)
    replayed.replay([log.take() for log in logs])
    assert replayed.state() == direct.state()
    assert replayed.total == len(messages)
    assert total.hops == 0, "the engine adds the hops to the ledger, not a listener"
    assert [log.take() for log in logs] == [[], [], []]


@pytest.mark.parametrize("cut", [1, WINDOW - 1, WINDOW, WINDOW + 1, 2 * WINDOW + 5])
def test_a_tracer_from_a_checkpoint_goes_on_as_the_old_one(cut: int) -> None:
    ledger = Ledger()
    whole, before, after = (Tracer(3, 2, ledger) for _ in range(3))
    for number in range(3 * WINDOW + 7):
        if number == cut:
            after.restore(json.loads(json.dumps(before.state())))
        message = Message(
            number % 3,
            (number + 1) % 3,
            Token(0, number // 2, 1 + number % 2, np.zeros(1), 0.0),
            1,
            1,
        )
        ledger.hops += 1
        for tracer in (whole, before if number < cut else after):
            tracer.see(message)
    again = json.loads(json.dumps(after.state()))
    assert again == json.loads(json.dumps(whole.state()))
    assert [len(window) for window in again["windows"]] == [WINDOW] * 3 + [7]


def test_all_messages_are_told_while_somebody_watches() -> None:
    """Also between the windows of a long training that are kept."""
    tracer, told, total = Tracer(3, 2, Ledger()), [], 3 * MOST_WINDOWS * WINDOW
    for number in range(total):
        payload = Token(0, number // 2, 1 + number % 2, np.zeros(1), 0.0)
        tracer.see(Message(number % 3, (number + 1) % 3, payload, 1, 1))
        if number % 100 == 0:
            told += [place for place, _ in tracer.latest()]
    assert tracer.spacing > WINDOW
    assert told == list(range(1, told[-1] + 1))
    assert told[-1] > total - 101
