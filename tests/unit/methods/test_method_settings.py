"""Settings of methods: which go together, and what they become with privacy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from inspect import Parameter, signature
from typing import Any

import pytest

import mtcd
from mtcd.core.errors import ConfigError
from mtcd.methods.method import Method
from mtcd.methods.mtcd.mtcd import MTCD, STCD
from mtcd.methods.privacy_modes import with_privacy
from mtcd.methods.svfl.svfl import SVFL
from mtcd.models.splitnet.setup import split_plan
from mtcd.network.changes import with_changes
from mtcd.network.topology import Change, make_network
from mtcd.privacy.masked.double_server import DoubleMaskingServer
from mtcd.privacy.masked.masked import with_masks
from mtcd.privacy.masked.server import MaskingServer
from mtcd.privacy.sealed.dp.mode import private_tours
from mtcd.privacy.sealed.dp.settings import PrivateTours
from mtcd.privacy.sealed.mode import sealed_tours
from mtcd.privacy.sealed.settings import SealedTours
from mtcd.privacy.settings import DP
from problems import MODELS, make_data

CLIENTS = [f"c{k}" for k in range(5)]
CYCLE = make_network("cycle", CLIENTS)
TOUR: dict[str, Any] = {"walk": "tour", "combine": "cluster"}


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: MTCD(fusion_updates=0), "fusion_updates must be 1 or more"),
        (lambda: SVFL(fusion_updates=0), "fusion_updates must be 1 or more"),
        (lambda: SVFL(batch=0), "batch must be 1 or more"),
        (lambda: SVFL(transport="float16"), "float"),
        (lambda: SVFL(schedule=0.5), "must be a Schedule"),
        (lambda: SVFL(stepsize="car"), "a number or 'auto', but is 'car'"),
        (lambda: STCD(first_pass=1), "first_pass is true or false, but is 1"),
        (lambda: MTCD(combine="optimal", batch=3), "optimal needs mtcd and the full batch"),
        (lambda: MTCD(hops=None, combine="optimal"), "optimal needs mtcd and the full batch"),
        (
            lambda: MTCD(local_solver="majorize"),
            "unknown solver 'majorize': did you mean 'majorise'",
        ),
        (lambda: MTCD(local_solver="majorise", batch=3), "majorise needs the full batch"),
        (lambda: MTCD(hops=None, clusters="auto"), "stcd has one token"),
        (lambda: MTCD(hops=None, batch=3), "stcd has one token"),
        (lambda: MTCD(hops=None, schedule=mtcd.Schedule()), "stcd has none"),
        (lambda: MTCD(depth=0, acceleration="anderson", **TOUR), "depth must be 1 or more"),
        (lambda: MTCD(adaptive=True, **TOUR), "for acceleration: conjugate"),
        (
            lambda: MTCD(adaptive=True, acceleration="anderson", **TOUR),
            "for acceleration: conjugate",
        ),
        (lambda: MTCD(acceleration="anderson", combine="cluster"), "set walk: tour"),
        (
            lambda: STCD(walk="random-tour", acceleration="anderson"),
            "a walk that repeats itself",
        ),
        (lambda: STCD(walk="tour", acceleration="nesterov"), "momentum"),
        (
            lambda: MTCD(acceleration="anderson", walk="tour"),
            "a token per cluster and the full batch",
        ),
        (
            lambda: MTCD(acceleration="anderson", batch=3, **TOUR),
            "a token per cluster and the full batch",
        ),
        (
            lambda: MTCD(acceleration="anderson", transport="float32", **TOUR),
            "float32 changes tokens on their way",
        ),
        (
            lambda: MTCD(combine="optimal", transport="float32"),
            "float32 changes tokens on their way",
        ),
        (lambda: with_masks(SVFL(transport="float32")), "masked sends integers"),
        (lambda: with_masks(STCD()), "stcd has no sums at a server"),
        (
            lambda: with_masks(MTCD(2), "double-masked"),
            "use svfl without acceleration, or mtcd with batch",
        ),
        (lambda: with_masks(MTCD(2, combine="visitors")), "syncs that need the sum"),
        (lambda: with_masks(MTCD(2, combine="optimal")), "syncs that need the sum"),
        (
            lambda: with_masks(MTCD(2, acceleration="conjugate", **TOUR)),
            "acceleration: conjugate computes with small differences",
        ),
    ],
)
def test_settings_that_exclude_each_other_are_refused(
    make: Callable[[], Method], says: str
) -> None:
    with pytest.raises(ConfigError, match=says):
        make()


@pytest.mark.parametrize(
    "make",
    [
        lambda: MTCD(fusion_updates=1, depth=1),
        lambda: MTCD(hops=None, tokens=1),
        lambda: MTCD(combine="optimal"),
        lambda: MTCD(local_solver="majorise"),
        lambda: MTCD(schedule=mtcd.Schedule()),
        lambda: MTCD(acceleration="anderson", **TOUR),
        lambda: MTCD(adaptive=True, acceleration="conjugate", **TOUR),
        lambda: STCD(walk="tour", acceleration="anderson"),
        lambda: MTCD(transport="float32"),
        lambda: with_masks(MTCD(2)),
        lambda: with_masks(MTCD(2, combine="cluster")),
        lambda: with_masks(MTCD(2, combine="visitors", batch=3)),
        lambda: with_masks(MTCD(2, batch=3), "double-masked"),
        lambda: with_masks(SVFL(), "double-masked"),
        lambda: SVFL(transport="float32", schedule=mtcd.Schedule(), batch=1, fusion_updates=1),
    ],
)
def test_settings_that_go_together(make: Callable[[], Method]) -> None:
    make()


def test_masks_have_as_many_places_as_their_seeds_can_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mtcd.privacy.masked.masked.MOST_PLACES", 4)
    problem, path = (
        MODELS[0].problem(make_data(MODELS[0], 8, [1] * 3, seed=0)),
        make_network("path", CLIENTS[:3]),
    )
    with_masks(MTCD(4, 3, stepsize=0.1)).parties(problem, path, 0)
    with pytest.raises(ConfigError, match="at most 4 tokens, but there are 5"):
        with_masks(MTCD(5, 3, stepsize=0.1)).parties(problem, path, 0)
    with pytest.raises(ConfigError, match="use two tokens or more, or batch"):
        with_masks(MTCD(1, 3, stepsize=0.1)).parties(problem, path, 0)
    with_masks(MTCD(1, 3, stepsize=0.1, batch=2)).parties(problem, path, 0)
    with_masks(SVFL()).check(make_network("path", CLIENTS[:4]))
    with pytest.raises(
        ConfigError, match="at least 3 clients and at most 4, but there are 5: in a sum of two"
    ):
        with_masks(SVFL()).check(CYCLE)
    with pytest.raises(
        ConfigError,
        match="at least 4 .*, but there are 3: also without one client, in a sum of two",
    ):
        with_masks(SVFL(), "double-masked").check(path)


def test_changes_are_for_plain_sums_of_all_samples() -> None:
    changing = with_changes(CYCLE, [Change(3, leave=["c1"])])
    SVFL().check(changing)
    for method, says in (
        (SVFL(batch=3), "leave batch out"),
        (with_masks(SVFL()), "leave network.changes out"),
    ):
        with pytest.raises(ConfigError, match=f"(?i){says}"):
            method.check(changing)
        method.check(CYCLE)


@pytest.mark.parametrize(
    ("combine", "clusters"), [("cluster", None), (None, [["c0", "c1"], ["c2", "c3", "c4"]])]
)
def test_accelerated_tours_need_hops_for_the_longest_of_them(
    combine: str | None, clusters: Any
) -> None:
    path, longest = make_network("path", CLIENTS), 8 if clusters is None else 4

    def plan(hops: int) -> None:
        method = MTCD(
            1 if clusters is None else 2,
            hops,
            1,
            0.1,
            None,
            combine,
            "tour",
            clusters,
            acceleration="anderson",
        )
        method.plan(10, 1, path, 0)

    plan(longest)
    with pytest.raises(
        ConfigError, match=f"hops is {longest - 1}, but the longest tour of a cluster has {longest}"
    ):
        plan(longest - 1)


def test_sealed_tours_keep_walk_depth_and_the_place_of_the_key() -> None:
    sealed = sealed_tours(MTCD(walk="tour"))
    assert (sealed.server, sealed.walk, sealed.depth) == (True, "tour", SealedTours().depth)
    assert (
        sealed_tours(STCD(walk="random-tour", depth=3)).server,
        sealed_tours(STCD(walk="tour", depth=3)).depth,
    ) == (False, 3)
    private = private_tours(MTCD(walk="tour"), DP(epsilon=2.0))
    assert isinstance(private, PrivateTours)
    assert (private.server, private.dp.epsilon) == (True, 2.0)
    with pytest.raises(ConfigError, match="key to the label holder"):
        private_tours(STCD(walk="tour"), DP(epsilon=2.0))
    with pytest.raises(ConfigError, match="depth: with privacy.dp"):
        private_tours(MTCD(walk="tour", depth=3), DP(epsilon=2.0))
    sealed_tours(MTCD(1, walk="tour", combine="cluster", acceleration="conjugate"))


def test_sealed_tours_are_for_linear_models() -> None:
    method = MTCD(walk="tour")
    assert with_privacy(method, mtcd.Privacy(mode="sealed"), split=False) == sealed_tours(method)
    with pytest.raises(ConfigError, match="^privacy.mode: sealed is for ridge and logistic models"):
        with_privacy(method, mtcd.Privacy(mode="sealed"), split=True)
    with pytest.raises(
        ConfigError, match="^privacy.dp, which needs privacy.mode: sealed, is for ridge"
    ):
        with_privacy(method, mtcd.Privacy(mode="sealed", dp=DP(epsilon=1.0)), split=True)
    assert with_privacy(SVFL(), mtcd.Privacy(aggregation="masked"), split=True) == with_masks(
        SVFL()
    )


@pytest.mark.parametrize(
    "method", [SVFL(stepsize=0.1), MTCD(2, 3, stepsize=0.1), STCD(stepsize=0.1)]
)
def test_every_party_has_a_transport_of_its_own_unless_numbers_travel_as_they_are(
    method: Method,
) -> None:
    data = make_data(MODELS[0], 8, [1] * 3, seed=0)
    problem, path = MODELS[0].problem(data), make_network("path", data.clients)
    plain, single = (
        one.parties(problem, path, 0) for one in (method, replace(method, transport="float32"))
    )
    everybody = [[*parties.clients, *filter(None, [parties.server])] for parties in (plain, single)]
    assert [party.transport for party in everybody[0]] == [None] * len(everybody[0])
    assert (
        len({id(party.transport) for party in everybody[1]})
        == len(everybody[1])
        == 3 + method.has_server
    )
    assert single.clients[1] is single.clients[1]


def test_split_networks_refuse_what_is_for_linear_models() -> None:
    for method, says in (
        (with_masks(SVFL(), "double-masked"), "double-masked is for linear models"),
        (SVFL(transport="float32"), "always send float32"),
        (MTCD(transport="float32"), "always send float32"),
    ):
        with pytest.raises(ConfigError, match=says):
            split_plan(method.with_stepsize(0.1), 4, 1, CYCLE, 0)
    split_plan(with_masks(SVFL(stepsize=0.1)), 4, 1, CYCLE, 0)


@pytest.mark.parametrize(
    ("method", "named"),
    [
        (MTCD, ["features", "transport", "local_solver", "aggregation"]),
        (
            SVFL,
            ["acceleration", "depth", "adaptive", "transport", "local_solver", "aggregation"],
        ),
    ],
)
def test_settings_that_came_later_are_given_by_name(method: type[Method], named: list[str]) -> None:
    parameters = signature(method).parameters.values()
    assert [one.name for one in parameters if one.kind is Parameter.KEYWORD_ONLY] == named


def test_settings_that_no_config_has_are_not_shown_at_their_defaults() -> None:
    shown = repr(MTCD())
    assert (
        "fusion_client=None, adaptive=False, transport='float64', local_solver='gradient'" in shown
    )
    assert "first_pass" not in shown
    assert "features" not in shown


@pytest.mark.parametrize("method", [SVFL(stepsize=0.1), MTCD(2, 3, stepsize=0.1, batch=2)])
def test_parties_are_masked_once_or_twice(method: Any) -> None:
    data = make_data(MODELS[0], 8, [1] * 4, seed=0)
    problem, path = MODELS[0].problem(data), make_network("path", data.clients)
    for aggregation, host in (("masked", MaskingServer), ("double-masked", DoubleMaskingServer)):
        assert type(with_masks(method, aggregation).parties(problem, path, 0).server) is host
    assert not isinstance(method.parties(problem, path, 0).server, MaskingServer)


DATA = make_data(MODELS[0], 12, [2, 1, 3], seed=3)


NETWORK = make_network("path", DATA.clients)


def test_masks_need_three_clients_and_no_more() -> None:
    method = with_masks(mtcd.SVFL(stepsize=0.01))
    method.check(NETWORK)
    with pytest.raises(ConfigError, match="at least 3 clients"):
        method.check(make_network("path", ["a", "b"]))
