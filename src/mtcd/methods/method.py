"""The base class of methods. A method holds settings and makes the parties, which hold the
state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeVar

from mtcd.core.checks import check_number, check_whole
from mtcd.core.errors import ConfigError, NetworkError
from mtcd.core.registry import Registry
from mtcd.methods.mtcd.schedule import Schedule, scheduled
from mtcd.models.splitnet.setup import SplitParties
from mtcd.network.topology import Network
from mtcd.privacy.masked.double_masks import SEED_WORDS
from mtcd.privacy.masked.fixed_point import NARROW, WIDE
from mtcd.privacy.masked.masked import masked
from mtcd.privacy.masked.pair_masks import MOST_PLACES
from mtcd.privacy.masked.parties import Masking, UploadBatches
from mtcd.privacy.masked.payloads import DOUBLE_MASKS, KEYS, MaskedToken, MaskedUpload
from mtcd.privacy.settings import DOUBLE_MASKED, DP, MASKED, PLAIN, Privacy
from mtcd.protocol.batches import Batches
from mtcd.protocol.codec.limits import Bounds, SplitShapes
from mtcd.protocol.gathering import Fresh
from mtcd.protocol.ledger.costs import UNIT, Costs, Sizes
from mtcd.protocol.model import Problem, SplitProblem
from mtcd.protocol.party import OnDemand, Parties, Party
from mtcd.protocol.transports.registry import DEFAULT, TRANSPORTS, make_transport
from mtcd.theory.stepsize import Smoothness, StepsizeRule

FEWEST_MASKED = 3
"""Clients without which a sum would reveal a single one to another."""
Stepsize = float | Literal["auto"]
P = TypeVar("P", bound=Party)


class Method(ABC):
    """A training method. Subclasses are frozen dataclasses of settings."""

    stepsize: Stepsize | None
    """None if the method has no step size."""
    local_updates: int
    batch: int | None
    schedule: Schedule | None = None
    has_server = True
    """Whether the parties sync at a server."""
    transport: str = DEFAULT
    """The form in which aggregates travel, see ``mtcd.protocol.transports``."""
    aggregation: str = PLAIN
    """Whether the server receives what it sums as it is, or masked: see ``mtcd.privacy.masked``."""
    warm_starts = False
    """Whether training may start from parameters other than 0."""
    gradient_steps = True
    """Whether clients take gradient steps of their own, which 2/L_k limits."""

    noisy = False
    """Whether gradients have noise for differential privacy."""
    steps = "each step is the best one in the plane of gradient and last direction"
    """How a method without a step size makes its steps."""

    @property
    def chooses_steps(self) -> bool:
        """Whether the method chooses step sizes and numbers of local updates during training."""
        return False

    @property
    @abstractmethod
    def kind(self) -> str:
        """Its name in configs and tables."""

    @abstractmethod
    def with_stepsize(self, stepsize: float) -> Method:
        """The same method with this step size."""

    def with_resolved_stepsize(self, stepsize: float) -> Method:
        """The same method with the step size that 'auto' resolves to."""
        return self.with_stepsize(stepsize)

    @property
    def hops_per_sync(self) -> int:
        """Iterations, as histories count them, from one sync (or round) to the next."""
        return 1

    def token_clusters(self, network: Network, seed: int) -> tuple[tuple[int, ...], ...] | None:
        """The cluster of each token, or None where tokens roam everywhere, or there are none."""
        return None

    def epoch(self, samples: int) -> int:
        """Iterations per epoch, a pass over all samples; with the full batch, iterations per
        sync."""
        batches = Batches(
            samples, self.batch, 0
        )  # no mutants: the seed decides on their order alone
        return batches.per_epoch * self.hops_per_sync

    @abstractmethod
    def parties(self, problem: Problem, network: Network, seed: int) -> Parties:
        """The parties of this method on this problem and network, ready to start."""

    def split(self, problem: SplitProblem, network: Network, seed: int) -> SplitParties:
        """The parties of this method for a split network."""
        raise ConfigError(
            f"{self.kind} trains linear models only: use mtcd, stcd or svfl for split networks."
        )

    def bounds(
        self,
        run: str,
        network: Network,
        seed: int,
        samples: int,
        outputs: int,
        split: SplitShapes | None = None,
    ) -> Bounds:
        """The bounds of the messages of a run, which every party computes from the agreed
        settings."""
        length = Batches(samples, self.batch, seed).length
        shape = (length,) if outputs == 1 and split is None else (length, outputs)
        numbers = None if self.transport == DEFAULT else TRANSPORTS[self.transport].dtype
        general = Bounds(run, network.size, frozenset(), shape, split=split, numbers=numbers)
        bounds = self.message_bounds(general, network, seed, samples)
        if self.aggregation == PLAIN:
            return bounds
        if self.aggregation == DOUBLE_MASKED:
            kinds = bounds.kinds - {Fresh} | DOUBLE_MASKS | KEYS
            return replace(bounds, kinds=kinds, masks=self._opened_words(network))
        upload = MaskedUpload if Fresh in bounds.kinds else MaskedToken
        return replace(bounds, kinds=bounds.kinds - {Fresh} | {upload} | KEYS)

    def _opened_words(self, network: Network) -> int:
        """The most words of seeds, or of numbers of clients, in a message about double masks."""
        return 2 * SEED_WORDS * network.size

    def check_split(self) -> None:
        """Reject settings that are for linear models."""
        if self.aggregation == DOUBLE_MASKED:
            raise ConfigError(
                "privacy.aggregation: double-masked is for linear models: the parties of a split "
                "network wait for one "
                "that is down. Use masked."
            )
        if self.transport != DEFAULT:
            raise ConfigError("method.transport: split networks always send float32: leave it out.")

    @property
    def reads_objective(self) -> bool:
        """Whether f follows from a received aggregate."""
        return self.batch is None and TRANSPORTS[self.transport].reads_objective

    def equip(
        self,
        parties: Parties,
        holders: Callable[[int], Sequence[int]] | None = None,
        upload_batches: UploadBatches | None = None,
    ) -> Parties:
        """The same parties, each with its own transport, and with masks, for which the others are:
        see ``Masking``."""
        if self.aggregation != PLAIN:
            server: Any = parties.server
            syncs = upload_batches if self.aggregation == DOUBLE_MASKED else None
            parties = masked(
                parties, Masking(len(parties.clients), WIDE, server.aggregate, holders, syncs)
            )
        if self.transport == DEFAULT:
            return parties

        def equipped(party: P) -> P:
            party.transport = make_transport(self.transport)
            return party

        clients = OnDemand(len(parties.clients), lambda k: equipped(parties.clients[k]))
        server = None if parties.server is None else equipped(parties.server)
        return replace(parties, clients=clients, server=server)

    def message_bounds(self, general: Bounds, network: Network, seed: int, samples: int) -> Bounds:
        """The general bounds of a run, with the payloads that this method sends and the limits of
        their fields."""
        raise ConfigError(
            f"{self.kind} does not declare its messages: it trains in one process only."
        )

    def check_network(self, network: Network) -> None:
        """Reject a network on which the method cannot run."""
        if network.changes and self.batch is not None:
            raise ConfigError(
                f"network.changes: with method.batch {self.kind} needs every client in every "
                f"iteration, for its "
                "representation on the next batch. Leave batch out, or the changes."
            )
        if self.aggregation != PLAIN and network.changes:
            raise ConfigError(
                "privacy.aggregation: masks cancel if all clients take part: leave network.changes "
                "out."
            )
        least = FEWEST_MASKED + (self.aggregation == DOUBLE_MASKED)
        if self.aggregation != PLAIN and not least <= network.size <= MOST_PLACES:
            without = "" if self.aggregation == MASKED else "also without one client, "
            raise ConfigError(
                f"privacy.aggregation: {self.aggregation} needs at least {least} clients and at "
                f"most {MOST_PLACES}, "
                f"but there are {network.size}: {without}in a sum of two, each client would find "
                f"the other's part."
            )

    def check_problem(self, problem: Problem) -> None:  # noqa: B027 - most methods have nothing to refuse
        """Reject a problem that the method cannot solve."""

    def most_iterations(self, problem: Problem) -> int | None:
        """The iterations after which a training must end, whatever the stop rule; None: it need
        not."""
        return None

    def with_sizes(self, problem: Any) -> Method:
        """The same method for processes that have some blocks of this problem, and must know the
        sizes of all."""
        return self

    def sealed(self, dp: DP | None = None) -> Method:
        """The same training with encrypted tokens, and with differential privacy if ``dp`` is
        given."""
        raise ConfigError(
            f"privacy.mode: {self.kind} cannot train with sealed tokens. Use mtcd (the server "
            f"keeps the key) or stcd "
            "(the label holder does) with walk: tour."
        )

    def accepting(self, privacy: Privacy) -> Method:
        """The same training, sealed, with what ``privacy`` accepts to be revealed."""
        return self

    def masked(self, aggregation: str = MASKED) -> Method:
        """The same training with masked uploads, of which the server learns the sum."""
        raise ConfigError(
            f"privacy.aggregation: {self.kind} has no sums at a server that could be masked. Use "
            f"mtcd or svfl."
        )

    def _check_masked(self) -> None:
        if self.aggregation != PLAIN and self.transport != DEFAULT:
            raise ConfigError(
                f"privacy.aggregation: {self.aggregation} sends integers: leave method.transport: "
                f"{self.transport} out."
            )

    def notes(self, network: Network) -> tuple[str, ...]:
        """Notes for the user on the method on this network."""
        if self.aggregation == PLAIN:
            return ()
        return (
            f"Masked sums hold numbers below {WIDE.largest / network.size:.2g} per client in steps "
            f"of 2^-32 (split "
            f"networks: {NARROW.largest / network.size:.2g}, 2^-18). Larger ones count as "
            f"divergence.",
        )

    def end_notes(
        self,
        network: Network,
        iterations: int,
        most: int | None = None,
        objectives: Sequence[tuple[int, float]] = (),
    ) -> tuple[str, ...]:
        """Notes for the user on a training that has ended.

        Args:
            network: The network.
            iterations: The iterations that were begun.
            most: ``most_iterations``, or None.
            objectives: Iterations, in order, and f after each of them, as far as they are known.
        """
        return ()

    @abstractmethod
    def describe(self) -> str:
        """The settings in a few words, for legends and tables."""

    @abstractmethod
    def stepsize_limit(self, smoothness: Smoothness) -> StepsizeRule:
        """The largest step size with a guarantee: that of the theorems where they apply."""

    def auto_stepsize(self, smoothness: Smoothness) -> StepsizeRule:
        """The step size for 'auto': the limit, or a larger one that is known to be safe."""
        return self.stepsize_limit(smoothness)

    @abstractmethod
    def iteration_cost(
        self, network: Network, tokens: int, costs: Costs, sizes: Sizes = UNIT
    ) -> float:
        """The cost of one iteration (a sync, a round, an exchange; a hop of stcd), as the paper
        charges it.

        ``sizes`` are those of its messages, for costs per float.
        """

    def opening_cost(self, network: Network, costs: Costs) -> float:
        """The cost of opening double masks at a sync, where no client is down; 0 without them."""
        if self.aggregation != DOUBLE_MASKED:
            return 0.0
        K = network.size
        return K * (costs.with_server(2 * K) + costs.with_server(self._opened_words(network)))

    def sizes(self, samples: int, outputs: int, network: Network, seed: int) -> Sizes:
        """The sizes of the messages of a linear model, without the few numbers that acceleration
        adds."""
        return Sizes.same(Batches(samples, self.batch, seed).length * outputs)

    def _check_local_settings(self) -> None:
        if isinstance(self.stepsize, str) and self.stepsize != "auto":
            raise ConfigError(
                f"method.stepsize must be a number or 'auto', but is {self.stepsize!r}."
            )
        if self.stepsize != "auto":
            check_number("method.stepsize", self.stepsize, above=0)
        check_whole("method.local_updates", self.local_updates)
        if self.batch is not None:
            check_whole("method.batch", self.batch)
        TRANSPORTS[self.transport]  # refuses an unknown name
        if self.schedule is not None and not isinstance(self.schedule, Schedule):
            raise ConfigError(f"method.schedule must be a Schedule(...), but is {self.schedule!r}.")

    def stepsize_at(self, t: int, batches: Batches) -> float:
        """The step size of iteration t, by the schedule."""
        return scheduled(self.resolved_stepsize(), self.schedule, t, batches)

    def resolved_stepsize(self) -> float:
        """The step size as a number; 'auto' must be resolved before."""
        if self.stepsize is None:
            raise ConfigError(f"{self.kind} has no step size.")
        if isinstance(self.stepsize, str):
            raise ConfigError(
                "stepsize 'auto' is resolved by mtcd.train: give a number to use the method by "
                "itself."
            )
        return self.stepsize


METHODS: Registry[Callable[..., Method]] = Registry(
    Method, "mtcd.methods", "mtcd.methods", "method.kind: no method is called '{}';", functions=True
)
"""The class of each method, or a function that returns an instance. Its parameters are the keys of
``method`` in a config, except fields of a dataclass that are ``NOT_IN_CONFIG``."""
NOT_IN_CONFIG = {"config": False}


def with_privacy(method: Method, privacy: Privacy, split: bool) -> Method:
    """The method that trains with this privacy; ``split``: a split network."""
    if privacy.sealed and split:
        asked = (
            "privacy.mode: sealed"
            if privacy.dp is None
            else "privacy.dp, which needs privacy.mode: sealed,"
        )
        raise ConfigError(
            f"{asked} is for ridge and logistic models, whose gradients are linear in the token: a "
            f"split network "
            "cannot be trained under this encryption. Use model.kind: logistic, or leave privacy "
            "out; with svfl, or "
            "mtcd with method.batch, privacy: {aggregation: masked} hides what parties upload from "
            "the server."
        )
    if privacy.sealed:
        method = method.sealed(privacy.dp).accepting(privacy)
    return method if privacy.aggregation == PLAIN else method.masked(privacy.aggregation)


def check_connected(network: Network, kind: str) -> None:
    """Reject a disconnected network for a method without a server."""
    if not network.connected:
        apart = network.components[1][0]
        raise NetworkError(
            f"{kind} needs a connected network, but this one is in {len(network.components)} "
            f"pieces "
            f"(client {network.clients[apart]!r} cannot be reached from {network.clients[0]!r}). "
            "Add links, or use mtcd with a server: it works on any network."
        )


def resolve_stepsize(method: Method, smoothness: Smoothness) -> tuple[Method, tuple[str, ...]]:
    """The method with 'auto' replaced by a number, and a note with that number."""
    if method.stepsize != "auto":
        return method, ()
    rule = method.auto_stepsize(smoothness)
    return method.with_resolved_stepsize(rule.value), (
        f"stepsize auto: {rule.value:.4g}, which is {rule.reason}.",
    )
