"""The runner of pages: what is wrong on a page makes it fail."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from documentation.printed import missing_lines
from documentation.session import environment

GOOD = """
<!-- file: config.yaml -->
```yaml
data: {synthetic: ridge, samples: 10, features: 4, clients: 2}
```
```sh
grep -c synthetic config.yaml
```
```text
1
```
<!-- setup: python
x = 1
-->
```python
print("x is", x + 1)
```
```text
x is 2
```
<!-- laid over: config.yaml -->
```yaml
seed: 3
```
<!-- not run: an example -->
```toml
a = 1
```
"""


def outcome(page: str, folder: Path) -> tuple[int, str]:
    (folder / "page.md").write_text(page)
    (folder / "work").mkdir()
    command = [sys.executable, "-m", "documentation.session", str(folder / "page.md")]
    done = subprocess.run(
        command,
        cwd=folder / "work",
        env=environment(folder / "bin"),
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stderr


def test_a_page_that_is_right(tmp_path: Path) -> None:
    assert outcome(GOOD, tmp_path) == (0, "")


@pytest.mark.parametrize(
    ("right", "wrong", "told"),
    [
        ("samples: 10", "smaples: 10", "line 2: .*smaples"),
        ("grep -c", "grep -v", "line 6: .*exit code 1"),
        ("x is 2", "x is 3", "line 18: .*x is 3"),
        ("print(", "raise ValueError(", "line 15: ValueError"),
        ("seed: 3", "sede: 3", "line 21: .*sede"),
        ("<!-- not run: an example -->\n", "", "line 25: .*nobody says"),
    ],
)
def test_a_page_that_is_wrong_is_told_with_the_line(
    right: str, wrong: str, told: str, tmp_path: Path
) -> None:
    code, error = outcome(GOOD.replace(right, wrong), tmp_path)
    assert code == 1
    assert re.search(told, error, re.DOTALL), error


@pytest.mark.parametrize(
    ("expected", "missing"),
    [
        ("cost 98.9", []),
        ("cost 99.9", []),
        ("cost 110", ["cost 110"]),
        ("cost ...", []),
        ("seconds ...", ["seconds ..."]),
        ("a │ table", []),
        ("a table\ncost 98.9", ["cost 98.9"]),
    ],
)
def test_lines_are_compared_word_by_word_in_their_order(expected: str, missing: list[str]) -> None:
    assert missing_lines(expected, "cost 98.9\n│ a ┃ table │\n") == missing
