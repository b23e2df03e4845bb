"""The participant of a linear model, step by step: what it refuses of what others tell it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mtcd.core.errors import DataError, WireError
from mtcd.federation.participant.held_out import Drawn
from mtcd.federation.participant.labels import labels_from_bytes, labels_to_bytes
from mtcd.federation.participant.table import PartyTable
from mtcd.methods.mtcd.mtcd import STCD
from mtcd.models.glm.party import participant as participants
from mtcd.models.glm.party.participant import LinearParticipant
from mtcd.models.glm.party.problem import own_part
from own_parts import bundles

ROWS = [*range(5)]
LABELS = np.array([0.0, 1.0, 1.0, 0.0, 1.0])


def table(**more: Any) -> PartyTable:
    return PartyTable(Path("a.csv"), None, ("x",), np.arange(8.0).reshape(8, 1), **more)


def participant(own: PartyTable | None = None, **model: Any) -> Any:
    """The participant of party a; of its table (``own``), eight rows."""
    config = bundles(("a", "b"), model={"kind": "logistic", "l2": 0.1, **model})["a"]
    made = LinearParticipant.__new__(LinearParticipant)
    own = own or table(labels=np.resize(LABELS, 8))
    made.__dict__.update(config=config, table=own, own=own, method=STCD(stepsize=0.1))
    return made


@pytest.mark.parametrize("outputs", [0, -1, 6, True, 1.0, None, "1"])
def test_outputs_are_from_one_to_as_many_as_samples(outputs: Any) -> None:
    one = participant()
    one.checked = lambda settings, *names: settings
    one._problem = lambda *given: (None, SimpleNamespace(outputs=2))
    for fine in (1, 5):
        agreed: Any = SimpleNamespace(settings={"samples": 5, "outputs": fine, "stepsize": 0.1})
        with pytest.raises(WireError, match="outputs are not those of the labels"):
            one.role(agreed, None)

    agreed = SimpleNamespace(settings={"samples": 5, "outputs": outputs, "stepsize": 0.1})
    with pytest.raises(WireError, match="outputs is out of range"):
        one.role(agreed, None)


def test_a_party_needs_the_labels_and_room_for_all_outputs(monkeypatch: pytest.MonkeyPatch) -> None:
    one, known = participant(), []
    one.drawn = lambda agreed: Drawn(ROWS, [5, 6])
    monkeypatch.setattr(participants, "check_fits", lambda *given: known.append(given))
    without: Any = SimpleNamespace(labels=b"")
    with pytest.raises(WireError, match="labels are missing"):
        one._problem(without, 5, 1)

    agreed: Any = SimpleNamespace(labels=labels_to_bytes(LABELS))
    labels, problem = one._problem(agreed, 5, 1)
    np.testing.assert_array_equal(labels, LABELS)
    assert (problem.samples, known) == (5, [(5 + 2, one.config)])
    assert one.held_out.tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    ("held", "agreed", "same"),
    [
        (None, None, True),
        ([1.0, 2.0], [1.0, 2.0], True),
        ([1.0, 2.0], [2.0, 1.0], False),
        ([1.0, 2.0], None, False),
        (None, [1.0, 2.0], False),
    ],
)
def test_the_label_holder_keeps_to_the_weights_of_the_first_start(
    held: Any, agreed: Any, same: bool
) -> None:
    one = participant(table(labels=np.resize(LABELS, 8)))
    one.held_weights = lambda rows: None if held is None else np.array(held)
    others = participant(table())
    others.held_weights = one.held_weights
    known = None if agreed is None else np.array(agreed)
    others._check_weights([0, 1], known)  # without labels it holds no weights
    if same:
        one._check_weights([0, 1], known)
        return

    with pytest.raises(DataError, match="give the same --weights as before"):
        one._check_weights([0, 1], known)


def test_weights_that_other_parties_need_travel_with_the_labels() -> None:
    weights = np.array([1.0, 2.0, 0.5, 1.0, 3.0, 0.0, 0.0, 0.0])
    plain, one = participant(), participant(table(labels=np.resize(LABELS, 8), weights=weights))
    assert plain.labels_for_facts(ROWS) == b""
    labels, told = labels_from_bytes(one.labels_for_facts(ROWS), 5)
    np.testing.assert_array_equal(labels, LABELS)
    np.testing.assert_array_equal(told, weights[:5])
    assert one.facts(ROWS, one.labels_for_facts(ROWS)) != plain.facts(ROWS)
    balanced = participant(class_weight="balanced")
    with pytest.raises(WireError, match="labels are missing, on which the step size depends"):
        balanced.facts(ROWS)
    with pytest.raises(DataError, match="have weight 0"):
        one.held_weights([5, 6, 7])
    assert plain.held_weights([5, 6, 7]) is None


def test_the_step_size_is_that_of_the_weighted_loss() -> None:
    """Which the label holder knows: its own weights count in what it resolves."""
    weights = np.array([1.0, 2.0, 0.5, 1.0, 3.0, 0.0, 0.0, 0.0])
    one = participant(table(labels=np.resize(LABELS, 8), weights=weights))
    one.method = STCD()
    report = one.facts(ROWS, one.labels_for_facts(ROWS))
    settings, labels = one.resolve(ROWS, {"a": report, "b": report})
    part = own_part(one.config, one.own, ROWS, LABELS, weights=weights[:5])
    curvature = part.problem.client(0).smoothness
    assert settings["stepsize"] == pytest.approx(1 / curvature)
    assert (settings["samples"], settings["outputs"]) == (5, 1)
    np.testing.assert_array_equal(labels_from_bytes(labels, 5)[1], weights[:5])
