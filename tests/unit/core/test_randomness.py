"""Randomness as a function of what it is for: seeds, batches, starts and walks."""

import math
import re
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mtcd
from mtcd.core.errors import ConfigError
from mtcd.core.seeding import BLOCK, shuffled, stream, uniform
from mtcd.methods.mtcd.roaming import StartAt, plan_roaming
from mtcd.network.topology import make_network
from mtcd.protocol.batches import Batches

CLIENTS = tuple(f"c{k}" for k in range(12))


def test_streams_differ_by_seed_purpose_and_ids_and_repeat_otherwise() -> None:
    draws = {
        (seed, purpose, ids): float(stream(seed, purpose, *ids).random())
        for seed in (0, 1)
        for purpose in ("walk", "start")
        for ids in ((), (0,), (1,), (0, 1), (1, 0))
    }
    assert len(set(draws.values())) == len(draws)
    assert all(
        float(stream(seed, purpose, *ids).random()) == value
        for (seed, purpose, ids), value in draws.items()
    )


DRAW = re.compile(r'\b(?:stream|uniform|uniform_block|shuffled|draw_seed)\(\s*[^,()]+,\s*"([^"]+)"')
SHARED = {
    "start": {
        "methods.mtcd.roaming",
        "methods.membership.roaming",
        "federation.recovery.iteration_server",
        "core.seeding",
    },
    "walk": {"methods.mtcd.roaming", "methods.membership.roaming"},
    "detour": {"federation.recovery.iteration_client", "federation.recovery.lone_token"},
    # modules are drawn with the number of their client, so their streams are others
    "network": {"network.topology", "network.geometric", "models.splitnet.makers"},
}
"""The purposes of draws that belong together, wherever they are made."""


def test_every_draw_has_a_purpose_of_its_own() -> None:
    """With the purpose of another, held-out samples would be those of a fold, or starts would
    follow walks."""
    package, places = Path(mtcd.__file__).parent, defaultdict[str, set[str]](set)
    for path in package.rglob("*.py"):
        for purpose in DRAW.findall(path.read_text()):
            places[purpose].add(".".join(path.relative_to(package).with_suffix("").parts))
    shared = {purpose: found for purpose, found in places.items() if len(found) > 1}
    assert {
        purpose: found for purpose, found in shared.items() if SHARED.get(purpose) != found
    } == {}
    assert places["holdout"] == {"data.draws"}
    assert places["folds"] == {"studies.cross_validation"}
    assert places["batch"] == {"protocol.batches"}
    assert places["held-out"] == places["tree"] == {"models.trees.families.trees"}
    assert len(places) > 15


def test_a_row_of_uniforms_can_be_read_at_random_and_is_uniform() -> None:
    forwards = [uniform(3, "walk", (1,), i) for i in range(4 * BLOCK)]
    backwards = [uniform(3, "walk", (1,), i) for i in reversed(range(4 * BLOCK))]
    assert forwards == backwards[::-1]
    assert len(set(forwards)) == 4 * BLOCK
    counts = np.histogram(forwards, bins=8, range=(0, 1))[0]
    assert abs(counts - BLOCK / 2).max() < 60


@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 99))
def test_an_epoch_takes_every_sample_at_most_once_and_as_many_as_fit(
    samples: int, size: int, seed: int
) -> None:
    if size > samples:
        with pytest.raises(ConfigError, match=f"batch is {size}, but there are {samples} samples"):
            Batches(samples, size, seed)
        return
    batches = Batches(samples, size, seed)
    assert batches.per_epoch == samples // size
    epochs = [
        np.concatenate(
            [batches.rows(epoch * batches.per_epoch + i) for i in range(batches.per_epoch)]
        )
        for epoch in (0, 1)
    ]
    for seen in epochs:
        assert len(seen) == batches.per_epoch * size == len(set(seen.tolist()))
        assert set(seen.tolist()) <= set(range(samples))


def test_every_epoch_has_an_order_of_its_own() -> None:
    batches = Batches(100, 100, seed=5)
    first, second, other = batches.rows(0), batches.rows(1), Batches(100, 100, seed=6).rows(0)
    assert not np.array_equal(first, second)
    assert not np.array_equal(first, other)
    assert np.array_equal(first, shuffled(5, "batch", (0,), 100))


def test_the_full_batch_has_no_rows_to_pick() -> None:
    assert Batches(7, None, 0).rows(3) is None
    assert Batches(7, None, 0).length == 7


def test_batches_follow_each_other_in_the_order_of_their_epoch() -> None:
    batches = Batches(11, 3, seed=5)
    assert (batches.length, batches.per_epoch) == (3, 3)
    for iteration, (epoch, first) in enumerate(
        [(0, 0), (0, 3), (0, 6), (1, 0), (1, 3), (1, 6), (2, 0)]
    ):
        rows = batches.rows(iteration)
        assert rows.tolist() == batches.order(epoch)[first : first + 3].tolist()
    orders = [tuple(batches.order(epoch).tolist()) for epoch in range(5)]
    assert len(set(orders)) == 5, "drawn anew in every epoch"
    assert all(sorted(order) == [*range(11)] for order in orders)
    whole = Batches(11, None, seed=5)
    assert (whole.length, whole.per_epoch, whole.rows(2)) == (11, 1, None)
    assert [batches.zeros(outputs).shape for outputs in (1, 2, 4)] == [(3,), (3, 2), (3, 4)]
    assert not batches.zeros(2).any()


@pytest.mark.parametrize("size", [-1, 0, 12])
def test_a_batch_has_one_to_all_samples(size: int) -> None:
    with pytest.raises(ConfigError, match=f"method.batch is {size}, but there are 11 samples"):
        Batches(11, size, 0)
    assert [Batches(11, good, 0).per_epoch for good in (1, 2, 11)] == [11, 5, 1]


def test_tokens_start_and_walk_independently_and_uniformly() -> None:
    network = make_network("complete", CLIENTS)
    roaming = plan_roaming(network, 2, None, "lazy", None, 8, None)
    starts = np.array([[roaming.first(token, t) for t in range(3000)] for token in (0, 1)])
    walks = np.array(
        [[roaming.next(token, 0, hop, 0, -1) for hop in range(3000)] for token in (0, 1)]
    )
    for pair in (starts, walks):
        for one in pair:
            assert abs(np.bincount(one, minlength=12) / 3000 - 1 / 12).max() < 0.03
        together = np.mean(pair[0] == pair[1])
        assert abs(together - 1 / 12) < 0.03, "two tokens meet as often as by chance"


def test_every_hop_of_every_iteration_draws_anew() -> None:
    """Not the same as the hop before it in the iteration after."""
    S = 5
    roaming = plan_roaming(make_network("complete", CLIENTS), 1, None, "lazy", None, 8, S)
    went = np.array(
        [[roaming.next(0, t, hop, 0, -1) for hop in range(1, S + 1)] for t in range(1000)]
    )
    assert abs(np.mean(went[1:, :-1] == went[:-1, 1:]) - 1 / 12) < 0.03


def test_a_token_in_a_cluster_starts_and_stays_there() -> None:
    network = make_network("cycle", CLIENTS)
    clusters = (tuple(range(6)), tuple(range(6, 12)))
    roaming = plan_roaming(network, 2, clusters, "lazy", None, 8, None)
    for token, cluster in enumerate(clusters):
        client = roaming.first(token, 0)
        for hop in range(300):
            assert client in cluster
            client = roaming.next(token, 0, hop, client, -1)


def test_the_largest_draw_starts_at_the_last_client() -> None:
    """Rounding must not lead beyond it."""
    last = math.nextafter(1.0, 0.0)
    assert StartAt([3, 5]).pick(last) == 5
    for weight in np.random.default_rng(0).random(200):
        assert StartAt([3, 5, 4], [weight, 0.1, 0.2]).pick(last) == 4
        assert StartAt([3, 5, 4], [weight, 0.1, 0.2]).pick(0.0) == 3


def test_a_start_outside_the_cluster_is_refused() -> None:
    network = make_network("cycle", CLIENTS)
    with pytest.raises(ConfigError, match="outside the cluster"):
        plan_roaming(network, 2, ((0, 1, 2), tuple(range(3, 12))), "lazy", ["c0", "c1"], 0, None)
    for weight in (-1.0, math.inf, math.nan):
        with pytest.raises(ConfigError, match="weights"):
            plan_roaming(network, 1, None, "lazy", {"c0": weight, "c1": 2.0}, 0, None)


@pytest.mark.parametrize(
    ("kind", "start", "hops", "unreached"),
    [
        ("empty", "c0", None, "c1"),
        ("path", "c0", 4, "c4"),
        ("path", ["c0", "c11"], 3, "c3"),
        ("path", {"c5": 1.0, "c11": 0.0}, 6, "c11"),
    ],
)
def test_a_start_from_which_a_client_can_never_be_visited_is_refused(
    kind, start, hops, unreached
) -> None:
    network = make_network(kind, CLIENTS)
    with pytest.raises(ConfigError, match=f"'{unreached}' can never be visited"):
        plan_roaming(network, 2, None, "lazy", start, 0, hops)


def test_a_start_from_which_everybody_can_be_visited_is_fine() -> None:
    network = make_network("path", CLIENTS)
    plan_roaming(network, 1, None, "lazy", "c0", 0, 12)
    plan_roaming(network, 2, None, "lazy", ["c0", "c11"], 0, 6)
