"""Files in the svmlight format, against scikit-learn's reader, and from the command line."""

from __future__ import annotations

import bz2
import gzip
import io
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
import yaml
from rich.console import Console
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

import mtcd
from commands import outcome, run
from mtcd.cli import show
from mtcd.config.read import read_config
from mtcd.core.errors import ConfigError, DataError
from mtcd.data import svmlight


def written(
    path: Path, zero_based: bool = False, samples: int = 60, features: int = 12
) -> tuple[Path, Any]:
    rng = np.random.default_rng(1)
    dense = np.where(
        rng.random((samples, features)) < 0.3, rng.standard_normal((samples, features)), 0.0
    )
    dense[0, [0, -1]] = 1.0
    X = sp.csr_array(dense)
    y = np.where(X @ rng.standard_normal(features) > 0, 1, -1)
    plain = path.with_name("plain.svm")
    dump_svmlight_file(X, y, str(plain), zero_based=zero_based, comment="made up")
    pack = {".gz": gzip.compress, ".bz2": bz2.compress}.get(path.suffix, bytes)
    path.write_bytes(pack(plain.read_bytes()))
    return path, load_svmlight_file(str(plain))


@pytest.mark.parametrize("name", ["x.svm", "x.libsvm.gz", "x.SVMLIGHT.bz2"])
@pytest.mark.parametrize("zero_based", [False, True])
@pytest.mark.parametrize("chunk", [1 << 24, 100])
def test_the_same_as_scikit_learn_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, zero_based: bool, chunk: int
) -> None:
    monkeypatch.setattr(svmlight, "_CHUNK", chunk)
    path, (X, y) = written(tmp_path / name.lower(), zero_based)
    data = mtcd.read_svmlight(path, 3)
    assert all(sp.issparse(block) for block in data.blocks)
    np.testing.assert_array_equal(
        np.hstack([block.toarray() for block in data.blocks]), X.toarray()
    )
    np.testing.assert_array_equal(data.labels, y)
    first = 0 if zero_based else 1
    assert data.columns[0] == tuple(f"x{j + first}" for j in range(4))
    assert svmlight.is_svmlight(Path(name))


def test_unusual_lines(tmp_path: Path) -> None:
    path = tmp_path / "x.svm"
    path.write_bytes(b"# a comment\n+1 3:.5 1:-2e-1 # more\r\n\n  0.5\t2:7 \n-1")
    data = mtcd.read_svmlight(path, {"a": ["x4", "x1"], "b": ["x3"]}, features=4)
    assert data.labels.tolist() == [1.0, 0.5, -1.0]
    assert data.blocks[0].toarray().tolist() == [[0, -0.2], [0, 0], [0, 0]]
    assert data.blocks[1].toarray().tolist() == [[0.5], [0], [0]]
    assert mtcd.read_svmlight(path, 1, ignore=["x2"]).columns == (("x1", "x3"),)


def test_query_ids_are_no_features(tmp_path: Path) -> None:
    path = tmp_path / "x.svm"
    path.write_bytes(b"1 qid:1 1:0.5 3:-1 # of qid:9\n-1\tqid:12  2:7\n0.5 3:1\n2 qid:4\n")
    X, y = load_svmlight_file(path)
    data = mtcd.read_svmlight(path, 1)
    assert data.labels.tolist() == y.tolist()
    assert data.blocks[0].toarray().tolist() == X.toarray().tolist()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty|no feature"),
        (b"1\n2\n", "no feature"),
        (b"1 1:2\n0 x:3\n", "Line 2 of .* not of the form.*'0 x:3'"),
        (b"1 1:2\n0 1:2:3\n", "Line 2"),
        (b"1 1:2\n\n# c\n0 2\n", "Line 4"),
        (b"1 1:1.2.3\n", "Line 1"),
        (b"1 1:nan\n", "Line 1"),
        (b"1,2 1:3\n", "Line 1"),
        (b"1 qid:x 1:3\n", "Line 1"),
        (b"1 1:3 qid:3\n", "Line 1"),
        (b"qid:3 1:3\n", "Line 1"),
        (b"1 -1:3\n", "Line 1"),
        (b"1 1:2 1:3\n0 1:1\n", "index twice"),
        (b"1 1:2\n0 99999999999:1\n", "index of 99,999,999,999"),
        (b"1 1:2\n1 2:1\n", "All 2 labels are 1"),
        (b"\x89PNG\xff\xfe", "Line 1"),
    ],
)
def test_bad_files(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "x.svm"
    path.write_bytes(content)
    with pytest.raises(DataError, match=words):
        mtcd.read_svmlight(path, 1)


def test_bad_requests(tmp_path: Path) -> None:
    path, _ = written(tmp_path / "x.svm.gz")
    with pytest.raises(DataError, match="12 columns, more than features: 5"):
        mtcd.read_svmlight(path, 2, features=5)
    with pytest.raises(DataError, match="'x77' is to be ignored"):
        mtcd.read_svmlight(path, 2, ignore=["x77"])
    with pytest.raises(DataError, match="There is no file"):
        mtcd.read_svmlight(str(tmp_path / "y.svm"), 2)
    with pytest.raises(ConfigError, match="features must be a whole number"):
        mtcd.read_svmlight(path, 2, features="5")  # type: ignore[arg-type]
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(DataError, match="cannot be read.*whole file"):
        mtcd.read_svmlight(path, 2)


def config(tmp_path: Path, **data: Any) -> str:
    path, _ = written(tmp_path / "x.svm")
    content = {
        "data": {"table": path.name, "clients": 3, **data},
        "model": {"kind": "logistic", "l2": 1.0},
    }
    content |= {
        "network": {"kind": "path"},
        "method": {"kind": "stcd", "local_updates": 3},
        "stop": {"gap": 1e-6},
    }
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(content))
    return str(tmp_path / "config.yaml")


@pytest.mark.parametrize("standardise", [False, True])
def test_training_from_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], standardise: bool
) -> None:
    assert (
        run(
            "train",
            config(tmp_path, standardise=standardise),
            "--out",
            str(tmp_path / "run"),
            "--json",
        )
        == 0
    )
    found = outcome(capsys)
    assert found["status"] == "converged"
    assert any("sparse" in note for note in found["notes"])
    assert any("not centred" in note for note in found["notes"]) == standardise
    assert (
        run(
            "train",
            str(tmp_path / "run" / "config.yaml"),
            "--out",
            str(tmp_path / "again"),
            "--json",
        )
        == 0
    )
    assert outcome(capsys)["objective"] == pytest.approx(found["objective"], rel=1e-12)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"label": "y"}, "labels are in an svmlight file.*leave out label"),
        ({"clients": {"a": {"table": "other.csv"}}}, "cannot be joined"),
        ({"prepare": "auto"}, "yaml: data: an svmlight file holds numbers only"),
        ({"feature": 3}, "unknown key 'data.feature', did you mean 'features'"),
    ],
)
def test_configs_that_are_refused(tmp_path: Path, data: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        read_config(Path(config(tmp_path, **data)))


@pytest.mark.parametrize(
    ("terminal", "quiet", "shown"),
    [(True, False, True), (True, True, False), (False, False, False)],
)
def test_a_line_while_tables_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, terminal: bool, quiet: bool, shown: bool
) -> None:
    written_to = io.StringIO()
    monkeypatch.setattr(show, "aside", Console(file=written_to, force_terminal=terminal, width=80))
    with show.reading(read_config(Path(config(tmp_path))), quiet):
        pass
    assert ("Reading x.svm (" in written_to.getvalue()) == shown


# --- predictions ---------------------------------------------------------------------------------


@pytest.mark.parametrize("zero_based", [False, True])
def test_predict_and_evaluate_read_new_samples(
    zero_based: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, (X, y) = written(tmp_path / "x.svm.gz", zero_based)
    config = {
        "data": {"table": str(path), "clients": 3},
        "model": {"kind": "logistic", "l2": 1.0},
        "method": {"kind": "stcd"},
        "stop": {"iterations": 60},
    }
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(config))
    folder, out = str(tmp_path / "out"), tmp_path / "p.csv"
    assert run("train", str(tmp_path / "c.yaml"), "--out", folder, "-q") == 0
    capsys.readouterr()
    # three columns unused, two unknown
    new = sp.hstack([X[:20, :9], sp.csr_array((20, 3)), X[:20, :2]]).tocsr()
    dump_svmlight_file(new, y[:20], str(tmp_path / "new.svm"), zero_based=zero_based)
    known = np.hstack([X[:20, :9].toarray(), np.zeros((20, 3))])
    trained = mtcd.load_run(folder)
    assert run("predict", folder, str(tmp_path / "new.svm"), "--out", str(out)) == 0
    frame = pl.read_csv(out)
    assert frame["prediction"].to_list() == trained.predict(known).tolist()
    np.testing.assert_allclose(
        frame["p_1"].to_numpy(), trained.predict_proba(known)[:, 1], rtol=1e-9
    )
    capsys.readouterr()
    assert run("evaluate", folder, str(tmp_path / "new.svm"), "--json") == 0
    assert outcome(capsys)["metrics"] == pytest.approx(trained.evaluate(known, y[:20]), rel=1e-9)


def test_new_samples_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.svm"
    path.write_text("1 0:3 2:1\n")
    with pytest.raises(DataError, match="has an index 0, but the columns of this model begin at 1"):
        svmlight.read_new_svmlight(path, ["x1", "x2"])
    with pytest.raises(DataError, match="numbered, but this model was trained on 'age'"):
        svmlight.read_new_svmlight(path, ["x0", "age"])
    path.write_text("1 2:3 2:1\n")
    with pytest.raises(DataError, match="an index twice"):
        svmlight.read_new_svmlight(path, ["x1", "x2"])
    path.write_text("1\n-1\n")
    matrix, labels, _ = svmlight.read_new_svmlight(path, ["x4", "x2"])
    assert matrix.shape == (2, 2)
    assert not matrix.nnz
    assert labels.tolist() == [1, -1]


def test_a_file_that_may_count_from_1_is_noted_for_a_model_that_counts_from_0(
    tmp_path: Path,
) -> None:
    path = tmp_path / "x.svm"
    for content, names, noted in (
        ("1 1:3", ["x0", "x1"], 1),
        ("1 0:3", ["x0", "x1"], 0),
        ("1 2:3", ["x1", "x2"], 0),
    ):
        path.write_text(f"{content}\n-1\n")
        _, _, notes = svmlight.read_new_svmlight(path, names)
        assert len(notes) == noted, content
        assert all("has no index 0, but this model has a column x0" in note for note in notes)


def test_labels_too_large_for_whole_numbers(tmp_path: Path) -> None:
    path = tmp_path / "x.svm"
    path.write_text("1e30 1:2\n-1e30 2:1\n3 1:1\n")
    assert mtcd.read_svmlight(path, 2).labels.tolist() == [1e30, -1e30, 3.0]
