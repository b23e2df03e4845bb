"""The actors of a training on a cluster of Ray. Errors say what to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import ceil
from typing import Any

from mtcd.core.errors import ConfigError, MtcdError
from mtcd.core.optional import find
from mtcd.core.version import VERSION
from mtcd.ray.actor import THREADS, Actor
from mtcd.ray.connection import connect, first_line
from mtcd.ray.settings import Ray

START_SECONDS = 120.0  # for actors to be scheduled and started
CHUNKS = 4  # of items for each worker, so that they end at about the same time
MEGABYTE = 2**20


class ActorsDied(Exception):  # noqa: N818 - not an error of the user's
    """Some actors have died: ``numbers`` of them, and the reason."""

    def __init__(self, numbers: Sequence[int], reason: str) -> None:
        super().__init__(reason)
        self.numbers = list(numbers)
        self.reason = reason


class RayActors:
    """The actors of one training on a cluster. ``stop`` ends what ``start`` began."""

    def __init__(self, settings: Ray) -> None:
        self.settings = settings
        self.handles = dict[int, Any]()
        self._ours = False
        """Whether the connection is of this training, and ends with it."""

    def start(self, device: str = "cpu") -> None:
        """Join the cluster, or start one here, for actors that compute on this device (see
        ``Recipe.device``)."""
        self.ray = find("ray")
        find("pymetis")
        self._ours = connect(self.settings.address, "engine.address")
        self.settings = with_gpus(self.settings, device, self.ray.cluster_resources())
        self._check_resources()

    def _check_resources(self) -> None:
        """Reject what the whole cluster cannot hold, before waiting for it in vain."""
        wanted = self.settings
        there = self.ray.cluster_resources()
        actors = wanted.actors or 1
        needs = {
            "CPU": ("cpus", actors * wanted.cpus),
            "GPU": ("gpus", actors * (wanted.gpus or 0.0)),
        }
        needs["memory"] = ("memory", actors * (wanted.memory or 0.0) * MEGABYTE)
        for name, (key, needed) in needs.items():
            has = there.get(name, 0.0)
            if needed > has:
                scale, unit = (MEGABYTE, " MB") if name == "memory" else (1, "")
                raise ConfigError(
                    f"engine: {actors} actor(s) with {key}: {getattr(wanted, key):g} each need "
                    f"{needed / scale:g}{unit} of {name}, but the cluster has "
                    f"{has / scale:g}{unit}: set fewer actors, smaller {key}, or add nodes."
                )

    def room(self) -> int:
        """How many actors there should be, unless the settings say so."""
        if self.settings.actors is not None:
            return self.settings.actors
        there = self.ray.cluster_resources()
        fits = [there.get("CPU", 1.0) / self.settings.cpus] if self.settings.cpus else []
        fits += [there.get("GPU", 0.0) / self.settings.gpus] if self.settings.gpus else []
        fits += (
            [there.get("memory", 0.0) / self.settings.memory / MEGABYTE]
            if self.settings.memory
            else []
        )
        return max(1, int(min(fits, default=1.0)))

    def map(self, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        """The results of a function, computed by workers of the cluster, a few items at a time."""
        own = self.settings
        ref = self.ray.put(function)
        task = self.ray.remote(_apply).options(num_cpus=min(1.0, own.cpus))
        size = max(1, len(items) // (CHUNKS * self.room()))
        chunks = [list(items[i : i + size]) for i in range(0, len(items), size)]
        found = self._results(dict(enumerate(task.remote(ref, chunk) for chunk in chunks)))
        return [one for number in range(len(chunks)) for one in found[number]]

    def put(self, value: Any) -> Any:
        """Keep a value in the object store; actors receive it when they are given the result."""
        return self.ray.put(value)

    def create(self, numbers: Sequence[int]) -> None:
        """Start actors with these numbers, in place of those that had them before."""
        own, memory = self.settings, self.settings.memory
        options: dict[str, Any] = {
            "num_cpus": own.cpus,
            "num_gpus": own.gpus or 0.0,
            "max_concurrency": THREADS,
        }
        options["scheduling_strategy"] = "SPREAD"  # over the nodes
        if memory is not None:
            options["memory"] = int(memory * MEGABYTE)
        made = self.ray.remote(Actor).options(**options)
        self.handles |= {number: made.remote() for number in numbers}
        refs = {number: self.handles[number].begin.remote() for number in numbers}
        ready, late = self.ray.wait(
            list(refs.values()), num_returns=len(refs), timeout=START_SECONDS
        )
        if late:
            free = self.ray.available_resources()
            raise MtcdError(
                f"{len(late)} of {len(refs)} actors did not start within {START_SECONDS:.0f} s: "
                f"the cluster has {free.get('CPU', 0):g} CPUs and {free.get('GPU', 0):g} GPUs free "
                "now. Wait until others have ended, set fewer actors or smaller cpus, or add "
                "nodes ('ray status' shows who uses what)."
            )
        for version, python in self._results(dict(zip(refs, ready, strict=True))).values():
            if version != VERSION:
                raise MtcdError(
                    f"A node of the cluster has mtcd {version} (Python {python}), but here it is "
                    f"{VERSION}: install the same version on all nodes."
                )

    def call(
        self, name: str, arguments: Callable[[int], tuple[Any, ...]] | None = None
    ) -> dict[int, Any]:
        """Call this method of all actors; the results by number. Raises ``ActorsDied``, or the
        error of an actor."""
        given = arguments or (lambda number: ())
        return self._results(
            {n: getattr(actor, name).remote(*given(n)) for n, actor in self.handles.items()}
        )

    def call_of(
        self, numbers: Sequence[int], name: str, arguments: Callable[[int], tuple[Any, ...]]
    ) -> dict[int, Any]:
        """The same for some actors."""
        return self._results(
            {n: getattr(self.handles[n], name).remote(*arguments(n)) for n in numbers}
        )

    def tell(self, number: int, name: str, *arguments: Any) -> None:
        """Call a method without waiting for it."""
        getattr(self.handles[number], name).remote(*arguments)

    def ask(self, number: int, name: str) -> Any:
        """A reference to the result of a method, for ``wait``."""
        return getattr(self.handles[number], name).remote()

    def wait(self, refs: Mapping[int, Any], seconds: float | None) -> dict[int, Any]:
        """The results that are there; after so many seconds, perhaps none."""
        ready, _ = self.ray.wait(list(refs.values()), timeout=seconds)
        return self._results({number: ref for number, ref in refs.items() if ref in ready})

    def _results(self, refs: Mapping[int, Any]) -> dict[int, Any]:
        results = {}
        died = dict[int, str]()
        for number, ref in refs.items():
            try:
                results[number] = self.ray.get(ref)
            except self.ray.exceptions.RayActorError as error:
                died[number] = first_line(error)
            except self.ray.exceptions.RayTaskError as error:
                raise _cause(error) from None
            except self.ray.exceptions.OutOfMemoryError as error:
                died[number] = first_line(error)
        if died:
            raise ActorsDied(list(died), next(iter(died.values())))
        return results

    def stop(self) -> None:
        """End the actors; leave the cluster, or end it if it was started here."""
        for handle in self.handles.values():
            self.ray.kill(handle)
        self.handles = {}
        if self._ours:
            self._ours = False
            self.ray.shutdown()


def with_gpus(settings: Ray, device: str, there: Mapping[str, float]) -> Ray:
    """The settings with the GPUs of each actor decided, and the number of actors if that depends on
    it."""
    gpus, actors = settings.gpus, settings.actors
    has = int(there.get("GPU", 0.0))
    if gpus is None:
        gpus = 0.0
        if device != "cpu" and has:
            actors = actors or has
            gpus = float(has // actors) or 1.0 / ceil(actors / has)
    if device == "cuda" and not gpus:
        why = "engine.gpus is 0" if has else "the cluster has none"
        raise ConfigError(
            f"This process computes on a GPU, but the actors would have none: {why}. Set compute: "
            "{device: cpu}"
            + (", or leave engine.gpus out." if has else ", or add nodes with GPUs.")
        )
    return replace(settings, gpus=gpus, actors=actors)


def _apply(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    return [function(item) for item in items]


def _cause(error: Any) -> BaseException:
    """The error of an actor, as it was raised there."""
    cause = getattr(error, "cause", None)
    if isinstance(cause, MtcdError):
        return cause
    return MtcdError(f"An actor failed: {type(cause or error).__name__}: {cause or error}")
