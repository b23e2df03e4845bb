"""What a party may expect of messages in a run, from the plan alone: known before anything arrives."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from mtcd.errors import ConfigError
from mtcd.methods.combine import OPTIMAL
from mtcd.methods.dcpa import DCPA, Offer
from mtcd.methods.hosting import Done, Share
from mtcd.methods.method import Method
from mtcd.methods.mtcd import MTCD
from mtcd.methods.split_parties import SplitToken, UpdateFusion
from mtcd.methods.svfl import SVFL, Shared
from mtcd.network.topology import Network
from mtcd.protocol.batches import Batches
from mtcd.protocol.gathering import Fresh
from mtcd.protocol.party import Part, Progress
from mtcd.protocol.token import SURVEYED, Token

Shape = tuple[int, ...]

LONGEST_RUN_ID = 64
MOST = 2**48
"""Above all that is counted: iterations, hops, tours, terms, sequence numbers."""
F8, F4 = np.dtype("<f8"), np.dtype("<f4")


@dataclass(frozen=True, eq=False)
class Expected:
    """The bounds of a run. With ``sender`` or ``receiver`` a message must be from, or for, that party.

    An engine that knows from a certificate who sends on a link keeps one of these per link, made by
    ``dataclasses.replace``, so that nobody can speak in another's name.
    """

    run: str
    clients: int
    kinds: frozenset[type]
    """The payloads that the method sends."""
    shape: Shape
    """Of an aggregate."""
    server: bool = True
    tokens: int = 0
    hops: int = MOST - 1
    """The largest hop of a token in an iteration. Tokens that come up to a server roam on while it is gone."""
    first_pass: int = 0
    """Hops of a lone token before training starts."""
    iterations: int = MOST
    """t stays below."""
    carries_change: bool = False
    optimal: bool = False
    kept: int = 0
    """With acceleration: the most snapshots that a client keeps, and the most weights of a mix."""
    parameters: int = 0
    """The most parameters of a client, where these are told to the monitor."""
    split: SplitShapes | None = None
    device: str = "cpu"
    """Where tensors go when they arrive."""
    sender: int | None = None
    receiver: int | None = None

    def __post_init__(self) -> None:
        run = self.run
        if not (run.isascii() and run.isprintable() and 1 <= len(run) <= LONGEST_RUN_ID):
            raise ConfigError(f"The id of a run has 1 to {LONGEST_RUN_ID} plain characters.")

    @cached_property
    def steps(self) -> dict[Any, Any]:
        """How records are read in this run, once that is known."""
        return {}

    @cached_property
    def run_bytes(self) -> bytes:
        """The id of the run as it travels."""
        return self.run.encode("ascii")

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """Of aggregates and representations."""
        return F8 if self.split is None else F4

    @cached_property
    def most_visited(self) -> int:
        """The most clients that a token, or a 'done', may list."""
        return self.clients if self.optimal or self.split is not None else 0

    @cached_property
    def most_past(self) -> int:
        """The most syncs of which a token may tell the weights."""
        return self.clients if self.optimal else 0

    @cached_property
    def most_products(self) -> int:
        """The most inner products that a token collects."""
        return self.tokens if self.optimal else 2 * self.kept + 1 + SURVEYED if self.kept else 0

    @cached_property
    def theta_0(self) -> tuple[Shape, ...]:
        """The shapes of theta_0."""
        return () if self.split is None else self.split.theta_0

    @cached_property
    def extra(self) -> int:
        """The most numbers that a token carries beside its aggregates."""
        lists = self.kept + self.most_products + self.most_past * self.tokens + self.most_visited + 2
        return lists + sum(math.prod(shape) for shape in self.theta_0)

    @cached_property
    def most_floats(self) -> int:
        """The most numbers that any message can be charged for."""
        return (2 if self.carries_change else 1) * math.prod(self.shape) + self.extra

    def representation(self, client: int) -> Shape:
        """The shape of h_k on a batch."""
        return self.shape if self.split is None else (self.shape[0], self.split.widths[client])


@dataclass(frozen=True)
class SplitShapes:
    """Of a split network: numbers per sample in each client's representation, and the shapes of theta_0."""

    widths: tuple[int, ...]
    theta_0: tuple[Shape, ...]

    @staticmethod
    def of(widths: Sequence[int], theta_0: Sequence[Any]) -> SplitShapes:
        """From the widths, and theta_0 as tensors."""
        return SplitShapes(tuple(widths), tuple(tuple(value.shape) for value in theta_0))


def expect(
    method: Method,
    network: Network,
    seed: int,
    samples: int,
    outputs: int,
    run: str,
    split: SplitShapes | None = None,
    parameters: int = 0,
) -> Expected:
    """What every party can work out by itself: from the settings and the sizes that all agreed on.

    ``parameters``: for dcpa, the most that one client has.
    """
    length = Batches(samples, method.batch, seed).length
    shape = (length,) if outputs == 1 and split is None else (length, outputs)
    bare = Expected(run, network.size, frozenset(), shape, split=split)
    if isinstance(method, MTCD):
        return _of_tokens(bare, method, network, seed, samples, outputs)
    if isinstance(method, DCPA):
        kinds = frozenset({type(None), Offer, Part})
        return replace(bare, kinds=kinds, server=False, parameters=parameters)
    if isinstance(method, SVFL) and split is None:
        return replace(bare, kinds=frozenset({Shared, Fresh, Progress}))
    if isinstance(method, SVFL):
        return replace(bare, kinds=SPLIT_KINDS, tokens=network.size, hops=1)
    raise ConfigError(f"Nobody has said yet which messages {method.kind} sends.")


SPLIT_KINDS: frozenset[type] = frozenset({SplitToken, Done, Share, Fresh, UpdateFusion, Progress})


def _of_tokens(bare: Expected, method: MTCD, network: Network, seed: int, samples: int, outputs: int) -> Expected:
    plan = replace(method.plan(samples, outputs, network, seed), linear=bare.split is None)
    if plan.hops is None:
        kinds = frozenset({Token} if bare.split is None else {SplitToken, Progress})
    elif bare.split is None:
        kinds = frozenset({Token, Progress} if plan.tokens_return else {Token, Done, Share, Fresh, Progress})
    else:
        kinds = SPLIT_KINDS - {Done} if plan.tokens_return else SPLIT_KINDS
    return replace(
        bare,
        kinds=kinds,
        server=plan.hops is not None,
        tokens=plan.tokens,
        hops=MOST - 1 if plan.hops is None or plan.tokens_return else plan.hops,
        first_pass=0 if bare.split is None else max(0, len(method.first_visits(network, plan.roaming)) - 1),
        carries_change=plan.carries_change,
        optimal=method.combine_rule == OPTIMAL,
        kept=0 if plan.acceleration is None else plan.depth + 1,
    )
