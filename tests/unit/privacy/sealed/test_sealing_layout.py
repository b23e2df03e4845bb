"""The slots of ciphertexts: whatever the sizes, folded products are those of the matrix."""

from __future__ import annotations

import numpy as np
import pytest

from mtcd.core.errors import ConfigError
from mtcd.privacy.sealed.bfv.layout import Layout, centred

DEGREE, MODULUS = 8, 97


def product(layout: Layout, matrix: np.ndarray, vector: np.ndarray, stride: int) -> np.ndarray:
    """The product as a sealer computes it: by baby steps, and by Horner's rule over giant ones."""
    total = np.zeros(layout.degree, np.int64)
    babies = [layout.spread(vector)]
    for _ in range(1, stride):
        babies.append([layout.rotate(slots, 1) for slots in babies[-1]])

    for giant, steps in layout.steps(stride):
        total = layout.rotate(total, stride)
        for baby in steps:
            shift = giant * stride + baby
            for number, slots in enumerate(babies[baby]):
                # the giant rotation is still to come: the diagonal is rotated back by it
                diagonal = layout.diagonal(matrix, number, shift)
                total = total + slots * layout.rotate(diagonal, -giant * stride)

    return layout.fold(total, MODULUS)


@pytest.mark.parametrize("samples", [1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 24])
def test_products_of_all_sizes(samples: int) -> None:
    """With up to half of the degree in samples they are repeated in segments; beyond it they fill
    one ciphertext after the other."""
    rng = np.random.default_rng(samples)
    most = DEGREE if samples <= DEGREE // 2 else DEGREE // 2
    vector = rng.integers(0, MODULUS, samples)
    for columns in range(1, most + 1):
        layout = Layout(DEGREE, samples, columns)
        assert layout.most_columns == most
        matrix = rng.integers(0, MODULUS, (samples, columns))
        expected = matrix.T @ vector % MODULUS
        for stride in {1, 2, layout.best_stride(), layout.diagonals}:
            assert product(layout, matrix, vector, stride).tolist() == expected.tolist()
        assert layout.gather(layout.spread(vector)).tolist() == vector.tolist()

    for columns in (0, most + 1):
        with pytest.raises(ConfigError, match=f"1 to {most} columns fit"):
            Layout(DEGREE, samples, columns)


@pytest.mark.parametrize("samples", [3, 4, 5, 8])
@pytest.mark.parametrize("stride", [1, 2, 3, 5])
def test_every_diagonal_is_multiplied_once(samples: int, stride: int) -> None:
    for columns in range(1, Layout(DEGREE, samples, 1).most_columns + 1):
        layout = Layout(DEGREE, samples, columns)
        found = [giant * stride + baby for giant, steps in layout.steps(stride) for baby in steps]
        assert sorted(found) == list(range(layout.diagonals))


@pytest.mark.parametrize("modulus", [5, 97, 2**40 + 15])
def test_the_middle_of_the_integers_modulo_t(modulus: int) -> None:
    half = (modulus - 1) // 2
    values = np.array([0, 1, half, half + 1, modulus - 1, modulus, -1, -half, -half - 1])
    assert centred(values, modulus).tolist() == [0, 1, half, -half, -1, 0, -1, -half, half]
