"""The settings of the Ray engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from mtcd.core.checks import check_number, check_whole
from mtcd.core.errors import ConfigError
from mtcd.engines.kinds import ENGINES, EngineSettings, MakeEngine
from mtcd.protocol.engine import Recipe
from mtcd.ray.connection import AUTO


@ENGINES.register("ray")
@dataclass(frozen=True)
class Ray(EngineSettings):
    """Train on Ray: clients are hosted by actors, on this machine or on a cluster.

    Parameters
    ----------
    address : str, default 'auto'
        'auto' (the cluster of RAY_ADDRESS, or that of ``ray start`` on this machine; without one,
        Ray is started here for this training), 'local' (always started here), or 'host:port'.
    actors : int, optional
        Their number; by default one per CPU that ``cpus`` allows.
    cpus : float, default 1.0
        What each actor reserves.
    gpus : float, optional
        What each actor reserves; a part of a GPU is shared by several. By default, actors of split
        networks take all GPUs of the cluster, one actor for each unless ``actors`` says more.
    memory : float, optional
        What each actor reserves, in MB.
    restarts : int, default 3
        How often in a row actors may die without progress.
    snapshot_seconds : float, default 2.0
        How much work a dead actor costs at most, roughly.

    Examples
    --------
    >>> import mtcd
    >>> data = mtcd.synthetic("ridge", samples=500, features=60, clients=12)
    >>> run = mtcd.train(data, engine=mtcd.Ray("local", actors=2))  # doctest: +SKIP
    """

    address: str = AUTO
    actors: int | None = None
    cpus: float = 1.0
    gpus: float | None = None
    memory: float | None = None
    restarts: int = 3
    snapshot_seconds: float = 2.0

    def __post_init__(self) -> None:
        if not isinstance(self.address, str) or not self.address.strip():
            raise ConfigError(
                f"engine.address is 'auto', 'local' or 'host:port', but is {self.address!r}."
            )
        if self.actors is not None:
            check_whole("engine.actors", self.actors)
        check_number("engine.cpus", self.cpus)
        if self.gpus is not None:
            check_number("engine.gpus", self.gpus)
            if self.gpus > 1 and self.gpus != int(self.gpus):
                raise ConfigError(f"engine.gpus above 1 are whole GPUs, but gpus is {self.gpus:g}.")
        if self.memory is not None:
            check_number("engine.memory", self.memory, above=0)
        check_whole("engine.restarts", self.restarts, least=0)
        check_number("engine.snapshot_seconds", self.snapshot_seconds, above=0)

    @contextmanager
    def connected(self) -> Iterator[None]:
        from mtcd.ray.cluster import RayActors

        cluster = RayActors(self)
        cluster.start()
        try:
            yield
        finally:
            cluster.stop()

    def map(self, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        from mtcd.ray.cluster import RayActors

        cluster = RayActors(self)
        cluster.start()
        return cluster.map(function, items)

    def maker(self, recipe: Recipe) -> MakeEngine:
        from mtcd.ray.engine import RayEngine

        return partial(RayEngine, self, recipe)
