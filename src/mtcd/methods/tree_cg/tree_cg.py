"""Conjugate gradients on a spanning tree: a textbook baseline, decentralised, without a step size.

    g_k = X_k^T loss'(Z) + r'(theta_k) at every client;   sum_k X_k g_k goes up the tree
    (a, b) = argmin of f(theta + a g + b p) at the root;  a, b and X p_new go down the tree
    p_k <- a g_k + b p_k,   theta_k <- theta_k + p_k,   Z <- Z + X p

For squared loss this is the method of conjugate gradients; for other smooth losses, its form as a
minimisation over the last direction and the new gradient. An iteration takes 2(K - 1) messages of
one number per sample and output and a few more: up the regulariser's inner products of theta, g and
p, down a and b. Not for l1: f must be smooth.

Nothing but the sum of a subtree goes up. In a federation all clients are needed in every iteration,
so they wait for one that is down, and stop at the same iteration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Protocol, runtime_checkable

import numpy as np

from mtcd.core.arrays import Array
from mtcd.core.checks import check_whole
from mtcd.core.errors import ConfigError, WireError
from mtcd.methods.messages import Messages
from mtcd.methods.method import METHODS, Method, check_connected
from mtcd.methods.prices import Prices
from mtcd.methods.subspace import best_weights
from mtcd.network.spanning import SpanningTree, spanning_tree
from mtcd.network.topology import Network
from mtcd.protocol.codec.fields import Row
from mtcd.protocol.codec.limits import Bounds
from mtcd.protocol.codec.payloads import Aggregate, Iteration, Payload, payload
from mtcd.protocol.ledger.costs import Sizes
from mtcd.protocol.model import ClientModel, Problem, Theta
from mtcd.protocol.party import MONITOR, Begin, Client, Message, Part, Parties, Recovery, send
from mtcd.theory.stepsize import Smoothness, StepsizeRules

# the regulariser's inner products of theta, gradient and direction: a symmetric matrix by its upper
# triangle
UPPER = np.triu_indices(3)
# numbers in a message besides one per sample and output: on the way up, and on the way down
INNER_PRODUCTS, COEFFICIENTS = len(UPPER[0]), 2


@runtime_checkable
class GradientModel(ClientModel, Protocol):
    """The client model of tree-cg: one with a gradient."""

    def gradient(self, theta: Array, slope: Array) -> Array:
        """X_k^T slope + the gradient of the smooth part of r."""


@payload(12, "c>c c>itself")
@dataclass(frozen=True, slots=True)
class Summand(Payload):
    """Up the tree: X_k g_k, and the upper triangle of inner products, both summed over the clients
    below."""

    iteration: Iteration
    product: Aggregate
    inner: Annotated[Array, Row(INNER_PRODUCTS)]

    @property
    def floats(self) -> int:
        return self.product.size + self.inner.size

    def check(self, bounds: Bounds) -> None:
        if self.inner.size != INNER_PRODUCTS:
            raise WireError("inner", "does not have one number for each pair")


@payload(13, "c>c")
@dataclass(frozen=True, slots=True)
class Direction(Payload):
    """Down the tree: X p of the new direction p = a g + b p, and the weights a and b."""

    iteration: Iteration
    product: Aggregate
    weights: Annotated[Array, Row(COEFFICIENTS)]

    @property
    def floats(self) -> int:
        return self.product.size + self.weights.size

    def check(self, bounds: Bounds) -> None:
        if self.weights.size != COEFFICIENTS:
            raise WireError("weights", "are not one number for each direction")


@METHODS.register("tree-cg")
@dataclass(frozen=True)
class TreeCG(Method):
    """Conjugate gradients, summed up and sent down a spanning tree of the network.

    An anchor for smooth objectives (no l1) on connected networks. An iteration takes 2(K - 1)
    messages. There is no step size: each step is the minimum over a plane.

    Parameters
    ----------
    degree : int, default 4
        The most neighbours of a client in the tree, which is otherwise that of shortest paths from
        a centre of the network. On a well connected network that one is a star, whose root would be
        a server in all but name. Where the network has no such tree, a client may have more.

    Examples
    --------
    >>> import mtcd
    >>> data = mtcd.synthetic("ridge", samples=40, features=6, clients=3)
    >>> mtcd.train(data, mtcd.Glm("ridge"), "path", mtcd.TreeCG(), mtcd.Stop(gap=1e-8)).status
    'converged'
    """

    degree: int = 4

    stepsize = None
    local_updates = 1
    batch = None
    gradient_steps = False
    has_server = False

    def __post_init__(self) -> None:
        check_whole("method.degree", self.degree, least=2)

    @property
    def kind(self) -> str:
        return "tree-cg"

    def describe(self) -> str:
        return "Tree-CG"

    def tree(self, network: Network) -> SpanningTree:
        """The tree: the same for every party."""
        return spanning_tree(network, self.degree)

    def notes(self, network: Network) -> tuple[str, ...]:
        found = self.tree(network).degree if network.connected else 0
        if found <= self.degree:
            return super().notes(network)
        exceeded = (
            f"tree-cg: a client has {found} neighbours in the tree, as the search found none with "
            f"at most {self.degree} (method.degree) on this network."
        )
        return (*super().notes(network), exceeded)

    def with_stepsize(self, stepsize: float) -> TreeCG:
        return self  # it has none

    def stepsize_rules(self, smoothness: Smoothness) -> StepsizeRules:
        raise ConfigError("tree-cg has no step size: each step is the best one in its plane.")

    def prices(self, network: Network, tokens: int = 1) -> Prices:
        # Along each link of the tree once up and once down.
        return Prices(hops=2 * (network.size - 1))

    def check(self, network: Network, problem: Problem | None = None) -> None:
        check_connected(network, "tree-cg")
        if network.changes:
            raise ConfigError(
                "network.changes: tree-cg sums over all clients in every iteration, along one "
                "tree. "
                "Leave the changes out, or use mtcd, stcd or svfl."
            )

        if problem is not None and problem.nonsmooth:
            raise ConfigError(
                "model.l1: tree-cg needs a smooth objective. Set l1 to 0, or use stcd with walk: "
                "tour and "
                "acceleration: momentum, which copes with l1."
            )

    def messages(self, network: Network, seed: int, samples: int, outputs: int = 1) -> Messages:
        return TreeMessages(self, network, seed, samples, outputs)

    def parties(self, problem: Problem, network: Network, seed: int) -> Parties:
        self.check(network, problem)
        tree, clients = self.tree(network), []
        for k in range(network.size):
            model = problem.client(k)
            if not isinstance(model, GradientModel):
                raise ConfigError(
                    "tree-cg trains linear models only: use mtcd, stcd or svfl for this one."
                )
            clients.append(TreeClient(k, model, tree))
        return Parties(clients, None, [Message(k, k, Begin()) for k in range(network.size)])


class TreeMessages(Messages):
    """The messages of Tree-CG: summands go up the tree, directions come down."""

    @property
    def sizes(self) -> Sizes:
        """Of messages between clients the mean: as many go up as down."""
        # Inner products go up with the sums, and the two coefficients of a step come down.
        floats = self.samples * self.outputs
        return Sizes(floats, floats, floats + (INNER_PRODUCTS + COEFFICIENTS) / 2)

    def declared(self, general: Bounds) -> Bounds:
        return replace(
            general,
            kinds=frozenset({Begin, Summand, Direction, Part}),
            server=False,
        )


class TreeClient(Client):
    """Client k of the tree: adds its summand to those of its children, and forwards the directions
    of the root."""

    state_fields = ("theta", "direction", "aggregate", "product", "iteration", "gradient", "heard")
    recovery = Recovery.IN_STEP

    def __init__(self, number: int, model: GradientModel, tree: SpanningTree) -> None:
        self.number, self.model = number, model
        self.parent, self.children = tree.parents[number], tree.children[number]
        self.neighbours = [k for k in (self.parent, *self.children) if k is not None]
        self.theta = model.initial()
        self.gradient = np.zeros_like(self.theta)
        self.direction = np.zeros_like(self.theta)
        self.aggregate = model.represent(self.theta)  # zeros
        self.product = np.zeros_like(self.aggregate)  # X p of the last direction
        self.iteration = 0
        self.heard: dict[int, Summand] = {}

    def receive(self, message: Message) -> Sequence[Message]:
        match message.payload:
            case Summand() as summand:
                self._check(message, summand.iteration, self.children)
                return self.add(message.sender, summand)
            case Direction() as direction:
                self._check(message, direction.iteration, (self.parent,))
                return self.take(direction)
        return self.begin()

    def _check(self, message: Message, iteration: int, senders: Sequence[int | None]) -> None:
        """Refuse what no client that follows the protocol sends: sums come from children,
        directions from the parent, and both belong to this iteration."""
        if message.sender not in senders:
            raise WireError("sender", "is not the neighbour in the tree that may send this")
        if iteration != self.iteration:
            raise WireError("iteration", "is not the one that this client is in")

    def begin(self) -> Sequence[Message]:
        """The previous iteration is complete: report to the monitor, and start the next."""
        part = Message(self.number, MONITOR, Part(self.iteration, self.theta))
        self.gradient = self.model.gradient(self.theta, self.model.fit.gradient(self.aggregate))
        vectors = (self.theta, self.gradient, self.direction)
        inner = np.array(
            [
                self.model.penalty_product(vectors[i], vectors[j])
                for i, j in zip(*UPPER, strict=True)
            ]
        )
        own = Summand(self.iteration, self.model.represent(self.gradient), inner)
        return [part, *self.add(self.number, own)]

    def add(self, sender: int, summand: Summand) -> Sequence[Message]:
        """When this client and its children have contributed, the sum goes up; at the root, a
        direction goes down."""
        self.heard[sender] = summand
        if len(self.heard) <= len(self.children):
            return []
        # in this order, whatever that of arrival
        parts = [self.heard[k] for k in (self.number, *self.children)]
        self.heard = {}
        product = np.sum([part.product for part in parts], axis=0)
        inner = np.sum([part.inner for part in parts], axis=0)
        if self.parent is None:
            return self.take(self.best_direction(product, inner))
        summed = Summand(self.iteration, product, inner)
        return [send(self.number, self.parent, summed)]

    def best_direction(self, product: Array, inner: Array) -> Direction:
        """At the root: the minimum of f over the plane of the gradient and the last direction."""
        gram = np.zeros((3, 3))
        gram[UPPER] = inner
        gram.T[UPPER] = inner
        weights = best_weights(self.model.fit, self.aggregate, (product, self.product), gram)
        return Direction(self.iteration, weights[0] * product + weights[1] * self.product, weights)

    def take(self, found: Direction) -> Sequence[Message]:
        """Move along the direction, and forward it to the children."""
        a, b = found.weights
        self.direction = a * self.gradient + b * self.direction
        self.theta = self.theta + self.direction
        self.aggregate = self.aggregate + found.product
        self.product = found.product
        self.iteration += 1
        below = [send(self.number, child, found) for child in self.children]
        return [*below, Message(self.number, self.number, Begin())]

    def earliest_stop(self, clients: int) -> int:
        """The iteration after the next: the next one ends by a sum and a direction that go over
        every link of the tree behind the proposal."""
        return self.iteration + 2

    def parameters(self) -> Theta:
        """theta_k of the last iteration that this client has finished."""
        return self.theta
