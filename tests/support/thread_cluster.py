"""A cluster in this process: the Ray engine without Ray. Its actors are objects, their calls run in
threads.

Arguments and results are pickled, as they are between processes. Actors can be killed.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from threading import Thread
from typing import Any

from mtcd.ray.actor import Actor
from mtcd.ray.cluster import ActorsDied, RayActors
from mtcd.ray.settings import Ray


class KilledError(Exception):
    pass


class Handle:
    """An actor as others see it."""

    def __init__(self) -> None:
        self.actor, self.pending, self.dead = Actor(), set[Future[Any]](), False

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.actor, name)
        return type(
            "Remote", (), {"remote": staticmethod(lambda *given: self._call(method, given))}
        )

    def _call(self, method: Any, given: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.pending.add(future)
        if self.dead:
            future.set_exception(KilledError())
        elif method.__name__ in ("poll", "prepare", "open"):
            # poll waits; the arguments of others hold handles
            Thread(target=self._run, args=(future, method, given), daemon=True).start()
        else:
            self._run(future, method, pickle.loads(pickle.dumps(given)))
        return future

    def _run(self, future: Future[Any], method: Any, given: Any) -> None:
        try:
            result = pickle.loads(pickle.dumps(method(*given)))
            if not future.done():
                future.set_result(result)
        except BaseException as error:
            if not future.done():
                future.set_exception(error)

    def kill(self) -> None:
        self.dead = True
        if hasattr(self.actor, "host"):
            # its threads end; a message under way is lost, as with a process
            self.actor.host.close()
        for future in self.pending:
            if not future.done():
                future.set_exception(KilledError())


class ThreadCluster(RayActors):
    """``actors`` actors. ``on_create`` is called with the number of each that is created."""

    def __init__(self, actors: int = 2, restarts: int = 3) -> None:
        super().__init__(Ray(actors=actors, restarts=restarts))
        self.created: list[int] = []
        self.on_create: Callable[[int], None] = lambda number: None

    def start(self, device: str = "cpu") -> None:
        pass

    def put(self, value: Any) -> Any:
        return pickle.dumps(value)

    def create(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            self.handles[number] = Handle()
            self.created.append(number)
            self.on_create(number)

    def call_of(
        self, numbers: Sequence[int], name: str, arguments: Callable[[int], tuple[Any, ...]]
    ) -> dict[int, Any]:
        def given(number: int) -> tuple[Any, ...]:
            own = arguments(number)
            return (pickle.loads(own[0]), *own[1:]) if name == "open" else own

        return super().call_of(numbers, name, given)

    def wait(self, refs: Mapping[int, Any], seconds: float | None) -> dict[int, Any]:
        ready = wait(refs.values(), seconds, FIRST_COMPLETED).done
        return self._results({number: ref for number, ref in refs.items() if ref in ready})

    def _results(self, refs: Mapping[int, Any]) -> dict[int, Any]:
        results, died = {}, []
        for number, ref in refs.items():
            try:
                results[number] = ref.result()
            except KilledError:
                died.append(number)
        if died:
            raise ActorsDied(died, "it was killed")
        return results

    def stop(self) -> None:
        for handle in self.handles.values():
            handle.kill()
        self.handles = {}
