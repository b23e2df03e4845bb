"""All runs of the long suite, or those whose names have a word in them: ``python -m faulty
[WORD]``."""

from __future__ import annotations

import sys
import tempfile
import traceback
from collections import Counter
from pathlib import Path
from time import monotonic

from faulty.suite import SUITE


def main(word: str = "") -> int:
    """Do them one after the other; returns how many failed."""
    happened: Counter[str] = Counter()
    failed, began = [], monotonic()
    for name, run in SUITE.items():
        if word not in name:
            continue
        print(f"{name}", flush=True)
        start = monotonic()
        with tempfile.TemporaryDirectory(prefix="mtcd-faults-") as folder:
            try:
                happened += run(Path(folder) / "run", lambda told: print(f"  {told}", flush=True))
                print(f"  holds, {monotonic() - start:.0f} s", flush=True)
            except Exception:
                failed.append(name)
                traceback.print_exc(file=sys.stdout)
    counts = ", ".join(f"{count} {kind}" for kind, count in happened.most_common())
    print(f"{sum(happened.values())} faults in {monotonic() - began:.0f} s: {counts}.")
    print(f"Failed: {', '.join(failed)}." if failed else "All holds.")
    return len(failed)


if __name__ == "__main__":
    sys.exit(min(main(*sys.argv[1:2]), 1))
