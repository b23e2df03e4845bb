"""Running the program in this process, as tests do."""

import json

import pytest

from mtcd.cli.app import main


def run(*arguments: str) -> int:
    """The exit code of ``mtcd`` with these arguments."""
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return ended.value.code or 0


def outcome(capsys: pytest.CaptureFixture[str]) -> dict:
    """The line of JSON that it ended with."""
    return json.loads(capsys.readouterr().out.strip().splitlines()[-1])
