"""Federations whose parties prepare their own columns."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from live import make_bundles, unobserved
from mtcd.federation.participant.kinds import make_participant
from mtcd.testing.federation_engine import FederationEngine
from patients import CLIENTS, patients

pytest.importorskip("cryptography")

TABLE = patients(120)


RECIPE = {"columns": {"age": [{"impute": {"indicator": True}}, "standardise"]}}


OWN: dict[str, Any] = {"clinic": RECIPE, "lab": "auto", "insurer": {"on_unseen": "error"}}


def own_tables(folder: Path, table: pl.DataFrame, whole: bool = False) -> dict[str, Path]:
    """A table per party; the first has the labels. Unless they are whole, each of the others has
    its own rows missing, and its own order."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = {}
    for k, (name, columns) in enumerate(CLIENTS.items()):
        label = ["outcome"] if k == 0 else []
        rows = (
            np.random.default_rng(k).permutation(table.height)[3 * k :]
            if k and not whole
            else np.arange(table.height)
        )
        paths[name] = folder / f"{name}.csv"
        table.select("patient", *columns, *label)[rows].write_csv(paths[name])
    return paths


def federate(
    folder: Path, paths: dict[str, Path], prepare: dict[str, Any] | None = OWN, **changes: Any
) -> Any:
    settings = {
        "labels__column": "outcome",
        "alignment": "hashed",
        "model": {"kind": "logistic", "l2": 1.0, "intercept": True},
        "method": {
            "kind": "mtcd",
            "tokens": 2,
            "hops": 4,
            "stepsize": "auto",
            "combine": "average",
        },
        "stop": {"iterations": 40},
        **changes,
    }
    bundles = make_bundles(folder, tuple(CLIENTS), **settings)
    engine = FederationEngine(
        bundles,
        folder / "runs",
        lambda bundle: make_participant(bundle, given(bundle.config, paths, prepare)),
    )
    return bundles, unobserved(engine)


def given(
    config: Any, paths: dict[str, Path], prepare: dict[str, Any] | None = OWN
) -> dict[str, Any]:
    if config.is_server:
        return {}
    own = {} if prepare is None else {"prepare": prepare[config.name]}
    return {"data": paths[config.name], "key": "patient", **own}
