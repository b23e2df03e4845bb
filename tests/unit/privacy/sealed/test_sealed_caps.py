"""Every client keeps to the cap on tours, and tokens to their way, whatever the key holder
sends."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from clear_parties import CLEAR, parties_of, problem_of, run
from mtcd.core.errors import WireError
from mtcd.privacy.sealed.payloads import SealedEnd, SealedRequest, SealedToken
from mtcd.protocol.party import SERVER, Message


@pytest.mark.parametrize("server", [True, False])
def test_a_key_holder_that_goes_on_after_the_cap_is_refused(server: bool) -> None:
    parties, holding = parties_of(problem_of(), replace(CLEAR, server=server))
    most = holding.plan.most_tours
    assert most == (19 if server else 6)  # half of 12 + 13 + 14 columns; half of 13
    run(parties, most)

    again, holding = parties_of(problem_of(), replace(CLEAR, server=server))
    holding.plan = replace(holding.plan, most_tours=None)
    with pytest.raises(WireError, match=f"is of tour {most + 1}, but this training has {most} at"):
        run(again, most + 1)
    assert holding.completed == most


def test_a_key_holder_that_repeats_a_tour_is_refused() -> None:
    parties, holding = parties_of(problem_of())
    run(parties, 2)
    begin = holding.begin

    def repeated(t: int) -> Any:
        return begin(2)

    holding.begin = repeated
    token = holding.token(2, 0, repeated(2)[1])
    client: Any = parties.clients[0]
    before = client.state()
    with pytest.raises(WireError, match="is of tour 2, though tour 2 has begun here"):
        client.arrive(token)
    with pytest.raises(WireError, match="is of tour 1, though tour 2 has begun here"):
        client.arrive(replace(token, t=1))
    assert client.state() == before
    assert client.arrive(replace(token, t=3))


def test_a_training_that_is_resumed_begins_the_next_tour_again() -> None:
    parties, _ = parties_of(problem_of())
    run(parties, 2)
    client: Any = parties.clients[0]
    assert client.asked >= 2
    client.stop_at_sync(1, {})
    assert client.asked == 1


def started() -> tuple[Any, Any]:
    """A server that has begun a tour, and the label holder, which has taken its labels off."""
    parties, holding = parties_of(problem_of("logistic"))
    run(parties, 1)
    _, integers = holding.begin(2)
    holder: Any = parties.clients[0]
    holder.receive(Message(SERVER, 0, holding.token(2, 0, integers)))
    return holding, holder


def test_a_server_that_sends_the_end_of_a_tour_itself_would_read_all_labels_and_is_refused() -> (
    None
):
    holding, holder = started()
    length, zeros = holding.plan.length, holding.opened * 0
    forged: SealedToken = holding.token(2, length, zeros)
    for sender in (SERVER, 2):  # on the path a, b, c the label holder gets its token from b
        with pytest.raises(WireError, match="does not come from the party before on its way"):
            holder.receive(Message(sender, 0, forged))

    # what it would have got, for a tour without a sum over labels
    holder.sums.spent = holder.sums.budget
    [message] = holder.end_tour(forged)
    assert isinstance(message.payload, SealedEnd)
    read = holding.open(message.payload.token)[: len(holder.labels)] / holding.scale
    assert abs(read - holder.labels).max() < 1e-3


def test_a_token_from_the_middle_of_nowhere_is_refused_by_every_client() -> None:
    parties, holding = parties_of(problem_of())
    run(parties, 1)
    _, integers = holding.begin(2)
    order = holding.plan.order(2)
    for place, k in enumerate(order[1:-1], 1):
        client: Any = parties.clients[k]
        token = holding.token(2, place, integers)
        wrong = [SERVER, *(other for other in range(3) if other != order[place - 1])]
        for sender in wrong:
            with pytest.raises(WireError, match="party before on its way"):
                client.receive(Message(sender, k, token))
        misplaced = replace(token, place=place + 1)
        with pytest.raises(WireError, match="party before on its way"):
            client.receive(Message(order[place], k, misplaced))


def test_the_end_of_a_tour_that_has_not_begun_is_refused() -> None:
    parties, holding = parties_of(problem_of())
    messages = run(parties, 1)
    assert any(isinstance(one.payload, SealedRequest) for one in messages)
    holder: Any = parties.clients[0]
    holder.begun = holder.begun[:0]
    length = holding.plan.length
    with pytest.raises(WireError, match="ends a tour that has not begun here"):
        holder.end_tour(holding.token(1, length, holding.opened))
