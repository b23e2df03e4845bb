"""Federations of real processes under faults; ``make test-faults`` does many more of these."""

from pathlib import Path
from typing import Any

import pytest

from faulty.runs import run_with_faults, run_without_some
from faulty.suite import AVERAGE, COMPLETE, CYCLE, RIDGE, STCD, plan


@pytest.mark.parametrize(("method", "seed"), [(STCD, 1), (AVERAGE, 2)], ids=["stcd", "mtcd"])
def test_nothing_is_lost_or_done_twice_and_the_optimum_is_reached(
    method: dict[str, Any], seed: int, tmp_path: Path
) -> None:
    happened = run_with_faults(tmp_path / "run", plan(method, CYCLE, 4, RIDGE), 5, seed)
    assert happened.total() == 6


def test_the_others_go_on_without_a_party_that_never_comes_back(tmp_path: Path) -> None:
    run_without_some(tmp_path / "run", plan(STCD, COMPLETE, 4, RIDGE), (2,))
