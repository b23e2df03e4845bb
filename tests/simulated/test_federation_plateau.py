"""The plateau rule in federations: they end where a training in one process ends, through any
faults."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("cryptography")

from engine_cases import EngineCase
from federations import written
from live import in_process
from lone_worlds import PROBLEM as LONE
from lone_worlds import assert_kept, lone_world
from mtcd.core.errors import ConfigError
from mtcd.engines.local import LocalEngine
from mtcd.federation.delivery.journal import Journal
from mtcd.federation.delivery.reliable_party import ReliableParty
from mtcd.federation.file import read_federation
from mtcd.federation.recovery.search import Search
from mtcd.methods.method import Method
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.protocol.party import Parties
from mtcd.protocol.token import Token
from mtcd.testing.federation_engine import FederationEngine
from mtcd.testing.simulator.world import Faults, World
from mtcd.training.plateau import Plateau, PlateauRule
from mtcd.training.rules import TrainingFacts
from mtcd.training.stop import Stop
from problems import MODELS
from simulated_deliveries import DATA, EVERYTHING, METHODS, PROBLEM, making_parties
from simulated_ends import ends, recovering, run_to_the_end, summed
from suspected_clients import all_is_well, slander

LOGISTIC, MULTINOMIAL, RIDGE = MODELS[5], MODELS[7], MODELS[0]
ALONE = {"kind": "stcd", "local_updates": 2, "stepsize": 0.01}
TOKENS = {"kind": "mtcd", "tokens": 2, "hops": 5, "local_updates": 2, "stepsize": 0.005}
ROUNDS = {"kind": "svfl", "local_updates": 2, "stepsize": 0.005}
AT_SERVER = {"labels__shared_with": ["parties", "server"]}
STORM = Faults(loss=0.02, duplicate=0.1, crash=0.002)


def case(
    name: str,
    model: Any,
    method: dict[str, Any],
    patience: int,
    least: float,
    network: str = "cycle",
) -> EngineCase:
    stop = {"plateau": {"patience": patience, "min_improvement": least}}
    changes = {} if method["kind"] == "stcd" else AT_SERVER
    return EngineCase(name, model, method, network, iterations=300, changes=changes, stop=stop)


CASES = {
    one.name: one
    for one in (
        case("stcd", LOGISTIC, ALONE, 7, 0.02),
        case(
            "conjugate tours",
            RIDGE,
            {**ALONE, "walk": "tour", "acceleration": "conjugate"},
            7,
            0.002,
        ),
        case("average", LOGISTIC, {**TOKENS, "combine": "average"}, 3, 0.02),
        case("svfl", MULTINOMIAL, ROUNDS, 4, 0.02),
    )
}


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_the_parties_end_where_one_process_ends(name: str, tmp_path: Path) -> None:
    one = CASES[name]
    found = one.federate(tmp_path)
    expected = in_process(one.data, next(iter(found.bundles.values())))
    assert expected.status == "plateau"
    assert 20 <= expected.final.iteration < 300  # several windows, and not the limit
    kept = {(one.status, one.iterations, one.syncs) for one in found.summaries.values()}
    assert kept == {("plateau", expected.final.iteration, expected.final.syncs)}
    assert all("Stopped on a plateau" in summary.message for summary in found.summaries.values())
    assert found.ledger == expected.ledger
    for client, theta in expected.parameters.items():
        block = found.blocks[client]
        mine = np.concatenate([block.theta, block.intercept[None]])[: len(theta)]
        np.testing.assert_array_equal(mine, theta)


@pytest.mark.parametrize("name", ["stcd", "average"])
def test_what_the_rule_remembers_outlives_all_processes(name: str, tmp_path: Path) -> None:
    """Stopped in the middle of a window, and observed by nobody who knows the rule."""
    one = CASES[name]
    expected = one.train(LocalEngine(one.parties(), Ledger()))
    assert expected.status == "plateau"
    first = one.engine("federation", tmp_path)
    one.train(first, Stop(iterations=expected.iterations[-1] - 6))
    assert set(first.statuses.values()) == {None}
    second = FederationEngine(first.bundles, first.folder, first.participant)
    found = one.train(second, Stop(iterations=300))
    assert set(second.statuses.values()) == {"plateau"}
    assert (found.status, found.iterations[-1]) == ("plateau", expected.iterations[-1])
    assert all(map(np.array_equal, found.parameters, expected.parameters))


# Simulated federations

Make = Callable[[int, Parties, Journal], ReliableParty]


def watched(make: Make, problem: Any, method: Method, rule: Plateau) -> Make:
    start = problem.read_off(np.zeros(problem.labels.shape), 0.0)
    plateau = PlateauRule(rule, method.timeline().epoch(problem.samples), start)

    def made(number: int, parties: Parties, journal: Journal) -> ReliableParty:
        reliable = make(number, parties, journal)

        def limit(told: Any) -> str | None:
            def value(column: str) -> float:
                assert column == "objective"
                return problem.read_off(told.aggregate, told.penalty)  # type: ignore[no-any-return]

            keeper = told if isinstance(told, Token) else reliable
            return plateau.reached(TrainingFacts(told.hop, value, keeper))

        reliable.limit = limit
        return reliable

    return made


@pytest.mark.parametrize("name", ["stcd", "clusters", "average", "svfl"])
@pytest.mark.parametrize("seed", range(2))
def test_in_a_storm_all_end_where_one_process_ends(name: str, seed: int) -> None:
    rule = Plateau("objective", 10 if name == "stcd" else 4, 0.01)
    make = watched(recovering(name, "cycle"), PROBLEM, METHODS[name], rule)
    world = World(making_parties(name), seed, make=make, faults=EVERYTHING)
    run_to_the_end(world)
    parties, ledger, window = (
        world.make_parties(),
        Ledger(),
        rule.patience * METHODS[name].timeline().epoch(DATA.samples),
    )
    best = at = None
    for told in LocalEngine(parties, ledger).run():
        if told.hop % window == 0:
            value, at = PROBLEM.read_off(told.aggregate, told.penalty), told.hop
            if best is not None and best - value <= 0.01 * best:
                break
            best = value
    assert at > 3 * window
    assert {(end.status, end.hop) for end in ends(world) if end is not None} == {("plateau", at)}
    crossing = 1e-12 if name == "average" else 0
    for mine, theirs in zip(world.parameters(), parties.parameters(), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=crossing, atol=crossing)
    assert summed(world) == ledger


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2])
def test_a_regenerated_token_continues_with_the_values_of_its_own_history(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Visits that are undone do not count, whatever their values; all end at one moment."""
    # so that tokens are often regenerated
    monkeypatch.setattr(Search, "unreachable", lambda search, _: {search.to})
    world = lone_world("cycle", seed, STORM)
    world.make = watched(world.make, LONE, METHODS["stcd"], Plateau("objective", 10, 0.005))
    for number in world.numbers:
        world.start(number)
    values, undone = {0: LONE.evaluate(world.parameters())}, 0
    while not all(ends(world)):
        world.step()
        if world.time % 150 in (20, 35):
            slander(world)
        elif world.time % 150 == 149:
            all_is_well(world)
            world.faults = STORM
        assert world.time < 4000
        if not any(ends(world)):
            token = assert_kept(world)
            undone += sum(hop > token.hop for hop in values)
            values = {hop: value for hop, value in values.items() if hop < token.hop}
            values[token.hop] = LONE.read_off(token.aggregate, token.penalty)
            best = lowest(values)
            windows = token.slots.get("windows")
            assert token.hop < 10 or (windows.ended, windows.best) == (token.hop // 10, best)
    assert undone
    ((status, hop),) = {(end.status, end.hop) for end in ends(world) if end is not None}
    assert (status, hop % 10) == ("plateau", 0)
    best = lowest({at: value for at, value in values.items() if at < hop})
    assert best - LONE.evaluate(world.parameters()) <= 0.005 * best


def lowest(values: dict[int, float]) -> float:
    """The best value at the ends of windows, but for improvements that do not count."""
    best = values[0]
    for hop in range(10, max(values) + 1, 10):
        best = values[hop] if best - values[hop] > 0.005 * best else best
    return best


# Files


def test_what_no_party_can_evaluate_is_refused(tmp_path: Path) -> None:
    alone: dict[str, Any] = {"server": None, "method": {"kind": "stcd"}}
    read_federation(written(tmp_path, stop={"plateau": 1e-3}, **alone))
    read_federation(written(tmp_path, stop={"plateau": {"patience": 3}}, **AT_SERVER))
    refused: list[tuple[dict[str, Any], str]] = [
        ({}, r"shared_with: \[parties, server\].*use stcd"),
        ({**alone, "method": {"kind": "dcpa"}}, "with dcpa no party"),
        ({**AT_SERVER, "method": {"kind": "svfl", "batch": 5}}, "with mini-batches no party"),
        ({**alone, "stop": {"plateau": {"on": "train_auc"}}}, "only the objective.*'train_auc'"),
    ]
    for changes, sentence in refused:
        with pytest.raises(ConfigError, match=rf"stop\.plateau.*{sentence}"):
            read_federation(written(tmp_path, **{"stop": {"plateau": 1e-3}, **changes}))


def test_nor_a_party_of_a_split_network(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    split = {"kind": "split", "client": "mlp"}
    with pytest.raises(ConfigError, match=r"stop\.plateau.*split network"):
        read_federation(written(tmp_path, stop={"plateau": 1e-3}, model=split, **AT_SERVER))
