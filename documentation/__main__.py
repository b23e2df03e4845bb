"""``python -m documentation``: write the parts of the pages that are made from the code."""

from __future__ import annotations

from documentation.regions import ROOT, stale_pages


def main() -> None:
    """Write every page that the code has left behind, and name it."""
    for page, text in stale_pages().items():
        page.write_text(text, encoding="utf-8")
        print(f"Wrote {page.relative_to(ROOT)}.")


if __name__ == "__main__":
    main()
