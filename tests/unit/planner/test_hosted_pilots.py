"""Pilots on workers: as far as in this process, on the same worker every time, and again after its
death."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest

import mtcd
from mtcd.config.build import Setup, build
from mtcd.config.read import check_config
from mtcd.core.workers import Backend, Failed, Job, Workers
from mtcd.core.workers.pool import outcome
from mtcd.planner import hosted_pilots
from mtcd.planner.halving import race, ranked
from mtcd.planner.hosted_pilots import Hosts, KeptPilots, TaskSettings
from mtcd.planner.pilots import Pilot, PlanTask
from mtcd.planner.planning import plan

COST = 8.0
METHODS = [
    mtcd.STCD(5, walk="tour"),
    mtcd.MTCD(2, 8, 5),
    mtcd.MTCD(3, 4, 2),
    mtcd.SVFL(),
    mtcd.STCD(2),
]


class Jobs(Workers[int]):
    """Two workers in this process, each with a memory of its own; those in ``dying`` die at their
    next job."""

    def __init__(self) -> None:
        self.jobs, self.given, self.dying = 2, [], set[int]()
        self._busy: dict[int, tuple[int, Job]] = {}
        self._memories: dict[int, dict[str, KeptPilots]] = {0: {}, 1: {}}

    @property
    def idle(self) -> list[int]:
        return [worker for worker in range(2) if worker not in self._busy]

    def give(self, name: int, job: Job, worker: int | None = None) -> None:
        assert worker in self.idle
        self._busy[worker] = name, job
        self.given.append((name, worker))

    def news(self, timeout: float) -> Iterator[tuple[int, Any]]:
        for worker, (name, job) in list(self._busy.items()):
            del self._busy[worker]
            if worker in self.dying:
                self.dying.remove(worker)
                yield name, Failed("killed", lost=True)
                continue
            memory = hosted_pilots._KEPT = self._memories[worker]
            yield name, outcome(job, lambda fraction: None)
            assert len(memory) == 1

    def stop(self) -> None:
        self._busy.clear()


@pytest.fixture(scope="module")
def setup() -> Setup:
    return build(
        check_config(
            {
                "data": {
                    "synthetic": "ridge",
                    "samples": 40,
                    "features": 24,
                    "clients": 6,
                    "seed": 5,
                },
                "network": {"kind": "cycle"},
                "method": {"kind": "stcd"},
            }
        )
    )


@pytest.fixture
def task(setup: Setup) -> PlanTask:
    return PlanTask.of(setup, 1e-9, setup.costs, None)


def hosts_of(setup: Setup, task: PlanTask, workers: Jobs) -> Hosts:
    return Hosts(workers, TaskSettings("one", setup.config, task.target, task.costs, None))


def track(pilot: Pilot) -> list[tuple[int, float | None, float]]:
    return [(row.iteration, row.gap, row.cost) for row in pilot.rows]


@pytest.mark.parametrize("killed", [False, True])
def test_pilots_get_as_far_as_in_this_process(
    killed: bool, setup: Setup, task: PlanTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosted_pilots, "_KEPT", {})
    workers = Jobs()
    hosts = hosts_of(setup, task, workers)
    methods = [method.with_stepsize(1e-3) for method in METHODS]
    pilots = [hosts.pilot(task, method, False) for method in methods]
    for share in (0.5, 1.0):
        hosts.advance(pilots, task.clock() + 1e6, task.clock, lambda pilot, part=share: part * COST)
        workers.dying = {1} if killed else set()
    for pilot, method in zip(pilots, methods, strict=True):
        alone = Pilot(task, method)
        for share in (0.5, 1.0):
            alone.advance(math.inf, share * COST)
        assert track(pilot)[-1] == track(alone)[-1]
        assert killed or track(pilot) == track(alone)
    homes = {
        number: {worker for name, worker in workers.given if name == number}
        for number, _ in workers.given
    }
    assert all(len(home) == 1 for home in homes.values())
    assert {worker for _, worker in workers.given} == {0, 1}
    assert any(pilot.here for pilot in pilots) == killed


def test_a_race_on_workers_dismisses_what_is_behind(setup, task, monkeypatch, counted_time) -> None:
    monkeypatch.setattr(hosted_pilots, "_KEPT", {})
    hosts = hosts_of(setup, task, Jobs())
    pilots = [
        hosts.pilot(task, method.with_stepsize(step), False)
        for method in METHODS
        for step in (1e-3, 10.0)
    ]
    race(pilots, counted_time() + 1.0, task.clock, advance=hosts.advance)
    assert {pilot.status for pilot in pilots[1::2]} <= {"diverged", "dismissed"}
    assert "diverged" in {pilot.status for pilot in pilots[1::2]}
    assert ranked(pilots)[0] in pilots[::2]
    assert any(pilot.status in (None, "converged") for pilot in pilots[::2])


@pytest.mark.usefixtures("counted_time")
def test_a_plan_on_workers_reaches_the_target(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosted_pilots, "_KEPT", {})
    monkeypatch.setattr(hosted_pilots, "open_workers", lambda backend: Jobs())
    found = plan(setup, target=1e-3, budget=1.0, backend=Backend(2))
    assert found.chosen.arrives
    assert found.own is not None
