"""What a party keeps at the end: read back it is the same, and together the parties predict what
one process would."""

import csv
import errno
import io
import json
import os
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mtcd
from mtcd.core.errors import DataError, MtcdError
from mtcd.core.files import COEFFICIENTS
from mtcd.data.vertical import VerticalData
from mtcd.federation.participant.keeping import SUMMARY, Summary, keep_block, read_summary
from mtcd.federation.participant.table import PartyTable
from mtcd.models.glm.model import Glm
from mtcd.models.glm.party.block import CSV, PartyBlock, read_block
from mtcd.models.glm.party.kind import LINEAR
from mtcd.models.glm.party.own_block import NPZ
from mtcd.protocol.ledger.ledger import Ledger
from own_parts import own_parts
from problems import MODELS, make_data

WIDTHS = [2, 1, 3]


def trained(model: Glm, scaled: bool = False) -> tuple[VerticalData, mtcd.Run, list[PartyBlock]]:
    """A model trained in one process, and as the parties would keep it."""
    data = make_data(model, 12, WIDTHS, seed=5)
    run = mtcd.train(
        data,
        model,
        "path",
        mtcd.STCD(local_updates=5),
        mtcd.Stop(iterations=40),
        standardise=scaled,
    )
    parts = own_parts(data, model, standardise=scaled)
    thetas = [run.parameters[name] for name in data.clients]
    if model.intercept:
        thetas[0] = np.concatenate([thetas[0], [run.trained().trained_intercept]])
    return (
        data,
        run,
        [PartyBlock.of(part, theta) for part, theta in zip(parts, thetas, strict=True)],
    )


def summary(**changes: Any) -> Summary:
    ledger = Ledger([30, 2, 2], [360, 24, 24], hops=30)
    made = Summary(
        "clinics",
        "b",
        "iterations",
        "STCD, Q=1",
        0.1,
        40,
        0,
        ledger,
        mtcd.Costs(50),
        2.5,
        1.25,
        ("A note.",),
    )
    return replace(made, **changes)


def table_of(block: PartyBlock, values: np.ndarray) -> PartyTable:
    return PartyTable(Path("new.csv"), None, block.columns, values)


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_blocks_read_back_predict_together_what_the_model_does(
    model: Glm, scaled: bool, tmp_path: Path
) -> None:
    _, run, blocks = trained(model, scaled)
    X = np.random.default_rng(1).standard_normal((7, sum(WIDTHS)))
    read, aggregate = [], 0.0
    for k, values in enumerate(np.split(X, np.cumsum(WIDTHS)[:-1], axis=1)):
        keep_block(tmp_path, summary(), blocks[k], LINEAR.block_files)
        read.append(read_block(tmp_path))
        assert read[k].party == blocks[k].party
        assert read[k].model == blocks[k].model
        aggregate = aggregate + read[k].represent(table_of(read[k], values))
    np.testing.assert_allclose(aggregate, run.decision(X), rtol=1e-12, atol=1e-12)
    predicted = read[1].predict(aggregate).tolist()
    assert predicted == (
        run.predict(X).tolist() if read[1].classes else pytest.approx(run.predict(X))
    )


def test_the_table_for_people_has_a_row_for_each_column(tmp_path: Path) -> None:
    model = Glm("logistic", l2=0.2, intercept=True)
    _, run, blocks = trained(model, scaled=True)
    keep_block(tmp_path, summary(), blocks[0], LINEAR.block_files)
    rows = list(csv.DictReader(io.StringIO((tmp_path / CSV).read_text())))
    assert [row["column"] for row in rows] == [*blocks[0].columns, "(intercept)"]
    assert [float(row["coefficient"]) for row in rows] == [
        *run.parameters["c0"],
        run.trained().trained_intercept,
    ]
    assert [float(row["scale"]) for row in rows[:-1]] == blocks[0].scaling.scales[0].tolist()  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "model", [Glm("logistic", l2=0.2, intercept=True), Glm("multinomial", l2=0.2)], ids=str
)
def test_coefficients_of_all_parties_together_are_those_of_the_model(
    model: Glm, tmp_path: Path
) -> None:
    """On the columns as given; the parties' parts of the intercept add up to it."""
    _, run, blocks = trained(model, scaled=True)
    found, intercept = [], 0.0
    for block in blocks:
        keep_block(tmp_path, summary(), block, LINEAR.block_files)
        rows = list(csv.reader(io.StringIO((tmp_path / COEFFICIENTS).read_text())))
        width = 3 if model.kind == "multinomial" else 1
        assert [row[:2] for row in rows[1:]] == [
            [block.party, name] for name in (*block.columns, "(intercept)")
        ]
        numbers = np.array([[float(cell) for cell in row[2:]] for row in rows[1:]])
        found.append(numbers[:-1, :width])
        intercept = intercept + numbers[-1, :width]
        np.testing.assert_allclose(
            numbers[:-1, width:].reshape(block.theta.shape), block.theta, rtol=1e-12
        )
    np.testing.assert_allclose(
        np.vstack(found).reshape(run.coefficients.shape), run.coefficients, rtol=1e-12
    )
    np.testing.assert_allclose(intercept, np.atleast_1d(run.intercept), rtol=1e-9, atol=1e-12)
    keep_block(tmp_path, summary(status="diverged"), blocks[0], LINEAR.block_files)
    assert not (tmp_path / COEFFICIENTS).exists()


def test_a_column_of_coefficients_for_each_class(tmp_path: Path) -> None:
    _, run, blocks = trained(Glm("multinomial", l2=0.3))
    keep_block(tmp_path, summary(), blocks[2], LINEAR.block_files)
    rows = list(csv.DictReader(io.StringIO((tmp_path / CSV).read_text())))
    read = [[float(row[f"coefficient {c}"]) for c in "abc"] for row in rows]
    assert read == run.parameters["c2"].tolist()


def test_the_summary_reads_back_and_says_how_it_ended(tmp_path: Path) -> None:
    keep_block(tmp_path, summary(), None, LINEAR.block_files)
    assert read_summary(tmp_path) == summary()
    told = json.loads((tmp_path / SUMMARY).read_text())
    assert told["message"] == "Stopped at the limit of iterations after 40 iterations and 0 syncs."
    assert told["cost"] == 2 + 2 + 30 / 50
    assert "operator" in summary(status="stopped").message
    assert summary(objective=float("nan")).to_dict()["objective"] is None


def test_what_is_kept_is_for_the_owner_only(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        keep_block(tmp_path, summary(), trained(Glm("ridge"))[2][0], LINEAR.block_files)
    finally:
        os.umask(old)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes == dict.fromkeys((CSV, NPZ, COEFFICIENTS, SUMMARY), 0o600)


def test_of_a_training_that_diverged_no_block_is_kept(tmp_path: Path) -> None:
    block = trained(Glm("ridge"))[2][0]
    keep_block(tmp_path, summary(), block, LINEAR.block_files)
    told = keep_block(
        tmp_path, summary(), replace(block, theta=block.theta * np.inf), LINEAR.block_files
    )
    assert told.status == "diverged" == read_summary(tmp_path).status
    assert "smaller method.stepsize" in told.message
    with pytest.raises(MtcdError, match="diverged"):
        read_block(tmp_path)


def test_all_is_written_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(MtcdError, match="No space left"):
        keep_block(tmp_path, summary(), trained(Glm("ridge"))[2][0], LINEAR.block_files)
    assert not list(tmp_path.iterdir())
    for read in (read_block, read_summary):
        with pytest.raises(MtcdError, match="not ended"):
            read(tmp_path)


def test_new_samples_must_have_the_same_columns_and_be_numbers() -> None:
    block = trained(Glm("ridge"))[2][0]
    with pytest.raises(DataError, match="same columns, in that order"):
        block.represent(PartyTable(Path("new.csv"), None, block.columns[::-1], np.ones((3, 2))))
    with pytest.raises(DataError, match="missing in row 2"):
        block.represent(table_of(block, np.array([[1.0, 1.0], [np.nan, 1.0]])))


@pytest.mark.parametrize("name", ["theta", "intercept", "means", "scales"])
def test_a_block_whose_parts_do_not_belong_together_is_refused(name: str, tmp_path: Path) -> None:
    keep_block(tmp_path, summary(), trained(Glm("logistic"), scaled=True)[2][0], LINEAR.block_files)
    with np.load(tmp_path / NPZ) as stored:
        arrays = dict(stored)
    np.savez(tmp_path / NPZ, **arrays | {name: np.ones((5, 2))})
    with pytest.raises(MtcdError, match="do not belong together"):
        read_block(tmp_path)
    del arrays[name]
    np.savez(tmp_path / NPZ, **arrays)
    if name != "means":  # without means there is no scaling
        with pytest.raises(MtcdError, match="not a whole block"):
            read_block(tmp_path)


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    keep_block(tmp_path, summary(), trained(Glm("ridge"))[2][0], LINEAR.block_files)
    whole = (tmp_path / NPZ).read_bytes()
    for content in (b"", b"junk", whole[:-30], whole[: len(whole) // 2], whole.replace(b'"', b" ")):
        (tmp_path / NPZ).write_bytes(content)
        with pytest.raises(MtcdError, match="not a whole block"):
            read_block(tmp_path)
    for text in (
        "",
        "[]",
        "{}",
        '{"format": 2}',
        (tmp_path / SUMMARY).read_text().replace('"ledger"', '"ledge"'),
    ):
        (tmp_path / SUMMARY).write_text(text)
        with pytest.raises(MtcdError, match="cannot be read"):
            read_summary(tmp_path)
