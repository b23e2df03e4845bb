"""A change of one place of one module, whatever sort of change it is."""

from __future__ import annotations

import difflib
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from benchmarks.mutants.equivalent import PACKAGE


@dataclass(frozen=True)
class Change(ABC):
    """One change of one module."""

    path: str
    """From the root of the repository."""
    function: str
    """In which the change is, by its qualified name; empty outside of functions."""
    line: int
    operator: str

    readers: ClassVar[tuple[str, ...]] = ()
    """Tests that read the source instead of calling it, and may see this change there."""

    watchers: ClassVar[tuple[str, ...]] = ()
    """What the names of tests begin with that look at changes of this sort in all parties."""

    @property
    def package(self) -> str:
        return self.path.removeprefix(PACKAGE).rpartition("/")[0]

    @abstractmethod
    def mutated(self, root: Path) -> str:
        """The module with this change, in as many lines as it has without."""

    def diff(self, root: Path) -> str:
        """What is changed."""
        source = (root / self.path).read_text(encoding="utf-8")
        lines = difflib.unified_diff(
            source.splitlines(), self.mutated(root).splitlines(), lineterm="", n=0
        )
        return "\n".join(line for line in lines if not line.startswith(("---", "+++", "@@")))
