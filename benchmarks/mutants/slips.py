"""A catalogue of the slips that people make: a check, a field, a sort or a copy that is forgotten.

Random mutants change an operator or a number, which some assertion nearly always sees. A slip
leaves out something whose absence shows in one situation only: after a crash, with hostile input,
in another order. So it has a score of its own.
"""

from __future__ import annotations

import ast
import functools
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.mutants.change import Change
from benchmarks.mutants.equivalent import (
    PACKAGE,
    SLIPS,
    Reasons,
    code_of,
    comparisons_of_moments,
    function_at,
    functions_of,
    read_list,
)

Edit = tuple[int, int, str]
"""Where a piece of the source begins and ends, in characters, and what stands there instead."""
PURPOSES = "tests/unit/core/test_randomness.py::test_every_draw_has_a_purpose_of_its_own"
KEPT = ("tests/simulated/test_recovery_journal.py::", "tests/contract/test_state_fields.py::")
CHECKS = ("check", "require", "refuse", "verify", "validate")
SAVING = ("state", "snapshot")
RESTORING = ("restore", "resume", "from_state", "load_state")
FRESH = ("copy", "deepcopy", "array", "clone", "dict", "list")
EDGES = {ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">")}


@dataclass(frozen=True)
class Slip(Change):
    """One slip: pieces of a module's source that are replaced."""

    edits: tuple[Edit, ...]

    @property
    def readers(self) -> tuple[str, ...]:  # type: ignore[override]
        """A purpose of its own for every draw is what a test reads off the source."""
        return (PURPOSES,) if self.operator == "wrong seed purpose" else ()

    @property
    def watchers(self) -> tuple[str, ...]:  # type: ignore[override]
        """What is kept over restarts is compared for all parties at once, and so are purposes."""
        if self.operator == "dropped state field":
            return KEPT
        return self.readers

    @functools.cache  # noqa: B019, there are some thousands at most
    def mutated(self, root: Path) -> str:
        """The module with this slip."""
        source = (root / self.path).read_text(encoding="utf-8")
        for first, last, text in sorted(self.edits, reverse=True):
            source = source[:first] + text + source[last:]

        return source


@dataclass(frozen=True)
class Project:
    """What a slip needs to know of other modules."""

    optional: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """By the name of a function or class: the arguments that a call may leave out."""
    purposes: tuple[str, ...] = ()
    """The purposes of random numbers, see ``mtcd.core.seeding``."""
    drawing: tuple[str, ...] = ("stream", "uniform", "uniform_block", "shuffled")
    """The functions that take a purpose."""


@dataclass(frozen=True)
class Source:
    """The text of a module and where its nodes are in it."""

    text: str
    starts: tuple[int, ...]
    """The character at which each line begins."""

    @classmethod
    def of(cls, text: str) -> Source:
        """Of a text, with its lines."""
        starts = [0]
        for line in text.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))

        return cls(text, tuple(starts))

    def first(self, node: ast.expr | ast.stmt | ast.keyword) -> int:
        """Where a node begins."""
        return self._at(node.lineno, node.col_offset)

    def last(self, node: ast.expr | ast.stmt | ast.keyword) -> int:
        """Where a node ends."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._at(node.end_lineno, node.end_col_offset)

    def _at(self, line: int, column: int) -> int:
        start = self.starts[line - 1]
        end = self.starts[line]
        # columns of ast count bytes
        before = self.text[start:end].encode()[:column].decode()
        return start + len(before)

    def part(self, node: ast.expr) -> str:
        """The text of an expression."""
        return self.text[self.first(node) : self.last(node)]

    def expression(self, node: ast.expr, instead: str) -> Edit:
        """Put something in the place of an expression."""
        first, last = self.first(node), self.last(node)
        # as many lines as before, so that functions that are not changed stay the same
        lost = self.text[first:last].count("\n") - instead.count("\n")
        return first, last, f"({instead}{chr(10) * lost})"

    def statement(self, node: ast.stmt) -> Edit:
        """Leave a statement out."""
        first, last = self.first(node), self.last(node)
        return first, last, "pass" + "\n" * self.text[first:last].count("\n")

    def argument(self, node: ast.keyword | ast.expr, end: ast.expr | None = None) -> Edit:
        """Leave an argument or an element out, with the comma that follows it; an entry of a dict
        ends with its value."""
        first, last = self.first(node), self.last(end or node)
        rest = self.text[last:]
        space = len(rest) - len(rest.lstrip())
        if rest[space : space + 1] == ",":
            last += space + 1

        return first, last, "\n" * self.text[first:last].count("\n")


Found = Iterator[tuple[int, tuple[Edit, ...]]]
"""Lines, and the edits of a slip there."""


def dropped_check(tree: ast.Module, source: Source, project: Project) -> Found:
    """``if ...: raise`` that never raises, and a call of a check that is left out."""
    for node in _nodes(tree):
        if isinstance(node, ast.If) and isinstance(node.body[-1], ast.Raise):
            # what the condition names is bound nevertheless
            edit = source.expression(node.test, f"({source.part(node.test)}) and False")
            yield node.lineno, (edit,)

        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            called = _called(node.value).lstrip("_")
            if called.partition("_")[0] in CHECKS:
                yield node.lineno, (source.statement(node),)


def dropped_state_field(tree: ast.Module, source: Source, project: Project) -> Found:
    """A field that ``state_fields`` does not name, that is not saved, or not restored."""
    for node in _nodes(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            declares = isinstance(target, ast.Name) and target.id == "state_fields"
            if declares and isinstance(node.value, ast.Tuple):
                for element in node.value.elts:
                    if isinstance(element, ast.Constant):
                        yield element.lineno, (source.argument(element),)

        if isinstance(node, ast.FunctionDef) and node.name.strip("_") in RESTORING:
            for inner in ast.walk(node):
                if isinstance(inner, ast.Assign) and isinstance(inner.targets[0], ast.Attribute):
                    yield inner.lineno, (source.statement(inner),)

        if isinstance(node, ast.FunctionDef) and node.name.strip("_") in SAVING:
            for inner in ast.walk(node):
                if isinstance(inner, ast.Dict):
                    yield from _dropped_entries(inner, source)


def _dropped_entries(state: ast.Dict, source: Source) -> Found:
    """Each named entry of a state that is written as a dict."""
    for key, value in zip(state.keys, state.values, strict=True):
        if isinstance(key, ast.Constant):
            yield key.lineno, (source.argument(key, value),)


def dropped_sort(tree: ast.Module, source: Source, project: Project) -> Found:
    """Things in the order in which they came."""
    for node in _nodes(tree):
        if not isinstance(node, ast.Call):
            continue

        if isinstance(node.func, ast.Name) and node.func.id == "sorted" and node.args:
            yield node.lineno, (source.expression(node, f"list({source.part(node.args[0])})"),)
        elif _called(node) == "sort" and isinstance(node.func, ast.Attribute):
            if isinstance(node.func.value, ast.Name) and node.func.value.id == "np":
                yield node.lineno, (source.expression(node, source.part(node.args[0])),)
            else:
                yield node.lineno, (source.expression(node, "None"),)


def ignored_argument(tree: ast.Module, source: Source, project: Project) -> Found:
    """An argument that a call does not pass on, or a parameter whose default is always used."""
    for node in _nodes(tree):
        if isinstance(node, ast.Call):
            optional = project.optional.get(_called(node), set())
            for keyword in node.keywords:
                if keyword.arg in optional:
                    yield keyword.lineno, (source.argument(keyword),)

        if isinstance(node, ast.FunctionDef):
            for name, default in _defaults(node).items():
                if not isinstance(default, ast.Constant):
                    continue
                edits = tuple(
                    source.expression(use, source.part(default))
                    for statement in node.body
                    for use in _nodes(statement)
                    if isinstance(use, ast.Name)
                    and use.id == name
                    and isinstance(use.ctx, ast.Load)
                )
                if edits:
                    yield node.lineno, edits


def value_on_edge(tree: ast.Module, source: Source, project: Project) -> Found:
    """``<`` for ``<=`` and the other way round, but where a clock is read."""
    of_moments = comparisons_of_moments(tree)
    for node in _nodes(tree):
        if not isinstance(node, ast.Compare) or node in of_moments:
            continue

        left = node.left
        for operator, right in zip(node.ops, node.comparators, strict=True):
            if type(operator) in EDGES:
                before, after = EDGES[type(operator)]
                last, first = source.last(left), source.first(right)
                between = source.text[last:first].replace(before, after, 1)
                yield right.lineno, ((last, first, between),)
            left = right


def wrong_seed_purpose(tree: ast.Module, source: Source, project: Project) -> Found:
    """Random numbers that were drawn for something else."""
    for node in _nodes(tree):
        if not isinstance(node, ast.Call) or _called(node) not in project.drawing:
            continue

        for given in node.args:
            if isinstance(given, ast.Constant) and given.value in project.purposes:
                place = project.purposes.index(given.value)
                other = json.dumps(project.purposes[place - 1])
                # without brackets: as people write it, and as the test finds it that reads purposes
                yield given.lineno, ((source.first(given), source.last(given), other),)


def missing_copy(tree: ast.Module, source: Source, project: Project) -> Found:
    """The thing itself where a copy is meant."""
    only_read = {id(one) for node in _nodes(tree) for one in _only_read(node)}
    for node in _nodes(tree):
        if not isinstance(node, ast.Call) or _called(node) not in FRESH or node.keywords:
            continue

        if id(node) in only_read:
            continue

        method = isinstance(node.func, ast.Attribute) and not node.args
        if method and _called(node) in ("copy", "clone"):
            assert isinstance(node.func, ast.Attribute)
            yield node.lineno, (source.expression(node, source.part(node.func.value)),)

        known = [one for one in node.args if isinstance(one, ast.Name | ast.Attribute)]
        if len(node.args) == 1 and known:
            yield node.lineno, (source.expression(node, source.part(known[0])),)


def _only_read(node: ast.AST) -> list[ast.expr]:
    """Operands, indices, what is indexed and what becomes JSON: something new is made of them, so
    that nobody holds the thing itself. There ``list`` and ``array`` convert."""
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        return [node.slice, node.value]
    if isinstance(node, ast.Call) and _called(node) == "dumps":
        return node.args
    return []


CATALOGUE: dict[str, Callable[[ast.Module, Source, Project], Found]] = {
    "dropped check": dropped_check,
    "dropped state field": dropped_state_field,
    "dropped sort": dropped_sort,
    "ignored argument": ignored_argument,
    "value on an edge": value_on_edge,
    "wrong seed purpose": wrong_seed_purpose,
    "missing copy": missing_copy,
}


def all_slips(root: Path, packages: Iterable[str], equivalent: bool = False) -> list[Slip]:
    """All slips in these packages, in order; or only those that are listed as changing nothing."""
    everywhere = sorted((root / PACKAGE).rglob("*.py"))
    project = examined(path.read_text(encoding="utf-8") for path in everywhere)
    listed = read_list(SLIPS)
    random = read_list()
    found: list[Slip] = []
    for package in packages:
        for path in sorted((root / PACKAGE / package).glob("*.py")):
            module = path.relative_to(root / PACKAGE).as_posix()
            reasons, edges = listed.get(module, {}), random.get(module, {})
            name = path.relative_to(root).as_posix()
            text = path.read_text(encoding="utf-8")
            found.extend(slips_of(text, name, reasons, project, equivalent, edges))

    return found


def slips_of(
    text: str,
    name: str,
    reasons: Reasons,
    project: Project,
    equivalent: bool = False,
    edges: Reasons | None = None,
) -> Iterator[Slip]:
    """Those of a module, without those on lines that are listed, or only these.

    ``edges``: the lines that are listed for random mutants, of which a value on an edge is one.
    """
    tree, source = ast.parse(text), Source.of(text)
    lines, functions = text.splitlines(), list(functions_of(tree))
    for operator, slips in CATALOGUE.items():
        for line, edits in slips(tree, source, project):
            function, code = function_at(line, functions), code_of(lines[line - 1])
            listed = code in reasons.get(function, {})
            if operator == "value on an edge" and edges is not None:
                listed = listed or code in edges.get(function, {})
            if listed == equivalent:
                yield Slip(name, function, line, operator, edits)


def examined(texts: Iterable[str]) -> Project:
    """What calls may leave out, and what random numbers are drawn for, in these modules."""
    optional: dict[str, set[str]] = defaultdict(set)
    purposes: set[str] = set()
    drawing = set(Project.drawing)
    trees = [ast.parse(text) for text in texts]
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                optional[node.name].update(_defaults(node))
                if any(argument.arg == "purpose" for argument in node.args.args):
                    drawing.add(node.name)

            if isinstance(node, ast.ClassDef):
                fields = [one for one in node.body if isinstance(one, ast.AnnAssign) and one.value]
                named = [one.target.id for one in fields if isinstance(one.target, ast.Name)]
                optional[node.name].update(named)

    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and _called(node) in drawing and len(node.args) > 1:
                purpose = node.args[1]
                if isinstance(purpose, ast.Constant) and isinstance(purpose.value, str):
                    purposes.add(purpose.value)

    return Project(optional, tuple(sorted(purposes)), tuple(sorted(drawing)))


def _nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those in f-strings, of which Python 3.11 does not know the place."""
    yield tree
    if not isinstance(tree, ast.JoinedStr):
        for node in ast.iter_child_nodes(tree):
            yield from _nodes(node)


def _called(node: ast.Call) -> str:
    """The last name of what is called."""
    if isinstance(node.func, ast.Name):
        return node.func.id

    return node.func.attr if isinstance(node.func, ast.Attribute) else ""


def _defaults(node: ast.FunctionDef) -> dict[str, ast.expr]:
    """The parameters that have a default, and the default."""
    places = [*node.args.posonlyargs, *node.args.args]
    defaults = node.args.defaults
    found = {}
    for place, default in zip(places[len(places) - len(defaults) :], defaults, strict=True):
        found[place.arg] = default

    for place, given in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True):
        if given is not None:
            found[place.arg] = given

    return found
