"""Lines whose mutants change nothing that a test could notice: ``equivalent.yaml`` lists them, and
``equivalent_slips.yaml`` those of slips.

They have, by module and function, the code of the line and why its mutants are equivalent. Lines are
known by what they say, and not by their number, so that other changes of the module do not matter.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import yaml

LIST = Path(__file__).with_name("equivalent.yaml")
SLIPS = Path(__file__).with_name("equivalent_slips.yaml")
PACKAGE = "src/mtcd/"
CLOCKS = ("monotonic", "now", "time")
"""Calls that read a clock."""
Reasons = dict[str, dict[str, str]]
"""Of a module: function (empty outside of functions), code of a line, why."""


def read_list(file: Path = LIST) -> dict[str, Reasons]:
    """The reasons of each module, which is named from the folder of the package."""
    listed: dict[str, Reasons] = yaml.safe_load(file.read_text(encoding="utf-8")) or {}
    return listed


def code_of(line: str) -> str:
    """The code of a line, without its comment."""
    return line.partition("  # ")[0].strip()


def stale_lines(root: Path) -> list[str]:
    """Lines of the lists that are not in the source any more: ``module: function: code``."""
    return [
        f"{module}: {function or 'outside of functions'}: {code}"
        for file in (LIST, SLIPS)
        for module, reasons in read_list(file).items()
        for function, code in _missing(root / PACKAGE / module, reasons)
    ]


def _missing(path: Path, reasons: Reasons) -> Iterator[tuple[str, str]]:
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    functions = list(functions_of(ast.parse("\n".join(lines))))
    there = {
        (function_at(number, functions), code_of(line)) for number, line in enumerate(lines, 1)
    }
    for function, codes in reasons.items():
        yield from ((function, code) for code in codes if (function, code) not in there)


Function = tuple[int, int, str]
"""First line, last line and qualified name."""


def function_at(line: int, functions: list[Function]) -> str:
    """The qualified name of the innermost function that a line is in; empty outside of functions."""
    inside = [name for first, last, name in functions if first <= line <= last]
    return inside[-1] if inside else ""


def functions_of(tree: ast.AST, outside: str = "") -> Iterator[Function]:
    """All functions, the inner ones after those that they are in."""
    for node in ast.iter_child_nodes(tree):
        name = outside
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            name = f"{outside}{node.name}"
            if isinstance(node, ast.FunctionDef):
                yield node.lineno, node.end_lineno or node.lineno, name
            name += ".<locals>." if isinstance(node, ast.FunctionDef) else "."
        yield from functions_of(node, name)


def comparisons_of_moments(tree: ast.AST) -> list[ast.Compare]:
    """Comparisons with what a clock shows: whether the limit itself counts makes no difference, as
    no clock hits it.

    >>> len(comparisons_of_moments(ast.parse("def f(): return monotonic() - began > 2")))
    1
    """
    found = {}
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue

        moments = _moments_of(function)
        for node in ast.walk(function):
            if isinstance(node, ast.Compare):
                sides = [node.left, *node.comparators]
                if any(_is_moment(side, moments) for side in sides):
                    found[id(node)] = node

    return list(found.values())


def _moments_of(function: ast.FunctionDef) -> set[str]:
    """The variables of a function that hold what a clock showed, or the time since then."""
    moments: set[str] = set()
    for node in ast.walk(function):
        if not isinstance(node, ast.Assign):
            continue

        for target in node.targets:
            pairs = [(target, node.value)]
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                # With a star on one side there may be fewer: none of these is a moment.
                pairs = list(zip(target.elts, node.value.elts, strict=False))

            for one, value in pairs:
                if isinstance(one, ast.Name) and _is_moment(value, set()):
                    moments.add(one.id)

    return moments


def _is_moment(node: ast.expr, moments: set[str]) -> bool:
    if isinstance(node, ast.BinOp):
        return _is_moment(node.left, moments) or _is_moment(node.right, moments)
    if isinstance(node, ast.Name):
        return node.id in moments
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute):
        return node.func.attr in CLOCKS
    return isinstance(node.func, ast.Name) and node.func.id in CLOCKS
