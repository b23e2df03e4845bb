"""The problems: networks, numbers of clients, widths, designs of columns, losses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import networkx as nx
import numpy as np

import mtcd
from benchmarks.anchor import Rng, autoregressive, factors, independent
from mtcd.core.arrays import Array


def scaled(rng: Rng, N: int, d: int) -> Array:
    """Independent columns, each in a unit of its own."""
    return rng.standard_normal((N, d)) * np.exp(rng.uniform(-3, 3, d))


def raw(rng: Rng, N: int, d: int) -> Array:
    """As a table of a lender has them: amounts, rates, ages and flags, none with a mean of 0."""
    kinds = [
        np.exp(9.0 + 0.8 * rng.standard_normal((N, d))),
        0.1 + 0.05 * rng.random((N, d)),
        40.0 + 12.0 * rng.standard_normal((N, d)),
        (rng.random((N, d)) < 0.3).astype(float),
    ]
    X = np.empty((N, d))
    for j in range(d):
        X[:, j] = kinds[j % len(kinds)][:, j]
    return X


DESIGNS: dict[str, Callable[[Rng, int, int], Array]] = {
    "independent": independent,
    "AR": autoregressive,
    "factors": factors,
    "scaled": scaled,
    "raw": raw,
}


def caterpillar(K: int) -> nx.Graph:
    """A path, with a leaf on each of its clients."""
    spine = nx.path_graph((K + 1) // 2)
    for leaf in range(len(spine), K):
        spine.add_edge(leaf, leaf - len(spine) // 2 - K % 2)
    return nx.convert_node_labels_to_integers(spine)


GRAPHS: dict[str, Callable[[int], nx.Graph]] = {
    "path": nx.path_graph,
    "star": lambda K: nx.star_graph(K - 1),
    "tree": lambda K: nx.random_labeled_tree(K, seed=3),
    "caterpillar": caterpillar,
    "cycle": nx.cycle_graph,
    "grid": lambda K: nx.convert_node_labels_to_integers(nx.grid_2d_graph(4, K // 4)),
    "complete": nx.complete_graph,
    "random": lambda K: nx.connected_watts_strogatz_graph(K, 4, 0.5, seed=1),
}


def labels(loss: str, score: Array, rng: Rng) -> Array:
    """For a score with noise in it."""
    score = 2 * (score - score.mean()) / score.std()
    if loss in ("logistic", "squared-hinge"):
        return (rng.random(len(score)) < 1 / (1 + np.exp(-score))).astype(float)
    if loss == "multinomial":
        return np.digitize(score + 0.5 * rng.standard_normal(len(score)), [-1, 1]).astype(float)

    y = score + 0.1 * rng.standard_normal(len(score))
    if loss == "huber":
        y += 3 * (rng.random(len(score)) < 0.1) * rng.standard_cauchy(len(score))
    return y


@dataclass(frozen=True)
class Case:
    """A problem on a network.

    Parameters
    ----------
    graph
        A name in ``GRAPHS``.
    clients
        K.
    design
        A name in ``DESIGNS``.
    width
        d/N.
    loss
        The loss, by its name in ``mtcd.Glm``.
    l2
        The penalty.
    samples
        N.
    """

    graph: str
    clients: int
    design: str
    width: float
    loss: str
    l2: float
    samples: int = 200

    def __str__(self) -> str:
        return (
            f"{self.graph} {self.clients}, {self.design}, d/N={self.width:g}, "
            f"{self.loss} {self.l2:g}"
        )

    @cached_property
    def data(self) -> mtcd.VerticalData:
        """The table. Its numbers follow from the case, not from its place in the list."""
        rng = np.random.default_rng([self.samples, self.clients, int(100 * self.width)])
        columns = max(self.clients, int(self.width * self.samples))
        X = DESIGNS[self.design](rng, self.samples, columns)
        beta = rng.standard_normal(columns) / (X.std(axis=0) + 1e-12)
        return mtcd.split(X, labels(self.loss, X @ beta, rng), clients=self.clients)

    @property
    def model(self) -> mtcd.Glm:
        """The model."""
        kind = "linear" if self.loss == "ridge" else self.loss
        return mtcd.Glm(kind, l2=self.l2)

    @property
    def network(self) -> nx.Graph:
        """The network."""
        graph = GRAPHS[self.graph](self.clients)
        return nx.relabel_nodes(graph, dict(enumerate(self.data.clients)))


CASES = (
    Case("path", 8, "independent", 0.3, "ridge", 1.0),
    Case("star", 20, "independent", 1.0, "ridge", 1.0),
    Case("tree", 20, "independent", 3.0, "ridge", 10.0),
    Case("path", 40, "AR", 0.3, "ridge", 0.1),
    Case("grid", 20, "AR", 1.0, "ridge", 1.0),
    Case("complete", 20, "AR", 3.0, "ridge", 10.0),
    Case("star", 40, "AR", 0.3, "ridge", 1.0),
    Case("path", 20, "factors", 0.3, "ridge", 1.0),
    Case("caterpillar", 20, "factors", 1.0, "ridge", 10.0),
    Case("random", 20, "factors", 3.0, "ridge", 10.0),
    Case("path", 8, "scaled", 0.3, "ridge", 0.1),
    Case("path", 40, "scaled", 0.3, "ridge", 0.1),
    Case("cycle", 20, "scaled", 1.0, "ridge", 1.0),
    Case("tree", 20, "scaled", 2.5, "ridge", 10.0),
    Case("path", 8, "raw", 0.3, "ridge", 1.0),
    Case("path", 8, "independent", 0.3, "logistic", 1.0),
    Case("complete", 8, "independent", 3.0, "logistic", 1.0),
    Case("path", 8, "AR", 0.3, "logistic", 0.1),
    Case("star", 20, "AR", 1.0, "logistic", 1.0),
    Case("tree", 20, "factors", 1.0, "logistic", 1.0),
    Case("path", 20, "scaled", 0.3, "logistic", 0.1),
    Case("grid", 20, "scaled", 1.0, "logistic", 1.0),
    Case("path", 8, "raw", 0.3, "logistic", 1.0),
    Case("star", 20, "independent", 1.0, "huber", 1.0),
    Case("path", 20, "AR", 0.3, "huber", 1.0),
    Case("random", 20, "scaled", 0.3, "huber", 1.0),
    Case("path", 20, "factors", 1.0, "squared-hinge", 1.0),
    Case("caterpillar", 40, "scaled", 0.3, "squared-hinge", 1.0),
    Case("tree", 20, "factors", 0.3, "multinomial", 1.0),
    Case("cycle", 8, "AR", 1.0, "multinomial", 1.0),
    Case("path", 8, "scaled", 0.3, "multinomial", 1.0),
)
