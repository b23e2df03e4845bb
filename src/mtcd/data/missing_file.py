"""The error of a data file that is not there, also where an address of the web or of a store was
named instead."""

from __future__ import annotations

import re
from pathlib import Path

from mtcd.core.errors import DataError

# 's3:', 'https:'; one letter alone is a drive of Windows
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")


def no_such_file(path: Path) -> DataError:
    """The error for a file that does not exist: what was looked for, where, and what can be
    read."""
    address = _address(path)
    if address is None:
        return DataError(
            f"There is no file {path}: check the path (it was looked for from {Path.cwd()})."
        )

    # browsers show paths like this, and people copy them
    if address.startswith("file:"):
        return DataError(f"{address} is an address: name the file by its path, without 'file://'.")

    return DataError(
        f"{address} is an address, and data is read from files of this machine: .csv, .tsv, "
        ".parquet, or svmlight. Copy it to this machine and name the copy; or read it in Python "
        "(polars.read_parquet, pandas.read_csv) and pass the frame to mtcd.split."
    )


def _address(path: Path) -> str | None:
    """The address that was made into this path, by which '//' became '/'; None if it was a path.

    A config puts its own folder in front, so the scheme may stand at any place.
    """
    for i, part in enumerate(path.parts):
        if _SCHEME.fullmatch(part):
            slashes = "//"
            if part == "file:":  # of a file of this machine, the host is left out
                slashes = "///"
            return part + slashes + "/".join(path.parts[i + 1 :])
    return None
