"""Which single changes there are: Cosmic Ray's operators on the source of the packages, less what
means nothing."""

from __future__ import annotations

import ast
import difflib
import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator

PACKAGES = [
    "methods",
    "methods/dcpa",
    "methods/membership",
    "methods/mtcd",
    "methods/mtcd/combine",
    "methods/optimal_sync",
    "methods/svfl",
    "methods/tours",
    "methods/tree_cg",
    "models/glm",
    "models/splitnet",
    "models/splitnet/nets",
    "network",
    "network/walks",
    "privacy/sealed",
    "privacy/sealed/dp",
    "protocol",
    "protocol/ledger",
    "theory",
    "federation/delivery",
    "federation/recovery",
]
GPU_ONLY = ("src/mtcd/models/splitnet/graphs.py", "src/mtcd/models/splitnet/lanes.py")
"""Modules whose code runs on a GPU alone: without one, their tests are skipped and every mutant
would live."""
LARGE = 10  # from here on, a limit is a matter of taste
MARK = "# no mutants: "  # at the end of a line whose mutants change nothing, and then why
ARITHMETIC = "Add_Sub Sub_Add Mul_Div Div_Mul FloorDiv_Mul Mod_FloorDiv Pow_Mul BitOr_BitAnd BitAnd_BitOr LShift_RShift"
COMPARISONS = (
    "Eq_NotEq NotEq_Eq Lt_LtE Lt_GtE LtE_Lt LtE_Gt Gt_GtE Gt_LtE GtE_Gt GtE_Lt Is_IsNot IsNot_Is"
)
OTHERS = """AddNot ReplaceUnaryOperator_USub_UAdd ReplaceUnaryOperator_Delete_Not ReplaceTrueWithFalse
    ReplaceFalseWithTrue ReplaceAndWithOr ReplaceOrWithAnd ReplaceBreakWithContinue ReplaceContinueWithBreak
    NumberReplacer ZeroIterationForLoop"""
# one of each sort: Cosmic Ray has ten for every plus sign, of which all but the first are noticed
# by anything
OPERATORS = [
    *(f"ReplaceBinaryOperator_{name}" for name in ARITHMETIC.split()),
    *(f"ReplaceComparisonOperator_{name}" for name in COMPARISONS.split()),
    *OTHERS.split(),
]


@dataclass(frozen=True)
class Mutation:
    """One change of one module."""

    path: str
    """From the root of the repository."""
    function: str
    """In which the change is, by its qualified name; empty outside of functions."""
    line: int
    operator: str
    occurrence: int

    @property
    def package(self) -> str:
        return self.path.removeprefix("src/mtcd/").rpartition("/")[0]

    @functools.cache  # noqa: B019, there are some thousands at most
    def mutated(self, root: Path) -> str:
        """The module with this change."""
        source = (root / self.path).read_text(encoding="utf-8")
        changed = mutate_code(source, get_operator(f"core/{self.operator}")(), self.occurrence)
        assert changed is not None, self
        return changed

    def diff(self, root: Path) -> str:
        """What is changed."""
        source = (root / self.path).read_text(encoding="utf-8")
        lines = difflib.unified_diff(
            source.splitlines(), self.mutated(root).splitlines(), lineterm="", n=0
        )
        return "\n".join(line for line in lines if not line.startswith(("---", "+++", "@@")))


def all_mutations(root: Path, packages: Iterable[str], marked: bool = False) -> list[Mutation]:
    """All there are in these packages, in order; or only those on lines that are marked."""
    paths = sorted(
        path for package in packages for path in (root / "src" / "mtcd" / package).glob("*.py")
    )
    return [
        mutation
        for path in paths
        for mutation in mutations_of(path, path.relative_to(root).as_posix(), marked)
    ]


def mutations_of(path: Path, name: str, marked: bool = False) -> Iterator[Mutation]:
    """Those of a module."""
    source = path.read_text(encoding="utf-8")
    tree, nodes = ast.parse(source), list(ast_nodes(get_ast(source)))
    left_out, functions = _left_out(tree), list(_functions(tree))
    marks = {number for number, line in enumerate(source.splitlines(), 1) if MARK in line}
    for operator_name in OPERATORS:
        operator = get_operator(f"core/{operator_name}")()
        places = [start for node in nodes for start, _ in operator.mutation_positions(node)]
        for occurrence, (line, column) in enumerate(places):
            if (line in marks) == marked and not any(
                first <= (line, column) < last for first, last in left_out
            ):
                inside = [function for first, last, function in functions if first <= line <= last]
                yield Mutation(name, inside[-1] if inside else "", line, operator_name, occurrence)


Span = tuple[tuple[int, int], tuple[int, int]]


def _left_out(tree: ast.Module) -> list[Span]:
    """What only declares (annotations, decorators, ``strict``), and limits that one more or less
    does not change (DENSE_LIMIT = 64)."""
    found: list[Span] = []
    for node in tree.body:
        values = [node.value] if isinstance(node, ast.Assign) else []
        for value in [
            part for one in values for part in (one.elts if isinstance(one, ast.Tuple) else [one])
        ]:
            if isinstance(value, ast.Constant) and _is_large(value.value):
                found.append(
                    ((value.lineno, value.col_offset), (value.end_lineno, value.end_col_offset))
                )
    for node in ast.walk(tree):
        hints = getattr(node, "annotation", None), getattr(node, "returns", None)
        strict = node.value if isinstance(node, ast.keyword) and node.arg == "strict" else None
        for part in filter(None, (*hints, strict, *getattr(node, "decorator_list", ()))):
            found.append(((part.lineno, part.col_offset), (part.end_lineno, part.end_col_offset)))
    return found


def _is_large(value: object) -> bool:
    return isinstance(value, int | float) and value >= LARGE


def _functions(tree: ast.AST, outside: str = "") -> Iterator[tuple[int, int, str]]:
    """First line, last line and qualified name of all functions, the inner ones after those that
    they are in."""
    for node in ast.iter_child_nodes(tree):
        name = outside
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            name = f"{outside}{node.name}"
            if isinstance(node, ast.FunctionDef):
                yield node.lineno, node.end_lineno or node.lineno, name
            name += ".<locals>." if isinstance(node, ast.FunctionDef) else "."
        yield from _functions(node, name)
