"""``python -m documentation``: write the parts of the pages that are made from the code, and the
package's stub."""

from __future__ import annotations

from documentation.regions import ROOT, stale_pages
from documentation.stub import STUB, stub


def main() -> None:
    """Write every page that the code has left behind, and name it."""
    for page, text in stale_pages().items():
        page.write_text(text, encoding="utf-8")
        print(f"Wrote {page.relative_to(ROOT)}.")

    if not STUB.exists() or STUB.read_text(encoding="utf-8") != stub():
        STUB.write_text(stub(), encoding="utf-8")
        print(f"Wrote {STUB.relative_to(ROOT)}.")


if __name__ == "__main__":
    main()
