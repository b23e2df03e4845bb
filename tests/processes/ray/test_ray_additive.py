"""Trees on Ray: as in one process; ``tests/unit/ray/test_ray_trees.py`` has more cases, without Ray."""

import pytest

import mtcd
from additive_trainings import assert_same, trained

pytestmark = pytest.mark.usefixtures("one_ray")


def test_trees_on_ray_are_those_of_one_process() -> None:
    on_ray = mtcd.Ray("local", actors=2, cpus=0.5)
    assert_same(trained("trees", "clusters", on_ray), trained("trees", "clusters", None))
