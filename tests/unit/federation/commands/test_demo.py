"""mtcd federation demo where a party fails."""

from pathlib import Path
from typing import Any

import pytest

from mtcd.core.errors import MtcdError
from mtcd.federation.commands import demo


class Ended:
    """Processes of which one has failed."""

    def __init__(self, *_: Any) -> None:
        self.codes: dict[str, int] = {}

    def start(self, *names: str) -> None:
        self.codes = dict.fromkeys(names, 0) | {"clinic_b": 2}

    def wait(self) -> dict[str, int]:
        return self.codes

    def end(self) -> None:
        pass


def test_a_party_that_fails_is_named_with_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "Processes", Ended)
    with pytest.raises(MtcdError, match=r"^clinic_b failed.*log\.jsonl in .*bundles/NAME/run"):
        demo.run_demo(tmp_path / "demo", 2, True, 0, 5)
