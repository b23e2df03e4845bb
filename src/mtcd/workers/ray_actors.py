"""Workers as Ray actors, one CPU each, on this machine or on all machines of a cluster. Ray is imported here alone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, TypeVar

from ray.exceptions import RayActorError, RayError

import ray
from mtcd.errors import ConfigError
from mtcd.workers.job import Failed, Job, News, outcome
from mtcd.workers.pool import Workers

T = TypeVar("T")
LOCAL = "local"
OBJECTS = 200 * 2**20  # bytes of Ray's object store on this machine: jobs and results are small


class Worker:
    """An actor. A second thread answers how far the job is."""

    def __init__(self) -> None:
        self.fraction = 0.0

    def do(self, job: Job) -> News:
        """Run a job."""
        self.fraction = 0.0
        return outcome(job, self._tell)

    def progress(self) -> float:
        """The progress of the current job."""
        return self.fraction

    def _tell(self, fraction: float) -> None:
        self.fraction = fraction


class RayWorkers(Workers[T]):
    """Actors; one that dies, or whose node does, is replaced when its number is next given a job."""

    def __init__(self, address: str, jobs: int | None = None) -> None:
        self._own = not ray.is_initialized()
        if self._own:
            connect(address, jobs)
        self.jobs = jobs or max(1, int(ray.cluster_resources().get("CPU", 1)))
        self._actors: dict[int, Any] = {}
        self._busy: dict[int, tuple[T, Any]] = {}
        self._asked: dict[int, Any] = {}
        """Questions for progress that have not been answered."""

    @property
    def idle(self) -> list[int]:
        return [worker for worker in range(self.jobs) if worker not in self._busy]

    def give(self, name: T, job: Job, worker: int | None = None) -> None:
        if worker is None:
            worker = min(self.idle, key=lambda one: one not in self._actors)
        if worker not in self._actors:
            self._actors[worker] = ray.remote(num_cpus=1, max_concurrency=2)(Worker).remote()
        self._busy[worker] = name, self._actors[worker].do.remote(job)

    def news(self, timeout: float) -> Iterator[tuple[T, News]]:
        if not self._busy:
            return
        results = {ref: worker for worker, (_, ref) in self._busy.items()}
        done, _ = ray.wait(list(results), num_returns=1, timeout=timeout)
        for ref in done:
            worker = results[ref]
            name, _ = self._busy.pop(worker)
            self._asked.pop(worker, None)
            yield name, self._result(worker, ref)
        for worker, (name, _) in list(self._busy.items()):
            yield from ((name, fraction) for fraction in self._progress(worker))

    def _result(self, worker: int, ref: Any) -> News:
        try:
            return ray.get(ref)
        except RayActorError:
            del self._actors[worker]
            return Failed("its Ray worker died; if memory ran out, use fewer workers.", lost=True)
        except RayError as error:  # the job or its result could not be sent
            return Failed(f"Ray could not run it: {str(error).splitlines()[0]}")

    def _progress(self, worker: int) -> Iterator[float]:
        asked = self._asked.setdefault(worker, self._actors[worker].progress.remote())
        if ray.wait([asked], timeout=0)[0]:
            del self._asked[worker]
            try:
                yield float(ray.get(asked))
            except RayError:  # the result will say so
                return

    def stop(self) -> None:
        for actor in self._actors.values():
            ray.kill(actor)
        self._actors.clear()
        if self._own:
            ray.shutdown()


def connect(address: str, cpus: int | None = None) -> None:
    """Join the cluster at an address ('auto': the one that runs here), or with 'local' start Ray on this machine."""
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "error", "configure_logging": False}
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # Ray's announced default; avoids its warning
    try:
        if address == LOCAL:
            here: dict[str, Any] = {"num_cpus": cpus, "include_dashboard": False, "object_store_memory": OBJECTS}
            ray.init(address=LOCAL, _node_ip_address="127.0.0.1", **here, **quiet)
        else:
            ray.init(address=address, **quiet)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise ConfigError(
            f"No Ray cluster answers at {address!r} ({str(error).splitlines()[0]}). Start one with `ray start --head`, "
            "or use 'local' to start Ray on this machine."
        ) from None
