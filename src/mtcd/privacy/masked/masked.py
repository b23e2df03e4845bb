"""Masks for the parties of any method whose server needs sums only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mtcd.core.errors import ConfigError
from mtcd.core.fixed_point import NARROW, WIDE
from mtcd.methods.method import Method
from mtcd.methods.mtcd.combine import RULES
from mtcd.methods.mtcd.features import ACCELERATIONS
from mtcd.methods.mtcd.mtcd import MTCD
from mtcd.methods.server_sum import ServerSum
from mtcd.network.topology import Network
from mtcd.privacy.masked.client import MaskingClient
from mtcd.privacy.masked.double_client import DoubleMaskingClient
from mtcd.privacy.masked.double_masks import SEED_WORDS
from mtcd.privacy.masked.double_server import DoubleMaskingServer
from mtcd.privacy.masked.masking import Masking, UploadBatches
from mtcd.privacy.masked.pair_masks import MOST_PLACES
from mtcd.privacy.masked.payloads import DOUBLE_MASKS, KEYS, MaskedToken, MaskedUpload
from mtcd.privacy.masked.server import MaskingServer
from mtcd.privacy.settings import DOUBLE_MASKED, MASKED, Privacy
from mtcd.protocol.codec.limits import Bounds
from mtcd.protocol.gathering import Fresh
from mtcd.protocol.ledger.costs import Costs
from mtcd.protocol.party import SERVER, Begin, Checkpointed, Message, OnDemand, Parties
from mtcd.protocol.state import Snapshot
from mtcd.protocol.transports.transport import DEFAULT

FEWEST = 3
"""Clients without which a sum would reveal a single one to another."""


def with_masks(method: Method, aggregation: str = MASKED) -> Method:
    """The same training with masked uploads, of which the server learns the sum.

    >>> from mtcd import SVFL
    >>> with_masks(SVFL()).aggregation
    'masked'
    """
    return MaskedSum(aggregation).applied(method)


class Masked:
    """The mode of privacy with masks."""

    def method(self, method: Method, privacy: Privacy, split: bool) -> Method:
        """The method with masks: see ``mtcd.methods.privacy_modes.PrivacyMode``."""
        return with_masks(method, privacy.aggregation)


@dataclass(frozen=True, repr=False)
class MaskedSum(ServerSum):
    """The server learns the sum of all uploads only.

    Parameters
    ----------
    name
        'masked', or 'double-masked', where a federation goes on without clients that are down.
    """

    name: str = MASKED

    @property
    def double(self) -> bool:
        """Whether masks can be opened without clients that are down."""
        return self.name == DOUBLE_MASKED

    @property
    def hides_parts(self) -> bool:
        return True

    def applied(self, method: Method) -> Method:
        if not method.sums_uploads:
            raise ConfigError(
                f"privacy.aggregation: {method.kind} has no sums at a server that could be masked. "
                "Use mtcd or svfl."
            )
        # every method whose server sums has this field
        return replace(method, aggregation=self)  # type: ignore[type-var]

    def check(self, method: Method) -> None:
        if method.transport != DEFAULT:
            raise ConfigError(
                f"privacy.aggregation: {self.name} sends integers: leave method.transport: "
                f"{method.transport} out."
            )
        if isinstance(method, MTCD):
            self._check_syncs(method)

    def _check_syncs(self, method: MTCD) -> None:
        """Reject syncs that need more than a sum, or whose tokens return to the server."""
        if self.double and method.batch is None:
            raise ConfigError(
                "privacy.aggregation: double-masked is for uploads of representations: use svfl "
                "without acceleration, or mtcd with batch. Where tokens return to the server, use "
                "masked."
            )

        rule = RULES[method.combine_rule]
        equal_weights = rule.same_everywhere and not rule.server_chooses
        # Weights that differ between clients, or are chosen from the tokens, need more than their
        # sum.
        if method.batch is None and not equal_weights:
            raise ConfigError(
                "privacy.aggregation: masked is for syncs that need the sum of tokens or uploads "
                "only: use batch, or combine: average or cluster."
            )
        if method.acceleration and not ACCELERATIONS[method.acceleration].sums_suffice:
            raise ConfigError(
                "privacy.aggregation: masked is for syncs that need the sum of tokens only, but "
                f"acceleration: {method.acceleration} computes with small differences of models, "
                "which masks would round: use momentum or anderson, or train without acceleration."
            )

    def check_network(self, method: Method, network: Network) -> None:
        if network.changes:
            raise ConfigError(
                "privacy.aggregation: masks cancel if all clients take part: leave network.changes "
                "out."
            )

        # One client may be missing from a sum with double masks, so one more is needed.
        least = FEWEST + self.double
        if not least <= network.size <= MOST_PLACES:
            without = "also without one client, " if self.double else ""
            raise ConfigError(
                f"privacy.aggregation: {self.name} needs at least {least} clients and at most "
                f"{MOST_PLACES}, but there are {network.size}: {without}in a sum of two, each "
                "client would find the other's part."
            )

    def check_split(self) -> None:
        if self.double:
            raise ConfigError(
                "privacy.aggregation: double-masked is for linear models: the parties of a split "
                "network wait for one that is down. Use masked."
            )

    def parties(self, parties: Parties) -> Parties:
        summed = parties.summed
        assert summed is not None
        if summed.token_holders is not None:
            _check_tokens(len(summed.token_holders(0)))

        batches = None
        if self.double:
            assert summed.batches is not None
            batches = UploadBatches(summed.batches, summed.batch_of)
        # split networks send float32, in tensors
        numbers = WIDE if isinstance(summed.like, np.ndarray) else NARROW
        size = len(parties.clients)
        return masked_parties(
            parties, Masking(size, numbers, summed.like, summed.token_holders, batches)
        )

    def bounds(self, bounds: Bounds) -> Bounds:
        plain = bounds.kinds - {Fresh}
        if self.double:
            limits = {**bounds.limits, "opened masks": opened_words(bounds.clients)}
            return replace(bounds, kinds=plain | DOUBLE_MASKS | KEYS, limits=limits)
        # Uploads of representations, or tokens that return: a run has one of both.
        upload = MaskedUpload if Fresh in bounds.kinds else MaskedToken
        return replace(bounds, kinds=plain | {upload} | KEYS)

    def notes(self, network: Network) -> tuple[str, ...]:
        return (
            f"Masked sums hold numbers below {WIDE.largest / network.size:.2g} per client in steps "
            f"of 2^-32 (split networks: {NARROW.largest / network.size:.2g}, 2^-18). Larger ones "
            "count as divergence.",
        )

    def opening_cost(self, network: Network, costs: Costs) -> float:
        """The cost of opening double masks at a sync, where no client is down."""
        if not self.double:
            return 0.0
        # A request with two lists of clients goes to each client, and its seeds come back.
        K = network.size
        return K * (costs.with_server(2 * K) + costs.with_server(opened_words(K)))


def opened_words(clients: int) -> int:
    """The most words of seeds, or of numbers of clients, in a message about double masks."""
    return 2 * SEED_WORDS * clients


def _check_tokens(tokens: int) -> None:
    """Reject a number of tokens whose sum cannot be masked."""
    if tokens == 1:
        raise ConfigError(
            "privacy.aggregation: the server learns the sum of all tokens, and with one token that "
            "is the token itself: use two tokens or more, or batch."
        )
    if tokens > MOST_PLACES:
        raise ConfigError(
            f"privacy.aggregation: masked is for at most {MOST_PLACES} tokens, but there are "
            f"{tokens}."
        )


@dataclass(frozen=True)
class MaskedCheckpoints:
    """Checkpoints of parties that are kept without their keys: a training that resumes begins with
    new ones."""

    parties: Checkpointed
    reset: Callable[[Sequence[Message]], Sequence[Message]]

    def snapshot(self) -> Snapshot:
        """That of the parties."""
        return self.parties.snapshot()

    def resume(self, snapshot: Snapshot) -> Sequence[Message]:
        """Exchange keys, then continue."""
        return self.reset(self.parties.resume(snapshot))


def masked_parties(parties: Parties, masking: Masking) -> Parties:
    """The same parties, with masks on what the server sums."""
    assert parties.server is not None
    # first messages wait until all keys are exchanged: they may have uploads
    server, size = parties.server, masking.clients
    # First messages by their sender: clients may upload before the first round.
    of = {k: [one for one in parties.opening if one.sender == k] for k in (*range(size), SERVER)}
    requests = [Message(SERVER, k, Begin()) for k in range(size)]
    role: type[MaskingClient] = MaskingClient
    host: type[MaskingServer] = MaskingServer
    # The protocol is chosen here, once: neither role asks for the other.
    if masking.upload_batches is not None:
        role, host = DoubleMaskingClient, DoubleMaskingServer
    clients = OnDemand(size, lambda k: role(k, parties.clients[k], masking, of[k]))
    masking_server = host(server, masking, of[SERVER])

    def reset(opening: Sequence[Message]) -> Sequence[Message]:
        masking_server.begin(opening)
        return requests

    masked = replace(parties, clients=clients, server=masking_server, opening=requests)
    gather = parties.gather
    if gather is not None:
        # the model is with the wrapped parties
        masked = replace(masked, gather=lambda *masked_parties: gather(parties.clients, server))
    if parties.checkpointed is not None:
        masked = replace(masked, checkpointed=MaskedCheckpoints(parties.checkpointed, reset))
    return masked
