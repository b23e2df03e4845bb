"""Workers as Ray actors, one CPU each, on this machine or on all machines of a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic
from typing import Any, TypeVar

import ray
from ray.exceptions import RayActorError, RayError

from mtcd.core.errors import MtcdError
from mtcd.core.workers.pool import Failed, Job, News, Workers, outcome
from mtcd.ray.connection import connect

T = TypeVar("T")
START_SECONDS = 120.0  # for the first worker to be scheduled and started
OBJECTS = 200 * 2**20  # bytes of Ray's object store on this machine: jobs and results are small


class Worker:
    """An actor. A second thread answers how far the job is."""

    def __init__(self) -> None:
        self.fraction = 0.0

    def do(self, job: Job) -> News:
        """Run a job to its end; its progress can be asked for meanwhile."""
        self.fraction = 0.0
        return outcome(job, self._tell)

    def progress(self) -> float:
        """The progress of the current job."""
        return self.fraction

    def _tell(self, fraction: float) -> None:
        self.fraction = fraction


class RayWorkers(Workers[T]):
    """Actors; one that dies, or whose node does, is replaced.

    A job is given to an actor that has started: one that waits for a CPU would keep it from others.
    """

    def __init__(self, address: str, jobs: int | None = None) -> None:
        here = {"object_store_memory": OBJECTS}
        if jobs is not None:
            here["num_cpus"] = jobs
        self._own = connect(address, "--ray", here)
        self.jobs = jobs or max(1, int(ray.cluster_resources().get("CPU", 1)))

        self._actors: dict[int, Any] = {}
        self._starting: dict[int, Any] = {}
        """The first answers of actors that have given none yet."""
        self._busy: dict[int, tuple[T, Any]] = {}
        self._asked: dict[int, Any] = {}
        """Questions for progress that have not been answered."""

        for worker in range(self.jobs):
            self._start(worker)
        # nobody may wait for ever for a cluster that is full
        self._patience: float | None = monotonic() + START_SECONDS
        """Until when the first of them must have started."""

    def _start(self, worker: int) -> None:
        self._actors[worker] = ray.remote(num_cpus=1, max_concurrency=2)(Worker).remote()
        self._starting[worker] = self._actors[worker].progress.remote()

    @property
    def idle(self) -> list[int]:
        self._look(0)
        occupied = self._busy.keys() | self._starting.keys()
        return [worker for worker in self._actors if worker not in occupied]

    def _look(self, timeout: float) -> None:
        """See which actors have started."""
        if not self._starting:
            return

        done, _ = ray.wait(list(self._starting.values()), timeout=timeout)
        for worker, ref in list(self._starting.items()):
            if ref in done:
                del self._starting[worker]
                self._patience = None  # one is enough to go on: others may wait for a CPU for long
        if self._patience is not None and monotonic() > self._patience:
            free = ray.available_resources().get("CPU", 0)
            raise MtcdError(
                f"No worker has started within {START_SECONDS:.0f} s: the Ray cluster has {free:g} "
                "CPUs free now. Wait until others have ended, or add nodes ('ray status' shows "
                "who uses what)."
            )

    def give(self, name: T, job: Job, worker: int | None = None) -> None:
        if worker is None:
            worker = self.idle[0]
        self._busy[worker] = name, self._actors[worker].do.remote(job)

    def news(self, timeout: float) -> Iterator[tuple[T, News]]:
        if not self._busy:
            self._look(timeout)
            return

        results = {ref: worker for worker, (_, ref) in self._busy.items()}
        done, _ = ray.wait(list(results), num_returns=1, timeout=timeout)
        for ref in done:
            worker = results[ref]
            name, _ = self._busy.pop(worker)
            self._asked.pop(worker, None)
            yield name, self._result(worker, ref)
        for worker, (name, _) in list(self._busy.items()):
            for fraction in self._progress(worker):
                yield name, fraction

    def _result(self, worker: int, ref: Any) -> News:
        try:
            return ray.get(ref)
        except RayActorError:
            self._start(worker)
            return Failed("its Ray worker died; if memory ran out, use fewer workers.", lost=True)
        except RayError as error:  # the job or its result could not be sent
            return Failed(f"Ray could not run it: {str(error).splitlines()[0]}")

    def _progress(self, worker: int) -> Iterator[float]:
        # one question at a time: answers of a busy actor would pile up
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
