"""Hold-outs of split networks in a federation: networks and metrics are those of one process with
the same hold-out."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("cryptography")

from contract_split_cases import CASES, assert_same_networks, federate, in_process
from mtcd.core.errors import DataError
from mtcd.data.dataset import VerticalDataset
from mtcd.data.draws import drawn_holdout
from split_problems import samples

FRACTION, SEED, SAMPLES = 0.3, 5, 30
MODEL = {
    "kind": "split",
    "client": "mlp",
    "aggregation": "concat",
    "optimiser": {"kind": "SGD", "momentum": 0.5},
}


def clinics() -> VerticalDataset:
    made = samples(4, SAMPLES)
    return VerticalDataset(
        dict(zip("abcd", made.features.values(), strict=True)),
        np.array(["low", "mid", "top"])[made.labels],
    )


@pytest.mark.parametrize("case", ["batches", "stcd"])
def test_networks_and_metrics_are_those_of_one_process_with_the_same_hold_out(
    case: str, tmp_path: Path
) -> None:
    data = clinics()
    settings: dict[str, Any] = {"model": MODEL, "method": CASES[case], "holdout": FRACTION}
    bundles, told = federate(tmp_path, data, 12, **settings)
    held = data.holdout(FRACTION, SEED)
    same = in_process(held, bundles["a"])
    assert_same_networks(tmp_path, bundles, same)
    expected = {f"test_{name}": value for name, value in same.evaluate(held.test).items()}
    metrics = told.summaries["a"].metrics
    found = {name: value for name, value in metrics.items() if name.startswith("test_")}
    assert found == pytest.approx(expected, rel=1e-6), "single precision"
    assert {name.replace("test_", "train_") for name in found} <= metrics.keys()
    assert not any(one.metrics for name, one in told.summaries.items() if name != "a")


def test_a_class_that_only_held_out_samples_have_is_refused(tmp_path: Path) -> None:
    data = clinics()
    labels = np.array(data.labels)
    labels[drawn_holdout(FRACTION, SAMPLES, SEED)[1][0]] = "new"
    with pytest.raises(
        DataError, match="holdout: The label 'new' is of a class that no training sample has"
    ):
        federate(
            tmp_path,
            VerticalDataset(data.features, labels),
            12,
            model=MODEL,
            method=CASES["stcd"],
            holdout=FRACTION,
        )
