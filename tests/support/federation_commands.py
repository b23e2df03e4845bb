"""mtcd federation, run as a command."""

import pytest

from mtcd.cli.app import main

pytest.importorskip("cryptography")


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as left:
        main(["federation", *map(str, words)])
    out, err = capsys.readouterr()
    return int(left.value.code or 0), out, err
