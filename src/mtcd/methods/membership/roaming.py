"""Roaming while clients leave and join. Between two changes lies a membership view, with its own
walks and starts.

All parties know the changes in advance (``Network.changes``), so the path of a token is still a
function of (seed, token, iteration, hop). With a server a view begins at a sync; without one at the
next hop, or, with acceleration, at the next tour. In a cluster that becomes disconnected, a walk
stays in its component.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from mtcd.core.errors import ConfigError
from mtcd.core.seeding import uniform
from mtcd.methods.mtcd.client import TokenClient
from mtcd.methods.mtcd.roaming import (
    Roaming,
    StartAt,
    has_visited_all,
    is_last_visit,
    reach,
    tour_length,
)
from mtcd.methods.mtcd.wrapped import Wrapped
from mtcd.network.changes import absences
from mtcd.network.topology import Network, breadth_first, connected_pieces
from mtcd.network.walks import NOWHERE, Walk
from mtcd.protocol.party import Message, send
from mtcd.protocol.token import Token

NO_DRAW = 0.0  # tours use none


@dataclass(frozen=True, eq=False)
class MembershipView:
    """The walks and starts while ``absent`` clients are away, from iteration (without a server:
    hop) ``begins`` on."""

    begins: int
    absent: frozenset[int]
    walks: Sequence[Walk]
    starts: Sequence[StartAt | None]  # None: no client is present
    entry: int = NOWHERE
    """The client at which a tour without a server begins."""

    @property
    def lone(self) -> Walk:
        """The walk of the lone token, without a server."""
        return self.walks[0]


@dataclass(frozen=True, eq=False)
class ChangingRoaming(Roaming):
    """The roaming of a network that changes: that of the current view."""

    network: Network
    views: Sequence[MembershipView]

    @cached_property
    def _begins(self) -> list[int]:
        return [view.begins for view in self.views]

    def view(self, when: int) -> MembershipView:
        """The view of iteration t; without a server, of a hop."""
        return self.views[bisect_right(self._begins, when) - 1]

    def first(self, token: int, iteration: int) -> int:
        start = self.view(iteration).starts[token]
        if start is None:
            return NOWHERE
        return start.pick(uniform(self.seed, "start", (token,), iteration))

    def next(self, token: int, t: int, hop: int, client: int, previous: int) -> int:
        if self.hops is None:
            return self._next_alone(hop, client, previous)

        walk = self.view(t).walks[token]
        start = NOWHERE
        if walk.needs_start:
            start = self.first(token, t)

        # Its position, and not a running generator: the path can be computed by any party, at any
        # time.
        draw = uniform(self.seed, "walk", (token,), t * self.hops + hop)
        return walk.next(client, previous, start, t, hop, draw)

    def _next_alone(self, hop: int, client: int, previous: int) -> int:
        """Without a server. The first hop of a view leads to its entry, possibly through absent
        clients."""
        view = self.view(hop)
        if hop == view.begins and view.entry != NOWHERE:
            return next_on_way(self.network, client, view.entry)

        if hop == view.begins:
            # A walk that is no tour goes on where it is, if that client has not left.
            entry = nearest(self.network, client, view.absent)
            if entry != client:
                # At the first hop of a view the token heads for a client that is there. On its way
                # it may pass absent ones, which forward it.
                return next_on_way(self.network, client, entry)

        draw = uniform(self.seed, "walk", (0,), hop)
        return view.lone.next(client, previous, view.entry, view.begins, hop - view.begins, draw)

    def all_walks(self) -> Sequence[Walk]:
        return [walk for view in self.views for walk in view.walks]

    def ends_tour(self, hop: int) -> bool:
        view = self.view(hop)
        return (hop - view.begins) % tour_length(view.lone) == 0

    def has_visited_all(self, hop: int) -> bool:
        if self.ends_tour(hop):
            return True  # also before the first hop of the next view
        view = self.view(hop)
        return has_visited_all(view.lone, view.entry, hop - view.begins)

    def is_last_visit(self, token: int, t: int, hop: int, client: int) -> bool:
        if self.hops is not None:
            return is_last_visit(
                self.view(t).walks[token], self.first(token, t), self.hops, hop, client
            )
        view = self.view(hop)
        return is_last_visit(view.lone, view.entry, None, hop - view.begins, client)

    def begins_view(self, when: int) -> bool:
        return self.view(when).begins == when

    def is_away(self, client: int, hop: int) -> bool:
        return client in self.view(hop).absent

    def hosted(self, client: TokenClient) -> Relay:
        return Relay(client)


class Relay(Wrapped):
    """A client of STCD: while it is absent, it forwards a token without an update.

    That happens when the holder of the token and all its neighbours leave.
    """

    def receive(self, message: Message) -> Sequence[Message]:
        client, token = self.client, message.payload
        assert isinstance(token, Token)
        if not client.plan.roaming.is_away(client.number, token.hop):
            return client.receive(message)
        return [send(client.number, client.next_client(token), token)]


def nearest(network: Network, client: int, absent: frozenset[int]) -> int:
    """The client itself, if it is there, or the nearest one that is; the first of those equally
    near."""
    if client not in absent:
        return client
    levels = breadth_first(network.neighbours, client, set(range(network.size)))
    return _first_of(levels, set(range(network.size)) - absent)


def next_on_way(network: Network, client: int, to: int) -> int:
    """Where a token goes from ``client`` that shall get to ``to``: the neighbour that is nearest to
    it."""
    if client == to:
        return client
    levels = breadth_first(network.neighbours, to, set(range(network.size)))
    return _first_of(levels, set(network.neighbours[client]))


def _first_of(levels: Iterable[Iterable[int]], wanted: Collection[int]) -> int:
    """The wanted client on the first level that has one; of several, the smallest number, so that
    all parties agree."""
    for level in levels:
        here = [k for k in level if k in wanted]
        if here:
            return min(here)

    raise AssertionError("Some client is always present, and the network is connected.")


def changing_roaming(
    roaming: Roaming,
    network: Network,
    clusters: Sequence[Sequence[int]] | None,
    whole_tours: bool = False,
) -> ChangingRoaming:
    """The roaming through the changes of the network. ``whole_tours``: a view begins between two
    tours only."""
    regions: Sequence[Sequence[int]] = [range(network.size)] * len(roaming.walks)
    if clusters is not None:
        regions = clusters

    # Tokens that roam everywhere share a walk, which is then repaired once.
    repairs = {}
    # Keyed by the walk: tokens that share it get the same repaired one.
    for walk, region in zip(roaming.walks, regions, strict=True):
        repairs[walk] = Repairs(network, walk, region)

    views: list[MembershipView] = []
    for iteration, absent in absences(network):
        made: dict[Walk, Walk] = {}
        starts = []
        for token, walk in enumerate(roaming.walks):
            here = [k for k in regions[token] if k not in absent]
            if walk not in made:
                made[walk] = repairs[walk].walk(here)
            starts.append(_start(roaming, network, token, regions[token], here, whole_tours))

        begins = _begins(iteration, roaming.hops, views, whole_tours)
        # Two changes may fall between the same two syncs: the later one counts.
        if views and views[-1].begins == begins:  # the previous view is empty
            views.pop()

        walks = [made[walk] for walk in roaming.walks]
        view = MembershipView(begins, absent, walks, starts)
        if roaming.hops is None and roaming.lone.length is not None:
            view = _touring(view, views, roaming, network, whole_tours)
        elif whole_tours and any(isinstance(walk, Pieces) for walk in view.walks):
            raise ConfigError(
                f"network.changes: from iteration {iteration} on a cluster is disconnected, but "
                "method.acceleration needs a tour of it: leave acceleration out, or choose other "
                "clusters."
            )
        views.append(view)

    return ChangingRoaming(
        roaming.walks, roaming.starts, roaming.seed, roaming.hops, network, views
    )


class Repairs:
    """The walks of a cluster in all views: repaired from one view to the next, reused for the same
    set of clients."""

    def __init__(self, network: Network, walk: Walk, region: Sequence[int]) -> None:
        self.network, self.touring = network, walk.length is not None
        self.known = {tuple(region): walk}
        self.last = dict(self.known)

    def walk(self, present: Sequence[int]) -> Walk:
        """The walk over the present clients; one tour for each connected component."""
        pieces: Sequence[tuple[int, ...]] = (tuple(present),)
        if self.touring:
            pieces = connected_pieces(self.network.neighbours, present)

        # Without anybody present the token does not move, and the walks are kept for later.
        if present:
            # A set of clients that was there before gets its old walk back: whoever returns finds
            # the tour as it was.
            self.last = {piece: self.known.get(piece) or self._repaired(piece) for piece in pieces}
            self.known |= self.last

        if len(self.last) > 1:
            return Pieces(self.last)
        [only] = self.last.values()
        return only

    def _repaired(self, piece: tuple[int, ...]) -> Walk:
        members = set(piece)
        # The walk of the piece with most of these clients changes least.
        old = max(self.last, key=lambda before: len(members.intersection(before)))
        return self.last[old].repaired(self.network, piece)


def _start(
    roaming: Roaming,
    network: Network,
    token: int,
    region: Sequence[int],
    here: Sequence[int],
    fixed: bool,
) -> StartAt | None:
    """The configured start, restricted to present clients, if it reaches all those that it reached;
    else uniform."""
    asked = roaming.starts[token]
    among = asked.among(set(here))
    # Weights of the user are kept as long as any of their clients is present.
    if not here or (among is not None and asked.weights is None):
        return among

    reached = reach(network, asked, region, roaming.hops).intersection(here)
    if among is not None and reached <= reach(network, among, here, roaming.hops):
        return among

    # An accelerated tour must begin at the same client every time.
    if fixed:
        return StartAt(here[:1])
    return StartAt(here)


def _begins(
    iteration: int, hops: int | None, before: Sequence[MembershipView], whole_tours: bool
) -> int:
    """The iteration, or without a server the hop, at which the view of a change begins."""
    if hops is not None:
        # With a server, a client leaves or joins at a sync: in between, copies of theta_k are with
        # tokens.
        return math.ceil(iteration / hops)  # at the next sync
    if not whole_tours or not before:
        return iteration

    last = before[-1]
    length = tour_length(last.lone)
    # Rounded up to whole tours: an acceleration compares tours of the same clients.
    tours = math.ceil((iteration - last.begins) / length)
    return last.begins + max(0, tours) * length


def _touring(
    view: MembershipView,
    before: Sequence[MembershipView],
    roaming: Roaming,
    network: Network,
    whole_tours: bool,
) -> MembershipView:
    """Without a server: the tour of the component that the token is in, and the client at which it
    enters it.

    With acceleration that is the home client, if it is present.
    """
    walk = view.lone
    if not before:
        start = view.starts[0]
        assert start is not None  # some client is always present
        entry = start.pick(uniform(roaming.seed, "start", (0,), 0))
    else:
        last = _position(before[-1], view.begins - 1)
        if whole_tours and before[-1].entry not in view.absent:
            entry = before[-1].entry
        elif last in view.absent:
            entry = nearest(network, last, view.absent)
        else:
            # It goes on by the new tour from where it is, as if it had toured there before.
            entry = walk.around(last).next(last, NOWHERE, last, view.begins, 1, NO_DRAW)
    return MembershipView(view.begins, view.absent, [walk.around(entry)], view.starts, entry)


def _position(view: MembershipView, hop: int) -> int:
    """The client that has the token after ``hop`` hops: every tour begins at the same client."""
    walk = view.lone
    since = hop - view.begins
    client, previous = view.entry, NOWHERE
    # Whole tours end where they began, so only the last, incomplete one is walked.
    for at in range(since - since % tour_length(walk), since):
        following = walk.next(client, previous, view.entry, view.begins, at + 1, NO_DRAW)
        client, previous = following, client

    return client


class Pieces(Walk):
    """A tour for each component of a disconnected cluster."""

    needs_start = True

    def __init__(self, tours: Mapping[tuple[int, ...], Walk]) -> None:
        self._around = {client: walk for piece, walk in tours.items() for client in piece}
        # The longest tour decides how many hops a round takes for all pieces.
        self.length = max(walk.length or 0 for walk in tours.values())

    def next(self, client: int, previous: int, start: int, t: int, hop: int, draw: float) -> int:
        return self._around[client].next(client, previous, start, t, hop, draw)

    def around(self, client: int) -> Walk:
        return self._around[client]

    def last_visits(self, start: int, hops: int) -> Mapping[int, int]:
        return self._around[start].last_visits(start, hops)

    def covers(self, client: int) -> bool:
        return client in self._around
