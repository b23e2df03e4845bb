"""The plan of sealed tours, which all parties know: the way of the token, the sizes, the scales."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np

from mtcd.core.arrays import Array
from mtcd.core.seeding import stream
from mtcd.data.vertical import Block
from mtcd.methods.mtcd.roaming import Roaming
from mtcd.models.glm.penalty import Penalty
from mtcd.models.losses import Loss
from mtcd.network.topology import Network
from mtcd.network.walks import NOWHERE
from mtcd.privacy.sealed.bfv.cipher import SchemeName, SecretKey
from mtcd.privacy.sealed.bfv.parameters import Parameters, choose_parameters
from mtcd.privacy.sealed.block import SealedBlock, corrects
from mtcd.privacy.sealed.check_column import COLUMNS
from mtcd.privacy.sealed.label_sums import STEP, LabelSums
from mtcd.privacy.sealed.payloads import SealedToken
from mtcd.privacy.sealed.scales import Scales
from mtcd.privacy.sealed.steering import Steering
from mtcd.protocol.party import SERVER

MakeKey = Callable[[Parameters], SecretKey]


@dataclass(frozen=True, eq=False)
class SealedPlan:
    """``home``: the label holder, where tours begin and end; ``start``: f(0) or more; ``columns``:
    d_k by client."""

    network: Network
    roaming: Roaming
    length: int
    home: int
    server: bool
    depth: int
    loss: Loss
    samples: int
    columns: tuple[int, ...]
    start: float
    scheme: SchemeName
    seed: int
    most_tours: int | None = None
    """The key holder opens no more tokens than this."""
    _orders: dict[int, list[int]] = field(default_factory=dict)

    @property
    def holder(self) -> int:
        """The party with the key."""
        if self.server:
            return SERVER
        return self.home

    @property
    def clients(self) -> int:
        """K, the number of clients."""
        return self.network.size

    def order(self, t: int) -> Sequence[int]:
        """The clients of tour t, in order, the home client at both ends."""
        if t not in self._orders:
            # every party computes the same way from the seed: no message has to say it
            found, previous = [self.home], NOWHERE
            for hop in range(1, self.length + 1):
                found.append(self.roaming.next(SealedToken.index, t, hop, found[-1], previous))
                previous = found[-2]
            # one tour at a time: a training has thousands
            self._orders.clear()
            self._orders[t] = found
        return self._orders[t]

    @property
    def constant(self) -> float:
        """At least the part of f that depends on the labels alone."""
        zeros = np.zeros(self.samples)
        # f at 0 without labels is known to all; what is above it depends on them.
        return max(0.0, self.start - self.loss.value(zeros, zeros))

    def constant_of(self, labels: Array) -> float:
        """The part of f that depends on these labels alone."""
        zeros = np.zeros(self.samples)
        return self.loss.value(zeros, labels) - self.loss.value(zeros, zeros)

    checks_answers: ClassVar[bool] = True
    """Whether a client adds a column to its requests that checks the answers."""

    def asked(self, client: int) -> int:
        """The columns of a client's requests: those that it has declared, and that of the check."""
        if not self.checks_answers:
            # The key holder counts the columns of a request: those of the check are among what is
            # agreed.
            return self.columns[client]
        return self.columns[client] + COLUMNS

    @property
    def widest(self) -> int:
        """The most columns of a request."""
        return max(map(self.asked, range(self.clients)))

    @property
    def resolution(self) -> float:
        """Sums over labels are told to the server in multiples of this, a power of two."""
        return STEP * self.start

    def label_sums(self, labels: Array) -> LabelSums:
        """What the label holder tells the server of these labels."""
        return LabelSums(self.samples, self.resolution, self.constant_of(labels))

    def draws(self, t: int, client: int) -> Array:
        """The draws with which a client rounds in tour t."""
        # By purpose, client and tour, so that a visit that is repeated rounds in the same way.
        return stream(self.seed, "rounding", client, t).random(self.samples)

    def parameters(self) -> Parameters:
        """The parameters of the cipher, for the token with the sums that it carries besides."""
        # every update adds the noise of an encryption, and the label sum is that of a difference of
        # two tokens
        return choose_parameters(
            self.samples + beside(self.depth), (self.widest,), 2 * (self.clients + 2)
        )

    def scales(self, parameters: Parameters) -> Scales:
        """The fixed point of the run."""
        # where the loss may fall to nearly 0, columns must be exact
        finer = 8.0
        if self.loss.quadratic:
            finer = 1.0
        return Scales(
            parameters, self.samples, self.loss.curvature, self.start, self.clients, finer
        )

    needs_label_sums: ClassVar[bool] = True
    """Whether the server is told <y, change> of tours."""

    def corrects(self, t: int) -> bool:
        """Whether the clients take off their rounding errors in tour t."""
        return corrects(t)

    def steering(self) -> Steering:
        """What the key holder computes with the scores."""
        # Exact where the holder of the key has the labels.
        resolution = 0.0  # the label holder with the key computes the sums itself
        if self.server:
            resolution = self.resolution
        return Steering(
            self.loss, self.samples, self.depth, self.start, self.constant, resolution, self.clients
        )

    def block(self, X: Block, penalty: Penalty) -> SealedBlock:
        """The block of a client."""
        return SealedBlock(X, penalty, self.depth)

    def towards(self, client: int, target: int) -> int:
        """The next party on a shortest way from a client to the key holder or another client."""
        if target == SERVER:
            return SERVER
        # A neighbour at a time: parties without a link to the key holder have their requests
        # forwarded.
        return self._ways[target][client]

    @cached_property
    def _ways(self) -> Mapping[int, Mapping[int, int]]:
        """For each target, the neighbour of each client that is next on the way to it."""
        return {target: _next_steps(self.network, target) for target in range(self.clients)}


def beside(depth: int) -> int:
    """The sums that a token carries beside g."""
    return 3 * depth + 3


def _next_steps(network: Network, target: int) -> dict[int, int]:
    """Breadth first from the target: each client's neighbour on a shortest way there, of several
    the first."""
    found, edge = {target: target}, [target]
    while edge:
        edge, before = [], edge
        for k in before:
            for j in network.neighbours[k]:
                if j not in found:
                    found[j] = k
                    edge.append(j)
    return found
