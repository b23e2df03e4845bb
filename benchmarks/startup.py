"""How long `mtcd --help` takes, against a Python that starts and does nothing."""

from __future__ import annotations

import subprocess
import sys

from benchmarks.timing import best_of, report


def _run(*arguments: str) -> None:
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    """One line."""
    ours, floor = best_of(lambda: _run("-m", "mtcd", "--help"), lambda: _run("-c", "pass"))
    report("mtcd --help", ours, floor, "ms", 1e3, note="floor: python -c pass; aim: 500 ms")


if __name__ == "__main__":
    main()
