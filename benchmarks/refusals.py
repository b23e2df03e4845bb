"""Which refusals no test triggers: ``pytest -p benchmarks.refusals``, as ``make refusals`` runs it.

A check that nobody has seen refuse may have been forgotten, or may never have worked: the line
``raise ...Error(...)`` has to be reached. The plugin compiles the modules of the federation and of
privacy with a mark before each such line. That costs a test nothing, where a tracer would make
every line slower; but marks are in the test's own process only, so what is refused in another
process does not count.

Lines that no test can reach stand in ``UNREACHABLE`` with the reason.
"""

from __future__ import annotations

import ast
import builtins
import json
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "mtcd"
PACKAGES = ("federation", "privacy")
FOUND = ROOT / "runs" / "refusals"
"""Each worker of the tests writes what it has reached here."""
MARK = "mtcd_refusal_reached"
NO_REFUSALS = ("Exit", "KeyboardInterrupt", "NotImplementedError", "AssertionError")

UNREACHABLE: dict[str, str] = {}
"""By module and text of the refusal: why no test in one process can trigger it."""

reached: set[str] = set()


class Refusal(NamedTuple):
    """A place that raises an error of its own."""

    module: str
    """The file, relative to the package."""
    line: int
    text: str
    """The statement, on one line."""

    @property
    def key(self) -> str:
        """What it is counted under."""
        return f"{self.module}:{self.line}"


def raises_of(tree: ast.AST) -> list[ast.Raise]:
    """The statements that raise a new error; those that raise a caught one again refuse nothing."""
    statements = [node for node in ast.walk(tree) if isinstance(node, ast.Raise)]
    return [one for one in statements if _is_new(one.exc)]


def _is_new(raised: ast.expr | None) -> bool:
    if not isinstance(raised, ast.Call):
        return False
    name = ast.unparse(raised.func).rpartition(".")[2]
    return name not in NO_REFUSALS


def refusals(source: Path = SOURCE, packages: Sequence[str] = PACKAGES) -> list[Refusal]:
    """All refusals of these packages, in the order of the files."""
    found = []
    for package in packages:
        for path in sorted((source / package).rglob("*.py")):
            module = path.relative_to(source).as_posix()
            for statement in raises_of(ast.parse(path.read_text(encoding="utf-8"))):
                text = " ".join(ast.unparse(statement).split())
                found.append(Refusal(module, statement.lineno, text))

    return found


class _Marking(ast.NodeTransformer):
    """Puts a call before each refusal, which says that it was reached."""

    def __init__(self, module: str) -> None:
        self.module = module

    def visit_Raise(self, node: ast.Raise) -> ast.AST | list[ast.AST]:
        if not _is_new(node.exc):
            return node
        mark = ast.parse(f"{MARK}({f'{self.module}:{node.lineno}'!r})").body[0]
        for part in ast.walk(mark):
            ast.copy_location(part, node)
        return [mark, node]


class MarkingLoader(SourceFileLoader):
    """Compiles a module with its marks, and keeps no bytecode of it."""

    def get_code(self, fullname: str) -> CodeType:
        path = Path(self.get_filename(fullname))
        module = path.relative_to(SOURCE).as_posix()
        tree = _Marking(module).visit(ast.parse(path.read_bytes()))
        return compile(tree, str(path), "exec", dont_inherit=True)


class _Finder(MetaPathFinder):
    """Finds the modules of the packages, with the loader that marks them."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        if not fullname.startswith(tuple(f"mtcd.{package}" for package in PACKAGES)):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
            return spec
        spec.loader = MarkingLoader(fullname, spec.origin)
        return spec


def missing(seen: set[str]) -> list[Refusal]:
    """The refusals that were not reached and are not listed as unreachable."""
    return [
        one
        for one in refusals()
        if one.key not in seen and f"{one.module}: {one.text}" not in UNREACHABLE
    ]


def pytest_configure(config: pytest.Config) -> None:
    """Mark modules that are imported from now on."""
    setattr(builtins, MARK, reached.add)
    sys.meta_path.insert(0, _Finder())
    if not hasattr(config, "workerinput"):
        FOUND.mkdir(parents=True, exist_ok=True)
        for old in FOUND.glob("*.json"):
            old.unlink()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker writes what it has reached; the session fails if a refusal was never reached."""
    worker = getattr(session.config, "workerinput", {"workerid": "main"})["workerid"]
    (FOUND / f"{worker}.json").write_text(json.dumps(sorted(reached)))
    if not hasattr(session.config, "workerinput") and missing(_all_reached()):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The refusals that no test has triggered."""
    left = missing(_all_reached())
    terminalreporter.write_line(f"{len(left)} of {len(refusals())} refusals were not triggered")
    for one in left:
        terminalreporter.write_line(f"{one.key}: {one.text[:150]}")


def _all_reached() -> set[str]:
    seen: set[str] = set()
    for file in FOUND.glob("*.json"):
        seen.update(json.loads(file.read_text()))

    return seen
