"""What a client promises to initiators of ballots, one by one; and where it sends a token whose next client is down."""

from collections import Counter

import numpy as np
import pytest

from mtcd.federation.delivery.envelopes import Prepare
from mtcd.federation.recovery.detours import next_around
from mtcd.federation.recovery.promises import Promises
from mtcd.network.topology import make_network
from mtcd.network.walks import make_walk

HOP = 7


def test_an_initiator_is_promised_each_ballot_once_and_none_that_is_older() -> None:
    promises = Promises()
    asked = [(0, False), (1, True), (1, False), (6, True), (4, False), (7, True)]
    for ballot, promised in asked:
        assert promises.promise(3, Prepare(HOP, ballot, False), 0, {}) is promised
    assert promises.promise(2, Prepare(HOP, 1, False), 0, {}) is True, "others have their own ballots"
    assert {k: prepare.ballot for k, (prepare, _) in promises.promised.items()} == {3: 7, 2: 1}


def test_what_is_released_is_over_with_all_before_it() -> None:
    promises = Promises()
    promises.promise(3, Prepare(HOP, 6, True), 0, {})
    promises.release(3, 5)
    assert promises.is_bound_to(3), "a later ballot than that is open"
    promises.release(3, 6)
    assert not promises.is_bound_to(3)
    promises.release(3, 2)  # a late one
    assert promises.promise(3, Prepare(HOP, 6, True), 0, {}) is False
    assert promises.promise(3, Prepare(HOP, 7, True), 0, {}) is True
    promises.release(2, 9)  # before the ballot itself is heard of
    assert promises.promise(2, Prepare(HOP, 9, True), 0, {}) is False
    assert promises.promise(2, Prepare(HOP, 10, False), 0, {}) is True
    promises.release(4, 0)  # no ballot has this number
    assert promises.promise(4, Prepare(HOP, 1, False), 0, {}) is True


def test_only_binding_ballots_and_terms_count_as_the_highest_number() -> None:
    promises = Promises()
    assert promises.highest == 0
    promises.promise(1, Prepare(HOP, 8, False), 0, {})
    assert (promises.highest, promises.binding_hops(), promises.is_bound_to(1)) == (0, [], False)
    promises.promise(2, Prepare(HOP + 1, 5, True), 0, {})
    promises.promise(3, Prepare(HOP, 4, True), 0, {})
    assert (promises.highest, sorted(promises.binding_hops())) == (5, [HOP, HOP + 1])
    promises.learn({3: HOP + 5})
    assert promises.highest == 5
    promises.learn({6: HOP})  # the ballots 5 and 4 are over by it, 8 is not
    assert (promises.highest, set(promises.promised)) == (6, {1})


@pytest.mark.parametrize(("down", "others"), [({1}, [2, 3, 4]), ({1, 3}, [2, 4]), ({1, 2, 3}, [4])])
def test_around_a_client_that_is_down_all_other_neighbours_are_as_likely(down: set[int], others: list[int]) -> None:
    network = make_network("star", [f"c{k}" for k in range(5)])
    walk, draws = make_walk("lazy", network), np.arange(120) / 120
    found = Counter(next_around(walk, network, 1, 0, 0, down, draw) for draw in draws)
    assert found == {k: 120 // len(others) for k in others}
    assert {next_around(walk, network, 4, 0, 0, down, draw) for draw in draws} == {4}, "that one is up"


def test_a_token_whose_neighbours_are_all_down_stays() -> None:
    network = make_network("star", [f"c{k}" for k in range(5)])
    assert next_around(make_walk("lazy", network), network, 0, 2, 0, {0}, 0.9) == 2
    assert next_around(make_walk("tour", network), network, 0, 2, 0, {0}, 0.9) == 2
