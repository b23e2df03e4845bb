"""A check of the key holder's answers: one more column, which only its owner knows.

The client multiplies the token with its columns, and with a combination of them whose weights r are
secret and uniform modulo t. Whatever the token, the last product is the same combination of the
others, modulo t. A holder that adds d to its answer must add sum_j r_j d_j to the last number: it
finds that with probability 1/t. It sees no more than before, since each product has a mask of its
own, and the client learns nothing new.
"""

from __future__ import annotations

import numpy as np

from mtcd.core.errors import WireError
from mtcd.privacy.sealed.bfv.cipher import Integers
from mtcd.privacy.sealed.bfv.keys import uniform
from mtcd.privacy.sealed.bfv.layout import centred

COLUMNS = 1
"""The columns that a check takes."""
DIGIT = 12
"""Bits of a digit of a weight: few enough for sums of products in 64 bits."""


def draw_weights(columns: int, modulus: int) -> Integers:
    """The secret weights of a client with so many columns, from the operating system.

    >>> draw_weights(3, 97).shape
    (3,)
    """
    return uniform(modulus, columns)


def with_check(columns: Integers, weights: Integers, modulus: int) -> Integers:
    """The columns and, as the last one, their combination modulo t.

    Parameters
    ----------
    columns : array of int64
        A row for each sample.
    weights : array of int64
        One for each column, from 0 to ``modulus`` - 1.
    modulus : int
        t: a prime of less than 50 bits.

    Examples
    --------
    >>> with_check(np.array([[1, 2]]), np.array([10, 40]), 97)
    array([[ 1,  2, -7]])
    """
    combined = np.zeros(len(columns), np.int64)
    digits = -(-modulus.bit_length() // DIGIT)
    for place in reversed(range(digits)):
        # In digits, from the highest: products of whole weights would not fit 64 bits.
        digit = weights >> DIGIT * place & (1 << DIGIT) - 1
        combined = ((combined << DIGIT) + columns @ digit) % modulus

    return np.column_stack([columns, centred(combined, modulus)])


def without_check(products: Integers, weights: Integers, modulus: int) -> Integers:
    """The products without the last one, which must be their combination.

    Parameters
    ----------
    products : array of int64
        What a client has of an answer without its mask.
    weights : array of int64
        Its secret weights.
    modulus : int
        t.

    Raises
    ------
    WireError
        If the last product does not fit the others: the key holder did not decrypt what it was
        sent, or the token is not what it says.
    """
    *found, check = map(int, products)
    # Python's integers, as the sum of products may exceed 64 bits.
    expected = sum(weight * value for weight, value in zip(weights.tolist(), found, strict=True))
    if (expected - check) % modulus:
        raise WireError(
            "sealed answer",
            "does not pass this client's check: the key holder has not decrypted what it was sent. "
            "Stop this training, and find out why before the next one",
        )

    return products[:-COLUMNS]
