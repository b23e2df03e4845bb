"""Parties that come back with the folder of an earlier moment: noticed, before they do anything."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hubs import Passing
from mtcd.core.errors import JournalError
from mtcd.federation.node.rejoining import Counts, lacking
from restarting import METHODS, Restarting


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["c0", "c2", "server"])
def test_an_older_folder_is_refused_at_both_sides(method: str, name: str, tmp_path: Path) -> None:
    with Restarting(tmp_path, method) as hub:
        if name not in hub.nodes:
            pytest.skip("has no server")
        hub.steps(100)
        hub.copy(tmp_path / "copies", name)
        hub.steps(100)
        hub.end(name)
        hub.put_back(tmp_path / "copies", name)
        before = len(hub.shown)
        hub.start(name)
        with pytest.raises(
            JournalError, match=f"remembers messages of {name} that this folder lacks.*--out"
        ):
            hub.run()
        told = [line for line in hub.shown[before:] if f"{name} has come back without" in line]
        assert any(f" {name}: " not in line for line in told)


@pytest.mark.parametrize("method", METHODS)
def test_the_folder_as_it_was_left_is_confirmed(method: str, tmp_path: Path) -> None:
    with Restarting(tmp_path, method) as hub:
        for round_, name in enumerate([*hub.nodes] * 3):
            hub.steps(20 + round_)
            hub.end(name)
            hub.start(name)
        assert any(
            node.trainer is not None and node.trainer.reliable.ended is None
            for node in hub.nodes.values()
        )
        hub.run()
        assert not any("without" in line for line in hub.shown)
        assert {node.status for node in hub.nodes.values()} == {"iterations"}


@pytest.mark.parametrize("method", METHODS)
def test_all_folders_of_one_stop_continue_together(method: str, tmp_path: Path) -> None:
    with Restarting(tmp_path, method) as hub:
        everybody = [*hub.nodes]
        hub.steps(100)
        hub.end(*everybody)
        hub.copy(tmp_path / "copies", *everybody)
        hub.start(*everybody)
        hub.steps(100)
        hub.end(*everybody)
        hub.put_back(tmp_path / "copies", *everybody)
        hub.start(*everybody)
        hub.check_model()


def test_what_is_lacking_is_counted() -> None:
    """Three messages sent to party 1, of which the second has no ack; five received from it, the
    fourth not yet."""

    remembers: Any = SimpleNamespace(sent={1: 3}, outbox={(1, 1): None}, seen={1: (3, [4])})

    def lacks(sent: int, below: int, beyond: list[int], ended: bool = False) -> int:
        return lacking(remembers, 1, Counts("r", sent, below, beyond, ended))

    assert lacks(5, 1, [2]) == 0
    assert lacks(9, 3, []) == 0
    assert lacks(4, 1, [2]) == 1
    assert lacks(5, 1, []) == 1
    assert lacks(5, 0, []) == 2
    assert lacks(5, 0, [], ended=True) == 0
    assert lacks(0, 0, [], ended=True) == 5


@pytest.mark.parametrize(
    "change",
    [
        {"sent": -1},
        {"sent": True},
        {"beyond": [None]},
        {"beyond": 7},
        {"beyond": [2**70]},
        {"run": 3},
        {"ended": 1},
        {"more": 1},
        None,
        {"run": "another"},
    ],
)
def test_counts_that_make_no_sense_are_refused(change: Any, tmp_path: Path) -> None:
    with Restarting(tmp_path, "stcd") as hub:
        hub.steps(100)
        told = {
            "run": hub.nodes["c0"].trainer.run,
            "sent": 99,
            "below": 99,
            "beyond": [],
            "ended": False,
        }
        good = hub.ask(Passing("c1", "c0", "counts", json.dumps(told).encode()))
        bad = hub.ask(
            Passing("c1", "c0", "counts", json.dumps(told | change if change else [1]).encode())
        )
    assert good == b"\0current"
    assert bad[:1] == b"\1"
