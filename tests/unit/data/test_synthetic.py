"""Synthetic data: learnable, repeatable, and cheap in memory."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from mtcd.core.errors import DataError
from mtcd.data.synthetic import KINDS, synthetic

SIZES = {"samples": 200, "features": 20, "clients": 7}


@pytest.mark.parametrize("kind", KINDS)
def test_shapes_and_one_column_major_matrix(kind: str) -> None:
    data = synthetic(kind, **SIZES)
    assert (data.samples, data.features, len(data.clients)) == (200, 20, 7)
    assert [block.shape[1] for block in data.blocks] == [3, 3, 3, 3, 3, 3, 2]
    base = data.blocks[0].base
    assert all(block.base is base and block.flags.f_contiguous for block in data.blocks)


def test_features_are_standard_normal() -> None:
    X = np.hstack(synthetic("ridge", 2000, 20, 4).blocks)
    # 40,000 draws: five standard errors
    assert abs(X.mean()) < 5 / np.sqrt(X.size)
    assert abs(X.var() - 1) < 5 * np.sqrt(2 / X.size)
    assert np.abs(np.corrcoef(X.T) - np.eye(20)).max() < 6 / np.sqrt(2000)


@pytest.mark.parametrize("noise", [0.0, 0.1, 2.0])
def test_ridge_labels_are_linear_up_to_the_noise(noise: float) -> None:
    data = synthetic("ridge", 1000, 10, 2, noise=noise)
    X = np.hstack(data.blocks)
    theta, *_ = np.linalg.lstsq(X, data.labels.astype(float))
    residual = np.std(data.labels - X @ theta)
    assert residual == pytest.approx(noise, rel=0.15, abs=1e-10)
    assert 0.3 < np.std(theta) < 3


@pytest.mark.parametrize(
    ("kind", "classes"), [("logistic", 2), ("squared-hinge", 2), ("multinomial", 4)]
)
def test_classes_all_occur_and_can_be_learned_but_not_perfectly(kind: str, classes: int) -> None:
    data = synthetic(kind, 1000, 20, 4, classes=4)
    labels, counts = np.unique(data.labels, return_counts=True)
    assert labels.tolist() == list(range(classes))
    assert counts.min() > 1000 / classes / 3
    X = np.hstack(data.blocks)
    accuracy = LogisticRegression(max_iter=500).fit(X, data.labels).score(X, data.labels)
    assert counts.max() / 1000 + 0.15 < accuracy < 0.99


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("kind", ["logistic", "multinomial"])
def test_small_samples_hold_every_class(kind: str, seed: int) -> None:
    assert len(set(synthetic(kind, 40, 5, 2, seed=seed).labels.tolist())) == (
        2 if kind == "logistic" else 3
    )


def test_aliases_are_the_same_data() -> None:
    def fingerprint(kind: str) -> str:
        return synthetic(kind, **SIZES).fingerprint

    assert fingerprint("ridge") == fingerprint("linear") == fingerprint("huber")
    assert fingerprint("logistic") == fingerprint("squared-hinge")
    assert len({fingerprint(kind) for kind in KINDS}) == 3


def test_seeds_differ_and_parts_are_drawn_apart() -> None:
    one, two = (synthetic("ridge", 50, 4, 2, seed=seed) for seed in (0, 1))
    assert one.fingerprint != two.fingerprint
    loud = synthetic("ridge", 50, 4, 2, noise=5.0)
    np.testing.assert_array_equal(np.hstack(one.blocks), np.hstack(loud.blocks))
    # the same theta and the same noise, larger
    quiet = synthetic("ridge", 50, 4, 2, noise=0.0)
    scaled = (one.labels.astype(float) - quiet.labels) * 50
    np.testing.assert_allclose(loud.labels.astype(float) - quiet.labels, scaled, atol=1e-9)


@pytest.mark.parametrize("kind", ["ridge", "logistic", "multinomial"])
def test_the_same_in_another_process(kind: str) -> None:
    code = (
        "from mtcd.data.synthetic import synthetic\n"
        f"print(synthetic({kind!r}, samples=60, features=9, clients=4, seed=3).fingerprint)"
    )
    # another hash seed: nothing may depend on the order of a set
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": "17"}
    command = [sys.executable, "-W", "error", "-c", code]
    printed = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert printed.strip() == synthetic(kind, samples=60, features=9, clients=4, seed=3).fingerprint


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kind": "rigde"}, "no synthetic data 'rigde': did you mean 'ridge'?"),
        ({"kind": "zzz"}, "known: ridge, logistic, multinomial"),
        ({"samples": 1}, "samples must be a whole number, 2 or more, but is 1"),
        ({"samples": 10.0}, "samples must be a whole number"),
        ({"features": 0}, "features must be a whole number, 1 or more, but is 0"),
        ({"clients": 21}, "21 clients cannot share 20 columns"),
        ({"clients": 0}, "must be a whole number, 1 or more, but is 0"),
        ({"noise": -0.1}, "noise must be a number, 0 or more, but is -0.1"),
        ({"noise": float("nan")}, "noise must be a number"),
        ({"noise": float("inf")}, "noise must be a number"),
        (
            {"kind": "multinomial", "classes": 1},
            "classes must be a whole number, 2 or more, but is 1",
        ),
        ({"kind": "multinomial", "classes": 300}, "of 300 classes came up in 200 samples"),
        ({"seed": -1}, "seed must be a whole number, 0 or more, but is -1"),
    ],
)
def test_bad_sizes(change: dict[str, Any], words: str) -> None:
    with pytest.raises(DataError) as caught:
        synthetic(**{"kind": "ridge", **SIZES, **change})
    assert words in str(caught.value)
