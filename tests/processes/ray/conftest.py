"""One Ray for all tests, with little memory and two CPUs. Actors are used again: starting one takes
seconds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import ray

from mtcd.ray.cluster import RayActors
from mtcd.ray.connection import LOCAL, connect
from mtcd.ray.settings import Ray

OBJECT_STORE = 100_000_000
ACTORS = 2


@pytest.fixture(scope="session")
def one_ray() -> Iterator[None]:
    connect(LOCAL, "engine.address", {"num_cpus": 2, "object_store_memory": OBJECT_STORE})
    yield
    ray.shutdown()


class SharedActors(RayActors):
    """Takes actors from a pool, and gives them back at the end."""

    pool: dict[int, Any]

    def create(self, numbers: Sequence[int]) -> None:
        fresh = [number for number in numbers if number in self.handles or number not in self.pool]
        if fresh:
            super().create(fresh)
        self.handles |= {number: self.pool.pop(number) for number in numbers if number not in fresh}

    def stop(self) -> None:
        self.pool.update(self.handles)
        self.handles = {}


@pytest.fixture(scope="session")
def pool(one_ray: None) -> Iterator[dict[int, Any]]:
    actors: dict[int, Any] = {}
    yield actors
    for actor in actors.values():
        ray.kill(actor)


@pytest.fixture
def cluster(pool: dict[int, Any]) -> RayActors:
    shared = SharedActors(Ray(actors=ACTORS, cpus=0.5))
    shared.pool = pool
    return shared
