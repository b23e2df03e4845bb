"""The contract of engines (``protocol/engine.py``): the same assertions for each of them, and for
what they deliver."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from any_order import in_orders
from contract_cases import BY_NAME, TRAININGS, assert_close, reference
from engine_cases import IN_PROCESS
from engine_contract import (
    check_a_pause_changes_nothing,
    check_a_snapshot_is_continued,
    check_an_interruption_leaves_a_model,
    check_same_iterates_and_ledger,
)
from mtcd.core.errors import MtcdError
from mtcd.engines.choose import engine_for
from mtcd.engines.local import LocalEngine
from mtcd.engines.lockstep import LockstepEngine
from mtcd.methods.dcpa.dcpa import DCPA
from mtcd.methods.method import Method
from mtcd.methods.mtcd.mtcd import MTCD, STCD
from mtcd.methods.svfl.svfl import SVFL
from mtcd.methods.tree_cg.tree_cg import TreeCG
from mtcd.models.glm.training import LinearTraining
from mtcd.network.topology import make_network
from mtcd.protocol.engine import Engine
from mtcd.protocol.ledger.costs import Costs
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.protocol.party import MONITOR, SERVER, Parties
from mtcd.protocol.state import Snapshot
from mtcd.testing.federation_engine import FederationEngine
from mtcd.training.kinds import Request
from mtcd.training.stop import Stop
from mtcd.training.train import run_training, train
from problems import ALL, MODELS, cases, make_data, mtcd_settings

EVERYWHERE = [(engine, case.name) for case in TRAININGS for engine in case.runs_in]
ONE_OF_EACH = [
    (engine, name)
    for name in ("stcd", "mtcd in batches", "dcpa")
    for engine in BY_NAME[name].runs_in
]


@pytest.mark.parametrize(("engine", "name"), EVERYWHERE)
def test_the_same_seed_gives_the_same_iterates_and_ledger(
    engine: str, name: str, tmp_path: Path
) -> None:
    check_same_iterates_and_ledger(engine, name, tmp_path)


@pytest.mark.parametrize(("engine", "name"), ONE_OF_EACH)
def test_training_in_any_engine_gives_the_same_run(engine: str, name: str, tmp_path: Path) -> None:
    case = BY_NAME[name]
    method, stop = case.settings
    training = LinearTraining(
        Request(case.data, case.model, case.config.network, method, stop, seed=case.config.seed)
    )
    expected = train(
        case.data, case.model, case.config.network, method, stop, seed=case.config.seed
    )
    found = run_training(
        training, Costs(), None, make_engine=lambda *parties: case.engine(engine, tmp_path)
    )
    assert (found.status, found.ledger, found.notes) == (
        expected.status,
        expected.ledger,
        expected.notes,
    )
    assert found.final.iteration == expected.final.iteration
    assert_close(name, list(found.parameters.values()), list(expected.parameters.values()))


@pytest.mark.parametrize(("engine", "name"), ONE_OF_EACH)
def test_parameters_are_those_of_the_observation(engine: str, name: str, tmp_path: Path) -> None:
    case = BY_NAME[name]
    expected = LocalEngine(case.parties(), Ledger())
    observed = [
        (one.hop, one.t, [theta.copy() for theta in expected.parameters()])
        for one in islice(expected.run(), 6)
    ]
    with case.engine(engine, tmp_path) as running:
        for progress, (hop, syncs, parameters) in zip(running.run(), observed, strict=False):
            assert (progress.hop, progress.t) == (hop, syncs)
            assert_close(name, running.parameters(), parameters)
            if progress.aggregate is not None:
                told = case.problem.read_off(progress.aggregate, progress.penalty)
                assert told == pytest.approx(case.problem.evaluate(parameters), rel=1e-9)


@pytest.mark.parametrize(("engine", "name"), ONE_OF_EACH)
def test_what_the_observer_skips_changes_nothing(engine: str, name: str, tmp_path: Path) -> None:
    case, expected = BY_NAME[name], reference(name)
    with case.engine(engine, tmp_path) as running:
        running.skip_to(40)
        progress = next(one for one in running.run() if one.hop >= 40)
        assert progress.hop == expected.iterations[-1]
        assert_close(name, running.parameters(), expected.parameters)


@pytest.mark.parametrize(("engine", "name"), ONE_OF_EACH)
def test_an_interrupted_training_leaves_a_model(engine: str, name: str, tmp_path: Path) -> None:
    check_an_interruption_leaves_a_model(engine, name, tmp_path)


@pytest.mark.parametrize(("engine", "name"), ONE_OF_EACH)
def test_a_pause_changes_nothing(engine: str, name: str, tmp_path: Path) -> None:
    check_a_pause_changes_nothing(engine, name, tmp_path)


@pytest.mark.parametrize("name", ["stcd", "mtcd in batches", "dcpa"])
def test_a_federation_that_was_stopped_continues_from_its_journals(
    name: str, tmp_path: Path
) -> None:
    case, expected = BY_NAME[name], reference(name)
    first = case.engine("federation", tmp_path)
    assert case.train(first, Stop(iterations=15)).status == "iterations"
    assert set(first.statuses.values()) == {None}  # the parties' own limit is 40
    second = FederationEngine(first.bundles, tmp_path / "elsewhere", first.participant)
    second.resume(first.snapshot())
    found = case.train(second)
    assert (found.status, found.ledger) == (expected.status, expected.ledger)
    assert set(second.statuses.values()) == {"iterations"}
    assert found.iterations[0] >= 10
    assert_close(name, found.parameters, expected.parameters)


@pytest.mark.parametrize(
    ("engine", "name"), [pair for pair in EVERYWHERE if pair[0] in (*IN_PROCESS, "hosts")]
)
def test_linear_models_continue_from_a_snapshot(engine: str, name: str, tmp_path: Path) -> None:
    check_a_snapshot_is_continued(engine, name, tmp_path)


def test_an_engine_without_checkpoints_says_so() -> None:
    class Plain(LocalEngine):
        snapshot, resume = Engine.snapshot, Engine.resume

    made = Plain(BY_NAME["stcd"].parties(), Ledger())
    for asked in (made.snapshot, lambda: made.resume(Snapshot({}, {}))):
        with pytest.raises(MtcdError, match="does not support checkpoints"):
            asked()


def test_the_parties_decide_on_the_engine() -> None:
    chosen = {name: type(engine_for(case.parties(), Ledger())) for name, case in BY_NAME.items()}
    assert chosen == {name: LockstepEngine if name == "dcpa" else LocalEngine for name in BY_NAME}


def test_a_party_that_fails_ends_the_engine(tmp_path: Path) -> None:
    case = BY_NAME["mtcd average"]
    engine = case.engine("federation", tmp_path)
    make = engine.participant

    def participant(bundle: Any) -> Any:
        participant = make(bundle)
        if bundle.config.name == "c2":
            participant.role = _no_role
        return participant

    engine.participant = participant
    with pytest.raises(MtcdError, match="no role"), engine:
        list(engine.run())


def test_a_party_that_cannot_start_leaves_no_links_of_others(tmp_path: Path) -> None:
    engine = BY_NAME["stcd"].engine("federation", tmp_path)
    make = engine.participant
    engine.participant = lambda bundle: _no_role() if bundle.config.name == "c3" else make(bundle)
    with pytest.raises(MtcdError, match="no role"), engine:
        next(engine.run())
    again = FederationEngine(engine.bundles, engine.folder, make)  # ports and folders are free
    assert BY_NAME["stcd"].train(again).status == "iterations"


def _no_role(*given: Any) -> Any:
    raise MtcdError("no role")


# What engines deliver


@given(st.data())
@settings(max_examples=60)
def test_the_order_of_deliveries_does_not_matter(data: st.DataObject) -> None:
    case = data.draw(cases())
    method = data.draw(
        st.one_of(mtcd_settings(case, ALL), st.builds(SVFL, st.integers(1, 3), st.just(1e-3)))
    )
    rule = method.combine_rule if isinstance(method, MTCD) else ""
    problem = case.model.problem(case.data)
    engines = in_orders(lambda: method.parties(problem, case.network, case.seed), case.seed)
    for engine in engines:
        next(islice(engine.run(), 4, None))
    first, *others = [(engine.parameters(), engine.ledger) for engine in engines]
    # it adds up changes in the order of the visits
    tolerance = 1e-12 if rule == "visitors" else 0.0
    for thetas, ledger in others:
        assert ledger == first[1]
        if rule == "optimal":  # so does this, and where f is flat, rounding decides on the weights
            assert problem.evaluate(thetas) == pytest.approx(problem.evaluate(first[0]), rel=1e-4)
            continue
        for ours, theirs in zip(thetas, first[0], strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance / 10)


def carried(payload: Any) -> int:
    """How many array entries there are in a payload."""
    if isinstance(payload, np.ndarray):
        return payload.size
    if is_dataclass(payload):
        return sum(carried(getattr(payload, field.name)) for field in fields(payload))
    if isinstance(payload, Mapping):
        return sum(carried(part) for part in payload.values())
    return sum(carried(part) for part in payload) if isinstance(payload, tuple) else 0


@pytest.mark.parametrize("model", [MODELS[0], MODELS[7]], ids=lambda m: m.kind)
@pytest.mark.parametrize(
    "method",
    [
        STCD(stepsize=1e-3),
        SVFL(stepsize=1e-3),
        SVFL(stepsize=1e-3, batch=4),
        DCPA(stepsize=1e-3),
        TreeCG(),
        *(
            MTCD(tokens=2, hops=3, stepsize=1e-3, combine=combine, batch=batch)
            for combine in ("average", "cluster", "visitors")
            for batch in (None, 4)
        ),
    ],
    ids=lambda m: m.describe(),
)
def test_the_floats_of_a_message_are_those_that_it_carries(model, method: Method) -> None:
    if isinstance(method, DCPA) and model.kind == "multinomial":
        pytest.skip("dcpa has no multinomial models")
    data = make_data(model, 12, [2, 1, 3, 2], seed=3)
    parties = method.parties(model.problem(data), make_network("cycle", data.clients), 0)
    outgoing, waiting, checked = parties.opening, [], 0
    for _ in range(40):
        for message in outgoing:
            if message.to != MONITOR:
                waiting.append(message)
                if message.to != message.sender:
                    assert message.floats == carried(message.payload)
                    checked += bool(message.floats)
        message = waiting.pop(0)
        outgoing = (
            parties.server if message.to == SERVER else parties.clients[message.to]
        ).receive(message)
    assert checked > 5


def test_an_engine_with_nothing_to_deliver_comes_to_an_end() -> None:
    assert list(LocalEngine(Parties([], None, []), Ledger()).run()) == []
