"""CIFAR-10: read from every form alike, cut without loss, refused when damaged or evil."""

import hashlib
import io
import os
import pickle
import struct
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mtcd
from mtcd.core.errors import ConfigError, DataError
from mtcd_experiments.datasets import cifar10

BATCH = 20


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data folder, and a CIFAR-10 of 20 pictures per batch."""
    monkeypatch.setenv("MTCD_DATA", str(tmp_path))
    monkeypatch.setitem(cifar10.SIZES, "batch", BATCH)
    return tmp_path


# --- CIFAR-10, in the format of its makers


def made_up_batches() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Pictures (height, width, channel last) and labels for each batch."""
    rng = np.random.default_rng(0)
    labels = np.tile(np.arange(10), BATCH // 10)
    names = [*cifar10.BATCHES, cifar10.TEST]
    return {
        name: (rng.integers(0, 256, (BATCH, 32, 32, 3), dtype=np.uint8), rng.permutation(labels))
        for name in names
    }


class Python2Pickler(pickle._Pickler):
    """Writes bytes as the str of Python 2, as in the files of CIFAR-10's makers."""

    dispatch = pickle._Pickler.dispatch.copy()

    def save_str_of_python_2(self, text: bytes) -> None:
        self.write(pickle.BINSTRING + struct.pack("<i", len(text)) + text)
        self.memoize(text)

    dispatch[bytes] = save_str_of_python_2


def pickled(pictures: Any, labels: Any, python: int = 2) -> bytes:
    """A batch: all red values of a picture, then green, then blue."""
    rows = np.ascontiguousarray(pictures.transpose(0, 3, 1, 2)).reshape(len(pictures), -1)
    batch = {
        b"batch_label": b"a batch",
        b"labels": [int(label) for label in labels],
        b"data": rows,
        b"filenames": [b"x"],
    }
    if python == 3:
        return pickle.dumps(batch, protocol=4)
    target = io.BytesIO()
    Python2Pickler(target, protocol=2).dump(batch)
    assert b"cnumpy._core.multiarray\n" in target.getvalue()
    return target.getvalue().replace(b"cnumpy._core.multiarray\n", b"cnumpy.core.multiarray\n")


def write_batches(folder: Path, python: int = 2) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    made = made_up_batches()
    (folder / "cifar-10-batches-py").mkdir()
    for name, (pictures, labels) in made.items():
        (folder / "cifar-10-batches-py" / name).write_bytes(pickled(pictures, labels, python))
    return made


def write_tar(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The tar file of a folder of batches, in the folder's place."""
    path = folder / cifar10.PACKED
    with tarfile.open(path, "w:gz") as archive:
        archive.add(folder / "cifar-10-batches-py", "cifar-10-batches-py")
    monkeypatch.setitem(cifar10.MD5, cifar10.PACKED, hashlib.md5(path.read_bytes()).hexdigest())
    (folder / "cifar-10-batches-py").rename(folder / "elsewhere")
    return path


def write_copy(folder: Path) -> dict[str, np.ndarray]:
    made = made_up_batches()
    x, y = (np.concatenate([made[name][j] for name in cifar10.BATCHES]) for j in (0, 1))
    arrays = {
        "x_train": x,
        "y_train": y,
        "x_test": made["test_batch"][0],
        "y_test": made["test_batch"][1],
    }
    np.savez(folder / "cifar10.npz", **arrays)
    return arrays


def put_together(features: Any) -> np.ndarray:
    """The pictures, from what 4, 2 or 1 clients see of them in reading order."""
    seen = [features[f"client_{k}"] for k in range(len(features))]
    lines = [np.concatenate(seen[k : k + 2], axis=3) for k in range(0, len(seen), 2)]
    return np.concatenate(lines, axis=2)


@pytest.mark.parametrize("form", ["python 2", "python 3", "tar", "copy"])
@pytest.mark.parametrize("clients", [1, 2, 4])
def test_cifar10_cut_and_put_together_is_the_picture(
    folder: Path, monkeypatch, form: str, clients: int
) -> None:
    if form == "copy":
        arrays = write_copy(folder)
        x, y, x_test, y_test = (arrays[key] for key in ("x_train", "y_train", "x_test", "y_test"))
    else:
        made = write_batches(folder, 3 if form == "python 3" else 2)
        x, y = (np.concatenate([made[name][j] for name in cifar10.BATCHES]) for j in (0, 1))
        x_test, y_test = made["test_batch"]
        if form == "tar":
            write_tar(folder, monkeypatch)
    data = mtcd.load_dataset("cifar10", clients=clients)
    assert data.clients == tuple(f"client_{k}" for k in range(clients))
    assert set(data.shapes.values()) == {{1: (3, 32, 32), 2: (3, 32, 16), 4: (3, 16, 16)}[clients]}
    assert all(values.dtype == np.float32 for values in data.features.values())
    scaled = x / 255
    mean, deviation = scaled.mean(axis=(0, 1, 2)), scaled.std(axis=(0, 1, 2))
    assert data.test is not None
    for part, pictures, labels in ((data, x, y), (data.test, x_test, y_test)):
        expected = ((pictures / 255 - mean) / deviation).transpose(0, 3, 1, 2)
        np.testing.assert_allclose(put_together(part.features), expected, atol=1e-5)
        np.testing.assert_array_equal(part.labels, labels)
    assert "read from cifar" in data.notes[0]


def test_a_part_of_the_pictures(folder: Path) -> None:
    arrays = write_copy(folder)
    whole = mtcd.load_dataset("cifar10", clients=4)
    pictures = zip(put_together(whole.features), arrays["y_train"], strict=True)
    label_of = {picture.tobytes(): label for picture, label in pictures}
    part = mtcd.load_dataset("cifar10", clients=4, samples=30, test_samples=10, seed=3)
    assert (part.samples, part.test.samples) == (30, 10)
    assert [
        label_of[picture.tobytes()] for picture in put_together(part.features)
    ] == part.labels.tolist()
    assert "30 samples and 10 test samples, drawn with seed 3" in part.notes[0]
    again, other = (
        mtcd.load_dataset("cifar10", clients=4, samples=30, seed=seed) for seed in (3, 4)
    )
    np.testing.assert_array_equal(again.labels, part.labels)
    assert (other.labels != part.labels).any()
    with pytest.raises(DataError, match="20 test samples, fewer than 21"):
        mtcd.load_dataset("cifar10", clients=4, test_samples=21)


@pytest.mark.parametrize("clients", [3, 5, 16])
def test_other_numbers_of_clients_are_refused(folder: Path, clients: int) -> None:
    write_copy(folder)
    with pytest.raises(DataError, match=f"1, 2 or 4 clients, not for {clients}"):
        mtcd.load_dataset("cifar10", clients=clients)
    with pytest.raises(ConfigError, match="clients must be 1 or more"):
        mtcd.load_dataset("cifar10", clients=0)


class Evil:
    """A pickle of this makes a folder when it is read in the usual way."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_an_evil_pickle_is_refused_and_nothing_runs(folder: Path, protocol: int) -> None:
    write_batches(folder)
    path, trace = folder / "cifar-10-batches-py" / "data_batch_3", folder / "it ran"
    path.write_bytes(pickle.dumps({b"data": Evil(trace), b"labels": []}, protocol=protocol))
    with pytest.raises(
        DataError, match=r"data_batch_3 is damaged .*it asks for \w+\.mkdir, which no picture needs"
    ):
        mtcd.load_dataset("cifar10", clients=4)
    assert not trace.exists()
    pickle.loads(path.read_bytes())  # the test can fail: read in the usual way, it does run
    assert trace.exists()


def test_damaged_batches_are_refused(folder: Path) -> None:
    made = write_batches(folder)
    path = folder / "cifar-10-batches-py" / "data_batch_2"
    pictures, labels = made["data_batch_2"]
    fine = path.read_bytes()
    contents = [
        (fine[:-200], ""),
        (fine[:100], ""),
        (b"", ""),
        (pickle.dumps([1, 2]), ""),
        (pickle.dumps({b"labels": []}), "data"),
        (pickled(pictures[:-1], labels[:-1]), "there are 19 pictures"),
        (pickled(pictures[:, :-1], labels), ""),
        (pickled(pictures.astype(np.int16), labels), "not of bytes"),
        (pickled(pictures, labels[:-1]), "no list of 20 whole numbers"),
        (pickled(pictures, np.where(labels == 9, 10, labels)), "labels other than 0 to 9"),
        (pickled(pictures, np.where(labels == 9, -1, labels)), "labels other than 0 to 9"),
    ]
    for content, says in contents:
        path.write_bytes(content)
        with pytest.raises(
            DataError, match=rf"data_batch_2 is damaged or another version \(.*{says}"
        ):
            mtcd.load_dataset("cifar10", clients=4)
    path.write_bytes(pickled(pictures, np.where(labels == 9, 8, labels)))
    with pytest.raises(DataError, match="classes are not equally many"):
        mtcd.load_dataset("cifar10", clients=4)
    path.unlink()
    with pytest.raises(DataError, match="data_batch_2.*No such file"):
        mtcd.load_dataset("cifar10", clients=4)


def test_a_tar_file_that_is_not_the_published_one_is_refused(folder: Path, monkeypatch) -> None:
    write_batches(folder)
    published = cifar10.MD5[cifar10.PACKED]
    path = write_tar(folder, monkeypatch)
    monkeypatch.setitem(cifar10.MD5, cifar10.PACKED, published)
    with pytest.raises(
        DataError, match=r"its md5 is \w{32}, but should be c58f30108f718f92721af3b95e74349a"
    ):
        mtcd.load_dataset("cifar10", clients=4)
    with tarfile.open(path, "w:gz") as archive:  # a link in place of a batch
        for name in (*cifar10.BATCHES[1:], cifar10.TEST):
            archive.add(folder / "elsewhere" / name, f"cifar-10-batches-py/{name}")
        link = tarfile.TarInfo("cifar-10-batches-py/data_batch_1")
        link.type, link.linkname = tarfile.SYMTYPE, "data_batch_2"
        archive.addfile(link)
    monkeypatch.setitem(cifar10.MD5, cifar10.PACKED, hashlib.md5(path.read_bytes()).hexdigest())
    with pytest.raises(DataError, match="holds no file cifar-10-batches-py/data_batch_1"):
        mtcd.load_dataset("cifar10", clients=4)


def test_a_copy_of_another_kind_is_refused(folder: Path) -> None:
    fine = write_copy(folder)
    wrong = [
        {"x_train": fine["x_train"][:, :16]},
        {"x_test": fine["x_test"].astype(float)},
        {"y_train": fine["y_train"] + 1},
        {"y_train": fine["y_train"][:-1]},
        {"y_test": np.zeros(BATCH, dtype=int)},
        {"x_test": np.array([None])},
    ]
    for change in wrong:
        np.savez(folder / "cifar10.npz", **fine | change)
        with pytest.raises(DataError, match=r"cifar10\.npz is damaged"):
            mtcd.load_dataset("cifar10", clients=4)
    (folder / "cifar10.npz").write_bytes(b"no npz")
    with pytest.raises(DataError, match=r"cifar10\.npz is damaged"):
        mtcd.load_dataset("cifar10", clients=4)
