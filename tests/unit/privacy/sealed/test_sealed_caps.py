"""Every client keeps to the cap on tours by itself, whatever the key holder sends."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from clear_parties import CLEAR, parties_of, problem_of, run
from mtcd.core.errors import WireError


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
