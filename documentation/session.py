"""``python -m documentation.session PAGE``: do what a page says, in the current folder."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from documentation.blocks import ROOT, Block, blocks
from documentation.printed import missing_lines
from mtcd.config.read import read_config
from mtcd.federation.file import read_federation
from mtcd_experiments.read import read_experiment


class Session:
    """The blocks of one page, one after the other: files are written, programs run, outputs
    compared."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.names: dict[str, Any] = {"__name__": "__main__"}
        self.printed = ""

    def do(self, block: Block) -> None:
        """One block; raises an error if it is not what it should be."""
        if block.fate == "run":
            self.printed = self._python(block) if "python" in block.language else self._shell(block)
        elif block.fate == "output":
            missing = missing_lines(block.text, self.printed)
            assert not missing, f"not printed: {missing}\nbut: {self.printed}"
        elif block.fate == "file":
            self.write(block)
            self._check(block)
        elif block.fate == "laid over":
            self._check_changes(block)
        elif block.fate == "same as":
            assert (ROOT / block.about).read_text(encoding="utf-8").endswith(block.text), (
                f"not as in {block.about}"
            )
        else:
            assert block.fate == "not run", (
                "nobody says what becomes of this block: see documentation/blocks.py"
            )

    def _python(self, block: Block) -> str:
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(compile(block.text, f"line {block.line}", "exec"), self.names)
        return output.getvalue()

    def _shell(self, block: Block) -> str:
        screen = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        done = subprocess.run(
            ["bash", "-e"], input=block.text, cwd=self.folder, check=False, **screen
        )
        assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout}"
        return done.stdout

    def write(self, block: Block) -> None:
        """The file that the block is the content of."""
        path = self.folder / block.about
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text, encoding="utf-8")

    def _check(self, block: Block) -> None:
        """YAML by the schema that it is for."""
        if block.language == "yaml":
            content = yaml.safe_load(block.text)
            read = (
                read_federation
                if "parties" in content
                else read_experiment
                if "cases" in content
                else read_config
            )
            read(self.folder / block.about)

    def _check_changes(self, block: Block) -> None:
        written = self.folder / block.about
        base = written if written.exists() else ROOT / block.about
        changed = yaml.safe_load(base.read_text(encoding="utf-8")) | yaml.safe_load(block.text)
        self.do(Block(block.line, "yaml", yaml.safe_dump(changed), "file", "changed.yaml"))


def environment(programs: Path) -> dict[str, str]:
    """What a page's commands find: mtcd as it is here, wide screens, $REPOSITORY."""
    programs.mkdir()
    (programs / "mtcd").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m mtcd "$@"\n')
    (programs / "mtcd").chmod(0o755)
    path = os.pathsep.join([str(programs), str(Path(sys.executable).parent), os.environ["PATH"]])
    found = {
        "PATH": path,
        "COLUMNS": "200",
        "OPENBLAS_NUM_THREADS": "1",
        "MPLBACKEND": "agg",
        "REPOSITORY": str(ROOT),
    }
    python_path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).strip(os.pathsep)
    return {**os.environ, **found, "PYTHONPATH": python_path, "PYTHONWARNINGS": "error"}


def main(page: Path) -> None:
    """Do the page; the first block that fails ends it, with its line."""
    session = Session(Path.cwd())
    sys.path.insert(0, "")  # modules that the page writes
    found = blocks(page.read_text(encoding="utf-8"))
    for block in reversed([block for block in found if block.fate == "file"]):
        session.write(block)  # a page may show a file after the command that reads it
    for block in found:
        try:
            session.do(block)
        except BaseException as error:
            raise SystemExit(
                f"{page}, line {block.line}: {type(error).__name__}: {error}\n{block.text}"
            ) from error


if __name__ == "__main__":
    main(Path(sys.argv[1]))
