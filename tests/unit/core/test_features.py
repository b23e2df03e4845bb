"""Features in folders of the package."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from mtcd.core import features


def test_features_come_in_the_order_of_their_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands are listed in this order, and a file system gives files in any."""
    found = Path.rglob

    def backwards(folder: Path, pattern: str) -> Iterator[Path]:
        return iter(sorted(found(folder, pattern), reverse=True))

    monkeypatch.setattr(Path, "rglob", backwards)
    from_the_last = features.built_in.__wrapped__()
    expected = []
    for file in sorted(features.PACKAGE.glob("**/feature.py")):
        folder = ".".join(file.relative_to(features.PACKAGE).parent.parts)
        expected.append(import_module(f"mtcd.{folder}.feature").FEATURE)

    assert list(from_the_last) == expected
