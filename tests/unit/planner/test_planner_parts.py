"""Forecasts against curves that are known, halving with made-up runners, candidates and
screening."""

import math
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtcd import DCPA, MTCD, STCD, SVFL, Costs, Glm, TreeCG, make_network
from mtcd.methods.mtcd.combine import RULES
from mtcd.methods.mtcd.features import ACCELERATIONS
from mtcd.models.glm.block_smoothness import BlockSmoothness
from mtcd.planner.candidates import Space, further, longest_tour, neighbours
from mtcd.planner.forecast import FURTHEST, Forecast, forecast
from mtcd.planner.halving import follow, race, survivors
from mtcd.planner.pilots import Pilot, PlanTask
from mtcd.planner.proposal import Proposal
from mtcd.planner.screening import ordered, score
from mtcd.privacy.masked.masked import with_masks
from problems import make_data


@given(
    rate=st.floats(0.9, 0.9999),
    first=st.floats(1e-2, 1e3),
    short=st.integers(20, 400),
    further=st.floats(0.05, 3.0),
)
def test_a_geometric_curve_is_foretold(rate, first, short, further) -> None:
    at = np.arange(short + 1)
    gaps = first * rate**at
    target = gaps[-1] * rate ** (further * short)
    found = forecast(at, gaps, target)
    assert found.iterations == pytest.approx(short * (1 + further), rel=1e-3)
    assert found.sure == (
        "within 20%" if further < 0.49 else "within 2x" if further < 0.99 else "rough"
    ) or (min(abs(further - 0.5), abs(further - 1)) < 0.02)
    assert found.low <= found.iterations <= found.high


def test_steps_in_the_curve_do_not_mislead() -> None:
    at = np.arange(0, 601)
    stairs = 10.0 ** -(at // 50 / 2.0)  # half a decade every 50 iterations, and nothing between
    found = forecast(at, stairs, 1e-9)
    assert found.iterations == pytest.approx(900, rel=0.15)


def test_what_was_reached_is_measured_and_ups_do_not_count() -> None:
    found = forecast([0, 10, 20, 30, 40], [1.0, 0.5, 2.0, 0.05, 0.2], 0.1)
    assert found == Forecast(30.0, 30.0, 30.0, "reached")


def test_slowing_widens_the_range() -> None:
    at = np.arange(1, 400.0)
    found = forecast(at, at**-2.0, 1e-6)  # really 1000
    assert found.low < 1000 < found.high
    assert found.sure == "rough" or found.high < 2 * found.iterations


@pytest.mark.parametrize("level", [1e-2, 1e-3])
def test_a_plateau_above_the_target_is_seen(level) -> None:
    at = np.arange(0, 3000)
    noise = 1 + 0.1 * np.random.default_rng(0).random(len(at))
    found = forecast(at, (level + 0.9**at) * noise, 1e-4)
    assert not found.arrives or found.iterations > 20 * at[-1]
    assert forecast(at, level + 0.9**at, 1e-4).sure == "stalls"


def test_too_little_and_diverged() -> None:
    assert forecast([0, 1], [1.0, 0.5], 1e-3).sure == "too early to say"
    assert forecast([], [], 1e-3).sure == "too early to say"
    assert forecast(range(9), [1.0] * 9, 1e-3, diverged=True).sure == "diverges"
    assert not forecast(range(9), [1.0] * 9, 1e-3).arrives
    assert FURTHEST > 1


class Clock:
    """Goes on while a pilot works."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass(eq=False)
class Fake:
    """Costs ``price`` at the target; what it says on the way is off by a factor that shrinks as it
    goes on. A unit of cost takes ``slow`` seconds."""

    price: float
    family: str = "stcd"
    own: bool = False
    error: float = 1.0
    status: str | None = None
    spent: float = 0.0
    unit: float = 0.1
    slow: float = 1e-3
    clock: Clock | None = None
    log: list[float] = field(default_factory=list)

    @property
    def predicted(self) -> float:
        return self.price * self.error ** max(0.0, 1.0 - self.spent / self.price)

    @property
    def lowest_gap(self) -> float:
        return 1.0 - self.spent / self.price

    @property
    def forecast(self) -> Forecast:
        return Forecast(self.predicted, 0.3 * self.predicted, 3 * self.predicted, "rough")

    def advance(self, until: float, most: float = math.inf) -> None:
        assert self.clock is not None
        self.log.append(most)
        affordable = self.spent + (until - self.clock.now) / self.slow
        end = max(self.spent, min(self.price, most, affordable))
        self.clock.now += (end - self.spent) * self.slow
        self.spent = end
        if end >= self.price:
            self.status = "converged"

    def dismiss(self) -> None:
        self.status = self.status or "dismissed"


def raced(fakes: list[Fake], seconds: float) -> Clock:
    clock = Clock()
    for fake in fakes:
        fake.clock = clock
    race(fakes, seconds, clock)
    return clock


def test_halving_finds_the_best_and_keeps_every_family() -> None:
    fakes = [Fake(10.0 + i, error=0.5 + (i % 3)) for i in range(12)]
    fakes += [
        Fake(60.0, "svfl"),
        Fake(40.0, "svfl"),
        Fake(90.0, "dcpa"),
        Fake(5000.0, "mtcd", own=True),
    ]
    clock = raced(fakes, 10.0)
    assert clock.now < 1.0
    assert fakes[0].status == "converged"
    assert [fake.status for fake in fakes[12:]] == [
        "dismissed",  # the dearer of two
        "converged",
        "converged",
        None,  # not followed to its end, which is too far
    ]
    assert fakes[15].spent == pytest.approx(100.0)  # ten times the best
    assert fakes[11].spent < fakes[0].spent


def test_a_race_does_not_depend_on_how_fast_the_machine_is() -> None:
    ends = []
    for slow in (1e-3, 7e-3):
        fakes = [Fake(10.0 + i, error=0.5 + (i % 4), slow=slow) for i in range(20)]
        raced(fakes, 1e3)
        ends.append([(fake.status, fake.spent) for fake in fakes])
    assert ends[0] == ends[1]


def test_a_race_ends_with_its_budget() -> None:
    fakes = [Fake(1e6, slow=0.1) for _ in range(4)]
    clock = raced(fakes, 2.0)
    assert clock.now == pytest.approx(2.0)
    assert all(fake.spent < 1e6 for fake in fakes)


def test_nobody_works_beyond_what_another_needed() -> None:
    there, rival, own = Fake(10.0, status="converged"), Fake(20.0), Fake(99.0, own=True)
    third = Fake(15.0, "mtcd")
    raced([there, rival, own, third], 10.0)
    assert rival.spent <= 10.0
    # the comparison and the picture need them
    assert own.status == third.status == "converged"
    assert there.spent == 0


def test_families_that_cost_more_are_followed_for_the_picture() -> None:
    best, dear = Fake(10.0), [Fake(5e3, "svfl", unit=20.0), Fake(8e3, "svfl", unit=20.0)]
    hopeless = Fake(1e9, "dcpa")
    clock = raced([best, *dear, hopeless], 10.0)
    assert dear[0].status is None
    follow([best, *dear, hopeless], clock.now + 100.0, clock)
    assert dear[0].status == "converged"
    assert hopeless.status is None
    assert clock.now < 30.0


def test_what_has_hardly_begun_is_not_dismissed() -> None:
    dear = Fake(50.0, error=9.0, unit=12.0)
    fakes = [Fake(60.0 + i) for i in range(8)]
    raced([*fakes, dear], 10.0)
    assert dear.status == "converged"


def test_survivors_are_the_better_half() -> None:
    fakes = [Fake(price, spent=0.6) for price in (5.0, 1.0, 3.0, 2.0, 4.0)]
    assert [fake.price for fake in survivors(fakes)] == [1.0, 2.0, 3.0]


def make_task(kind: str = "path", model: Glm | None = None, K: int = 6) -> PlanTask:
    model = model or Glm("ridge", alpha=1.0)
    data = make_data(model, 40, [3] * K, 0)
    network = make_network(kind, data.clients, p=0.3 if kind == "erdos-renyi" else None)
    return PlanTask(model.problem(data), network, Costs(20), None, 1.0, 1e-4, 0)


def space_of(task: PlanTask, own=None, **settings) -> Space:
    own = own or MTCD(2, 4, 20, 1e-3)
    return Space(task.network, task.smoothness, own, task.problem.outputs, 0, **settings)


@pytest.mark.parametrize(
    ("own", "families"),
    [
        (with_masks(MTCD(2, 4, 20, 1e-3)), {"mtcd", "svfl"}),
        (with_masks(SVFL(stepsize=1e-3), "double-masked"), {"svfl"}),
        (with_masks(SVFL(stepsize=1e-3, batch=4), "double-masked"), {"mtcd", "svfl"}),
    ],
)
def test_candidates_and_neighbours_have_the_masks_of_the_config(own, families) -> None:
    """A method without them would promise less privacy, and could not be written into the
    config."""
    task = make_task("cycle", Glm("ridge", alpha=1.0), 6)
    space = space_of(task, own)
    methods = list(space.candidates())
    assert {method.kind for method in methods} == families
    for method in methods[:: len(methods) // 12 + 1]:
        for one in (method, *neighbours(space, method)):
            assert one.aggregation == own.aggregation
            one.parties(task.problem, task.network, 0)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["path", "star", "complete", "empty", "erdos-renyi"])
@pytest.mark.parametrize("K", [1, 2, 6])
@pytest.mark.parametrize(
    "model", [Glm("ridge", alpha=1.0), Glm("multinomial", l2=0.5)], ids=["ridge", "multinomial"]
)
def test_every_candidate_and_neighbour_can_be_cast(kind, K, model) -> None:
    task = make_task(kind, model, K)
    space = space_of(task)
    methods = list(space.candidates())
    assert len({repr(method) for method in methods}) == len(methods)
    families = {method.kind for method in methods}
    connected = task.network.connected
    assert families == {"svfl", "mtcd"} | ({"stcd", "tree-cg"} if connected else set()) | (
        {"dcpa"} if connected and model.kind == "ridge" else set()
    )
    around = [near for method in methods[::7] for near in neighbours(space, method)]
    for method in methods + around:
        method.parties(task.problem, task.network, 0)


def test_the_batch_of_the_config_is_kept_and_nothing_is_accelerated_with_it() -> None:
    space = space_of(make_task(), MTCD(2, 4, 20, 1e-3, batch=8))
    for method in space.candidates():
        assert method.batch == (8 if method.kind in ("svfl", "mtcd") else None)
        assert not (method.kind == "mtcd" and method.acceleration)


def test_without_a_server_there_are_only_methods_without() -> None:
    assert {method.kind for method in space_of(make_task(), server=False).candidates()} == {
        "stcd",
        "dcpa",
        "tree-cg",
    }


def test_with_l1_there_are_no_conjugate_gradients_on_a_tree() -> None:
    task = make_task(model=Glm("linear", l1=0.1))
    assert "tree-cg" not in {method.kind for method in space_of(task).candidates()}
    assert list(neighbours(space_of(task), TreeCG())) == []


def test_clusters_of_the_config_are_candidates_too() -> None:
    groups = [["c0"], ["c1", "c2", "c3", "c4", "c5"]]
    found = [
        m
        for m in space_of(make_task(), MTCD(None, 8, stepsize=0.1, clusters=groups)).candidates()
        if m.kind == "mtcd"
    ]
    hops = {method.hops for method in found if method.clusters == groups}
    assert 8 in hops  # the tour of five clients in a row
    assert longest_tour(make_network("path", "abcd"), ((0, 1, 2), (3,))) == 4


def test_further_is_two_steps_away() -> None:
    space = space_of(make_task())
    near = {repr(method) for method in neighbours(space, STCD(4, 1e-3, walk="tour"))}
    far = {repr(method) for method in further(space, STCD(4, 1e-3, walk="tour"))}
    assert repr(STCD(8, 1.5e-3, walk="tour")) in far - near


def test_screening_prefers_tours_to_lazy_walks_and_long_visits_to_short_ones() -> None:
    task = make_task()
    eta = 1 / float(BlockSmoothness(task.problem).blocks.max())
    assert score(task, STCD(20, eta, walk="tour")) > score(task, STCD(20, eta))
    assert score(task, STCD(20, eta)) > score(task, STCD(1, eta))
    assert score(task, MTCD(2, 10, 20, eta, clusters="auto", walk="tour")) > score(
        task, SVFL(20, eta / 20)
    )
    methods = list(space_of(task).candidates())
    order = ordered(task, methods, math.inf, task.clock)
    assert sorted(map(repr, order)) == sorted(map(repr, methods))
    assert {method.kind for method in order[:5]} == {"svfl", "dcpa", "stcd", "mtcd", "tree-cg"}
    assert len(ordered(task, methods, 0.0, task.clock)) == 1  # out of time after the first


def test_a_pilot_goes_on_where_it_stopped() -> None:
    """In many small pieces it measures the same as a training at one go, and stops at its limit."""
    model = Glm("ridge", alpha=1.0)
    task = make_task(model=model)
    for method in (STCD(5, 1e-3), MTCD(2, 4, 5, 1e-3), SVFL(2, 1e-3), DCPA(1e-2), TreeCG()):
        pieces, whole = Pilot(task, method), Pilot(task, method)
        most = whole.cost_rate * 200
        whole.advance(math.inf, most)
        for _ in range(5000):
            pieces.advance(task.clock(), most)
        strip = [(row.iteration, row.objective, row.messages) for row in whole.rows]
        assert [(row.iteration, row.objective, row.messages) for row in pieces.rows] == strip
        assert 200 <= whole.iterations <= 204
        assert whole.status is None
        whole.dismiss()
        whole.revive()
        whole.advance(math.inf, 2 * most)  # on from there
        assert [(row.iteration, row.objective, row.messages) for row in whole.rows][
            : len(strip)
        ] == strip
        assert whole.iterations >= 400


@pytest.mark.parametrize(
    "method",
    [
        STCD(5, 1e-3),
        MTCD(2, 4, 5, 1e-3, combine="visitors"),
        MTCD(2, 4, 5, 1e-4, batch=4),
        SVFL(2, 1e-3),
        DCPA(1e-2),
        TreeCG(),
    ],
    ids=lambda method: method.describe(),
)
def test_costs_per_float_are_foretold_and_then_measured(method) -> None:
    costs = Costs(20.0, per="float")
    task = replace(make_task(model=Glm("ridge", alpha=1.0)), costs=costs, target=1e-12)
    pilot = Pilot(task, method)
    foretold = pilot.cost_rate
    pilot.advance(math.inf, 40 * foretold)
    assert pilot.iterations >= 40
    last = pilot.rows[-1]
    sent = {link: last.floats[link] for link in ("client_client", "uplink", "downlink")}
    assert last.cost == sent["uplink"] + sent["downlink"] + sent["client_client"] / 20
    assert pilot.cost_rate == pytest.approx(foretold)
    proposal = Proposal.of(pilot)
    if proposal.arrives:
        assert proposal.cost_at(20.0) == pytest.approx(proposal.cost)
        assert proposal.cost_at(40.0) <= proposal.cost


def test_settings_that_cannot_work_are_refused_quietly() -> None:
    task = make_task("empty")
    pilot = Pilot(task, STCD(1, 1e-3))
    pilot.task.__dict__["_travels"] = {}
    with pytest.raises(Exception, match="connected"):
        task.travel(pilot.method)
    diverging = Pilot(make_task(), MTCD(6, 1, 50, 1.0, clusters="auto"))
    diverging.advance(math.inf)
    assert diverging.forecast.sure == "diverges"
    assert math.isinf(diverging.predicted)


def test_accelerations_and_rules_bring_their_own_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planner knows none by name: what one returns is what is tried."""
    asked = []

    def tried(name: str, method: MTCD, setting: Space) -> list[MTCD]:
        asked.append(method)
        return [replace(method, acceleration=name, local_updates=77)]

    def rule_tried(method: MTCD, setting: Space) -> list[MTCD]:
        asked.append(method)
        return [replace(method, local_updates=77)]

    monkeypatch.setattr(ACCELERATIONS["conjugate"], "tried", tried)
    monkeypatch.setattr(RULES["memory"], "tried", rule_tried)
    found = [one for one in space_of(make_task()).candidates() if one.local_updates == 77]
    assert {method.kind for method in found} == {"stcd", "mtcd", "svfl"}
    assert {method.combine for method in found if method.kind == "mtcd"} == {None, "memory"}
    # a tour of each cluster; lone tokens have none, and rounds are asked for once
    assert all(method.walk == "tour" for method in asked)
    assert sum(method.hops is None for method in asked) == 1


def test_blocks_that_are_solved_are_candidates_by_every_solver() -> None:
    task = make_task(model=Glm("logistic", l2=1.0))
    lone = [method for method in space_of(task).candidates() if method.kind == "stcd"]
    found = {(m.local_solver, m.local_updates) for m in lone if m.acceleration == "conjugate"}
    assert {("majorise", 10_000_000), ("newton", 1), ("gradient", 20)} <= found
    quadratic = space_of(make_task()).candidates()
    assert {method.local_solver for method in quadratic if method.kind == "stcd"} == {
        "gradient",
        "majorise",
    }


def test_there_are_as_many_tokens_as_clients_at_most() -> None:
    counts = space_of(make_task(K=6)).token_counts
    assert counts == [2, 4, 6]


@pytest.mark.parametrize("count", [False, True])
def test_transports_and_degrees_are_tried_where_their_messages_take_time(count) -> None:
    space = space_of(make_task(), bytes_count=count)
    tour = STCD(4, 1e-3, walk="tour", acceleration="conjugate")
    forms = {method.transport for method in neighbours(space, tour)}
    assert forms == ({"float64", "delta32"} if count else {"float64"})
    adaptive = replace(tour, adaptive=True)
    assert ("delta32" in {method.transport for method in neighbours(space, adaptive)}) == count
    plain = {method.transport for method in neighbours(space, STCD(4, 1e-3))}
    assert plain == ({"float64", "float32"} if count else {"float64"})
    degrees = {method.degree for method in neighbours(space, TreeCG())}
    assert degrees == ({2, 3, 8} if count else set())
    rounds = SVFL(1, 1e-3, acceleration="conjugate", adaptive=True)
    assert ("delta32" in {method.transport for method in neighbours(space, rounds)}) == count


def test_an_acceleration_that_knows_no_other_settings_has_neighbours_all_the_same() -> None:
    space = space_of(make_task(model=Glm("logistic", l2=1.0)), bytes_count=True)
    twins = [one for one in space.candidates() if one.acceleration == "twin"]
    assert len(twins) == 1
    assert twins[0].adaptive
    for near in neighbours(space, twins[0]):
        assert (near.acceleration, near.local_solver, near.transport) == (
            "twin",
            "gradient",
            "float64",
        )


def test_a_neighbour_with_another_solver_takes_no_millions_of_products() -> None:
    space = space_of(make_task(model=Glm("logistic", l2=1.0)))
    solved = STCD(
        10_000_000,
        1e-3,
        walk="tour",
        acceleration="conjugate",
        local_solver="majorise",
    )
    updates = {near.local_solver: near.local_updates for near in neighbours(space, solved)}
    assert updates["gradient"] <= 200
    assert updates["newton"] == 1
