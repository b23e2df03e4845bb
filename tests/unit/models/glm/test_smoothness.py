"""Smoothness constants against singular values of the stacked matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from mtcd.models.glm import smoothness
from mtcd.models.glm.smoothness import (
    MARGIN,
    block_smoothness,
    certified_top,
    krylov_bound,
    overall_smoothness,
    sample_norm,
)
from mtcd.models.losses.logistic import Logistic
from mtcd.models.losses.squared import Squared
from waiting import computing_at_most


def blocks_of(X: Any, clients: int, sparse: bool = False) -> list[Any]:
    parts = np.array_split(X, clients, axis=1)
    return [sp.csr_array(part) if sparse else np.asfortranarray(part) for part in parts]


def sigma(X: Any) -> float:
    return float(np.linalg.svd(X, compute_uv=False)[0] ** 2)


def check(found: float, truth: float) -> None:
    assert found == pytest.approx(truth, rel=1e-6)
    assert found >= truth * (1 - 1e-10)  # a step size of 1/L must never be too long


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("shape", [(30, 12), (12, 30), (200, 90), (90, 200), (1, 5), (5, 1)])
def test_against_singular_values(shape: tuple[int, int], sparse: bool) -> None:
    X = np.random.default_rng(1).standard_normal(shape) * (
        np.random.default_rng(2).random(shape) < 0.5
    )
    blocks = blocks_of(X, min(3, shape[1]), sparse)
    for found, block in zip(
        block_smoothness(blocks, Logistic(), 0.3), np.array_split(X, len(blocks), 1), strict=True
    ):
        check(found, 0.25 * sigma(block) + 0.3)
    check(overall_smoothness(blocks, Logistic(), 0.3), 0.25 * sigma(X) + 0.3)
    assert sample_norm(blocks) == pytest.approx((X**2).sum(axis=1).max())


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("shape", [(150, 90), (90, 150)])
def test_lanczos_on_large_sides(
    monkeypatch: pytest.MonkeyPatch, shape: tuple[int, int], sparse: bool
) -> None:
    monkeypatch.setattr(smoothness, "_DENSE_BLOCK", 10)
    monkeypatch.setattr(smoothness, "_DENSE_SPARSE", 10)
    X = np.random.default_rng(3).standard_normal(shape)
    blocks = blocks_of(X, 2, sparse)
    check(block_smoothness(blocks, Squared())[1], sigma(np.array_split(X, 2, 1)[1]))
    check(overall_smoothness(blocks[:1], Squared()), sigma(np.array_split(X, 2, 1)[0]))
    assert overall_smoothness(blocks, Squared()) == overall_smoothness(blocks, Squared())


def test_close_singular_values_and_rank_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smoothness, "_DENSE_BLOCK", 10)
    Q = np.linalg.qr(np.random.default_rng(4).standard_normal((120, 100)))[0]
    close = Q * np.linspace(1.0, 1.0001, 100)
    check(block_smoothness([close], Squared())[0], 1.0001**2)
    check(block_smoothness([np.ones((120, 100))], Squared())[0], 12000.0)


def test_zero_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    zero = np.zeros((80, 70))
    assert block_smoothness([zero], Squared(), 0.5).tolist() == [0.5]
    monkeypatch.setattr(smoothness, "_DENSE_BLOCK", 10)
    monkeypatch.setattr(smoothness, "_DENSE_SPARSE", 10)
    assert block_smoothness([zero, sp.csr_array(zero)], Squared(), 0.5).tolist() == [0.5, 0.5]
    assert overall_smoothness([zero, zero], Squared()) == 0.0
    monkeypatch.setattr(smoothness, "_CERTIFIED", 10)
    assert block_smoothness([zero, sp.csr_array(zero)], Squared(), 0.5).tolist() == [0.5, 0.5]


def test_many_small_clients_are_quick() -> None:
    X = np.asfortranarray(np.random.default_rng(5).standard_normal((200, 10_000)))
    blocks = [X[:, 5 * k : 5 * k + 5] for k in range(2000)]
    with computing_at_most(20):  # about 0.5 s; stacking per client would take minutes
        L = block_smoothness(blocks, Squared())
        overall = overall_smoothness(blocks, Squared())
    assert L.shape == (2000,)
    check(overall, float(np.linalg.eigvalsh(X @ X.T)[-1]))


def test_a_sparse_block_of_many_columns_does_without_all_eigenvalues(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X = sp.csr_array(sp.random(1500, 1000, 0.01, random_state=1))
    truth = float(np.linalg.eigvalsh((X.T @ X).toarray())[-1])

    def refused(_: Any) -> Any:
        raise AssertionError("all eigenvalues of a large sparse block: half of a training's time")

    monkeypatch.setattr(np.linalg, "eigvalsh", refused)
    for block in (X, X.T.tocsr()):  # tall and wide
        check(block_smoothness([block], Squared())[0], truth)


def hidden_top(size: int) -> tuple[Any, Any, float]:
    """A Gram matrix, and its product with vectors as Lanczos would see it from a start without the
    top eigenvector."""
    Q = np.linalg.qr(np.random.default_rng(6).standard_normal((size, size)))[0]
    values = np.linspace(0.0, 1.0, size)
    seen = (Q * values) @ Q.T
    return seen + 4.0 * np.outer(Q[:, -1], Q[:, -1]), lambda v: seen @ v, 5.0


def test_what_lanczos_misses_is_found_by_the_certificate() -> None:
    gram, product, truth = hidden_top(80)
    check(certified_top(product, gram), truth)


@pytest.mark.parametrize("spectrum", ["even", "one large", "crowded at the top", "rank one"])
@pytest.mark.parametrize("size", [30, 400])
def test_bound_for_matrices_too_large_to_factorise(spectrum: str, size: int) -> None:
    values = {
        "even": np.linspace(0.0, 3.0, size),
        "one large": np.append(np.ones(size - 1), 3.0),
        "crowded at the top": 3.0 - np.geomspace(1e-9, 1.0, size) + 1e-9,
        "rank one": np.append(np.zeros(size - 1), 3.0),
    }[spectrum]
    Q = np.linalg.qr(np.random.default_rng(7).standard_normal((size, size)))[0]
    bound = krylov_bound(lambda v: Q @ (values * (Q.T @ v)), size)
    assert 3.0 <= bound <= 3.0 / (1 - MARGIN) * (1 + 1e-12)


def test_blocks_too_large_to_factorise_take_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in ("_DENSE_BLOCK", "_DENSE_SPARSE", "_CERTIFIED"):
        monkeypatch.setattr(smoothness, limit, 10)
    X = np.random.default_rng(8).standard_normal((150, 90))
    found = block_smoothness([X, sp.csr_array(X), X.T.copy()], Squared())
    assert (found >= sigma(X)).all()
    assert (found <= sigma(X) / (1 - MARGIN) * (1 + 1e-12)).all()
