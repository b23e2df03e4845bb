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


def report(found: Iterable[dict[str, Any]], by: str = "package") -> None:
    """The survivors, and a score per package (or per sort of slip) and in all."""
    rows = list(found)
    for row in rows:
        if not row["killed"]:
            print(f"\n{row['place']} ({row['how']})\n{row['diff']}")

    print(f"\n{by:20}killed    of   score")
    for name in (*sorted({row[by] for row in rows}), None):
        mine = [row["killed"] for row in rows if name in (None, row[by])]
        print(
            f"{name or 'all':19} {sum(mine):6} {len(mine):5} {sum(mine) / max(len(mine), 1):7.1%}"
        )

    print(
        f"The aim is {AIM:.0%} of those that change something; list the others in "
        f"equivalent.yaml (slips: equivalent_slips.yaml), see CONTRIBUTING.md."
    )


def kept_scores(results: Results) -> None:
    """The scores of random mutants and of slips, side by side, of all that were ever tried here."""
    for kind in ("random", "slip"):
        killed = [row["killed"] for row in results.known.values() if row.get("kind") == kind]
        if killed:
            print(
                f"all tried so far, {kind:6} {sum(killed):6} {len(killed):5} "
                f"{sum(killed) / len(killed):7.1%}"
            )
