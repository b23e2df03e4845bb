"""DCPA with all clients' duals as the rows of one matrix. Tests compare the parties of
``methods/dcpa`` with it."""

from __future__ import annotations

import networkx as nx
import numpy as np

from mtcd.core.arrays import Array
from mtcd.methods.dcpa.dcpa import DCPA
from mtcd.methods.method import resolved_stepsize
from mtcd.models.glm.model import LinearProblem
from mtcd.models.glm.reference import Theta, zeros
from mtcd.network.topology import Network


def dcpa(problem: LinearProblem, network: Network, method: DCPA, T: int) -> list[Theta]:
    """The iterates w^0, ..., w^T, each a list of the blocks of all clients."""
    K, mu_w, mu_y = network.size, resolved_stepsize(method), method.resolved_dual_stepsize()
    largest = max(1, *dict(network.graph.degree).values())
    mu_x = method.consensus_stepsize or 1 / (4 * mu_y * largest)
    iterates = [zeros(problem)]
    y = np.zeros((K, problem.samples))
    x = np.zeros((K, problem.samples))
    for _ in range(T):
        old = iterates[-1]

        new = [_primal_step(problem, k, old[k], y[k], mu_w) for k in range(K)]
        iterates.append(new)
        ahead = [2 * new[k] - old[k] for k in range(K)]
        if method.variant == "B":
            for k, penalty in enumerate(problem.penalties):
                if penalty.l2 > 0 and not penalty.free:  # strongly convex
                    ahead[k] = new[k]

            psi = y + mu_y * _products(problem, ahead) + x
            mixed = (np.eye(K) - _metropolis(network.graph)) @ psi / 2
            x = x - mixed
            y = psi - mixed
        else:
            x_new = x - mu_x * nx.laplacian_matrix(network.graph) @ y
            y = y + mu_y * (_products(problem, ahead) + 2 * x_new - x)
            x = x_new

        y = np.stack([problem.loss.dual_prox(row, problem.labels, mu_y / K) for row in y])
    return iterates


def _primal_step(problem: LinearProblem, k: int, w: Array, y: Array, mu: float) -> Array:
    gradient = np.asarray(problem.blocks[k].T @ y)
    problem.penalties[k].add_gradient(w, gradient)
    new = w - mu * gradient
    problem.penalties[k].prox(new, mu)
    return np.asarray(new)


def _products(problem: LinearProblem, w: Theta) -> Array:
    return np.stack([X @ w_k for X, w_k in zip(problem.blocks, w, strict=True)])


def _metropolis(graph: nx.Graph) -> Array:
    """Weights 1/(1 + larger degree) along edges; what is missing to 1 stays at the client."""
    A = np.zeros((len(graph), len(graph)))
    for k, j in graph.edges:
        A[k, j] = A[j, k] = 1 / (1 + max(graph.degree[k], graph.degree[j]))
    return A + np.diag(1 - A.sum(axis=1))
