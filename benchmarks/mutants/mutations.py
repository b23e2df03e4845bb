"""Which single changes there are: Cosmic Ray's operators on the source of the packages, less what
means nothing."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator

from benchmarks.mutants.change import Change
from benchmarks.mutants.equivalent import (
    PACKAGE,
    Reasons,
    code_of,
    comparisons_of_moments,
    function_at,
    functions_of,
    read_list,
)

OUTSIDE = (
    "cli",
    "config",
    "core/terminal",
    "data",
    "estimators",
    "federation/commands",
    "inspection",
    "planner",
    "plots",
    "ray",
    "reporting",
    "studies",
    "testing",
    "training/callbacks",
)
"""Packages that read, show and compare: with what is below them, they are not changed."""


def packages_of(root: Path) -> list[str]:
    """All packages with modules but those outside, by path: a new one is changed from the start."""
    source = root / PACKAGE
    found = {path.parent.relative_to(source).as_posix() for path in source.rglob("*.py")}
    return sorted(
        name
        for name in found
        if name != "." and not any(f"{name}/".startswith(f"{outside}/") for outside in OUTSIDE)
    )


PACKAGES = packages_of(Path(__file__).parents[2])
GPU_ONLY = ("src/mtcd/models/splitnet/graphs.py", "src/mtcd/models/splitnet/lanes.py")
"""Modules whose code runs on a GPU alone: without one, their tests are skipped and every mutant
would live."""
LARGE = 10  # from here on, a limit is a matter of taste
ARITHMETIC = "Add_Sub Sub_Add Mul_Div Div_Mul FloorDiv_Mul Mod_FloorDiv Pow_Mul BitOr_BitAnd BitAnd_BitOr LShift_RShift"
COMPARISONS = (
    "Eq_NotEq NotEq_Eq Lt_LtE Lt_GtE LtE_Lt LtE_Gt Gt_GtE Gt_LtE GtE_Gt GtE_Lt Is_IsNot IsNot_Is"
)
OTHERS = """AddNot ReplaceUnaryOperator_USub_UAdd ReplaceUnaryOperator_Delete_Not ReplaceTrueWithFalse
    ReplaceFalseWithTrue ReplaceAndWithOr ReplaceOrWithAnd ReplaceBreakWithContinue ReplaceContinueWithBreak
    NumberReplacer ZeroIterationForLoop"""
EDGES = (
    "ReplaceComparisonOperator_Lt_LtE",
    "ReplaceComparisonOperator_LtE_Lt",
    "ReplaceComparisonOperator_Gt_GtE",
    "ReplaceComparisonOperator_GtE_Gt",
)
"""Those that change only whether a limit itself counts."""
# one of each sort: Cosmic Ray has ten for every plus sign, of which all but the first are noticed
# by anything
OPERATORS = [
    *(f"ReplaceBinaryOperator_{name}" for name in ARITHMETIC.split()),
    *(f"ReplaceComparisonOperator_{name}" for name in COMPARISONS.split()),
    *OTHERS.split(),
]


@dataclass(frozen=True)
class Mutation(Change):
    """One change of one module by one of Cosmic Ray's operators."""

    occurrence: int

    @functools.cache  # noqa: B019, there are some thousands at most
    def mutated(self, root: Path) -> str:
        """The module with this change."""
        source = (root / self.path).read_text(encoding="utf-8")
        changed = mutate_code(source, get_operator(f"core/{self.operator}")(), self.occurrence)
        assert changed is not None, self
        return changed


def all_mutations(root: Path, packages: Iterable[str], equivalent: bool = False) -> list[Mutation]:
    """All there are in these packages, in order; or only those that are listed as equivalent."""
    paths = sorted(path for package in packages for path in (root / PACKAGE / package).glob("*.py"))
    listed = read_list()
    return [
        mutation
        for path in paths
        for mutation in mutations_of(
            path,
            path.relative_to(root).as_posix(),
            listed.get(path.relative_to(root / PACKAGE).as_posix(), {}),
            equivalent,
        )
    ]


def mutations_of(
    path: Path, name: str, reasons: Reasons, equivalent: bool = False
) -> Iterator[Mutation]:
    """Those of a module, without those on lines that are listed, or only these."""
    source = path.read_text(encoding="utf-8")
    lines = source.splitlines()
    tree, nodes = ast.parse(source), list(ast_nodes(get_ast(source)))
    left_out, functions = _left_out(tree), list(functions_of(tree))
    of_moments = [_span(node) for node in comparisons_of_moments(tree)]
    for operator_name in OPERATORS:
        operator = get_operator(f"core/{operator_name}")()
        places = [start for node in nodes for start, _ in operator.mutation_positions(node)]
        without = left_out
        if operator_name in EDGES:
            without = [*left_out, *of_moments]
        for occurrence, (line, column) in enumerate(places):
            if any(first <= (line, column) < last for first, last in without):
                continue
            function = function_at(line, functions)
            listed = code_of(lines[line - 1]) in reasons.get(function, {})
            if listed == equivalent:
                yield Mutation(name, function, line, operator_name, occurrence)


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
                found.append(_span(value))
    for node in ast.walk(tree):
        # NumPy takes any negative number for "as many as there are"
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "reshape":
            found.extend(_span(one) for one in node.args if isinstance(one, ast.UnaryOp))
        hints = getattr(node, "annotation", None), getattr(node, "returns", None)
        strict = node.value if isinstance(node, ast.keyword) and node.arg == "strict" else None
        for part in filter(None, (*hints, strict, *getattr(node, "decorator_list", ()))):
            found.append(_span(part))
    return found


def _span(node: ast.expr) -> Span:
    """Where an expression begins and ends."""
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)


def _is_large(value: object) -> bool:
    return isinstance(value, int | float) and value >= LARGE
