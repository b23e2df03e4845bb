"""The contract of engines, on Ray: the assertions of ``tests/contract``.

There, all trainings run in the actors of a cluster without Ray, whose messages are pickled as Ray
pickles them. What Ray adds does not depend on the method, so a few trainings run on Ray itself:
with and without a server, on the full sample and in batches, masked, and with several classes.
"""

from pathlib import Path
from typing import Any

import pytest

import engine_cases
from engine_contract import (
    check_a_pause_changes_nothing,
    check_a_snapshot_is_continued,
    check_an_interruption_leaves_a_model,
    check_same_iterates_and_ledger,
)
from mtcd.ray.cluster import RayActors

ONE_OF_EACH = ("stcd", "mtcd in batches", "dcpa")
SAME_SEED = (*ONE_OF_EACH, "mtcd average", "mtcd optimal", "double-masked rounds", "adaptive")


@pytest.fixture(autouse=True)
def _on_ray(cluster: RayActors, monkeypatch: pytest.MonkeyPatch) -> None:
    """'hosts' are actors of Ray."""
    monkeypatch.setattr(engine_cases, "ThreadCluster", lambda: _another(cluster))


def _another(cluster: Any) -> RayActors:
    made = type(cluster)(cluster.settings)
    made.pool = cluster.pool
    return made


@pytest.mark.parametrize("name", SAME_SEED)
def test_the_same_seed_gives_the_same_iterates_and_ledger(name: str, tmp_path: Path) -> None:
    check_same_iterates_and_ledger("hosts", name, tmp_path)


@pytest.mark.parametrize("name", ONE_OF_EACH)
@pytest.mark.parametrize(
    "check",
    [
        check_an_interruption_leaves_a_model,
        check_a_pause_changes_nothing,
        check_a_snapshot_is_continued,
    ],
    ids=lambda check: check.__name__,
)
def test_the_contract(check: Any, name: str, tmp_path: Path) -> None:
    check("hosts", name, tmp_path)
