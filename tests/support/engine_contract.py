"""Assertions of the engine contract, for engines in this process and on Ray alike."""

import json
import math
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contract_cases import BY_NAME, assert_close, reference
from engine_cases import Outcome
from mtcd.federation.participant.keeping import read_summary
from mtcd.models.glm.party.block import read_block
from mtcd.protocol.snapshots import restored, take
from mtcd.protocol.state import Snapshot
from mtcd.testing.federation_engine import FederationEngine
from mtcd.training.stop import Stop


def check_same_iterates_and_ledger(engine: str, name: str, tmp_path: Path) -> None:
    case, expected = BY_NAME[name], reference(name)
    made = case.engine(engine, tmp_path)
    found = case.train(made)
    assert (
        (found.status, found.ledger)
        == (expected.status, expected.ledger)
        == ("iterations", expected.ledger)
    )
    assert found.iterations == expected.iterations
    assert_close(name, found.parameters, expected.parameters)
    assert_close(name, found.objectives, expected.objectives)
    if isinstance(made, FederationEngine):
        assert_parties_keep(made, found)


def assert_parties_keep(engine: FederationEngine, found: Outcome) -> None:
    """Every party ends by its own rule, at the same moment, and keeps its block."""
    for name in engine.bundles:
        summary = read_summary(engine.folder / name)
        assert (summary.status, summary.iterations) == (found.status, found.iterations[-1])
    for client, theta in zip(
        engine.nodes[next(iter(engine.bundles))].bundle.config.parties,
        found.parameters,
        strict=True,
    ):
        block = read_block(engine.folder / client)
        kept = np.concatenate([block.theta, block.intercept[None]])[: len(theta)]
        np.testing.assert_array_equal(kept, theta)


def check_an_interruption_leaves_a_model(engine: str, name: str, tmp_path: Path) -> None:
    case = BY_NAME[name]
    made = case.engine(engine, tmp_path)
    observer = case.observer(made)

    def watch(row: Any, fraction: float) -> None:
        if row.iteration >= 10:
            raise KeyboardInterrupt

    with made:
        assert observer.run(Stop(iterations=1000), watch) == "interrupted"
        held = case.problem.evaluate(made.parameters())
    assert observer.rows[-1].objective == pytest.approx(held, rel=1e-12)
    assert held < observer.rows[0].objective


def check_a_pause_changes_nothing(engine: str, name: str, tmp_path: Path) -> None:
    case, expected = BY_NAME[name], reference(name)
    made = case.engine(engine, tmp_path)
    observer = case.observer(made)
    with made:
        pauses = 0
        while (status := observer.advance(case.settings[1], until=-math.inf)) is None:
            pauses += 1
        assert status == expected.status
        assert pauses >= len(expected.iterations) - 1
        assert_close(name, made.parameters(), expected.parameters)


def check_a_snapshot_is_continued(engine: str, name: str, tmp_path: Path) -> None:
    made = [BY_NAME[name].engine(engine, tmp_path) for _ in range(2)]
    with made[0]:
        observations = made[0].run()
        list(islice(observations, 4))
        kept = json.loads(json.dumps(made[0].snapshot().facts)), made[0].snapshot().tensors
        second = restored(Snapshot(*kept))
        later = [
            (one.hop, [theta.copy() for theta in made[0].parameters()])
            for one in islice(observations, 5)
        ]
    with made[1]:
        made[1].resume(take(second))
        resumed = (one.hop for one in made[1].run() if one.hop >= later[0][0])
        again = [
            (hop, [theta.copy() for theta in made[1].parameters()])
            for hop in islice(resumed, len(later))
        ]
    assert [hop for hop, _ in again] == [hop for hop, _ in later]
    for (_, thetas), (_, its_thetas) in zip(later, again, strict=True):
        assert_close(name if engine == "hosts" else "", thetas, its_thetas)
