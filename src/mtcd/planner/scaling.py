"""What a method would take on many machines: a model of compute, latency, links, the server's link
and memory.

Clients are placed so that neighbours share a machine. A hop inside a machine costs nothing beyond
the visit, which was measured; a hop between machines costs a latency and the bytes over the
bandwidth. All messages with the server share the server's link. docs/scaling.md has the formulas
and where the constants come from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise

from mtcd.core.checks import check_number, check_whole
from mtcd.core.errors import ConfigError, MtcdError, did_you_mean
from mtcd.methods.method import Method
from mtcd.methods.mtcd.mtcd import MTCD
from mtcd.methods.planned import planned
from mtcd.network.clusters import find_clusters
from mtcd.network.topology import Network
from mtcd.planner.timing import way_of
from mtcd.protocol.batches import Batches

BYTES = 8
FOLLOWED = 500  # hops of each token, to see how many lead to another machine
MOST_FOLLOWED = 8  # tokens
COMPUTE, LATENCY, LINK, SERVER = "compute", "latency", "link bandwidth", "server link"


@dataclass(frozen=True)
class Machine:
    """One of equal machines, and the network between them.

    ``latency_ms`` of a message between two processes, ``bandwidth_mbps`` of a machine and
    ``server_mbps`` of the server; ``cores`` and ``memory_gb`` of a machine, and ``process_mb`` that
    a process takes without any data.
    """

    latency_ms: float = 3.1
    bandwidth_mbps: float = 1000.0
    server_mbps: float = 1000.0
    cores: int = 1
    memory_gb: float = 8.0
    process_mb: float = 93.0

    def __post_init__(self) -> None:
        # 0 is possible: one machine, or a model without latency
        check_number("latency_ms", self.latency_ms)
        check_whole("cores", self.cores)
        for name in ("bandwidth_mbps", "server_mbps", "memory_gb"):
            check_number(name, getattr(self, name), above=0)
        check_number("process_mb", self.process_mb)

    @staticmethod
    def parse(settings: Sequence[str]) -> Machine:
        """From 'latency_ms=0.5', ...

        >>> Machine.parse(["latency_ms=0.5", "cores=4"])
        Machine(latency_ms=0.5, bandwidth_mbps=1000.0, server_mbps=1000.0, cores=4, memory_gb=8.0,
        process_mb=93.0)
        """
        # a core that is not whole is refused here, where the user's own text can be shown
        kinds: dict[str, type[float]] = {one.name: float for one in fields(Machine)}
        kinds["cores"] = int

        given: dict[str, float] = {}
        for setting in settings:
            name, _, text = setting.partition("=")
            if name not in kinds:
                raise ConfigError(f"--machine: {name!r} is not known; {did_you_mean(name, kinds)}")

            try:
                given[name] = kinds[name](text)
            except ValueError:
                raise ConfigError(
                    f"--machine {setting!r}: give a number, such as latency_ms=0.5."
                ) from None
        return replace(Machine(), **given)  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class Work:
    """The problem that is placed on machines."""

    network: Network
    samples: int
    outputs: int
    seed: int
    data_bytes: int
    _placements: dict[int, list[int]] = field(default_factory=dict)

    def placement(self, machines: int) -> list[int]:
        """The machine of each client."""
        if machines not in self._placements:
            self._placements[machines] = placed(self.network, machines)
        return self._placements[machines]


@dataclass(frozen=True)
class Prediction:
    """An iteration of a method on so many machines: the seconds of each resource, and the memory of
    a machine."""

    machines: int
    parts: dict[str, float]
    memory_gb: float
    fits: bool

    @property
    def seconds(self) -> float:
        """The seconds that an iteration takes, over all resources."""
        return sum(self.parts.values())

    @property
    def limit(self) -> str:
        """The resource that gives out first."""
        if not self.fits:
            return "memory"
        return max(self.parts, key=lambda name: self.parts[name])


def placed(network: Network, machines: int) -> list[int]:
    """The machine of each client: connected groups of about equal size, or where there are none, by
    number."""
    K = network.size
    if machines >= K:
        return list(range(K))
    try:
        # connected groups: most hops then stay on a machine
        groups = find_clusters(network, machines)
    except MtcdError:  # more components than machines
        return [k * machines // K for k in range(K)]

    where = [0] * K
    for number, group in enumerate(groups):
        for k in group:
            where[k] = number
    return where


def predict(
    method: Method, compute: float, work: Work, machine: Machine, machines: int
) -> Prediction:
    """An iteration of the method; ``compute`` is its computing time, with parties that work at once
    counted once."""
    check_whole("machines", machines)
    K, where = work.network.size, work.placement(machines)
    used = min(machines, K)  # a client is on one machine, so that more stay empty
    bits = 8.0 * BYTES * work.outputs * Batches(work.samples, method.batch, work.seed).length
    link, served = bits / (machine.bandwidth_mbps * 1e6), bits / (machine.server_mbps * 1e6)
    latency = machine.latency_ms / 1e3
    busy = _parallel(method, K) / (used * machine.cores)

    parts = {COMPUTE: compute * max(1.0, busy), LATENCY: 0.0, LINK: 0.0, SERVER: 0.0}
    if used > 1:  # on one machine nothing is sent over a network
        waits, messages = _crossing(method, work, where)
        parts[LATENCY], parts[LINK] = waits * latency, messages * link
        if method.has_server:
            handled, rounds = _served(method, K)
            parts[SERVER] = handled * served
            # two latencies a round: there and back, whatever the bandwidth
            parts[LATENCY] += rounds * latency

    # columns are taken to be spread evenly: the machine with most clients needs most memory
    most = max(Counter(where).values()) / K
    memory = (work.data_bytes * most + machine.process_mb * 2**20) / 2**30
    return Prediction(machines, parts, memory, memory <= machine.memory_gb)


def _parallel(method: Method, K: int) -> int:
    """How many parties compute at the same time."""
    if not isinstance(method, MTCD):
        return K
    if method.hops is None:
        return 1  # STCD
    if method.tokens is not None:
        return method.tokens
    if method.clusters is None or isinstance(method.clusters, str):
        return 1
    return len(method.clusters)  # a token each


def _served(method: Method, K: int) -> tuple[float, float]:
    """Messages over the server's link per iteration, and how often an iteration waits for one there
    and one back."""
    if isinstance(method, MTCD):
        hops = method.hops or 1
        # with mini-batches, of all clients
        uploads = K if method.batch is not None else _parallel(method, K)
        return (_parallel(method, K) + uploads) / hops, 2.0 / hops
    return 2.0 * K, 2.0


def _crossing(method: Method, work: Work, where: list[int]) -> tuple[float, float]:
    """Messages between machines on the critical path of an iteration: how often it waits, and how
    many it sends."""
    if isinstance(method, MTCD):
        hops = _walked(method, work, where)
        return hops, hops
    # other methods know themselves who sends to whom
    return planned(method).crossings(method, work.network, where)


def _walked(method: MTCD, work: Work, where: list[int]) -> float:
    """The share of hops that lead to another machine: the walks are followed."""
    plan = method.with_stepsize(1.0).plan(work.samples, work.outputs, work.network, work.seed)
    hops = FOLLOWED
    if plan.hops is not None:
        # of S visits, the first is reached from the server: S - 1 moves lie between them
        hops = min(FOLLOWED, max(1, plan.hops - 1))

    steps = crossing = 0
    for token in range(min(plan.tokens, MOST_FOLLOWED)):
        for sender, to in pairwise(way_of(plan, token, 0, hops)):
            steps += 1
            crossing += where[sender] != where[to]
    return crossing / steps
