"""Where tokens would go, without training anything: visits to different clients, and time on the
wire.

Both are per iteration as histories count them: a hop per token of MTCD and STCD, a round of SVFL,
DCPA and Tree-CG.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from mtcd.methods.method import Method
from mtcd.methods.mtcd.client import Plan
from mtcd.methods.mtcd.mtcd import MTCD
from mtcd.methods.tree_cg.tree_cg import COEFFICIENTS, INNER_PRODUCTS, TreeCG
from mtcd.network.spanning import SpanningTree, spanning_tree
from mtcd.network.topology import Network
from mtcd.network.walks import NOWHERE
from mtcd.planner.links import Links
from mtcd.planner.transfers import Leg, seconds_of
from mtcd.protocol.batches import Batches

# the walks are followed until one of these is reached
ROAMS, HOPS = 30, 2000
LEAST = 100  # hops of each token, however many tokens there are
FEWEST = 20  # where messages share bandwidth, which takes longer to compute


@dataclass(frozen=True)
class Travel:
    """The messages of an iteration of a method, and their time."""

    distinct: float
    """Different clients that take part, per iteration."""
    wire: float | None
    """Seconds on the wire per iteration; None without links."""
    parallel: int
    """How many parties compute at the same time."""
    latency: float = 0.0
    """Of ``wire``, what messages without any content would take."""
    floats: int = 0
    """Numbers in a token, but for what methods of ours add on the way; 0 where there are no
    tokens."""


def travel(
    method: Method, network: Network, samples: int, outputs: int, seed: int, links: Links | None
) -> Travel:
    """Follow the method's messages for a while."""
    K = network.size
    if isinstance(method, MTCD):
        return _roams(method.plan(samples, outputs, network, seed), K, links)
    if method.has_server:
        floats = Batches(samples, method.batch, seed).length * outputs
        return Travel(K, None if links is None else _server_round(links, floats), K)
    if isinstance(method, TreeCG):
        return Travel(
            K, None if links is None else _up_and_down(network, links, samples * outputs), K
        )
    return Travel(K, None if links is None else _neighbours(network, links, samples * outputs), K)


def _server_round(links: Links, floats: int, down: int | None = None) -> float:
    """The slowest client, there and back; ``down`` floats on the way there, if they differ."""
    server = links.server
    there = floats if down is None else down
    if links.interfaces is not None:
        return seconds_of(_server_legs(links, there, floats), links)

    return max(
        links.seconds(server, k, there) + links.seconds(k, server, floats)
        for k in range(links.clients)
    )


def _server_legs(links: Links, down: int, up: int) -> list[Leg]:
    """To every client at once, and from each back as soon as it has received all."""
    server = links.server
    legs = [Leg((server, k), down) for k in range(links.clients)]
    legs += [Leg((k, server), up, after=(k,)) for k in range(links.clients)]
    return legs


def _neighbours(network: Network, links: Links, floats: int) -> float:
    """All neighbours talk at once: the slowest link."""
    if links.interfaces is not None:
        legs = [Leg((k, j), floats) for k, near in enumerate(network.neighbours) for j in near]
        return seconds_of(legs, links)

    times = [links.seconds(k, j, floats) for k, near in enumerate(network.neighbours) for j in near]
    return max(times, default=0.0)


def _up_and_down(network: Network, links: Links, floats: int) -> float:
    """The slowest way from a leaf of the spanning tree to its root, and the slowest way back."""
    tree = spanning_tree(network)
    if links.interfaces is not None:
        return seconds_of(_tree_legs(tree, floats), links)

    up, down = np.zeros(network.size), np.zeros(network.size)  # from below each client, to below it
    for level in reversed(tree.levels[1:]):
        for k in level:
            parent = tree.parents[k]
            assert parent is not None
            up[parent] = max(up[parent], up[k] + links.seconds(k, parent, floats + INNER_PRODUCTS))
            down[parent] = max(
                down[parent], down[k] + links.seconds(parent, k, floats + COEFFICIENTS)
            )
    return float(up[tree.root] + down[tree.root])


def _tree_legs(tree: SpanningTree, floats: int) -> list[Leg]:
    """Each client sends up once it has heard from all its children, and then the root's answer goes
    down the same way."""
    legs: list[Leg] = []
    sent_up: dict[int, int] = {}
    below: list[list[int]] = [[] for _ in tree.parents]
    for level in reversed(tree.levels[1:]):
        for k in level:
            parent = tree.parents[k]
            assert parent is not None
            sent_up[k] = len(legs)
            heard = tuple(sent_up[child] for child in below[k])
            legs.append(Leg((k, parent), floats + INNER_PRODUCTS, after=heard))
            below[parent].append(k)

    received = {tree.root: tuple(sent_up[child] for child in below[tree.root])}
    for level in tree.levels[1:]:
        for k in level:
            parent = tree.parents[k]
            assert parent is not None
            received[k] = (len(legs),)
            legs.append(Leg((parent, k), floats + COEFFICIENTS, after=received[parent]))

    return legs


def _roams(plan: Plan, K: int, links: Links | None) -> Travel:
    if plan.hops is None:
        way = way_of(plan, 0, 0, HOPS)
        piece = min(2 * K, HOPS)
        pieces = [set(way[i : i + piece]) for i in range(0, HOPS - piece + 1, piece)]
        distinct = sum(map(len, pieces)) / (len(pieces) * piece)
        if links is None:
            return Travel(distinct, None, 1)
        seconds, latency = (
            _on_the_way(links, way, floats) / (len(way) - 1) for floats in (plan.floats, 0)
        )
        return Travel(distinct, seconds, 1, latency, plan.floats)
    shared = links is not None and links.interfaces is not None
    least = FEWEST if shared else LEAST
    followed = min(plan.hops, max(least, HOPS // plan.tokens))  # of a very long way, the beginning
    rounds = max(1, min(ROAMS, HOPS // (followed * plan.tokens)))
    distinct, wire, latency = 0, 0.0, 0.0
    for t in range(rounds):
        roaming = [token for token in range(plan.tokens) if plan.roaming.first(token, t) != NOWHERE]
        ways = [way_of(plan, token, t, followed - 1) for token in roaming]
        distinct += len(set().union(*ways))
        wire += 0.0 if links is None else _sync(plan, ways, links, 1)
        latency += 0.0 if links is None else _sync(plan, ways, links, 0)
    each = rounds * plan.hops
    return Travel(
        distinct / each,
        None if links is None else wire / each,
        plan.tokens,
        latency / each,
        plan.floats,
    )


def way_of(plan: Plan, token: int, t: int, hops: int) -> list[int]:
    """The clients that a token visits in iteration t, in so many hops."""
    way, previous = [plan.roaming.first(token, t)], NOWHERE
    for hop in range(1, hops + 1):
        way.append(plan.roaming.next(token, t, hop, way[-1], previous))
        previous = way[-2]
    return way


def _on_the_way(links: Links, way: list[int], floats: int) -> float:
    """The time of the hops of a token that roams alone."""
    if links.interfaces is not None:
        return seconds_of(_chain(way, floats, first=0, after=()), links)

    return sum(links.seconds(a, b, floats) for a, b in pairwise(way))


def _sync(plan: Plan, ways: list[list[int]], links: Links, full: int) -> float:
    """The slowest token: down, its hops, up. With mini-batches, all clients then upload what they
    have.

    ``full`` 0: were all messages empty.
    """
    server, floats = links.server, full * plan.floats
    down, up = full * plan.batches.length * plan.outputs, floats if plan.batches.size is None else 0
    longer = ((plan.hops or 1) - 1) / max(1, len(ways[0]) - 1)  # than what was followed
    if links.interfaces is not None:
        slowest = seconds_of(_sync_legs(ways, server, down, floats, up, longer), links)
        return slowest + (0.0 if plan.batches.size is None else _server_round(links, down, down=0))

    slowest = max(
        links.seconds(server, way[0], down)
        + longer * _on_the_way(links, way, floats)
        + links.seconds(way[-1], server, up)
        for way in ways
    )
    return slowest + (0.0 if plan.batches.size is None else _server_round(links, down, down=0))


def _sync_legs(
    ways: list[list[int]], server: int, down: int, floats: int, up: int, longer: float
) -> list[Leg]:
    """The messages of all tokens from one sync to the next."""
    legs: list[Leg] = []
    for way in ways:
        sent = len(legs)
        legs.append(Leg((server, way[0]), down))
        legs += _chain(way, floats, first=len(legs), after=(sent,), repeats=longer)
        legs.append(Leg((way[-1], server), up, after=(len(legs) - 1,)))
    return legs


def _chain(
    way: list[int], floats: int, first: int, after: tuple[int, ...], repeats: float = 1.0
) -> list[Leg]:
    """Hops that wait for each other; ``first`` is the position of the first one."""
    legs = []
    for step, link in enumerate(pairwise(way)):
        legs.append(Leg(link, floats, after if step == 0 else (first + step - 1,), repeats))
    return legs
