"""Trainings for the contract of engines: each is run by every engine that can run it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from any_order import reordered
from live import Federated, engine_of, unobserved
from mtcd.engines.local import LocalEngine
from mtcd.engines.lockstep import LockstepEngine
from mtcd.federation.credentials.bundle_schema import BundleConfig
from mtcd.federation.participant.node_table import settings_of
from mtcd.methods.method import Method, resolve_stepsize
from mtcd.models.glm.block_smoothness import BlockSmoothness
from mtcd.models.glm.model import Glm, LinearProblem
from mtcd.planner.virtual_time import VirtualTime, VirtualTimeEngine
from mtcd.privacy.sealed.settings import SealedTours
from mtcd.protocol.engine import Engine
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.protocol.party import Parties
from mtcd.ray.cluster import RayActors
from mtcd.ray.engine import RayEngine
from mtcd.testing.federation_engine import FederationEngine
from mtcd.training.divergence import worst_end_of
from mtcd.training.observer import Observer
from mtcd.training.pace import Growing
from mtcd.training.stop import Stop
from mtcd.training.training import BlockRecipe
from own_parts import bundles, model_section
from problems import make_data
from simulated_links import UnevenLinks
from thread_cluster import ThreadCluster
from waiting import PATIENCE
from worker_engine import WorkerEngine

ENGINES = ("local", "any order", "virtual time", "lockstep", "workers", "hosts", "federation")
IN_PROCESS = {
    "local": LocalEngine,
    "lockstep": LockstepEngine,
    "workers": WorkerEngine,
    "virtual time": partial(VirtualTimeEngine, VirtualTime(UnevenLinks())),
}
SERVERLESS = ("stcd", "dcpa", "tree-cg")


@dataclass(frozen=True, eq=False)
class EngineCase:
    """A training. ``method`` and ``stop`` are sections of a federation file, ``changes`` are other
    keys of it."""

    name: str
    model: Glm
    method: dict[str, Any]
    network: str = "complete"
    iterations: int = 40
    widths: tuple[int, ...] = (2, 1, 3, 2)
    changes: dict[str, Any] = field(default_factory=dict)
    stop: dict[str, Any] = field(default_factory=dict)

    @property
    def runs_in(self) -> list[str]:
        """The engines that can run it. Sealed federations encrypt, which takes longer:
        test_sealed_federation.py."""
        beside = {"lockstep"} if self.method["kind"] != "dcpa" else set()
        return [
            name
            for name in ENGINES
            if name not in beside | ({"federation"} if self.is_sealed else set())
        ]

    @property
    def is_sealed(self) -> bool:
        """Whether tours are sealed: here with the cipher in the clear, which computes the same
        integers."""
        return "mode" in self.changes.get("privacy", {})

    @cached_property
    def data(self) -> Any:
        return make_data(self.model, 20, list(self.widths), seed=3)

    @cached_property
    def _settings(self) -> dict[str, Any]:
        server = {"server": None} if self.method["kind"] in SERVERLESS else {}
        section, stop = model_section(self.model), {"iterations": self.iterations} | self.stop
        return {
            "model": section,
            "method": self.method,
            "stop": stop,
            "seed": 5,
            **server,
            **self.changes,
        }

    @cached_property
    def config(self) -> BundleConfig:
        return bundles(self.data.clients, network_kind=self.network, **self._settings)[
            self.data.clients[0]
        ]

    @cached_property
    def settings(self) -> tuple[Method, Stop]:
        method, stop, _ = settings_of(self.config)
        if isinstance(method, SealedTours):
            method = replace(method, scheme="clear")
        return resolve_stepsize(method, BlockSmoothness(self.problem))[0], stop

    @cached_property
    def problem(self) -> LinearProblem:
        return self.model.problem(self.data)

    def parties(self) -> Parties:
        return self.settings[0].parties(self.problem, self.config.network, self.config.seed)

    def engine(self, name: str, folder: Path) -> Engine:
        """Ready to start."""
        if name == "federation":
            return engine_of(folder, self.data, network={"kind": self.network}, **self._settings)
        if name == "any order":
            draw = np.random.default_rng(0)
            return reordered(self.parties(), lambda count: int(draw.integers(count)))
        if name == "hosts":
            return self.hosted(ThreadCluster())
        return IN_PROCESS[name](self.parties(), Ledger())

    def hosted(self, cluster: RayActors) -> RayEngine:
        """In the actors of this cluster."""
        recipe = BlockRecipe(self.settings[0], self.config.network, self.config.seed, self.problem)
        return RayEngine(cluster.settings, recipe, self.parties(), Ledger(), cluster)

    def federate(self, folder: Path) -> Federated:
        """In a federation that nobody observes: the parties end by their own rules."""
        engine = self.engine("federation", folder)
        assert isinstance(engine, FederationEngine)
        return unobserved(engine)

    def observer(self, engine: Engine) -> Observer:
        """As ``mtcd.train`` has it."""
        costs = settings_of(self.config)[2]
        method, stop = self.settings
        worst_end, pace = (
            worst_end_of(method, linear=True),
            Growing(stop.epoch(method, self.problem.samples)),
        )
        return Observer(self.problem, engine, costs, None, worst_end, pausing=True, pace=pace)

    def train(self, engine: Engine, stop: Stop | None = None) -> Outcome:
        """To the end, observed."""
        observer = self.observer(engine)
        with engine:
            status = observer.advance(stop or self.settings[1], until=perf_counter() + PATIENCE)
            assert status is not None, "it does not end"
            parameters = [np.array(theta) for theta in engine.parameters()]
        return Outcome(status, observer, parameters)


@dataclass
class Outcome:
    """What a training led to."""

    status: str
    observer: Observer
    parameters: list[np.ndarray]

    @property
    def ledger(self) -> Ledger:
        return self.observer.engine.ledger

    @property
    def iterations(self) -> list[int]:
        return [row.iteration for row in self.observer.rows]

    @property
    def objectives(self) -> list[float]:
        return [row.objective for row in self.observer.rows]
