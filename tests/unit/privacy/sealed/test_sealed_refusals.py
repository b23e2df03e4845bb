"""Messages that the parties of sealed tours refuse, or keep until they can use them; the cipher is
in the clear."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from clear_parties import CLEAR, of_kind, parties_of, problem_of, run
from mtcd.core.errors import DataError, WireError
from mtcd.privacy.sealed.bfv.cipher import find
from mtcd.privacy.sealed.conditions import SealedSizes
from mtcd.privacy.sealed.participant import (
    classes_from,
    columns_from_bytes,
    columns_to_bytes,
    sizes_from,
)
from mtcd.privacy.sealed.payloads import SealedEnd, SealedKeys, SealedToken, as_block
from mtcd.protocol.party import SERVER, Message, Parties, Progress


def first_request(parties: Parties) -> tuple[Message, Message, Message]:
    """The token as the server sends it, the request of the label holder, and the answer."""
    *keys, token = parties.server.receive(parties.opening[-1])
    home = parties.clients[0]
    assert home.receive(keys[0]) == []
    [request] = home.receive(token)
    [answer] = parties.server.receive(request)
    return token, request, answer


def test_a_token_that_comes_before_the_keys_waits_for_them() -> None:
    parties, _ = parties_of(problem_of())
    *keys, token = parties.server.receive(parties.opening[-1])
    home: Any = parties.clients[0]
    assert home.receive(token) == []
    assert home.token is token.payload
    [request] = home.receive(keys[0])
    assert (request.to, request.payload.client, request.payload.t, request.payload.place) == (
        SERVER,
        0,
        1,
        0,
    )


def test_the_server_refuses_what_is_not_of_the_tour_under_way() -> None:
    parties, holding = parties_of(problem_of())
    [end] = of_kind(run(parties, 1), SealedEnd)
    with pytest.raises(WireError, match="is not of the tour that is under way"):
        parties.server.receive(Message(0, SERVER, replace(end, t=2)))
    before = holding.steering.scores.copy()
    parties.server.receive(Message(0, SERVER, replace(end, told=False)))
    assert (holding.steering.scores != before).any()
    with pytest.raises(WireError, match="the server of sealed tours receives"):
        parties.server.receive(Message(0, SERVER, Progress(0, 0, None, 0.0)))


def test_a_lone_holder_refuses_a_token_of_another_tour() -> None:
    parties, _ = parties_of(problem_of(), replace(CLEAR, server=False))
    last = of_kind(run(parties, 1), SealedToken)[-1]
    assert last.place == 4
    with pytest.raises(WireError, match="is not of the tour that is under way"):
        parties.clients[0].receive(Message(1, 0, replace(last, t=2)))


@pytest.mark.parametrize("place", [1, 2, 3, 5])
def test_a_request_is_of_the_client_that_the_token_visits_for_the_first_time(place: int) -> None:
    """The tour is a, b, c, b, a."""
    parties, holding = parties_of(problem_of())
    token, request, _ = first_request(parties)
    holding.answered.clear()
    with pytest.raises(WireError, match="does not visit now"):
        holding.answer(1, request.payload)  # in the name of another
    with pytest.raises(WireError, match="is of tour 2, but tour 1 is under way"):
        holding.answer(0, replace(request.payload, t=2))  # type: ignore[type-var]
    with pytest.raises(WireError, match="does not visit now"):
        holding.answer(0, replace(request.payload, place=place))  # type: ignore[type-var]
    assert holding.answered == []
    assert token.to == 0


def test_a_client_gets_one_answer_in_a_tour() -> None:
    """With a second one it could have other ciphertexts decrypted: the token, say, and with it the
    labels."""
    parties, holding = parties_of(problem_of())
    _, request, _ = first_request(parties)
    with pytest.raises(WireError, match="is the second of this client in a tour"):
        parties.server.receive(request)
    assert holding.answered == [0]
    holding.begin(2)
    with pytest.raises(WireError, match="is of tour 1, but tour 2 is under way"):
        parties.server.receive(request)
    again = replace(request.payload, t=2)  # type: ignore[type-var]
    assert len(holding.answer(0, again)) == 1


def test_a_client_takes_an_answer_to_its_own_request_alone() -> None:
    parties, _ = parties_of(problem_of())
    _, _, answer = first_request(parties)
    home: Any = parties.clients[0]
    payload: Any = answer.payload
    state = home.token, home.mask
    for token, mask, given in (
        (None, state[1], payload),
        (state[0], None, payload),
        (*state, replace(payload, t=2)),
        (*state, replace(payload, place=1)),
    ):
        home.token, home.mask = token, mask
        with pytest.raises(WireError, match="is not to the request that this client has made"):
            home.receive(Message(SERVER, 0, given))
    home.token, home.mask = state
    [passed] = home.receive(answer)
    assert (passed.to, passed.payload.place, home.token, home.mask) == (1, 1, None, None)


def test_keys_of_other_parameters_are_refused() -> None:
    parties, holding = parties_of(problem_of())
    key = find("clear").generate(replace(holding.plan, depth=3).parameters())
    with pytest.raises(WireError, match="are not those of this run"):
        parties.clients[1].receive(Message(SERVER, 1, SealedKeys(1, 1, as_block(key.public))))


def test_a_restored_client_uses_the_keys_of_its_state() -> None:
    parties, others = (parties_of(problem_of())[0] for _ in range(2))
    for each in (parties, others):
        first_request(each)
    home, other = parties.clients[0], others.clients[0]
    assert home.sealer.fingerprint != other.sealer.fingerprint
    home.restore(other.state())
    assert home.sealer.fingerprint == other.sealer.fingerprint


@pytest.mark.parametrize(
    "report",
    [
        *(b"", b"x", b"[3]", b"{}", b"[" * 100_000, b'{"columns": 3, "rows": 9}'),
        *(b'{"columns": "3"}', b'{"columns": 3.0}', b'{"columns": true}'),
        *(b'{"columns": 0}', b'{"columns": -1}', b'{"columns": 1000001}'),
    ],
)
def test_a_number_of_columns_that_is_none_is_refused_by_the_name_of_its_party(
    report: bytes,
) -> None:
    with pytest.raises(DataError, match="clinic: the number of columns"):
        columns_from_bytes("clinic", report)


def test_numbers_of_columns_are_told_as_they_are() -> None:
    for columns in (1, 17, 1_000_000):
        assert columns_from_bytes("clinic", columns_to_bytes(columns)) == columns


SIZES = {"columns": [4, 2], "start": 0.5, "classes": ["no", "yes"]}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"columns": [4]}, "the number of columns"),
        ({"columns": 4}, "the number of columns"),
        ({"columns": [4, 2, 1]}, "the number of columns"),
        ({"columns": "42"}, "the number of columns"),
        ({"columns": None}, "the number of columns"),
        ({"columns": [4, 0]}, "the number of columns"),
        ({"columns": [1_000_001, 2]}, "the number of columns"),
        ({"columns": [4.0, 2]}, "the number of columns"),
        ({"columns": [4, True]}, "the number of columns"),
        ({"start": 0.0}, "finite number above 0"),
        ({"start": 1}, "finite number above 0"),
        ({"start": float("inf")}, "finite number above 0"),
        ({"start": float("nan")}, "finite number above 0"),
        ({"classes": ["one"]}, "two, or none"),
        ({"classes": [1, 2, 3]}, "two, or none"),
        ({"classes": "ab"}, "two, or none"),
        ({"classes": [True, False]}, "neither texts nor numbers"),
        ({"classes": [None, "a"]}, "neither texts nor numbers"),
    ],
)
def test_sizes_and_classes_that_cannot_be_are_refused(changed: dict[str, Any], said: str) -> None:
    assert sizes_from(SIZES, 2) == SealedSizes((4, 2), 0.5)
    assert sizes_from(SIZES | {"columns": [1_000_000, 1]}, 2) == SealedSizes((1_000_000, 1), 0.5)
    assert classes_from(SIZES) == ("no", "yes")
    assert classes_from(SIZES | {"classes": []}) == ()
    read = classes_from if "classes" in changed else partial(sizes_from, parties=2)
    with pytest.raises(WireError, match=said):
        read(SIZES | changed)
