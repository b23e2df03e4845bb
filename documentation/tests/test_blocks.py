"""Every block of every page is run, checked or marked with a reason: do what each page says."""

import subprocess
import sys
from pathlib import Path

import pytest
from documentation.blocks import ROOT, all_pages, blocks
from documentation.session import environment

# parties that run side by side
ELSEWHERE = {"docs/federation-tutorial.md": "tests/processes/operations/test_tutorial.py"}
PAGES = {
    str(page.relative_to(ROOT)): blocks(page.read_text(encoding="utf-8")) for page in all_pages()
}


@pytest.mark.parametrize("page", PAGES)
def test_no_block_is_left_untried(page: str) -> None:
    assert [block.line for block in PAGES[page] if not block.fate] == [], (
        "mark these: see documentation/blocks.py"
    )


@pytest.mark.parametrize(
    "page", [page for page, found in PAGES.items() if found and page not in ELSEWHERE]
)
def test_what_a_page_says_works(page: str, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    command = [sys.executable, "-m", "documentation.session", str(ROOT / page)]
    done = subprocess.run(
        command,
        cwd=tmp_path / "work",
        env=environment(tmp_path / "bin"),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("page", "test"), ELSEWHERE.items())
def test_pages_that_another_test_runs_are_named_there(page: str, test: str) -> None:
    assert Path(page).name in (ROOT / test).read_text(encoding="utf-8")
