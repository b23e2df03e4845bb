"""Clients and servers of accelerated tours and optimal sync, message by message."""

from __future__ import annotations

import copy
from dataclasses import replace
from itertools import islice, pairwise
from typing import Any

import numpy as np
import pytest

import mtcd
from mtcd.core.errors import MtcdError
from mtcd.engines.local import LocalEngine
from mtcd.methods.mtcd.mtcd import MTCD, STCD
from mtcd.methods.optimal_sync.parties import OptimalServer
from mtcd.methods.optimal_sync.tally import SyncTally, tally_of
from mtcd.methods.tours.instruction import (
    NO_INSTRUCTION,
    Instruction,
    instruct,
    instruction_of,
    products_of,
)
from mtcd.methods.tours.parties import TouringClient, TouringServer, steps_of
from mtcd.methods.tours.reference import PlainAnderson, PlainConjugate, PlainMomentum
from mtcd.models.glm.model import LinearProblem
from mtcd.network.changes import with_changes
from mtcd.network.topology import Change, Network, make_network
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.protocol.model import LocalUpdates
from mtcd.protocol.party import MONITOR, SERVER, Message
from mtcd.protocol.token import Token
from problems import make_data

RIDGE, LASSO = mtcd.Glm("ridge", l2=0.5), mtcd.Glm("linear", l1=0.3)
NAMES = [f"c{k}" for k in range(4)]
SYNCED = MTCD(
    None, 4, 2, 0.02, clusters=[["c0", "c1"], ["c2", "c3"]], walk="tour", acceleration="momentum"
)


def problem_of(model: mtcd.Glm = RIDGE) -> LinearProblem:
    problem = model.problem(make_data(model, 14, [2, 3, 1, 2], seed=6))
    assert isinstance(problem, LinearProblem)
    return problem


def touring(method: MTCD, number: int = 1, network: Network | None = None) -> TouringClient:
    plan = method.plan(14, 1, network or make_network("path", NAMES), 0)
    return TouringClient(number, problem_of().client(number), plan)


# the steps of an update


def noted(client: TouringClient, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, float]]:
    """The updates that a client makes from now on: their number, and the size of the steps."""
    updates: list[tuple[int, float]] = []
    plain = client.model.local_update

    def local_update(theta: Any, aggregate: Any, one: LocalUpdates) -> Any:
        updates.append((one.Q, one.eta))
        return plain(theta, aggregate, one)

    monkeypatch.setattr(client.model, "local_update", local_update)
    return updates


def token_with(instruction: Instruction, t: int = 0, hop: int = 1) -> Token:
    token = Token(0, t, hop, np.zeros(14), 0.0)
    instruct(token, instruction)
    return token


@pytest.mark.parametrize(
    ("times_L", "Q"),
    [(0.01, 1), (0.99, 1), (1.01, 2), (2.5, 3), (199.5, 200), (1000.5, 1001), (1e13, 10**12)],
)
def test_an_update_has_as_many_steps_as_keep_each_within_its_limit(
    times_L: float, Q: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = problem_of()
    L = np.linalg.norm(problem.blocks[1], 2) ** 2 + 0.5
    method = STCD(7, "auto", walk="tour", acceleration="conjugate").with_stepsize(0.01)
    client = touring(method)
    updates = noted(client, monkeypatch)
    instruction = Instruction(0, stepsize=times_L / L)
    client.update(token_with(instruction), instruction, 2)
    eta = min(times_L / Q, 1.0) / L
    assert updates == [(2 * Q, pytest.approx(eta))]
    plain = PlainConjugate(problem, method, (np.zeros(14), []))
    plain.reach = times_L / L
    assert plain.steps(1) == (Q, pytest.approx(eta))


def test_a_block_without_curvature_takes_one_step() -> None:
    """Its columns are 0 and there is no penalty: it has no gradient either."""
    assert steps_of(0.3, 0.0, 200) == (1, 0.3)
    X = np.column_stack([np.arange(5.0), np.zeros(5)])
    problem = mtcd.Glm("linear").problem(mtcd.split(X, np.arange(5.0), 2))
    assert isinstance(problem, LinearProblem)
    method = STCD(7, "auto", walk="tour", acceleration="conjugate").with_stepsize(0.01)
    assert PlainConjugate(problem, method, (np.zeros(5), [])).steps(1) == (1, 0.01)


@pytest.mark.parametrize("kind", ["anderson", "momentum", "conjugate"])
def test_without_a_step_in_the_instruction_it_is_that_of_the_method(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    method = STCD(7, 0.01, walk="tour", acceleration=kind)
    client = touring(method, 2)
    updates = noted(client, monkeypatch)
    client.update(token_with(NO_INSTRUCTION), NO_INSTRUCTION, 2)
    assert updates == [(14, 0.01)]
    plain = {"anderson": PlainAnderson, "momentum": PlainMomentum, "conjugate": PlainConjugate}[
        kind
    ]
    assert plain(problem_of(), method, (np.zeros(14), [])).steps(2) == (7, 0.01)


# tours and syncs


def test_visits_are_undone_to_the_start_of_the_iteration_instruction_included() -> None:
    client = touring(SYNCED)
    instruction = Instruction(1, keep=1)
    client.apply_instruction(token_with(instruction), instruction)
    client.update(token_with(NO_INSTRUCTION), NO_INSTRUCTION, 1)
    end = client.parameters().copy()
    assert np.abs(end).max() > 0
    mix = token_with(Instruction(2, (-0.5, 1.5), keep=1), t=1)
    before = mix.penalty
    client.apply_instruction(mix, instruction_of(mix))
    start = 1.5 * end  # the one before was 0
    np.testing.assert_allclose(client.parameters(), start)
    penalties = [0.5 * theta @ theta / 2 for theta in (end, start)]
    assert mix.penalty - before == pytest.approx(penalties[1] - penalties[0])
    assert mix.sync_penalty == pytest.approx(penalties[1] - penalties[0])
    assert client.t == 1
    client.update(mix, instruction_of(mix), 1)
    assert not np.allclose(client.parameters(), start)
    client.undo_visits()
    np.testing.assert_allclose(client.parameters(), start)


def test_an_instruction_between_two_visits_changes_the_copy_of_its_token() -> None:
    client = touring(STCD(2, 0.02, walk="tour", acceleration="momentum"))
    instruction = Instruction(1, keep=1)
    client.apply_instruction(token_with(instruction), instruction)
    token = token_with(Instruction(2, (-0.5, 1.5), keep=1))
    client.update(token, instruction_of(token), 1)
    end = client.parameters().copy()
    client.apply_instruction(token, instruction_of(token))
    np.testing.assert_allclose(client.copy_for(token), 1.5 * end)
    np.testing.assert_array_equal(client.theta[0], 0 * end)
    client.apply_instruction(token, instruction_of(token))  # once a tour
    np.testing.assert_allclose(client.copy_for(token), 1.5 * end)


def test_a_client_that_missed_a_tour_is_not_about_to_follow_the_next_instruction() -> None:
    client = touring(STCD(2, 0.02, walk="tour", acceleration="momentum"))
    client.memory.tour, client.memory.snapshots = 4, [np.ones(3)]
    mix = {
        tour: client.copy_for(token_with(Instruction(tour, (-0.5, 1.5), keep=1)))
        for tour in (4, 5, 6)
    }
    assert {tour: copy.tolist() for tour, copy in mix.items()} == {
        4: [0.0] * 3,
        5: [-0.5] * 3,
        6: [0.0] * 3,
    }


def test_the_sums_of_a_token_are_inner_products_with_the_starts() -> None:
    """Of s with every start; of the change d with every earlier start less s, with s, with itself;
    then a survey."""
    client, rng = (
        touring(STCD(2, 0.02, walk="tour", acceleration="conjugate")),
        np.random.default_rng(0),
    )
    first, earlier, theta, step, more = rng.standard_normal((5, 3))
    client.memory.snapshots, client.theta = [first, earlier], client._with_penalty(theta)
    token = token_with(Instruction(1, (0.25, 0.75), keep=3, starts=True, survey=True))
    client.apply_instruction(token, instruction_of(token))
    s = 0.25 * earlier + 0.75 * theta
    at = [s, s + step, s + step + more]
    for old, new in pairwise(at):
        client.add_products(token, old, new)
    d = step + more
    expected = 0.5 * np.array(
        [s @ first, s @ earlier, s @ s, d @ (first - s), d @ (earlier - s), d @ s, d @ d]
    )
    np.testing.assert_allclose(products_of(token)[:7], expected)
    X = problem_of().blocks[1]
    squares, norm = np.sum(X**2), np.linalg.norm(X, 2) ** 2
    logs = np.log(np.sum(X**2, axis=0)).sum()
    np.testing.assert_allclose(
        products_of(token)[7:], [1.0, 3.0, squares, norm, 3.0 * norm / squares, logs], rtol=1e-6
    )


@pytest.mark.parametrize(
    "method", [SYNCED, STCD(2, 0.02, walk="tour", acceleration="momentum", start="c0")]
)
def test_tours_are_numbered_one_by_one_also_where_clients_leave(method: MTCD) -> None:
    network = with_changes(make_network("path", NAMES), [Change(8, leave=["c3"])])
    parties = method.parties(problem_of(), network, 0)
    numbers: list[int] = []
    for _ in islice(LocalEngine(parties, Ledger()).run(), 30):
        server: Any = parties.server
        clients: list[Any] = [getattr(client, "client", client) for client in parties.clients]
        now = (
            max(client.memory.tour for client in clients)
            if server is None
            else server.instruction.tour
        )
        numbers += [now] if not numbers or now != numbers[-1] else []
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert len(numbers) > 3


def test_progress_is_told_once_all_clients_were_visited_and_not_while_a_jump_is_on_trial() -> None:
    """Three clients in a row, from an end: the third hop leaves the last. Tours 3 and 5 of four
    hops are on trial."""
    method = STCD(2, 0.02, walk="tour", acceleration="anderson", depth=1, start="c0")
    problem = RIDGE.problem(make_data(RIDGE, 14, [2, 3, 1], seed=6))
    parties = method.parties(problem, make_network("path", NAMES[:3]), 0)
    told = [progress.hop for progress in islice(LocalEngine(parties, Ledger()).run(), 9)]
    assert told == [0, 3, 4, 7, 8, 15, 16, 23, 24]


def test_a_server_s_report_is_not_the_aggregate_that_it_extrapolates() -> None:
    parties = SYNCED.parties(problem_of(), make_network("path", NAMES), 0)
    assert isinstance(parties.server, TouringServer)
    told = list(islice(LocalEngine(parties, Ledger()).run(), 5))
    problem = problem_of()
    values = [
        problem.fit.objective(one.aggregate, one.penalty)
        for one in told
        if one.aggregate is not None
    ]
    assert values == sorted(values, reverse=True)
    assert len(values) == 5


@pytest.mark.parametrize("kind", ["anderson", "momentum", "conjugate"])
@pytest.mark.parametrize("server", [False, True])
def test_parties_go_on_from_their_states(kind: str, server: bool) -> None:
    method = (
        replace(SYNCED, acceleration=kind)
        if server
        else STCD(2, 0.02, walk="tour", acceleration=kind)
    )
    old, new = (method.parties(problem_of(), make_network("path", NAMES), 0) for _ in range(2))
    waiting = [message for message in old.opening if message.to != MONITOR]

    def deliver(parties: Any, messages: list[Message]) -> list[Message]:
        party = parties.server if messages[0].to == SERVER else parties.clients[messages[0].to]
        return [*messages[1:], *(one for one in party.receive(messages[0]) if one.to != MONITOR)]

    for _ in range(25):
        waiting = deliver(old, waiting)
    parties = [(one, other) for one, other in zip(old.clients, new.clients, strict=True)]
    for one, other in [*parties, *([(old.server, new.server)] if server else [])]:
        other.restore(copy.deepcopy(one.state()))
    again = copy.deepcopy(waiting)
    for _ in range(25):
        waiting, again = deliver(old, waiting), deliver(new, again)
    np.testing.assert_array_equal(
        np.concatenate(old.parameters()), np.concatenate(new.parameters())
    )
    assert np.abs(np.concatenate(new.parameters())).max() > 0
    homes = [getattr(client, "acceleration", None) is not None for client in new.clients]
    assert sum(homes) == (0 if server else 1)


# optimal sync

OPTIMAL = MTCD(2, 2, 1, 0.01, combine="optimal")


def test_a_copy_that_does_not_count_may_be_infinite() -> None:
    client = OPTIMAL.parties(problem_of(), make_network("path", NAMES), 0).clients[0]
    client.copies = {0: (np.ones(2), 0.0), 1: (np.full(2, np.inf), 0.0)}
    assert client.after_sync({0: np.array([0.5, 0.0])}).tolist() == [0.5, 0.5]
    assert client.after_sync({0: np.array([-1.0, 0.0])}).tolist() == [-1.0, -1.0]
    now = Token(0, 0, 1, np.zeros(14), 0.0)
    later = Token(0, 1, 1, np.zeros(14), 0.0, slots={"past": {0: np.array([0.5, 0.0])}})
    assert [client.copy_for(token).tolist() for token in (now, later)] == [[1.0, 1.0], [0.5, 0.5]]


@pytest.mark.parametrize(
    "model", [RIDGE, LASSO, mtcd.Glm("linear", l1=0.3, l2=0.7)], ids=["l2", "l1", "both"]
)
def test_a_visit_adds_its_inner_products_with_all_copies_to_the_token(model: mtcd.Glm) -> None:
    """Of the changes d of copies; and the slope of r along that of the token, l1 by its two
    ends."""
    client: Any = OPTIMAL.parties(problem_of(model), make_network("path", NAMES), 0).clients[1]
    rng = np.random.default_rng(0)
    theta, other, *ends = rng.standard_normal((4, 3))
    client.theta, client.copies = (theta, 0.0), {0: (theta + other, 0.0)}
    token, old = Token(1, 0, 1, np.zeros(14), 0.0), theta
    token.put("tally", SyncTally(np.zeros(2)))
    for end in ends:
        client.copies[1] = (end, 0.0)
        client.report_sync_change(token, (old, 0.0), (end, 0.0))
        old = end
    d, l1, l2 = ends[-1] - theta, model.l1, model.l2_weight
    tally = tally_of(token)
    np.testing.assert_allclose(tally.products, l2 * np.array([d @ other, d @ d]), atol=1e-12)
    kinks = [l1 * np.abs(at).sum() for at in (theta, ends[-1])]
    assert tally.slope == pytest.approx(l2 * theta @ d + kinks[1] - kinks[0])
    assert tally.visited == {1}
    assert token.floats == 14 + 2 + 1 + 1, "a client is told once"


def server_of(model: mtcd.Glm = RIDGE, labels: Any = None, tokens: int = 2) -> OptimalServer:
    problem = problem_of(model)
    if labels is not None:
        problem = model.problem(mtcd.split(np.eye(len(labels)), labels, 2))
    names = NAMES[: len(problem.blocks)]
    server = (
        MTCD(tokens, 2, 1, 0.01, combine="optimal")
        .parties(problem, make_network("path", names), 0)
        .server
    )
    assert isinstance(server, OptimalServer)
    return server


def test_a_token_has_diverged_above_a_thousand_times_the_objective_of_the_start() -> None:
    """f is half the squared distance from (1, 0): 1/2 at the start, and 500 at (1 + 30, 10)."""
    server = server_of(mtcd.Glm("linear"), labels=[1.0, 0.0])
    sound = [
        server._is_sound(Token(0, 0, 2, np.array(at), 0.0))
        for at in ([31.0, 10.0], [31.1, 10.0], [31.0, np.nan])
    ]
    assert sound == [True, False, False]
    assert not server._is_sound(Token(0, 0, 2, np.array([31.0, 10.0]), 1.0))
    server.aggregate = np.array([1.0, 0.0])  # f is 0
    assert server._is_sound(Token(0, 0, 2, np.array([1.0, 0.0]), 0.0))
    assert not server._is_sound(Token(0, 0, 2, np.array([1.0, 1.0]), 0.0))


@pytest.mark.parametrize("model", [RIDGE, LASSO], ids=["smooth", "l1"])
def test_a_server_tells_f_where_it_knows_it(model: mtcd.Glm) -> None:
    """With l1 it knows a bound only."""
    problem = problem_of(model)
    parties = OPTIMAL.parties(problem, make_network("path", NAMES), 0)
    for told in islice(LocalEngine(parties, Ledger()).run(), 4):
        if model is LASSO:
            assert told.aggregate is None
        else:
            assert told.aggregate is not None
            f = problem.fit.objective(told.aggregate, told.penalty)
            assert f == pytest.approx(problem.evaluate(parties.parameters()), rel=1e-9)


@pytest.mark.parametrize("model", [RIDGE, LASSO], ids=["smooth", "l1"])
def test_tokens_that_met_nobody_change_nothing(model: mtcd.Glm) -> None:
    server = server_of(model)
    tokens = [server.token(index) for index in range(2)]
    server.combine(tokens)
    assert not server.aggregate.any()
    assert server.penalty == 0.0
    assert server.past == {}


def test_what_a_server_remembers_of_past_syncs() -> None:
    """The weights of iterations in which some client was last visited, and of no others."""
    server = server_of()
    for t, visited in enumerate([{0, 1}, {1, 2}, {1, 2}, {3, 0}]):
        tokens = [server.token(index) for index in range(2)]
        assert all(token.floats == 14 + 2 * len(server.past) + 3 for token in tokens)
        tally_of(tokens[0]).visited = visited
        server.combine(tokens)
        server.t = t + 1
    assert sorted(server.past) == [2, 3]
    assert server.last == {0: 3, 1: 2, 2: 2, 3: 3}


def test_the_second_derivative_of_the_penalty_has_what_each_token_adds() -> None:
    """Token i has products of its changes with those of both; that with itself counts once, the
    others add up."""
    server = server_of()
    tokens = [server.token(index) for index in range(2)]
    first, second = map(tally_of, tokens)
    first.products[:], first.slope = [4.0, 0.5], 1.5
    second.products[:], second.slope = [0.25, 3.0], -2.0
    along = server._along(tokens)
    np.testing.assert_allclose(along.bend, [[4.0, 0.75], [0.75, 3.0]])
    assert along.slope.tolist() == [1.5, -2.0]
    alone = server._along(tokens[1:])
    np.testing.assert_allclose(alone.bend, [[3.0]])


def test_the_survey_of_another_version_is_refused() -> None:
    """In a checkpoint from the first tour: its five numbers would be added to one place off."""
    method = STCD(7, "auto", walk="tour", acceleration="conjugate").with_stepsize(0.01)
    client = touring(method)
    instruction = Instruction(1, keep=1, starts=True, stepsize=0.01, survey=True)
    token = token_with(instruction)
    token.put("products", products_of(token)[:-1])
    with pytest.raises(MtcdError, match="another version of mtcd.*train anew"):
        client.apply_instruction(token, instruction)
