"""Pages that promise results bit for bit link to what this takes: the same number of threads, above
all."""

import re
from pathlib import Path

import pytest

from project import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SECTION = "### Bit for bit"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_promise_links_to_its_condition(page: Path) -> None:
    text = page.read_text(encoding="utf-8").partition(SECTION)[0]
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    promises = re.findall(r"bit for bit", prose)
    links = re.findall(r"\[bit for bit\]\((?:docs/)?(?:callbacks\.md)?#bit-for-bit\)", prose)
    assert len(links) == len(promises)


def test_the_condition_names_the_threads() -> None:
    section = (ROOT / "docs/callbacks.md").read_text(encoding="utf-8").partition(SECTION)[2]
    assert "same number of BLAS threads" in section
    assert "OPENBLAS_NUM_THREADS=1" in section
