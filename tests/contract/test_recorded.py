"""Same seed, same iterates, same ledger as when they were recorded: see ``recorded.py``."""

import numpy as np
import pytest

from recorded import TRAININGS, recorded

RECORDS = recorded()


def test_all_trainings_are_recorded() -> None:
    assert list(RECORDS) == list(TRAININGS)


@pytest.mark.parametrize("name", TRAININGS)
def test_a_training_gives_the_recorded_numbers(name: str) -> None:
    then, now = RECORDS[name], TRAININGS[name]()
    assert (now["status"], now["iterations"]) == (then["status"], then["iterations"])
    assert {name: now["ledger"][name] for name in then["ledger"]} == then["ledger"]
    for numbers in ("objective", "parameters"):
        np.testing.assert_allclose(
            now[numbers], then[numbers], rtol=then["tolerance"], atol=then["tolerance"]
        )
