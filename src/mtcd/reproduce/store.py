"""A store of finished trainings, one JSON file each, so that nothing is trained twice."""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from mtcd.config.read import table_files
from mtcd.config.schema import Config
from mtcd.errors import MtcdError
from mtcd.files import write_whole
from mtcd.reproduce.results import Trained
from mtcd.reproduce.schema import Measure
from mtcd.version import VERSION

FORMAT = 2  # count up when a training gives other numbers, or is kept in another form
LINKS = ("client_client", "client_server")
SENT = (*LINKS, *(f"floats_{link}" for link in LINKS))  # messages, and floats, by kind of link
COLUMNS: dict[Measure, tuple[str, ...]] = {
    "gap": ("iteration", "gap", *SENT),
    "accuracy": ("iteration", "epoch", "test_accuracy", "accuracy", "objective", *SENT),
}

Record = dict[str, Any]
"""A training in plain values: config, status, message, stepsize, seconds, notes, columns."""


class Store:
    """The folder of kept trainings. With ``fresh``, those from before are not looked at."""

    def __init__(self, folder: Path, fresh: bool = False) -> None:
        self.folder, self.fresh = folder, fresh
        self._saved: set[Path] = set()

    def path(self, config: Config) -> Path:
        """Where the training with this config belongs, whichever figures show it: another config, another file."""
        given = config.model_dump(mode="json", exclude_defaults=True)  # a new key with a default changes nothing
        identity = f"{FORMAT} {VERSION} {json.dumps(given, sort_keys=True)} {_files(config)}"
        digest = hashlib.blake2b(identity.encode(), digest_size=8).hexdigest()
        return self.folder / f"{config.method.kind.replace(':', '-')}-seed{config.seed}-{digest}.json"

    def load(self, path: Path) -> Trained | None:
        """The stored training; a damaged file counts as missing."""
        if self.fresh and path not in self._saved:
            return None
        try:
            return as_trained(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None

    def save(self, path: Path, record: Record) -> Trained:
        """Keep a training."""
        trained = as_trained(record)
        try:
            write_whole(path, json.dumps(record, allow_nan=False))
        except MtcdError as error:
            hint = "Make room or choose another --out; what was kept before is still there."
            raise MtcdError(f"A training could not be kept: {error} {hint}") from None
        self._saved.add(path)
        return trained


def measure_of(config: Config) -> Measure:
    """The stored columns of a training: the gap, if it is trained up to one."""
    return "accuracy" if config.stop.gap is None else "gap"


def as_trained(record: Record) -> Trained:
    """A Trained from plain values; an error if they are not whole."""
    names = COLUMNS["gap" if "gap" in record["columns"] else "accuracy"]
    columns = {name: np.array(record["columns"][name], dtype=float) for name in names}
    lengths = {column.shape for column in columns.values()}
    if len(lengths) != 1 or lengths <= {(0,), ()} or not all(np.isfinite(c).all() for c in columns.values()):
        raise ValueError("the columns are not whole")
    return Trained(
        seed=int(record["config"]["seed"]),
        status=str(record["status"]),
        stepsize=None if record["stepsize"] is None else float(record["stepsize"]),
        seconds=float(record["seconds"]),
        columns=columns,
        notes=tuple(str(note) for note in record["notes"]),
    )


def _files(config: Config) -> str:
    """What is in the files that the config names: other content is another training."""
    paths = [] if config.network.edges is None else [config.network.edges]
    paths += table_files(config)
    modules = [name.partition(":")[0].replace(".", "/") for name in config.own_parts.values()]
    paths += [(config.code or Path()) / f"{module}.py" for module in modules]
    return "".join(_digest(path, *_state(path)) for path in paths)


def _state(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return 0, 0  # the training will say what is wrong with it
    return found.st_mtime_ns, found.st_size


@lru_cache(maxsize=64)
def _digest(path: Path, changed: int, size: int) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""
