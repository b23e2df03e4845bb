"""Print the requirements of an extra of pyproject.toml, line by line, without those of some other extras.

``python .ci/requirements.py test torch``: all that the tests need except what the extra torch has.
"""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"


def requirements(extra: str, without: set[str]) -> Iterator[str]:
    """The requirements of the extra and of those extras that it names."""
    for line in tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ][extra]:
        named = re.fullmatch(r"mtcd\[(\w+)\]", line)
        if named is None:
            yield line
        elif named[1] not in without:
            yield from requirements(named[1], without)


if __name__ == "__main__":
    print("\n".join(requirements(sys.argv[1], set(sys.argv[2:]))))
