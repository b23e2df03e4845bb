"""ModelNet10: 4899 pieces of furniture of ten kinds, each seen from several sides; a client sees
some of the views.

Read from ``views64.npz`` (arrays x_train, y_train, x_test, y_test and classes), or from a folder of
PNG files: class/train/object/view.png and class/test/object/view.png, or, as MVCNN's authors pack
them, class/train/object_view.png. Classes, objects and views are taken in the order of their names.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mtcd.core.errors import DataError, listing
from mtcd_experiments.datasets.entry import Pictures, RawPictures
from mtcd_experiments.datasets.folder import damaged
from mtcd_experiments.datasets.pictures import read_arrays

COPY, FOLDERS = "views64.npz", ("ModelNet10/", "modelnet10/")
SIDE = 64
GREY_OR_COLOUR = ("L", "P", "RGB")

Bytes = NDArray[np.uint8]
Labels = NDArray[np.int64]


def read(files: Mapping[str, Path]) -> RawPictures:
    """All objects, as grey views of 64 x 64."""
    name, path = next(iter(files.items()))
    return _from_copy(files) if name == COPY else _from_folder(path)


def cut(shape: tuple[int, ...], clients: int) -> list[tuple[slice, ...]]:
    """Each client sees as many views as any other, neighbours in the order of their names."""
    views = shape[0]
    if views % clients:
        possible = [k for k in range(1, views + 1) if views % k == 0]
        raise DataError(
            f"{views} views cannot be shared evenly by {clients} clients: ask for "
            f"{listing(possible)}."
        )
    each = views // clients
    return [(slice(k * each, (k + 1) * each),) for k in range(clients)]


def _from_copy(files: Mapping[str, Path]) -> RawPictures:
    _, (x, y, x_test, y_test, classes) = read_arrays(
        files, COPY, "x_train", "y_train", "x_test", "y_test", "classes"
    )
    for views, labels in ((x, y), (x_test, y_test)):
        if (
            views.ndim != 4
            or views.shape[1:] != (x.shape[1], SIDE, SIDE)
            or views.dtype != np.uint8
        ):
            raise damaged(
                files[COPY],
                f"views have the shape {views.shape}, {views.dtype}, not (objects, views, 64, 64)",
            )
        if labels.shape != views.shape[:1] or labels.dtype.kind not in "iu" or classes.ndim != 1:
            raise damaged(files[COPY], "there is not one whole number as label for each object")
        if not ((labels >= 0) & (labels < len(classes))).all():
            raise damaged(files[COPY], f"there are labels other than 0 to {len(classes) - 1}")
    note = _note(
        x,
        x_test,
        classes.tolist(),
        f"{COPY}: rendered from 1024-point clouds, not the official MVCNN images",
    )
    return RawPictures(x, y.astype(np.int64), x_test, y_test.astype(np.int64), note)


def _from_folder(root: Path) -> RawPictures:
    classes = _folders(root)
    if not classes:
        raise DataError(
            f"{root} holds no folder: there should be one per class, with folders train and test "
            f"in it."
        )
    parts: dict[str, tuple[Bytes, Labels]] = {}
    views, size = 0, (0, 0)
    for split in ("train", "test"):
        objects = [
            (label, paths)
            for label, name in enumerate(classes)
            for paths in _objects(root / name / split)
        ]
        views = views or len(objects[0][1])
        size = size if any(size) else _size(objects[0][1][0])
        for _, paths in objects:
            if len(paths) != views:
                raise DataError(
                    f"{paths[0]} belongs to an object with {len(paths)} views, but others have "
                    f"{views}."
                )
        pictures = np.array([[_picture(path, size) for path in paths] for _, paths in objects])
        parts[split] = pictures, np.array([label for label, _ in objects])
    note = _note(
        parts["train"][0],
        parts["test"][0],
        classes,
        f"the folder {root.name}, of {size[0]} x {size[1]} pixels",
    )
    return RawPictures(*parts["train"], *parts["test"], note)


def _objects(folder: Path) -> list[list[Path]]:
    """The pictures of each object: in a folder of its own, or named as what stands before the last
    underscore."""
    objects: dict[str, list[Path]] = defaultdict(list)
    if not folder.is_dir():
        raise DataError(
            f"There is no folder {folder}: each class needs its folders train and test."
        )
    for name in _folders(folder):
        objects[name] = _pngs(folder / name)
        if not objects[name]:
            raise DataError(
                f"{folder / name} holds no PNG file: remove this object, or put its views there."
            )
    for path in [] if objects else _pngs(folder):
        objects[path.stem.rpartition("_")[0]].append(path)
    if not objects:
        raise DataError(
            f"{folder} holds neither folders nor PNG files: put the views of its objects there."
        )
    return [objects[name] for name in sorted(objects)]


def _picture(path: Path, size: tuple[int, int]) -> Bytes:
    """One view, grey; larger or smaller ones are scaled to 64 x 64."""
    from PIL import Image

    try:
        with Image.open(path) as image:
            if image.size != size:
                raise ValueError(
                    f"it is {image.size[0]} x {image.size[1]}, others are {size[0]} x {size[1]}"
                )
            if image.mode not in GREY_OR_COLOUR:
                raise ValueError(f"its mode is {image.mode}: save it as grey or RGB, with 8 bits")
            grey = image.convert("RGB").convert("L") if image.mode == "P" else image.convert("L")
            return np.asarray(
                grey if size == (SIDE, SIDE) else grey.resize((SIDE, SIDE), Image.Resampling.BOX)
            )
    except Exception as error:  # Pillow raises all sorts of things for files that are no pictures
        raise damaged(path, str(error)) from None


def _size(path: Path) -> tuple[int, int]:
    from PIL import Image

    try:
        with Image.open(path) as image:
            width, height = image.size
    except Exception as error:
        raise damaged(path, str(error)) from None
    if width != height:
        raise damaged(path, f"it is {width} x {height}, but views are square")
    return width, height


def _folders(folder: Path) -> list[str]:
    return [path.name for path in _inside(folder) if path.is_dir()]


def _pngs(folder: Path) -> list[Path]:
    return [path for path in _inside(folder) if path.suffix.lower() == ".png"]


def _inside(folder: Path) -> list[Path]:
    """What is in a folder and not hidden, by name."""
    try:
        return sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError as error:
        raise DataError(
            f"{folder} cannot be read ({error.strerror}): mend its permissions."
        ) from None


def _note(train: Bytes, test: Bytes, classes: Sequence[str], source: str) -> str:
    return (
        f"modelnet10: {len(train)} objects for training and {len(test)} for the test, "
        f"{train.shape[1]} views each, "
        f"of the classes {', '.join(map(str, classes))}. Read from {source}."
    )


MODELNET10 = Pictures(
    title="ModelNet10",
    subfolder="modelnet10",
    files=((COPY,), *((folder,) for folder in FOLDERS)),
    how="download ModelNet10.zip from https://modelnet.cs.princeton.edu, render each model from several sides (or take "
    "the classes of ModelNet10 out of the pictures that MVCNN's authors made of ModelNet40), and "
    "put the views "
    "into the data folder as ModelNet10/class/train/object/view.png, and test in place of train.",
    read=read,
    cut=cut,
    by_channel=False,
)
