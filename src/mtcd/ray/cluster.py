"""The actors of a training on a cluster of Ray. Errors say what to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
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
UNITS = {"CPU": 1, "GPU": 1, "memory": MEGABYTE}
"""The units of our settings, in those of Ray."""


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
        # a connection of the user's own stays open when the training ends
        self._ours = connect(self.settings.address, "engine.address")
        self.settings = with_gpus(self.settings, device, self.ray.cluster_resources())
        self._check_resources()

    def _check_resources(self) -> None:
        """Reject what the whole cluster cannot hold, before waiting for it in vain."""
        there = self.ray.cluster_resources()
        actors = self.settings.actors or 1
        for name, (key, each, unit) in _reserved(self.settings).items():
            needed = actors * each
            has = there.get(name, 0.0) / UNITS[name]
            if needed > has:
                raise ConfigError(
                    f"engine: {actors} actor(s) with {key}: {each:g} each need "
                    f"{needed:g}{unit} of {name}, but the cluster has "
                    f"{has:g}{unit}: set fewer actors, smaller {key}, or add nodes."
                )

    def room(self) -> int:
        """How many actors there should be, unless the settings say so."""
        if self.settings.actors is not None:
            return self.settings.actors

        # as many as the resource allows that gives out first; what they do not reserve does not
        there = {"CPU": 1.0} | dict(self.ray.cluster_resources())
        fits = []
        for name, (_, each, _) in _reserved(self.settings).items():
            if each:
                fits.append(there.get(name, 0.0) / each / UNITS[name])
        return max(1, int(min(fits, default=1.0)))

    def map(self, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        """The results of a function, computed by workers of the cluster, a few items at a time."""
        own = self.settings
        ref = self.ray.put(function)
        task = self.ray.remote(_apply).options(num_cpus=min(1.0, own.cpus))
        # fewer calls than items: a call takes a millisecond, an item may take less
        size = max(1, len(items) // (CHUNKS * self.room()))
        chunks = [list(items[i : i + size]) for i in range(0, len(items), size)]
        found = self._results(dict(enumerate(task.remote(ref, chunk) for chunk in chunks)))
        return list(chain.from_iterable(found[number] for number in range(len(chunks))))

    def put(self, value: Any) -> Any:
        """Keep a value in the object store; actors receive it when they are given the result."""
        return self.ray.put(value)

    def create(self, numbers: Sequence[int]) -> None:
        """Start actors with these numbers, in place of those that had them before."""
        own = self.settings
        options: dict[str, Any] = {
            "num_cpus": own.cpus,
            "num_gpus": own.gpus or 0.0,
            "max_concurrency": THREADS,
            "scheduling_strategy": "SPREAD",  # over the nodes
        }
        if own.memory is not None:
            options["memory"] = int(own.memory * MEGABYTE)

        made = self.ray.remote(Actor).options(**options)
        self.handles |= {number: made.remote() for number in numbers}
        refs = {number: self.handles[number].begin.remote() for number in numbers}

        # actors of somebody else may hold the CPUs: Ray itself would wait for ever
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

        # messages are pickled: another version would fail somewhere inside, without a reason
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
        return self.call_of(list(self.handles), name, arguments or _nothing)

    def call_of(
        self, numbers: Sequence[int], name: str, arguments: Callable[[int], tuple[Any, ...]]
    ) -> dict[int, Any]:
        """The same for some actors."""
        # all are asked before the first answer is waited for: they work at the same time
        refs = {}
        for number in numbers:
            refs[number] = getattr(self.handles[number], name).remote(*arguments(number))
        return self._results(refs)

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
        of_death = (self.ray.exceptions.RayActorError, self.ray.exceptions.OutOfMemoryError)
        for number, ref in refs.items():
            try:
                results[number] = self.ray.get(ref)
            except of_death as error:
                died[number] = first_line(error)
            except self.ray.exceptions.RayTaskError as error:
                raise _cause(error) from None

        # all of them at once: they are replaced together, and the training goes back once
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
            # whole GPUs where there are enough of them, else the same part of one for all
            gpus = float(has // actors) or 1.0 / ceil(actors / has)

    if device == "cuda" and not gpus:
        why, way_out = "the cluster has none", "or add nodes with GPUs"
        if has:
            why, way_out = "engine.gpus is 0", "or leave engine.gpus out"
        raise ConfigError(
            f"This process computes on a GPU, but the actors would have none: {why}. Set compute: "
            f"{{device: cpu}}, {way_out}."
        )
    return replace(settings, gpus=gpus, actors=actors)


def _reserved(settings: Ray) -> dict[str, tuple[str, float, str]]:
    """By the name of a resource at Ray: its key in configs, what an actor reserves, and the unit of
    that in texts."""
    return {
        "CPU": ("cpus", settings.cpus, ""),
        "GPU": ("gpus", settings.gpus or 0.0, ""),
        "memory": ("memory", settings.memory or 0.0, " MB"),
    }


def _nothing(number: int) -> tuple[Any, ...]:
    return ()


def _apply(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    return [function(item) for item in items]


def _cause(error: Any) -> BaseException:
    """The error of an actor, as it was raised there."""
    # Ray wraps it; its own text has a traceback of both processes
    cause = getattr(error, "cause", None)
    if isinstance(cause, MtcdError):
        return cause
    return MtcdError(f"An actor failed: {type(cause or error).__name__}: {cause or error}")
