"""Which GPUs the actors of a training reserve."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtcd import Ray
from mtcd.core.errors import ConfigError
from mtcd.ray.cluster import with_gpus


def chosen(device: str, there: float, **settings: float) -> tuple[int | None, float | None]:
    found = with_gpus(Ray(**settings), device, {"CPU": 16.0} | ({"GPU": there} if there else {}))
    return found.actors, found.gpus


def test_models_without_gpus_reserve_none() -> None:
    assert chosen("cpu", 4) == (None, 0.0)
    assert chosen("auto", 0) == (None, 0.0)


def test_split_networks_take_the_gpus_there_are() -> None:
    assert chosen("auto", 4) == chosen("cuda", 4) == (4, 1.0)
    assert chosen("cuda", 8, actors=2) == (2, 4.0)
    assert chosen("cuda", 1, actors=2) == (2, 0.5)
    # two thirds each would leave no GPU with room for the third
    assert chosen("cuda", 2, actors=3) == (3, 0.5)


@given(gpus=st.integers(1, 16), actors=st.integers(1, 64))
def test_all_actors_find_a_place(gpus: int, actors: int) -> None:
    _, each = chosen("cuda", gpus, actors=actors)
    places = gpus // each if each >= 1 else gpus * int(1 / each + 1e-9)
    assert places >= actors
    assert each == int(each) or each < 1  # as Ray demands


def test_what_is_said_is_kept() -> None:
    assert chosen("cuda", 4, gpus=0.25) == (None, 0.25)
    assert chosen("auto", 4, gpus=0) == (None, 0)


def test_actors_without_gpus_are_refused_where_this_process_uses_one() -> None:
    with pytest.raises(
        ConfigError, match=r"the cluster has none\. Set compute: \{device: cpu\}, or add nodes"
    ):
        chosen("cuda", 0)
    with pytest.raises(
        ConfigError,
        match=r"engine\.gpus is 0\. Set compute: \{device: cpu\}, or leave engine\.gpus out",
    ):
        chosen("cuda", 4, gpus=0)
    with pytest.raises(ConfigError, match="whole GPUs"):
        Ray(gpus=1.5)
