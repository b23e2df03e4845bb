"""Where tokens would go, without training anything: visits to different clients, and time on the
wire.

Both are per iteration as histories count them: a hop per token of MTCD and STCD, a round of SVFL,
DCPA and Tree-CG.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

from mtcd.methods.method import Method
from mtcd.methods.mtcd.client import Plan
from mtcd.methods.mtcd.mtcd import MTCD
from mtcd.methods.planned import Leg, planned, server_round
from mtcd.network.topology import Network
from mtcd.network.walks import NOWHERE
from mtcd.planner.links import Links
from mtcd.planner.transfers import seconds_of
from mtcd.protocol.batches import Batches

# the walks are followed until one of these is reached
ROAMS, HOPS = 30, 2000
LEAST = 100  # hops of each token, however many tokens there are
FEWEST = 20  # the same where messages share bandwidth, which takes longer to compute


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
    # walks are followed, as the next client is drawn; others send the same in every round
    if isinstance(method, MTCD):
        return _roams(method.plan(samples, outputs, network, seed), K, links)
    if links is None:
        return Travel(K, None, K)

    floats = Batches(samples, method.batch, seed).length * outputs
    legs = planned(method).messages(method, network, floats)
    return Travel(K, seconds_of(legs, links), K)


def _roams(plan: Plan, K: int, links: Links | None) -> Travel:
    if plan.hops is None:
        return _lone_token(plan, K, links)

    least = LEAST
    if links is not None and links.interfaces is not None:
        least = FEWEST
    followed = min(plan.hops, max(least, HOPS // plan.tokens))  # of a very long way, the beginning
    rounds = max(1, min(ROAMS, HOPS // (followed * plan.tokens)))

    distinct, wire, latency = 0, 0.0, 0.0
    for t in range(rounds):
        # a cluster whose clients have all left has no token
        roaming = [token for token in range(plan.tokens) if plan.roaming.first(token, t) != NOWHERE]
        ways = [way_of(plan, token, t, followed - 1) for token in roaming]
        distinct += len(set().union(*ways))
        if links is not None:
            wire += _sync(plan, ways, links, 1)
            latency += _sync(plan, ways, links, 0)

    hops = rounds * plan.hops  # histories count a hop of every token as an iteration
    found = Travel(distinct / hops, None, plan.tokens, latency / hops, plan.floats)
    if links is None:
        return found
    return replace(found, wire=wire / hops)


def _lone_token(plan: Plan, K: int, links: Links | None) -> Travel:
    """STCD: one token that never stops."""
    way = way_of(plan, 0, 0, HOPS)
    # two tours or so: over the whole way, every walk has been everywhere
    piece = min(2 * K, HOPS)
    pieces = [set(way[i : i + piece]) for i in range(0, HOPS - piece + 1, piece)]
    distinct = sum(map(len, pieces)) / (len(pieces) * piece)
    if links is None:
        return Travel(distinct, None, 1)

    seconds, latency = (
        _on_the_way(links, way, floats) / (len(way) - 1) for floats in (plan.floats, 0)
    )
    return Travel(distinct, seconds, 1, latency, plan.floats)


def way_of(plan: Plan, token: int, t: int, hops: int) -> list[int]:
    """The clients that a token visits in iteration t, in so many hops."""
    way, previous = [plan.roaming.first(token, t)], NOWHERE
    for hop in range(1, hops + 1):
        way.append(plan.roaming.next(token, t, hop, way[-1], previous))
        previous = way[-2]
    return way


def _on_the_way(links: Links, way: list[int], floats: int) -> float:
    """The time of the hops of a token that roams alone."""
    return seconds_of(_chain(way, floats, first=0, after=()), links)


def _sync(plan: Plan, ways: list[list[int]], links: Links, full: int) -> float:
    """The slowest token: down, its hops, up. With mini-batches, all clients then upload what they
    have.

    ``full`` 0: were all messages empty.
    """
    server, floats = links.server, full * plan.floats
    down, up = full * plan.batches.length * plan.outputs, floats
    if plan.batches.size is not None:
        up = 0  # all clients upload after the roam instead
    longer = ((plan.hops or 1) - 1) / max(1, len(ways[0]) - 1)  # than what was followed

    legs: list[Leg] = []
    for way in ways:
        sent = len(legs)
        legs.append(Leg((server, way[0]), down))
        legs += _chain(way, floats, first=len(legs), after=(sent,), repeats=longer)
        # from where it is after its last hop, which need not be the client that it started from
        legs.append(Leg((way[-1], server), up, after=(len(legs) - 1,)))

    slowest = seconds_of(legs, links)
    if plan.batches.size is None:
        return slowest
    return slowest + seconds_of(server_round(links.clients, down=0, up=down), links)


def _chain(
    way: list[int], floats: int, first: int, after: tuple[int, ...], repeats: float = 1.0
) -> list[Leg]:
    """Hops that wait for each other; ``first`` is the position of the first one."""
    legs: list[Leg] = []
    for link in pairwise(way):
        legs.append(Leg(link, floats, after, repeats))
        after = (first + len(legs) - 1,)
    return legs
