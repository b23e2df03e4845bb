"""Anchors: methods of the textbook whose sums go over a spanning tree, in plain NumPy.

Each iteration takes 2 (K - 1) messages of one number per sample and output: sums up the tree, the
result down. None shares raw rows. The few numbers beside the sums (inner products, weights) are
counted with them. The root knows the labels, Z and the sums it has seen, so that the minimum over a
few directions costs no further message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from benchmarks.panel.cases import Case
from mtcd.core.arrays import Array
from mtcd.models.glm.model import LinearProblem

MEMORY = 10
NEWTON_STEPS, HALVINGS = 30, 40
FORCING = 0.1
"""An outer step of Newton-CG ends when the residual of its linear system is at most this share."""
MOST_INNER = 200


@dataclass
class Spent:
    """What was sent so far."""

    clients: int
    numbers: int
    messages: int = 0
    floats: int = 0

    def sum_over_tree(self, beside: int) -> None:
        """One sum up the tree and its result down, with some numbers beside it."""
        self.messages += 2 * (self.clients - 1)
        self.floats += 2 * (self.clients - 1) * self.numbers + (self.clients - 1) * beside


@dataclass
class Objective:
    """f of a linear model with a ridge penalty, over all blocks at once."""

    problem: LinearProblem
    l2: float
    blocks: list[Array] = field(init=False)

    def __post_init__(self) -> None:
        self.blocks = [np.asarray(block) for block in self.problem.blocks]
        self.X = np.hstack(self.blocks)
        self.fit = self.problem.fit

    def start(self) -> Array:
        """theta = 0."""
        return np.zeros((self.X.shape[1], *self.problem.labels.shape[1:]))

    def value(self, Z: Array, theta: Array) -> float:
        """f."""
        return self.fit.objective(Z, self.l2 / 2 * float(np.sum(theta * theta)))

    def gradient(self, Z: Array, theta: Array) -> Array:
        """The derivative in theta."""
        return self.X.T @ self.fit.gradient(Z) + self.l2 * theta

    def bend(self, Z: Array) -> Array:
        """The second derivative of the loss at every sample; its bound, where it is no diagonal."""
        if Z.ndim > 1:
            return np.full(len(Z), self.fit.curvature)
        return np.asarray(self.fit.hessian_product(Z, np.ones_like(Z)))

    def block_solve(self, Z: Array, g: Array) -> Array:
        """The gradient of every block by the inverse of its own second derivative."""
        bend, at, solved = self.bend(Z), 0, []
        for X in self.blocks:
            width = X.shape[1]
            H = X.T @ (bend[:, None] * X) + self.l2 * np.eye(width)
            solved.append(np.linalg.solve(H, g[at : at + width]))
            at += width
        return np.concatenate(solved)


def lowest(f: Objective, Z: Array, theta: Array, ways: list[Array], images: list[Array]) -> Array:
    """The weights of the directions (with their images X d) at which f is least: Newton's method
    with halving."""
    sizes = [max(float(np.linalg.norm(image)), 1e-300) for image in images]
    V = np.stack([image.ravel() / size for image, size in zip(images, sizes, strict=True)], axis=1)
    D = np.stack([way.ravel() / size for way, size in zip(ways, sizes, strict=True)], axis=1)
    slope, G = f.l2 * (D.T @ theta.ravel()), f.l2 * (D.T @ D)
    w = np.zeros(len(ways))
    penalty = f.l2 / 2 * float(np.sum(theta * theta))

    def value(w: Array) -> float:
        return f.fit.objective(
            Z + (V @ w).reshape(Z.shape), penalty + float(slope @ w + w @ G @ w / 2)
        )

    at = value(w)
    for _ in range(NEWTON_STEPS):
        here = Z + (V @ w).reshape(Z.shape)
        g = V.T @ f.fit.gradient(here).ravel() + slope + G @ w
        curved = [f.fit.hessian_product(here, v.reshape(Z.shape)).ravel() for v in V.T]
        H = V.T @ np.stack(curved, axis=1) + G
        curve, axes = np.linalg.eigh(H)
        step = -axes @ ((axes.T @ g) / np.maximum(curve, 1e-12 * max(curve[-1], 1e-300)))
        share, lower = 1.0, value(w + step)
        for _ in range(HALVINGS):
            if lower < at:
                break
            share /= 2
            lower = value(w + share * step)
        if not lower < at:
            break
        gained, w, at = at - lower, w + share * step, lower
        if gained <= 1e-15 * abs(at):
            break
    return w / np.array(sizes)


def subspace(f: Objective, memory: int, jacobi: bool, spent: Spent) -> Iterator[float]:
    """f after every iteration: the minimum over the gradient, solved by blocks or not, and the last
    changes."""
    theta = f.start()
    Z = np.zeros_like(f.problem.labels, dtype=float)
    ways: list[Array] = []
    images: list[Array] = []
    yield f.value(Z, theta)
    while True:
        g = f.gradient(Z, theta)
        new = f.block_solve(Z, g) if jacobi else g
        all_ways, all_images = [new, *ways], [f.X @ new, *images]
        spent.sum_over_tree(beside=3 * len(all_ways))
        w = lowest(f, Z, theta, all_ways, all_images)
        way = np.asarray(sum(a * b for a, b in zip(w, all_ways, strict=True)))
        image = np.asarray(sum(a * b for a, b in zip(w, all_images, strict=True)))
        theta, Z = theta + way, Z + image
        ways, images = [way, *ways][:memory], [image, *images][:memory]
        yield f.value(Z, theta)


def newton_cg(f: Objective, spent: Spent) -> Iterator[float]:
    """f after every outer step of Newton's method, whose systems conjugate gradients solve, with
    the blocks as preconditioner. Every inner step is a sum over the tree."""
    theta = f.start()
    Z = np.zeros_like(f.problem.labels, dtype=float)
    yield f.value(Z, theta)
    while True:
        g = f.gradient(Z, theta)
        move, image = np.zeros_like(theta), np.zeros_like(Z)
        residual = -g
        solved = f.block_solve(Z, residual)
        p, rho = solved, float(np.sum(residual * solved))
        enough = FORCING * np.sqrt(max(rho, 0.0))
        for _ in range(MOST_INNER):
            Xp = f.X @ p
            spent.sum_over_tree(beside=4)
            Hp = f.X.T @ f.fit.hessian_product(Z, Xp) + f.l2 * p
            curved = float(np.sum(p * Hp))
            if not curved > 0:
                break
            a = rho / curved
            move, image, residual = move + a * p, image + a * Xp, residual - a * Hp
            solved = f.block_solve(Z, residual)
            rho, before = float(np.sum(residual * solved)), rho
            if np.sqrt(max(rho, 0.0)) <= enough:
                break
            p = solved + rho / before * p
        [share] = lowest(f, Z, theta, [move], [image])
        theta, Z = theta + share * move, Z + share * image
        yield f.value(Z, theta)


ANCHORS: dict[str, Callable[[Objective, Spent], Iterator[float]]] = {
    "tree: CG": lambda f, spent: subspace(f, 1, False, spent),
    "tree: memory 10": lambda f, spent: subspace(f, MEMORY, False, spent),
    "tree: memory 10, blocks": lambda f, spent: subspace(f, MEMORY, True, spent),
    "tree: Newton-CG, blocks": newton_cg,
}


def arrivals(
    case: Case, name: str, optimum: float, gaps: tuple[float, ...], most: int
) -> list[tuple[int, int] | None]:
    """Messages and floats of an anchor to each gap; None where ``most`` messages do not reach
    it."""
    problem = case.model.problem(case.data)
    f = Objective(problem, case.l2)
    spent = Spent(case.clients, f.problem.labels.size)
    found: list[tuple[int, int] | None] = []
    for value in ANCHORS[name](f, spent):
        while len(found) < len(gaps) and value - optimum <= gaps[len(found)] * abs(optimum):
            found.append((spent.messages, spent.floats))
        if len(found) == len(gaps) or spent.messages > most:
            break
    return found + [None] * (len(gaps) - len(found))
