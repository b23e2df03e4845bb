"""What pages take from the code is what the code says, and a page that does not is noticed."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from documentation.excerpts import excerpt
from documentation.keys import key_table
from documentation.regions import ROOT, fresh, stale_pages

import mtcd
from mtcd.config.schema import Config


def test_no_page_is_behind_the_code() -> None:
    assert [page.name for page in stale_pages()] == [], "run python -m documentation"


def test_a_page_that_is_behind_the_code_is_noticed(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "config.md").read_text(encoding="utf-8")
    (tmp_path / "same.md").write_text(text, encoding="utf-8")
    (tmp_path / "other.md").write_text(
        text.replace("| `hops` | mtcd |", "| `jumps` | mtcd |"), encoding="utf-8"
    )
    assert stale_pages(tmp_path) == {tmp_path / "other.md": text}


def test_every_key_of_a_config_is_on_the_page() -> None:
    page = (ROOT / "docs" / "config.md").read_text(encoding="utf-8")
    for key in Config.model_fields:
        assert f"| `{key}` |" in page


def test_every_public_name_and_every_command_is_on_a_page() -> None:
    api, cli = (
        (ROOT / "docs" / name).read_text(encoding="utf-8").splitlines()
        for name in ("api.md", "cli.md")
    )
    assert {line.removeprefix("### mtcd.") for line in api if line.startswith("### ")} == set(
        mtcd.__all__
    )
    shown = subprocess.run(
        [sys.executable, "-m", "mtcd", "--help"], capture_output=True, text=True, check=True
    ).stdout
    commands = re.findall(r"^│ ([a-z]+) ", shown.split("Commands")[1], re.MULTILINE)
    assert {"train", "federation"} <= set(commands)
    for command in commands:
        assert f"## mtcd {command}" in cli or f"### mtcd {command}" in cli


def test_a_key_without_a_text_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("documentation.keys.attribute_docs", lambda section: {"ratio": "a price"})
    with pytest.raises(ValueError, match="account, per"):
        key_table("CostsSection")


def test_an_excerpt_is_the_source_without_its_indent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("documentation.excerpts.ROOT", tmp_path)
    (tmp_path / "code.py").write_text(
        "class A:\n    def b(self):\n        if self:\n            return 1\n\nx = 2\n"
    )
    assert "```python\ndef b(self):\n    if self:\n        return 1\n```" in excerpt(
        "code.py", "A.b"
    )


def test_text_outside_of_the_parts_from_the_code_stays() -> None:
    text = "# Title\n<!-- from the code: layers -->\nold\n<!-- end -->\nafter\n"
    made = fresh(text)
    assert made.startswith("# Title\n<!-- from the code: layers -->\n```text\nmodels.glm | ")
    assert made.endswith("<!-- end -->\nafter\n")
    assert fresh(made) == made
