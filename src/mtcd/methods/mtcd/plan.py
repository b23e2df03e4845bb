"""The plan of a method of tokens: its settings, resolved for one problem and network, which all
parties share."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

from mtcd.core.arrays import Array
from mtcd.methods.mtcd.combine import Combine
from mtcd.methods.mtcd.features import PLAIN_ROLES, Roles, TokenFeature
from mtcd.methods.mtcd.roaming import Roaming
from mtcd.methods.mtcd.stepsizes import Schedule, scheduled
from mtcd.protocol.batches import Batches
from mtcd.protocol.codec.fields import ClientSet, limit_of
from mtcd.protocol.codec.payloads import Iteration, Payload, TokenIndex, payload
from mtcd.protocol.ledger.costs import Sizes
from mtcd.protocol.party import MONITOR, Message
from mtcd.protocol.token import Token


@payload(4, "c>s")
@dataclass(frozen=True, slots=True)
class Done(Payload):
    """A token has made its S hops, and the sync does not need its aggregate; at most the clients it
    ``visited``."""

    index: TokenIndex
    visited: Annotated[frozenset[int], ClientSet(frozenset, limit_of("visited"))] = frozenset()


@payload(5, "s>c")
@dataclass(frozen=True, slots=True)
class Share(Payload):
    """The server requests the representation on the batch of iteration t."""

    depends_on_tokens = False
    t: Iteration

    @property
    def rounds_ended(self) -> int:
        return self.t


@dataclass(frozen=True, eq=False)
class Plan:
    """The settings of a method, resolved for one problem and network. All parties have the same
    plan."""

    tokens: int
    hops: int | None
    local_updates: int
    stepsize: float
    combine: Combine
    batches: Batches
    roaming: Roaming
    outputs: int
    schedule: Schedule | None = None
    roles: Roles = PLAIN_ROLES
    """Makes the parties."""
    features: tuple[TokenFeature, ...] = ()
    """What features add to tokens and visits; mostly nothing."""
    majorises: bool = False
    """Whether local updates are steps on a quadratic upper bound of f."""
    newton: bool = False
    """Whether each of the local updates minimises f over the block."""
    linear: bool = True
    """Whether representations are linear, so that the average of copies has the average of their
    representations."""
    first_pass: tuple[int, ...] = ()
    """The clients that a lone token visits before training to collect their representations, in
    order; the last is its start. Where the model does not start at 0."""
    charges_hops: bool = True
    """Whether a visit ends with a hop; False for SVFL, where every round goes through the
    server."""
    uploads_representations: bool = False
    """Whether all clients upload at every sync, with the full batch too, as in SVFL of models
    whose representations are not linear."""

    def stepsize_at(self, t: int) -> float:
        """The step size of iteration t."""
        return scheduled(self.stepsize, self.schedule, t, self.batches)

    @cached_property
    def tokens_return(self) -> bool:
        """Whether the sync computes the new aggregate from the tokens, which are then sent to the
        server."""
        # Only sums of linear representations follow from tokens: with several visitors, the average
        # of copies has another representation than the average of tokens, unless h_k is linear.
        follows = self.linear or self.combine.one_visitor
        return self.batches.size is None and not self.uploads_representations and follows

    @cached_property
    def weights(self) -> tuple[float, ...]:
        """w by the number of tokens that have visited a client: constant, so a visit looks it
        up."""
        visited = (self.combine.weight(n, self.tokens) for n in range(1, self.tokens + 1))
        # A client without visitors keeps theta_k, so its weight does not matter.
        return (0.0, *visited)

    @cached_property
    def aggregate_floats(self) -> int:
        """Numbers in an aggregate."""
        return self.batches.length * self.outputs

    @cached_property
    def carries_change(self) -> bool:
        """Whether tokens carry their change of the combined aggregate to the server."""
        return self.tokens_return and not self.combine.same_everywhere

    @cached_property
    def token_floats(self) -> int:
        """Numbers in a token after a visit, but for those of features."""
        if self.carries_change:
            return 2 * self.aggregate_floats
        return self.aggregate_floats

    @cached_property
    def feature_floats(self) -> int:
        """Numbers that features add to every token."""
        return sum(feature.floats for feature in self.features)

    @cached_property
    def floats(self) -> int:
        """Numbers in a token between two clients."""
        return self.token_floats + self.feature_floats

    @property
    def sizes(self) -> Sizes:
        """Numbers in the messages of a linear model."""
        uplink = self.floats if self.tokens_return else self.aggregate_floats
        return Sizes(uplink, self.aggregate_floats + self.feature_floats, self.floats)

    def last_clients(self, t: int) -> tuple[int, ...]:
        """The clients from which the tokens return to the server in iteration t, where no client is
        down."""
        # Asked K times an iteration, by each message, and a walk of S hops takes a while.
        if t not in self._last_clients:
            self._last_clients.clear()
            self._last_clients[t] = tuple(
                self.roaming.last(token, t) for token in range(self.tokens)
            )
        return self._last_clients[t]

    @cached_property
    def _last_clients(self) -> dict[int, tuple[int, ...]]:
        """Those of the iteration for which they were last computed."""
        return {}

    def new_token(self, index: int, t: int, aggregate: Array, penalty: float) -> Token:
        """A token that sets out in iteration t; it has met no client."""
        token = Token(index, t, 0, aggregate, penalty)
        for feature in self.features:
            first = feature.first_value(endless=self.hops is None)
            token.put(feature.extension.name, first)
        return token

    def lone_token(self, token: Token | None = None) -> list[Message]:
        """The first messages of STCD: the token (that of theta = 0 unless given) starts at its
        first client."""
        # The monitor sees the start too: f before the first visit.
        first = self.roaming.lone_start
        token = token or self.new_token(0, 0, self.batches.zeros(self.outputs), 0.0)
        return [Message(first, MONITOR, token), Message(first, first, token)]
