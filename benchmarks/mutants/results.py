"""What became of the mutants that were tried: kept for the next run, and shown."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

AIM = 0.95


class Results:
    """What became of each mutant that was tried, as lines of JSON."""

    def __init__(self, file: Path, folder: Path) -> None:
        self.file = file
        lines = file.read_text().splitlines() if file.exists() else []
        self.known: dict[str, dict[str, Any]] = {
            line["key"]: line for line in map(json.loads, lines)
        }
        tests = b"".join(test.read_bytes() for test in sorted(folder.rglob("*.py")))
        self.tests = hashlib.sha256(tests).hexdigest()[:16]

    def get(self, key: str, seconds: float) -> dict[str, Any] | None:
        """What is known, unless it survived and tests have changed since, or now get more time."""
        found = self.known.get(key)
        if found is None or found["killed"]:
            return found
        return found if found["tests"] == self.tests and found["limit"] >= seconds else None

    def add(self, key: str, seconds: float, **facts: Any) -> dict[str, Any]:
        """What came of it with tests of so many seconds."""
        self.known[key] = facts | {"key": key, "tests": self.tests, "limit": seconds}
        with self.file.open("a") as lines:
            lines.write(json.dumps(self.known[key]) + "\n")
        return self.known[key]


def report(found: Iterable[dict[str, Any]]) -> None:
    """The survivors, and a score per package and in all."""
    rows = list(found)
    for row in rows:
        if not row["killed"]:
            print(f"\n{row['place']} ({row['how']})\n{row['diff']}")
    print("\npackage             killed    of   score")
    for package in (*sorted({row["package"] for row in rows}), None):
        mine = [row["killed"] for row in rows if package in (None, row["package"])]
        print(
            f"{package or 'all':18} {sum(mine):7} {len(mine):5} "
            f"{sum(mine) / max(len(mine), 1):7.1%}"
        )
    print(
        f"The aim is {AIM:.0%} of those that change something; list the others in "
        f"equivalent.yaml, see CONTRIBUTING.md."
    )
