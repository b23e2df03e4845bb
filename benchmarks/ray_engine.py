"""The engine on Ray: overhead of a hop inside an actor and between actors, speed-up by a second actor, memory.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.ray_engine

Everything is measured against the local engine in the same run, on this machine. Not in ``make bench``: it needs the
extra ``ray``, two free cores and some minutes.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np

import mtcd
from mtcd.engines.local import LocalEngine
from mtcd.engines.ray.engine import RayEngine
from mtcd.engines.recipes import LinearRecipe
from mtcd.ledger.ledger import Ledger
from mtcd.methods.method import Method
from mtcd.model.linear import LinearProblem
from mtcd.network.topology import Network, make_network
from mtcd.protocol.engine import Engine

SEED = 0
ROUNDS = 3


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
        recipe = LinearRecipe(self.method, self.network, SEED, self.problem)
        parties = self.method.parties(self.problem, self.network, SEED)
        settings = mtcd.Ray(actors=actors, snapshot_seconds=3600)
        return RayEngine(settings, recipe, parties, Ledger())


def seconds(engine: Engine, iterations: int) -> float:
    """The time of so many iterations, after a tenth as many to warm up."""
    warm = iterations // 10
    with engine:
        engine.skip_to(warm)
        observations = (one for one in engine.run() if one is not None)
        next(one for one in observations if one.hop >= warm)
        engine.skip_to(warm + iterations)
        began = perf_counter()
        next(one for one in observations if one.hop >= warm + iterations)
        return perf_counter() - began


def best(make: list[Engine], iterations: int) -> float:
    """The quickest of some attempts: other work on this machine only adds."""
    return min(seconds(engine, iterations) for engine in make)


def hops() -> None:
    """A hop of one token around a cycle, inside an actor; between two clients of two actors."""
    print("Time of a hop, tokens of 1,000 and 100,000 numbers, 10 columns per client")
    for samples, iterations in ((1_000, 4_000), (100_000, 400)):
        inside = Case.of("cycle", 8, 10, samples, mtcd.STCD(stepsize=1e-7, walk="tour"))
        between = Case.of("path", 2, 10, samples, mtcd.STCD(stepsize=1e-7, walk="tour"))
        floor = best([inside.local() for _ in range(ROUNDS)], iterations) / iterations
        one = best([inside.on_ray(1) for _ in range(ROUNDS)], iterations) / iterations
        two = best([between.on_ray(2) for _ in range(ROUNDS)], iterations // 10) / (iterations // 10)
        print(
            f"  {8 * samples / 1e3:6.0f} KB: local {1e6 * floor:8.1f} µs, inside an actor {1e6 * one:8.1f} µs "
            f"({one / floor:.2f}), between actors {1e6 * two:8.0f} µs ({two / floor:.1f})"
        )


def speedup() -> None:
    """Two tokens, each in a cluster of its own: one actor against two."""
    method = mtcd.MTCD(tokens=2, hops=16, local_updates=5, stepsize=1e-7, combine="cluster")
    case, iterations = Case.of("path", 8, 100, 50_000, method), 160
    print("Two tokens in clusters of their own, 8 clients with 50,000 x 100 numbers, 16 hops to the sync")
    found = {"local": [], "one actor": [], "two actors": []}
    for _ in range(ROUNDS):  # in turns, so that all meet the same other work
        for name, engine in (("local", case.local()), ("one actor", case.on_ray(1)), ("two actors", case.on_ray(2))):
            found[name].append(seconds(engine, iterations) / iterations)
    times = {name: median(values) for name, values in found.items()}
    for name, one in times.items():
        print(f"  {name:10s}: {1e3 * one:6.2f} ms per hop of both tokens")
    print(f"  speed-up from one actor to two: {times['one actor'] / times['two actors']:.2f}")


def memory() -> None:
    """What a client takes in its actor, beside its block."""
    print("Memory of an actor (USS), 1,000 samples, 5 columns per client (40 KB)")
    used = {}
    for clients in (100, 2_000):
        case = Case.of("cycle", clients, 5, 1_000, mtcd.STCD(stepsize=1e-7, walk="tour"))
        with case.on_ray(1) as engine:
            engine.skip_to(2 * clients)
            next(one for one in engine.run() if one is not None and one.hop >= 2 * clients)
            used[clients] = own_memory()
        print(f"  {clients:5d} clients: {used[clients] / 1e6:.0f} MB")
    few, many = used
    print(f"  {(used[many] - used[few]) / (many - few) / 1e3:.1f} KB per client beside the blocks in shared memory")


def own_memory() -> float:
    """The memory of the actor for itself, in bytes."""
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if line.read_bytes().startswith(b"ray::Actor"):
                rollup = (line.parent / "smaps_rollup").read_text().split("\n")
                return sum(1024.0 * int(row.split()[1]) for row in rollup if row.startswith("Private_"))
        except OSError:
            continue
    raise SystemExit("No actor was found.")


def main() -> None:
    """Measure everything in one Ray."""
    with mtcd.Ray("local").connected():
        hops()
        speedup()
        memory()


if __name__ == "__main__":
    main()
