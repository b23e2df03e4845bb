"""The engine on Ray: overhead of a hop inside an actor and between actors, speed-up by a second
actor, memory.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.ray_engine

Everything is measured against the local engine in the same run, on this machine. Not in ``make
bench``: it needs the extra ``ray``, two free cores and some minutes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from time import perf_counter, process_time
from typing import NamedTuple

import numpy as np

import mtcd
from mtcd.engines.local import LocalEngine
from mtcd.methods.method import Method
from mtcd.models.glm.model import LinearProblem
from mtcd.network.topology import Network, make_network
from mtcd.protocol.engine import Engine
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.ray.engine import RayEngine
from mtcd.training.training import BlockRecipe

SEED = 0
ROUNDS = 2


@dataclass(frozen=True)
class Case:
    """A training that is run by several engines."""

    problem: LinearProblem
    network: Network
    method: Method

    @staticmethod
    def of(kind: str, clients: int, columns: int, samples: int, method: Method) -> Case:
        """Random features and labels."""
        rng = np.random.default_rng(SEED)
        X, y = rng.standard_normal((samples, clients * columns)), rng.standard_normal(samples)
        data = mtcd.split(X, y, clients)
        return Case(mtcd.Glm("ridge").problem(data), make_network(kind, data.clients), method)

    def local(self) -> Engine:
        return LocalEngine(self.method.parties(self.problem, self.network, SEED), Ledger())

    def on_ray(self, actors: int) -> RayEngine:
        recipe = BlockRecipe(self.method, self.network, SEED, self.problem)
        parties = self.method.parties(self.problem, self.network, SEED)
        settings = mtcd.Ray(actors=actors, snapshot_seconds=3600)
        return RayEngine(settings, recipe, parties, Ledger())


def cpu(engine: Engine) -> list[float]:
    """The CPU seconds so far of each process with parties."""
    if isinstance(engine, RayEngine):
        return [used[0] for used in engine.cluster.call("usage").values()]
    return [process_time()]


def cost(engine: Engine, iterations: int) -> Cost:
    """The cost of an iteration: of so many, after a tenth as many to warm up."""
    warm = iterations // 10
    with engine:
        engine.skip_to(warm)
        observations = (one for one in engine.run() if one is not None)
        next(one for one in observations if one.hop >= warm)
        before, began = cpu(engine), perf_counter()
        engine.skip_to(warm + iterations)
        next(one for one in observations if one.hop >= warm + iterations)
        wall, after = perf_counter() - began, cpu(engine)
    used = [end - start for start, end in zip(before, after, strict=True)]
    return Cost(wall / iterations, sum(used) / iterations, max(used) / iterations)


class Cost(NamedTuple):
    """Seconds of an iteration: on the clock, of CPU time in all processes, and in the busiest of
    them."""

    wall: float
    cpu: float
    busiest: float


def best(make: Callable[[], Engine], iterations: int) -> Cost:
    """The least of some attempts: other work on this machine only adds."""
    found = [cost(make(), iterations) for _ in range(ROUNDS)]
    return Cost(*(min(values) for values in zip(*found, strict=True)))


def hops() -> None:
    """A hop of one token around a cycle, inside an actor; between two clients of two actors."""
    print("Time of a hop, tokens of 1,000 and 100,000 numbers, 10 columns per client")
    for samples, iterations in ((1_000, 4_000), (100_000, 400)):
        inside = Case.of("cycle", 8, 10, samples, mtcd.STCD(stepsize=1e-7, walk="tour"))
        between = Case.of("path", 2, 10, samples, mtcd.STCD(stepsize=1e-7, walk="tour"))
        floor = best(inside.local, iterations)
        one = best(partial(inside.on_ray, 1), iterations)
        two = best(partial(between.on_ray, 2), iterations // 10)
        print(
            f"  {8 * samples / 1e3:3.0f} KB, CPU: local {1e6 * floor.cpu:.1f} µs, in an actor "
            f"{1e6 * one.cpu:.1f} µs "
            f"({one.cpu / floor.cpu:.2f}), between actors {1e6 * two.cpu:.0f} µs "
            f"({two.cpu / floor.cpu:.1f})"
        )
        print(
            f"          clock: local {1e6 * floor.wall:.0f} µs, inside {1e6 * one.wall:.0f} µs, "
            f"between "
            f"{1e6 * two.wall:.0f} µs"
        )


def speedup(hops: int) -> None:
    """Two tokens, each in a cluster of its own: one actor against two."""
    method = mtcd.MTCD(tokens=2, hops=hops, local_updates=5, stepsize=1e-7, combine="cluster")
    case, iterations = Case.of("path", 8, 100, 20_000, method), max(160, 4 * hops)
    print(
        f"Two tokens in clusters of their own, 8 clients with 20,000 x 100 numbers, {hops} hops to "
        f"the sync"
    )
    found = {
        "local": best(case.local, iterations),
        "one actor": best(partial(case.on_ray, 1), iterations),
        "two actors": best(partial(case.on_ray, 2), iterations),
    }
    for name, one in found.items():
        print(
            f"  {name:10s}: clock {1e3 * one.wall:.2f} ms per hop of both tokens, CPU of the "
            f"busiest process "
            f"{1e3 * one.busiest:.2f} ms"
        )
    one, two = found["one actor"], found["two actors"]
    print(
        f"  from one actor to two: clock {one.wall / two.wall:.2f}, busiest process "
        f"{one.busiest / two.busiest:.2f}"
    )


def memory() -> None:
    """What a client takes in its actor, beside its block."""
    print("Memory of an actor (USS), 1,000 samples, 5 columns per client (40 KB)")
    used = {}
    for clients in (100, 2_000):
        case = Case.of("cycle", clients, 5, 1_000, mtcd.STCD(stepsize=1e-7, walk="tour"))
        with case.on_ray(1) as engine:
            engine.skip_to(2 * clients)
            next(one for one in engine.run() if one is not None and one.hop >= 2 * clients)
            used[clients] = next(iter(engine.cluster.call("usage").values()))[1]
        print(f"  {clients:5d} clients: {used[clients] / 1e6:.0f} MB")
    few, many = used
    print(
        f"  {(used[many] - used[few]) / (many - few) / 1e3:.1f} KB per client beside the blocks in "
        f"shared memory"
    )


def main() -> None:
    """Measure everything in one Ray."""
    with mtcd.Ray("local").connected():
        hops()
        for count in (16, 64, 256):
            speedup(count)
        memory()


if __name__ == "__main__":
    main()
