"""Data made up from a seed: the same in every process, for examples, tests and benchmarks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mtcd.core.arrays import Array
from mtcd.core.errors import DataError, check_known
from mtcd.core.seeding import stream
from mtcd.data.splitting import split
from mtcd.data.vertical import VerticalData

ALIASES = {"linear": "ridge", "huber": "ridge", "squared-hinge": "logistic"}
KINDS = ("ridge", "logistic", "multinomial", *ALIASES)

# the spread of the class scores: large enough to learn from, small enough that every class is drawn
SPREAD = 3.0


def synthetic(
    kind: str,
    samples: int,
    features: int,
    clients: int,
    noise: float = 0.1,
    classes: int = 3,
    seed: int = 0,
) -> VerticalData:
    """Make data: standard normal features, and labels that depend on all of them.

    The columns are split evenly over the clients.

    Parameters
    ----------
    kind : str
        'ridge' (also 'linear', 'huber'): a linear function plus normal noise. 'logistic' (also
        'squared-hinge'): classes 0 and 1. 'multinomial': more classes. Classes are drawn with the
        probabilities of a linear model; there, the draw is the noise.
    samples : int
        N, the number of rows.
    features : int
        The number of columns.
    clients : int
        K, the number of clients.
    noise : float, default 0.1
        The size of the normal noise.
    classes : int, default 3
        The number of classes of 'multinomial'.
    seed : int, default 0
        Determines the data.

    Returns
    -------
    VerticalData
        The samples, split over the clients.

    Examples
    --------
    >>> synthetic("ridge", samples=10, features=4, clients=2).blocks[0].shape
    (10, 2)
    """
    check_known(kind, KINDS, f"There is no synthetic data {kind!r}:", DataError)
    kind = ALIASES.get(kind, kind)
    _check_sizes(samples, features, noise, classes, seed)

    # drawn feature by feature and transposed: column-major without a copy
    X = stream(seed, "synthetic features").standard_normal((features, samples)).T
    if kind == "ridge":
        # a stream for each purpose: other sizes of noise leave the features as they are
        theta = stream(seed, "synthetic coefficients").standard_normal(features)
        y = X @ theta + noise * stream(seed, "synthetic noise").standard_normal(samples)
        return split(X, y, clients)

    if kind == "logistic":
        classes = 2
    return split(X, _classes(X, classes, seed), clients)


def _check_sizes(samples: int, features: int, noise: float, classes: int, seed: int) -> None:
    least = {
        "samples": (samples, 2),
        "features": (features, 1),
        "classes": (classes, 2),
        "seed": (seed, 0),
    }
    for name, (value, minimum) in least.items():
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < minimum:
            raise DataError(
                f"Synthetic data: {name} must be a whole number, {minimum} or more, but is "
                f"{value!r}."
            )
    if not 0 <= noise < np.inf:
        raise DataError(f"Synthetic data: noise must be a number, 0 or more, but is {noise!r}.")


def _classes(X: Array, classes: int, seed: int) -> NDArray[np.intp]:
    """Classes 0, 1, ... drawn from the softmax of linear scores, by the largest score plus Gumbel
    noise."""
    samples, features = X.shape
    # for two classes the difference of the scores alone counts: one coefficient vector, as in
    # logistic models
    columns = classes
    if classes == 2:
        columns = 1
    theta = stream(seed, "synthetic coefficients").standard_normal((features, columns))

    scores = SPREAD * (X @ theta) / np.sqrt(features)
    if classes == 2:
        scores = np.hstack([np.zeros_like(scores), scores])
    # the largest of scores with Gumbel noise is a draw from their softmax
    scores += stream(seed, "synthetic noise").gumbel(size=(samples, classes))

    drawn: NDArray[np.intp] = scores.argmax(axis=1)
    present = len(np.unique(drawn))
    if present < classes:
        # the labels of a model are the classes that it has seen: others would fail later, in a test
        raise DataError(
            f"Only {present} of {classes} classes came up in {samples} samples: ask for more "
            "samples."
        )
    return drawn
