"""The data folder: its location, its files, and checks of their content."""

from __future__ import annotations

import gzip
import hashlib
import os
import tarfile
import zlib
from collections.abc import Sequence
from pathlib import Path

from mtcd.core.errors import DataError

VARIABLE = "MTCD_DATA"
BROKEN = (OSError, EOFError, zlib.error, tarfile.TarError)


def places(subfolder: str) -> tuple[Path, ...]:
    """Where files are looked for: in the data folder, and in the data set's own folder inside
    it."""
    named = os.environ.get(VARIABLE)
    folder = Path(named or "").absolute()
    return (folder, folder / subfolder) if named else ()


def find(subfolder: str, name: str) -> Path | None:
    """The file of that name, plain or compressed; or the folder, not empty, if the name ends in
    /."""
    if name.endswith("/"):
        return next(
            (place / name for place in places(subfolder) if _holds_something(place / name)), None
        )
    candidates = (
        place / f"{name}{ending}" for place in places(subfolder) for ending in ("", ".gz")
    )
    # false, not an error, if forbidden
    return next((path for path in candidates if os.path.isfile(path)), None)


def find_all(subfolder: str, choices: Sequence[Sequence[str]]) -> dict[str, Path] | None:
    """The files of the first choice of which all are there."""
    for names in choices:
        found = {name: path for name in names if (path := find(subfolder, name))}
        if len(found) == len(names):
            return found
    return None


def absence(subfolder: str, choices: Sequence[Sequence[str]]) -> str:
    """The error for missing files, with the searched locations."""
    looked = places(subfolder)
    if not looked:
        wanted = ", or ".join(" and ".join(names) for names in choices)
        return (
            f"{VARIABLE} is not set. Set this environment variable to a folder that holds {wanted}."
        )
    if not os.path.isdir(looked[0]):
        return f"{VARIABLE} names the folder {looked[0]}, which does not exist. Make it, or name another."
    missing = [[name for name in names if not find(subfolder, name)] for names in choices]
    wanted = ", and no ".join(" and no ".join(names) for names in missing)
    return f"there is no {wanted} in {looked[0]} (named by {VARIABLE}) or in {looked[1]}."


def content(path: Path) -> bytes:
    """The uncompressed content of a file."""
    try:
        packed = path.read_bytes()
        return gzip.decompress(packed) if path.suffix == ".gz" else packed
    except BROKEN as error:
        raise damaged(path, str(error)) from None


def member(path: Path, name: str) -> bytes:
    """The content of one file inside a compressed tar file."""
    return members(path, [name])[name]


def members(path: Path, names: Sequence[str]) -> dict[str, bytes]:
    """What is in some files inside a compressed tar file; links and the like are no files."""
    found: dict[str, bytes] = {}
    try:
        with tarfile.open(path, "r:gz") as archive:
            for entry in archive:  # in their order, so that it is uncompressed once
                if entry.name in names and entry.isreg() and (file := archive.extractfile(entry)):
                    found[entry.name] = file.read()
    except BROKEN as error:
        raise damaged(path, str(error)) from None
    if missing := [name for name in names if name not in found]:
        raise damaged(path, f"it holds no file {missing[0]}")
    return found


def verified(found: bytes, sha256: str, path: Path) -> bytes:
    """The same bytes, if their checksum is the published one."""
    digest = hashlib.sha256(found).hexdigest()
    if digest != sha256:
        raise damaged(path, f"the sha256 of its content is {digest}, but should be {sha256}")
    return found


def _holds_something(folder: Path) -> bool:
    try:
        return any(folder.iterdir())
    except OSError:  # not there, no folder, or forbidden
        return False


def damaged(path: Path, why: str) -> DataError:
    """The error for a file with unexpected content."""
    return DataError(f"{path} is damaged or another version ({why}): remove it and get it again.")
