"""ModelNet10 from folders of pictures and from arrays, and what the catalogue says of pictures."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import mtcd
from mtcd.core.errors import DataError
from mtcd_experiments.datasets.catalogue import (
    PICTURES,
    first_present,
    is_present,
    load_pictures,
    load_table,
)
from mtcd_experiments.datasets.pictures import statistics

REAL = {name: is_present(name) for name in PICTURES}  # before the tests name folders of their own
CLASSES, VIEWS = ["bed", "chair", "night_stand"], 4


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data folder."""
    monkeypatch.setenv("MTCD_DATA", str(tmp_path))
    return tmp_path


def made_up_views() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    y_train, y_test = np.array([0, 0, 1, 2, 2]), np.array([0, 1, 2, 2])
    x_train, x_test = (
        rng.integers(0, 256, (len(y), VIEWS, 64, 64), dtype=np.uint8) for y in (y_train, y_test)
    )
    return {
        "x_train": x_train,
        "y_train": y_train,
        "x_test": x_test,
        "y_test": y_test,
        "classes": np.array(CLASSES),
    }


def write_folders(root: Path, flat: bool = False, scale: int = 1) -> dict[str, np.ndarray]:
    """The same as PNG files, written in no order: each sample is an object, its views numbered."""
    arrays = made_up_views()
    writing = []
    for split in ("train", "test"):
        for j, (views, label) in enumerate(
            zip(arrays[f"x_{split}"], arrays[f"y_{split}"], strict=True)
        ):
            thing = f"{CLASSES[label]}_{j:04}"
            for v, view in enumerate(views):
                name = f"{thing}.obj.shaded_v{v:03}.png" if flat else f"{thing}/{v:03}.png"
                writing.append((root / CLASSES[label] / split / name, view))
    random.Random(0).shuffle(writing)
    for path, view in writing:
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.kron(view, np.ones((scale, scale), dtype=np.uint8))).save(path)
    return arrays


def same(one: Any, other: Any) -> None:
    assert one.clients == other.clients
    for a, b in ((one, other), (one.test, other.test)):
        np.testing.assert_array_equal(a.labels, b.labels)
        for client in one.clients:
            np.testing.assert_array_equal(a.features[client], b.features[client])


@pytest.mark.parametrize("place", ["ModelNet10", "modelnet10", "modelnet10/ModelNet10"])
@pytest.mark.parametrize(("flat", "scale"), [(False, 1), (True, 1), (True, 2)])
def test_folders_of_pictures_equal_the_arrays(
    folder: Path, place: str, flat: bool, scale: int
) -> None:
    arrays = write_folders(folder / place, flat, scale)
    (folder / place / "README.txt").write_text("not a class")
    (folder / place / ".hidden").mkdir()
    from_folders = mtcd.load_dataset("modelnet10", clients=2)
    assert f"{64 * scale} x {64 * scale} pixels" in from_folders.notes[0]
    assert "bed, chair, night_stand" in from_folders.notes[0]
    np.savez(folder / "views64.npz", **arrays)
    from_arrays = mtcd.load_dataset("modelnet10", clients=2)
    same(from_folders, from_arrays)
    assert "rendered from 1024-point clouds, not the official MVCNN images" in from_arrays.notes[0]


@pytest.mark.parametrize("clients", [1, 2, 4])
def test_each_client_sees_its_views_normalised(folder: Path, clients: int) -> None:
    arrays = made_up_views()
    np.savez_compressed(folder / "views64.npz", **arrays)
    data = mtcd.load_dataset("modelnet10", clients=clients)
    assert set(data.shapes.values()) == {(VIEWS // clients, 64, 64)}
    scaled = arrays["x_train"] / 255
    assert data.test is not None
    for part, x in ((data, arrays["x_train"]), (data.test, arrays["x_test"])):
        seen = np.concatenate([part.features[f"client_{k}"] for k in range(clients)], axis=1)
        np.testing.assert_allclose(seen, (x / 255 - scaled.mean()) / scaled.std(), atol=1e-5)
    assert data.labels.tolist() == [0, 0, 1, 2, 2]
    with pytest.raises(
        DataError, match="4 views cannot be shared evenly by 3 clients: ask for 1, 2, 4"
    ):
        mtcd.load_dataset("modelnet10", clients=3)


def test_coloured_views_become_grey(folder: Path) -> None:
    root = folder / "ModelNet10"
    write_folders(root)
    plain = mtcd.load_dataset("modelnet10", clients=4)
    for path in root.rglob("*.png"):
        with Image.open(path) as image:
            grey = image.copy()
        grey.convert("RGB" if "train" in str(path) else "P").save(path)
    same(plain, mtcd.load_dataset("modelnet10", clients=4))


def test_folders_that_do_not_fit_are_refused_by_name(folder: Path) -> None:
    root = folder / "ModelNet10"
    write_folders(root)
    path = root / "chair" / "train" / "chair_0002" / "001.png"
    fine = path.read_bytes()

    def refused(says: str) -> None:
        with pytest.raises(DataError, match=says):
            mtcd.load_dataset("modelnet10", clients=2)

    path.write_bytes(fine[:200])
    refused(r"chair_0002/001\.png is damaged")
    path.write_text("no picture")
    refused(r"chair_0002/001\.png is damaged")
    Image.new("L", (64, 32)).save(path)
    refused(r"chair_0002/001\.png.*it is 64 x 32, others are 64 x 64")
    Image.new("RGBA", (64, 64)).save(path)
    refused(r"chair_0002/001\.png.*its mode is RGBA: save it as grey")
    path.unlink()
    refused("chair_0002/000.png belongs to an object with 3 views, but others have 4")
    for other in path.parent.glob("*.png"):
        other.unlink()
    refused("chair_0002 holds no PNG file")
    path.parent.rmdir()
    refused(r"chair.train holds neither folders nor PNG files")
    path.parent.parent.rmdir()
    refused(r"There is no folder .*chair.train")


def test_arrays_of_another_kind_are_refused(folder: Path) -> None:
    fine = made_up_views()
    wrong = [
        {"x_train": fine["x_train"][:, :, :32]},
        {"x_test": fine["x_test"][:, :3]},
        {"x_test": fine["x_test"].astype(float)},
        {"y_train": fine["y_train"][1:]},
        {"y_test": fine["y_test"] + 1},
        {"y_test": fine["y_test"] * 1.0},
        {"classes": np.array(None)},
    ]
    for change in wrong:
        np.savez(folder / "views64.npz", **fine | change)
        with pytest.raises(DataError, match=r"views64\.npz is damaged"):
            mtcd.load_dataset("modelnet10", clients=2)


# --- the catalogue


@pytest.mark.parametrize("name", PICTURES)
def test_what_is_absent_is_explained(name: str, folder: Path, monkeypatch) -> None:
    (folder / "modelnet10").mkdir()  # an empty folder holds no data set
    assert not is_present(name)
    with pytest.raises(
        DataError, match=f"(?s)there is no .*in {folder}.*{name}.*To get it: download"
    ):
        mtcd.load_dataset(name, clients=2)
    with pytest.raises(DataError, match="(?s)gisette.*To get it.*To get it: download"):
        first_present(["gisette", name])
    monkeypatch.delenv("MTCD_DATA")
    with pytest.raises(DataError, match="MTCD_DATA is not set.*To get it"):
        load_pictures(name, clients=2)


def test_what_is_there_is_found(folder: Path) -> None:
    write_folders(folder / "ModelNet10")
    assert is_present("modelnet10")
    assert first_present(["cifar10", "gisette", "modelnet10"]) == "modelnet10"
    with pytest.raises(DataError, match="did you mean 'cifar10'"):
        mtcd.load_dataset("cifar-10", clients=2)


def test_tables_and_pictures_are_told_apart(folder: Path) -> None:
    with pytest.raises(
        DataError, match="'cifar10' holds pictures, which a linear model has no use for"
    ):
        load_table("cifar10", 4)
    with pytest.raises(DataError, match="'gisette' is a table, not pictures"):
        load_pictures("gisette", 4)
    with pytest.raises(DataError, match="no features can be drawn"):
        mtcd.load_dataset("cifar10", 4, features=3)  # type: ignore[call-overload]
    with pytest.raises(DataError, match="'gisette' has no test set"):
        mtcd.load_dataset("gisette", 4, test_samples=3)


def test_pictures_of_one_shade_stay_finite() -> None:
    mean, deviation = statistics(np.full((3, 2, 4, 4), 51, dtype=np.uint8), by_channel=True)
    assert (mean.tolist(), deviation.tolist()) == ([0.2, 0.2], [1.0, 1.0])


# --- the real ones, where they are at hand


@pytest.mark.real_data
@pytest.mark.skipif(not REAL["cifar10"], reason="cifar10 is not in the folder that MTCD_DATA names")
def test_cifar10_has_the_statistics_that_are_well_known() -> None:
    data = mtcd.load_dataset("cifar10", clients=4, samples=100, test_samples=100)
    assert "less 0.4914 0.4822 0.4465, divided by 0.2470 0.2435 0.2616" in data.notes[0]


@pytest.mark.real_data
@pytest.mark.skipif(
    not REAL["modelnet10"], reason="modelnet10 is not in the folder that MTCD_DATA names"
)
def test_modelnet10_has_the_sizes_that_its_makers_state() -> None:
    data = mtcd.load_dataset("modelnet10", clients=12)
    assert (data.samples, data.test.samples) == (3991, 908)
    assert np.bincount(data.labels).tolist() == [106, 515, 889, 200, 200, 465, 200, 680, 392, 344]
