"""Blocks that are read where their clients are hosted: the same run, and no block in the driver."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import mtcd
from mtcd.core.errors import ConfigError, DataError
from mtcd.data.vertical import Block
from mtcd.engines.kinds import EngineSettings, MakeEngine
from mtcd.protocol.engine import Recipe
from mtcd.ray.engine import RayEngine
from thread_cluster import ThreadCluster

RNG = np.random.default_rng(4)
X, NOISE = RNG.standard_normal((60, 12)), RNG.standard_normal(60)
LABELS = (X @ np.arange(12) + NOISE > 0).astype(int)
NAMES = [f"f{j}" for j in range(12)]
MAKER = """
import numpy as np

def make_block(client, number, samples):
    return np.random.default_rng(number).standard_normal((samples, 3))

def short(client, number, samples):
    return np.ones((samples - 1, 3))
"""
SENT: list[bytes] = []


class Counting(ThreadCluster):
    """Keeps what leaves this process."""

    def put(self, value: Any) -> Any:
        SENT.append(pickle.dumps(value))
        return SENT[-1]


@dataclass(frozen=True)
class Threaded(EngineSettings):
    """The hosts of the Ray engine, in threads."""

    def maker(self, recipe: Recipe) -> MakeEngine:
        cluster = Counting()
        return lambda parties, ledger: RayEngine(cluster.settings, recipe, parties, ledger, cluster)


@pytest.fixture
def parquet(tmp_path: Path) -> Path:
    path = tmp_path / "table.parquet"
    pl.DataFrame(
        {"y": LABELS, **{name: X[:, j] for j, name in enumerate(NAMES)}, "other": ["a"] * 60}
    ).write_parquet(path)
    return path


def shards(folder: Path) -> mtcd.BlockSources:
    files = {}
    for k in range(3):
        lines = [
            f"{label} " + " ".join(f"{j + 1}:{value!r}" for j, value in enumerate(row.tolist()))
            for label, row in zip(LABELS, X[:, 4 * k : 4 * k + 4], strict=True)
        ]
        (folder / f"{k}.svm").write_text("\n".join(lines) + "\n")
        files[f"c{k}"] = (folder / f"{k}.svm", 4)
    return mtcd.svmlight_blocks(files, LABELS)


def test_clients_without_labels_have_files_with_any_label(tmp_path: Path) -> None:
    """The format demands one in each line; the labels are those of the label holder."""
    (tmp_path / "lab.svm").write_text("0 2:1.5\n0 1:7\n")
    [block] = mtcd.svmlight_blocks({"lab": (tmp_path / "lab.svm", 3)}, [0, 1]).read().blocks
    assert block.toarray().tolist() == [[0, 1.5, 0], [7, 0, 0]]


def made(folder: Path) -> mtcd.BlockSources:
    (folder / "block_maker.py").write_text(MAKER)
    return mtcd.made_blocks("block_maker:make_block", 4, 3, LABELS, folder)


def of_parquet(folder: Path) -> mtcd.BlockSources:
    return mtcd.parquet_blocks(folder / "table.parquet", "y", 3, ignore=["other"])


def trained(data: Any, engine: EngineSettings | None, method: Any = None, **more: Any) -> mtcd.Run:
    method = method or mtcd.STCD(local_updates=2)
    stop = mtcd.Stop(iterations=60)
    return mtcd.train(
        data, mtcd.Glm("logistic", l2=0.1), "cycle", method, stop, engine=engine, **more
    )


@pytest.mark.parametrize("make", [of_parquet, shards, made])
@pytest.mark.parametrize("standardise", [False, True])
def test_the_run_is_that_of_the_same_data_in_this_process(
    make: Callable[[Path], mtcd.BlockSources], standardise: bool, tmp_path: Path, parquet: Path
) -> None:
    data = make(tmp_path)
    found, expected = (
        trained(data, engine, standardise=standardise) for engine in (Threaded(), None)
    )
    assert (found.status, found.ledger, found.stepsize) == (
        expected.status,
        expected.ledger,
        expected.stepsize,
    )
    for client, theta in expected.parameters.items():
        np.testing.assert_array_equal(found.parameters[client], theta)
    np.testing.assert_array_equal(found.coefficients, expected.coefficients)
    assert found.final.objective == pytest.approx(expected.final.objective, rel=1e-12)
    assert found.final.metrics == pytest.approx(expected.final.metrics)


def test_the_blocks_are_those_of_the_table(parquet: Path) -> None:
    sources = mtcd.parquet_blocks(parquet, "y", {"a": ["f3", "f1"], "b": ["f0"]})
    table = mtcd.read_tables(parquet, "y", {"a": ["f3", "f1"], "b": ["f0"]})
    for ours, theirs in zip(sources.read().blocks, table.blocks, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert sources.read().positions == table.positions


def test_no_block_is_read_in_the_driver_nor_sent_by_it(
    parquet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, readers = mtcd.parquet_blocks(parquet, "y", 3, ignore=["other"]), []
    read = type(data.sources[0]).read

    def watched(self: Any) -> Block:
        readers.append(self.columns)
        return read(self)

    monkeypatch.setattr(type(data.sources[0]), "read", watched)
    SENT.clear()
    trained(data, Threaded(), method=mtcd.SVFL(batch=10))
    assert len(readers) == 6  # once for the step size, and once in the host of each client
    assert SENT
    assert not any(X[:, j].tobytes() in sent for sent in SENT for j in range(12))


def test_a_step_size_that_needs_all_blocks_is_bounded_by_sums(parquet: Path) -> None:
    data = mtcd.parquet_blocks(parquet, "y", 3, ignore=["other"])
    method = mtcd.SVFL()
    found, expected = (trained(data, engine, method) for engine in (Threaded(), None))
    assert 0 < found.stepsize <= expected.stepsize
    assert "a bound" in " ".join(found.notes)


def test_it_resumes_from_a_checkpoint_and_refuses_other_blocks(tmp_path: Path) -> None:
    data, folder = made(tmp_path), tmp_path / "run"
    expected = trained(data, Threaded())
    mtcd.train(
        data, mtcd.Glm("logistic", l2=0.1), "cycle", mtcd.STCD(local_updates=2), mtcd.Stop(iterations=20),
        engine=Threaded(), checkpoint=folder,
    )  # fmt: skip
    again = trained(data, Threaded(), checkpoint=folder, resume=True)
    assert again.ledger == expected.ledger
    np.testing.assert_array_equal(again.coefficients, expected.coefficients)
    (tmp_path / "block_maker.py").write_text(
        MAKER.replace("default_rng(number)", "default_rng(number + 1)")
    )
    os.utime(tmp_path / "block_maker.py", (1, 1))
    other = mtcd.made_blocks("block_maker2:make_block", 4, 3, LABELS, tmp_path)
    (tmp_path / "block_maker2.py").write_text(
        MAKER.replace("default_rng(number)", "default_rng(number + 1)")
    )
    with pytest.raises(mtcd.MtcdError, match="of another training: its data was"):
        trained(other, Threaded(), checkpoint=folder, resume=True)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda path: mtcd.parquet_blocks(path, "z", 3), "no label column 'z'"),
        (
            lambda path: mtcd.parquet_blocks(path, "y", {"a": ["f1"], "b": ["f1"]}),
            "'f1' is given to several",
        ),
        (
            lambda path: mtcd.parquet_blocks(path, "y", {"a": ["g1"]}),
            "'a' wants column 'g1': known: f0, f1",
        ),
        (
            lambda path: mtcd.parquet_blocks(path.with_name("none.parquet"), "y", 3),
            "There is no file .*none.parquet",
        ),
        (
            lambda path: mtcd.parquet_blocks("s3://bucket/t.parquet", "y", 3),
            "s3://bucket/t.parquet is an address",
        ),
        (
            lambda path: mtcd.parquet_blocks(path, "y", 13).read(),
            "must be numbers|too large|missing",
        ),
    ],
)
def test_tables_that_cannot_work_are_refused(make: Any, said: str, parquet: Path) -> None:
    with pytest.raises(DataError, match=said):
        make(parquet)


def test_a_block_of_the_wrong_size_is_refused(tmp_path: Path) -> None:
    made(tmp_path)
    data = mtcd.made_blocks("block_maker:short", 4, 3, LABELS, tmp_path)
    with pytest.raises(
        DataError, match=r"'client_0' has the shape \(59, 3\), but there are 60 labels"
    ):
        trained(data, Threaded())


def test_what_needs_the_data_here_is_refused(tmp_path: Path) -> None:
    data = made(tmp_path)
    with pytest.raises(ConfigError, match="stop.gap needs the optimum"):
        mtcd.train(data, None, "cycle", mtcd.STCD(), mtcd.Stop(gap=1e-3), engine=Threaded())
    with pytest.raises(ConfigError, match="start needs the data in this process"):
        trained(data, Threaded(), start={})
