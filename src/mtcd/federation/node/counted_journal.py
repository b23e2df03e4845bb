"""A journal that counts its commits and their time."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Any

from mtcd.federation.delivery.journal import FileJournal
from mtcd.federation.node.counters import Durations


class CountedJournal(FileJournal):
    """A journal that counts its commits, and the seconds that each takes."""

    def __init__(self, path: Path, sync: bool, commits: Durations) -> None:
        super().__init__(path, sync)
        self._commits = commits

    def commit(self, value: Any) -> None:
        began = perf_counter()
        super().commit(value)
        self._commits.add(perf_counter() - began)
