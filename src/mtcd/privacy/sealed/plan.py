"""The plan of sealed tours, which all parties know: the way of the token, the sizes, the scales."""

from __future__ import annotations

import math
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
from mtcd.privacy.sealed.payloads import SealedToken
from mtcd.privacy.sealed.scales import Scales
from mtcd.privacy.sealed.steering import Steering
from mtcd.protocol.party import SERVER
from mtcd.protocol.state import Stateful

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


# What the label holder tells the server of its labels: rounded sums, and no more of them than a
# budget allows.
#
# The server knows the change D of the scores in every tour. An exact sum <y, D> would be an
# equation of integers, and a few of them name all labels: a lattice reduction finds them. So the
# holder rounds each sum to a multiple of 2^-16 of f(0), and counts the bits that it has told.
#
# Sums are counted by the lengths of their code words in a prefix code (Elias delta). At most 2^B
# sequences of sums have a length of B bits, so that sums of B bits leave, of 2^N possible label
# vectors, at least 2^(N - B) on average.


STEP = 2.0**-16
"""The multiples to which sums are rounded, as a share of f(0)."""
BITS_PER_SAMPLE = 0.5
"""The most bits that all sums of a training tell together, for each sample."""


def code_length(number: int) -> int:
    """The bits of an integer in the Elias delta code; 0, 1, -1, 2, ... are counted as 1, 2, 3, 4,
    ...

    >>> [code_length(number) for number in (0, 1, -1, 2, 1000)]
    [1, 4, 4, 5, 17]
    """
    # Counted like 1, 2, 3, ...: the code is of positive integers.
    place = 2 * number if number > 0 else 1 - 2 * number
    exponent = place.bit_length() - 1
    return exponent + 2 * ((exponent + 1).bit_length() - 1) + 1


class LabelSums(Stateful):
    """The sums that the label holder has told.

    Parameters
    ----------
    samples : int
        N.
    resolution : float
        Sums are told as multiples of it.
    constant : float
        The part of f that depends on the labels alone, which the server is told too,
        rounded up.
    """

    state_fields: ClassVar[tuple[str, ...]] = ("spent",)

    def __init__(self, samples: int, resolution: float, constant: float) -> None:
        self.resolution = resolution
        self.budget = math.floor(BITS_PER_SAMPLE * samples)
        steps = math.ceil(constant / resolution)
        # Rounded up: f must not seem smaller than it is.
        self.constant = steps * resolution
        # It is told as well, so it is counted.
        self.spent = code_length(steps) if steps else 0
        """The bits that were told so far."""

    @property
    def exhausted(self) -> bool:
        """Whether no further sum will be told."""
        return self.spent >= self.budget

    def tell(self, value: float) -> float | None:
        """The rounded sum; None, now and for ever after, if it takes more bits than are left."""
        if self.exhausted:
            return None

        # counted by its length in a prefix code: so many bits leave enough label vectors that fit
        steps = round(value / self.resolution)
        bits = code_length(steps)
        # no shorter sum later either: which sums are told would tell of those that are not
        if self.spent + bits > self.budget:
            self.spent = self.budget
            return None

        self.spent += bits
        return steps * self.resolution
