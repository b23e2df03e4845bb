"""What parties of a sealed training tell each other of their parts before it: as little as the
cipher needs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mtcd.core.errors import DataError, WireError
from mtcd.privacy.sealed.settings import SealedSizes

FIELD = "the number of columns"
MOST_COLUMNS = 1_000_000
KEYS = ("columns", "start", "classes")


def columns_to_bytes(columns: int) -> bytes:
    """The report of a party to the label holder: d_k."""
    return json.dumps({"columns": columns}).encode()


def columns_from_bytes(party: str, data: bytes) -> int:
    """Decode and check the report of another party."""
    try:
        report = json.loads(data)
    except (ValueError, RecursionError):
        raise DataError(f"{party}: {FIELD} cannot be read.") from None
    columns = report.get("columns") if isinstance(report, dict) and len(report) == 1 else None
    if type(columns) is not int or not 1 <= columns <= MOST_COLUMNS:
        raise DataError(f"{party}: {FIELD} is out of range.")
    return columns


def sizes_from(settings: Mapping[str, Any], parties: int) -> SealedSizes:
    """The sizes in the settings of a run, checked.

    Args:
        settings: What the label holder has sent.
        parties: The number of parties.

    Raises:
        WireError: If they are not one number of columns for each party, and a bound of f(0).
    """
    columns, start = settings["columns"], settings["start"]
    if not isinstance(columns, list) or len(columns) != parties:
        raise WireError(FIELD, "is not given for each party")
    if not all(type(one) is int and 1 <= one <= MOST_COLUMNS for one in columns):
        raise WireError(FIELD, "is out of range")
    if type(start) is not float or not 0 < start < 1e300:
        raise WireError("start", "is not a finite number above 0")
    return SealedSizes(tuple(columns), start)


def classes_from(settings: Mapping[str, Any]) -> tuple[str | float, ...]:
    """The classes of the labels, which all parties may know: none in regression."""
    classes = settings["classes"]
    if not isinstance(classes, list) or len(classes) not in (0, 2):
        raise WireError("classes", "are not two, or none")
    if not all(isinstance(one, str | float | int) and not isinstance(one, bool) for one in classes):
        raise WireError("classes", "are neither texts nor numbers")
    return tuple(classes)
