"""DCPA: the decentralised primal-dual baseline. Every client sends to all its neighbours in every
iteration.

    min over w of  g(sum_k X_k w_k) + sum_k r(w_k)

Client k holds w_k, its own copy y_k of the dual variable (one number per sample) and a correction
x_k that makes the copies agree. The authors' text was not available to us: these are two
reconstructions that both reach the optimum. c = mu_y/K, A are Metropolis weights, M = (I - A)/2, L
is the graph Laplacian.

    (B)  w <- prox(w - mu_w X^T y);   psi = y + mu_y X w + x
         x <- x - (M psi)_k;          y <- prox_{c g*}(psi - (M psi)_k)
    (A)  w+ as above;                 x+ = x - mu_x (L y)_k
         y <- prox_{c g*}(y + mu_y (X (2w+ - w) + 2x+ - x))

Where r is not strongly convex (B) takes 2w+ - w for w too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
import scipy

from mtcd.core.arrays import Array
from mtcd.core.checks import check_number
from mtcd.core.errors import ConfigError, check_known
from mtcd.methods.messages import Messages
from mtcd.methods.method import METHODS, Method, Stepsize, check_connected, resolved_stepsize
from mtcd.methods.prices import Prices
from mtcd.network.spectrum import adjacency, laplacian
from mtcd.network.topology import Network
from mtcd.protocol.codec.limits import Bounds
from mtcd.protocol.codec.payloads import Aggregate, Iteration, Payload, payload
from mtcd.protocol.model import Problem
from mtcd.protocol.party import (
    MONITOR,
    Begin,
    Message,
    Part,
    Parties,
    Recovery,
    RoundClient,
    Rounds,
    send,
)
from mtcd.theory.stepsize import Smoothness, StepsizeRules, primal_dual_limit

VARIANTS = ("B", "A")


@runtime_checkable
class DualModel(Protocol):
    """The client model of DCPA: linear representations, and a loss with a dual."""

    strongly_convex: bool

    def initial(self) -> Array:
        """w_k at the start."""

    def represent(self, theta: Array) -> Array:
        """X_k w_k, the representation of client k: one number per sample."""

    def primal_step(self, theta: Array, dual: Array, mu: float) -> Array:
        """w_k after a proximal gradient step along X_k^T y."""

    def dual_prox(self, v: Array, c: float) -> Array:
        """prox of c g* at v."""


@payload(9, "c>c c>itself")
@dataclass(frozen=True, slots=True)
class Offer(Payload):
    """The vector that a client sends to its neighbours in an iteration."""

    iteration: Iteration
    vector: Aggregate

    @property
    def floats(self) -> int:
        return self.vector.size


@METHODS.register("dcpa")
@dataclass(frozen=True)
class DCPA(Method):
    """The decentralised baseline: in every iteration all neighbours exchange N numbers per class.

    The update is that of the module ``mtcd.methods.dcpa``, with the paper's symbols.

    Parameters
    ----------
    stepsize : float or 'auto', default 'auto'
        mu_w, the step size of the parameters; 'auto' takes it from the smoothness of the problem.
    dual_stepsize : float, optional
        mu_y; that of the parameters unless given.
    consensus_stepsize : float, optional
        mu_x, of variant A only.
    variant : 'B' or 'A', default 'B'
        Which of the two variants in the module.

    Examples
    --------
    >>> import mtcd
    >>> mtcd.DCPA(stepsize=0.1).variant
    'B'
    """

    stepsize: Stepsize = "auto"
    dual_stepsize: float | None = None
    consensus_stepsize: float | None = None
    variant: Literal["B", "A"] = "B"

    # one step per iteration, on all samples
    local_updates = 1
    batch = None
    gradient_steps = False
    has_server = False

    def __post_init__(self) -> None:
        self._check_local_settings()
        check_known(self.variant, VARIANTS, "method.variant:")
        for name in ("dual_stepsize", "consensus_stepsize"):
            if getattr(self, name) is not None:
                check_number(f"method.{name}", getattr(self, name), above=0)
        if self.variant == "B" and self.consensus_stepsize is not None:
            raise ConfigError(
                "method.consensus_stepsize (mu_x) belongs to variant A of dcpa: leave it out for B."
            )

    @property
    def kind(self) -> str:
        return "dcpa"

    def describe(self) -> str:
        shown = f"DCPA ({self.variant})"
        if self.stepsize != "auto":
            shown += f", μ_w={self.stepsize:g}"
        if self.dual_stepsize is not None:
            shown += f", μ_y={self.dual_stepsize:g}"
        return shown

    def with_stepsize(self, stepsize: float) -> DCPA:
        return replace(self, stepsize=stepsize)

    def stepsize_rules(self, smoothness: Smoothness) -> StepsizeRules:
        return StepsizeRules(primal_dual_limit(smoothness, self.dual_stepsize))

    def prices(self, network: Network, tokens: int = 1) -> Prices:
        # Every edge carries a vector each way in an iteration, as the paper charges it: 2|E|.
        return Prices(hops=2 * network.edges)

    def resolved_dual_stepsize(self) -> float:
        """mu_y, the step size of the dual: that of the parameters unless one is given."""
        if self.dual_stepsize is None:
            return resolved_stepsize(self)
        return self.dual_stepsize

    def weights(self, network: Network) -> scipy.sparse.csr_array:
        """The matrix by which offers are mixed: M in (B), mu_x L in (A)."""
        if self.variant == "B":
            # M = (I - A)/2: with the half, the eigenvalues of I - M lie between 0 and 1.
            difference = scipy.sparse.eye_array(network.size) - metropolis_weights(network)
            return scipy.sparse.csr_array(difference / 2)

        mu_x = self.consensus_stepsize
        # below 1/(mu_y * largest eigenvalue of L), which is at most twice the largest degree
        if mu_x is None:
            largest = max(1, *map(len, network.neighbours))
            mu_x = 1.0 / (4.0 * self.resolved_dual_stepsize() * largest)
        return scipy.sparse.csr_array(mu_x * laplacian(adjacency(network)))

    def check(self, network: Network, problem: Problem | None = None) -> None:
        check_connected(network, "dcpa")
        if network.changes:
            raise ConfigError(
                "network.changes: dcpa needs all clients in every iteration: its mixing weights "
                "depend on all of them. "
                "Leave the changes out, or use mtcd, stcd or svfl."
            )

    def messages(self, network: Network, seed: int, samples: int, outputs: int = 1) -> Messages:
        return OfferMessages(self, network, seed, samples, outputs)

    def parties(self, problem: Problem, network: Network, seed: int) -> Parties:
        self.check(network)
        weights = self.weights(network)
        role = {"B": ClientB, "A": ClientA}[self.variant]

        clients = []
        for k, near in enumerate(network.neighbours):
            model = problem.client(k)
            if problem.outputs != 1 or not isinstance(model, DualModel):
                raise ConfigError(
                    "dcpa trains models with one number per sample and a dual: not this one. Use "
                    "mtcd."
                )

            # read directly: 10,000 rows would take seconds
            row = slice(weights.indptr[k], weights.indptr[k + 1])
            own = dict(zip(weights.indices[row].tolist(), weights.data[row].tolist(), strict=True))
            clients.append(role(k, model, self, network.size, near, own))

        # An engine in this process may run a round of all clients at once, as one product with the
        # matrix.
        rounds = Rounds(clients, weights, messages=2 * network.edges, floats=problem.samples)
        return Parties(clients, None, [Message(k, k, Begin()) for k in range(network.size)], rounds)


class OfferMessages(Messages):
    """The messages of DCPA: a vector to each neighbour."""

    def declared(self, general: Bounds) -> Bounds:
        return replace(general, kinds=frozenset({Begin, Offer, Part}), server=False)


class DCPAClient(RoundClient):
    """Client k: sends a vector to its neighbours, and receives the weighted sum of all vectors of
    an iteration."""

    state_fields: ClassVar[tuple[str, ...]] = ("w", "finished", "y", "x", "iteration", "heard")
    recovery = Recovery.IN_STEP

    def __init__(
        self,
        number: int,
        model: DualModel,
        method: DCPA,
        clients: int,
        neighbours: Sequence[int],
        weights: Mapping[int, float],
    ) -> None:
        self.number, self.model, self.neighbours = number, model, neighbours
        # A client offers to itself too: its own vector is one of those that are mixed.
        self.sources = [*neighbours, number]
        self.weights = np.array([weights.get(j, 0.0) for j in self.sources])
        self.mu_w, self.mu_y = resolved_stepsize(method), method.resolved_dual_stepsize()
        self.c = self.mu_y / clients
        self.w = self.finished = model.initial()
        self.y = model.represent(self.w)  # zeros, one per sample
        self.x = self.y.copy()
        self.iteration = 0
        self.heard: dict[int, dict[int, Array]] = {}

    def receive(self, message: Message) -> Sequence[Message]:
        offer = message.payload
        if isinstance(offer, Begin):
            return self.begin()

        assert isinstance(offer, Offer)
        heard = self.heard.setdefault(offer.iteration, {})
        # Kept by iteration, as a neighbour may be ahead by one: it cannot start a second without
        # this client's offer.
        heard[message.sender] = offer.vector
        if offer.iteration > self.iteration or len(heard) < len(self.sources):
            return []  # a neighbour may be one iteration ahead

        # In the order of the sources, not of arrival: sums of floats depend on it.
        del self.heard[offer.iteration]
        self.take(self.weights @ np.stack([heard[j] for j in self.sources]))
        return self.begin()

    def begin(self) -> Sequence[Message]:
        """Report to the monitor, and start the next iteration. The offer to itself is not sent over
        a link."""
        # Before the next iteration begins: the report is of a finished one.
        part = Message(self.number, MONITOR, Part(self.iteration, self.finished))
        self.iteration += 1
        offer = Offer(self.iteration, self.offer())
        return [part, *(send(self.number, j, offer) for j in self.sources)]

    def earliest_stop(self, clients: int) -> int:
        """This client has sent no offer of the next iteration, so one that is d links away receives
        the proposal before it has finished d more."""
        return self.iteration + clients

    def parameters(self) -> Array:
        """w_k of the last iteration that was finished."""
        return self.finished


class ClientB(DCPAClient):
    """Variant (B): offers psi."""

    state_fields = (*DCPAClient.state_fields, "psi")
    psi: Array | None = None
    """The last offer; None before the first."""

    def offer(self) -> Array:
        old = self.w
        self.w = self.model.primal_step(old, self.y, self.mu_w)
        ahead = self.w
        # Extrapolation: for r that is not strongly convex (B) converges with 2w+ - w only.
        if not self.model.strongly_convex:
            ahead = 2 * self.w - old

        # In place: these vectors have a number per sample, and are formed in every iteration.
        psi = self.model.represent(ahead)
        psi *= self.mu_y
        psi += self.y
        psi += self.x
        self.psi = psi
        return psi

    def take(self, mixed: Array) -> None:
        assert self.psi is not None
        self.x -= mixed
        self.y = self.model.dual_prox(self.psi - mixed, self.c)
        # The step of w is of the same iteration as the mix, so it counts only now.
        self.finished = self.w


class ClientA(DCPAClient):
    """Variant (A): offers y; the weights hold mu_x."""

    def offer(self) -> Array:
        return self.y

    def take(self, mixed: Array) -> None:
        old_w, old_x = self.w, self.x
        self.w = self.finished = self.model.primal_step(old_w, self.y, self.mu_w)
        self.x = old_x - mixed
        towards = self.model.represent(2 * self.w - old_w) + 2 * self.x - old_x
        self.y = self.model.dual_prox(self.y + self.mu_y * towards, self.c)


def metropolis_weights(network: Network) -> scipy.sparse.csr_array:
    """A, symmetric and doubly stochastic: a_kj = 1/(1 + max(degree_k, degree_j)) for neighbours,
    the rest stays at k.

    >>> from mtcd.network.topology import make_network
    >>> metropolis_weights(make_network("path", ["a", "b", "c"])).toarray().round(2).tolist()
    [[0.67, 0.33, 0.0], [0.33, 0.33, 0.33], [0.0, 0.33, 0.67]]
    """
    # Known to client k alone: the degrees are those of its neighbours.
    edges = scipy.sparse.coo_array(adjacency(network), dtype=float)
    degrees = np.array([len(near) for near in network.neighbours])
    rows, columns = edges.coords
    # A weight that the larger degree decides is the same at both ends, so A is symmetric and keeps
    # the sum of what is mixed.
    edges.data[:] = 1.0 / (1 + np.maximum(degrees[rows], degrees[columns]))
    given = np.bincount(rows, weights=edges.data, minlength=network.size)
    return scipy.sparse.csr_array(edges + scipy.sparse.diags_array(1.0 - given))
