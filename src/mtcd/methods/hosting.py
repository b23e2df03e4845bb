"""The base of every client that tokens visit, linear or split, and the plan that all parties share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np

from mtcd.arrays import Array
from mtcd.ledger.costs import Sizes
from mtcd.methods.accelerations import ACCELERATIONS, Acceleration
from mtcd.methods.combine import Combine
from mtcd.methods.roaming import Roaming
from mtcd.methods.schedule import Schedule, scheduled
from mtcd.protocol.batches import Batches
from mtcd.protocol.gain_token import AWAITED, UNKNOWN, GainToken
from mtcd.protocol.model import Fit
from mtcd.protocol.party import MONITOR, SERVER, Client, Message, send
from mtcd.protocol.token import NO_INSTRUCTION, Instruction, Token
from mtcd.schema.fields import ClientSet
from mtcd.schema.payloads import Payload, payload
from mtcd.schema.types import Iteration, TokenIndex


@payload(4, "c>s")
@dataclass(frozen=True, slots=True)
class Done(Payload):
    """A token has made its S hops, and the sync does not need its aggregate; at most the clients it ``visited``."""

    index: TokenIndex
    visited: Annotated[frozenset[int], ClientSet(frozenset)] = frozenset()


@payload(5, "s>c")
@dataclass(frozen=True, slots=True)
class Share(Payload):
    """The server requests the representation on the batch of iteration t."""

    t: Iteration


@dataclass(frozen=True, eq=False)
class Plan:
    """The settings of a method, resolved for one problem and network. All parties have the same plan."""

    tokens: int
    hops: int | None
    local_updates: int
    stepsize: float
    combine: Combine
    batches: Batches
    roaming: Roaming
    outputs: int
    schedule: Schedule | None = None
    acceleration: str | None = None
    depth: int = 5  # no mutants: given wherever it matters
    adaptive: bool = False  # no mutants: given wherever it matters
    """Whether the acceleration chooses step sizes and numbers of local updates."""
    majorises: bool = False
    """Whether local updates are steps on a quadratic upper bound of f."""
    gains: int = 0  # no mutants: given wherever it matters
    """The gains that a token carries: one for each client, where parties compare them."""
    linear: bool = True
    """Whether representations are linear, so that the average of copies has the average of their representations."""
    first_pass: tuple[int, ...] = ()
    """The clients that a lone token visits before training to collect their representations, in order; the last is its
    start. Of split networks, and of linear models that do not start at 0."""
    charges_hops: bool = True
    """Whether a visit ends with a hop; False for SVFL, where every round goes through the server."""

    def stepsize_at(self, t: int) -> float:
        """The step size of iteration t."""
        return scheduled(self.stepsize, self.schedule, t, self.batches)

    @cached_property
    def tokens_return(self) -> bool:
        """Whether the sync computes the new aggregate from the tokens, which are then sent to the server."""
        return self.batches.size is None and self.charges_hops and (self.linear or self.combine.one_visitor)

    @cached_property
    def aggregate_floats(self) -> int:
        """Numbers in an aggregate."""
        return self.batches.length * self.outputs

    @cached_property
    def carries_change(self) -> bool:
        """Whether tokens carry their change of the combined aggregate to the server."""
        return self.tokens_return and not self.combine.same_everywhere

    @cached_property
    def floats(self) -> int:
        """Numbers in a token between two clients."""
        return self.aggregate_floats * (2 if self.carries_change else 1) + self.gains

    @property
    def sizes(self) -> Sizes:
        """Numbers in the messages of a linear model."""
        uplink = self.floats if self.tokens_return else self.aggregate_floats
        return Sizes(uplink, self.aggregate_floats + self.gains, self.floats)

    def last_clients(self, t: int) -> tuple[int, ...]:
        """The clients from which the tokens return to the server in iteration t, where no client is down."""
        if t not in self._last_clients:
            self._last_clients.clear()
            self._last_clients[t] = tuple(self.roaming.last(token, t) for token in range(self.tokens))
        return self._last_clients[t]

    @cached_property
    def _last_clients(self) -> dict[int, tuple[int, ...]]:
        """Those of the iteration for which they were last computed."""
        return {}

    def accelerate(self, z: Array, penalty: float, fit: Fit, tour: int) -> Acceleration:
        """A new acceleration that starts with this token."""
        first = self.stepsize if self.adaptive else 0.0
        return ACCELERATIONS[self.acceleration or ""](self.depth, z, penalty, fit, tour, first)

    def new_token(self, index: int, t: int, aggregate: Array, penalty: float, instruction: Instruction) -> Token:
        """A token that sets out in iteration t; it has met no client."""
        if not self.gains:
            return Token(index, t, 0, aggregate, penalty, instruction=instruction, extra=instruction.floats)
        unknown = np.full(self.gains, AWAITED if self.hops is None else UNKNOWN)
        return GainToken(index, t, 0, aggregate, penalty, extra=self.gains, gains=unknown)

    def lone_token(self, token: Token | None = None) -> list[Message]:
        """The first messages of STCD: the token (that of theta = 0 unless given) starts at its first client."""
        first = self.roaming.lone_start
        token = token or self.new_token(0, 0, self.batches.zeros(self.outputs), 0.0, NO_INSTRUCTION)
        return [Message(first, MONITOR, token), Message(first, first, token)]


class TokenHost(Client):
    """A client that tokens visit."""

    number: int
    plan: Plan
    t: int
    unchanged = False
    """Whether the last visit changed nothing."""

    @abstractmethod
    def apply_sync(self, t: int) -> None:
        """Combine the copies at the sync that starts iteration t (Algorithm 2, line 11)."""

    def stop_at_sync(self, t: int, past: Mapping[int, Array]) -> None:
        if t != self.t:
            self.apply_sync(t)

    @abstractmethod
    def visit(self, token: Token) -> None:
        """Q local updates of theta_k and of the token's aggregate (Algorithm 1, lines 7-9)."""

    @abstractmethod
    def share(self, t: int) -> Message:
        """Send h_k on the batch of iteration t to the server (Algorithm 2, line 5)."""

    def receive(self, message: Message) -> Sequence[Message]:
        token = message.payload
        if isinstance(token, Share):
            return [self.share(token.t)]
        assert isinstance(token, Token)
        self.visit(token)
        return self.pass_on(token)

    def pass_on(self, token: Token) -> Sequence[Message]:
        """Send the token to the next client, or to the server after S hops (Algorithm 1, line 10)."""
        plan, number = self.plan, self.number
        token.hop += 1
        if plan.hops is None:
            return [self._hop(self.next_client(token), token), Message(number, MONITOR, token)]
        if token.hop < plan.hops:
            return [self._hop(self.next_client(token), token)]
        if plan.tokens_return:
            return [self._hop(SERVER, token)]
        done = Done(token.index, frozenset(token.tally.visited))
        return [Message(number, SERVER, done, 0, token.floats if plan.charges_hops else 0)]

    def _hop(self, to: int, token: Token) -> Message:
        message = send(self.number, to, token, hop=True)
        message.unchanged = self.unchanged
        return message

    def next_client(self, token: Token) -> int:
        """The next client of the walk."""
        to = self.plan.roaming.next(token.index, token.t, token.hop, self.number, token.previous)
        token.previous = self.number
        return to
