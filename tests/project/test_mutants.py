"""Mutation tests, on a small project of their own: what is changed, which tests are asked, and what
becomes of it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from benchmarks.mutants.bench import nearest
from benchmarks.mutants.equivalent import stale_lines
from benchmarks.mutants.results import Results, kept_scores, report
from benchmarks.mutants.slips import CATALOGUE, KEPT, PURPOSES, Slip, examined, slips_of

from project import ROOT

SOURCE = """
LIMIT = 3
MANY = 1000
MUCH, LITTLE = 1e3, 2

def half(x: int | None = 4) -> float:
    return x / 2

class Counter:
    def many(self) -> bool:
        return half(8) > LIMIT

def shown() -> str:
    return "shown"
"""
TESTS = """
import subprocess, sys
from mtcd.small import Counter, half, shown

def test_half():
    assert half(6) == 3

def test_default():
    assert half() == 2

def test_many():
    assert Counter().many()

def test_shown():
    assert shown()
    asked = [sys.executable, "-c", "from mtcd import small; print(small.shown())"]
    assert subprocess.run(asked, capture_output=True, text=True).stdout.strip() == "shown"
"""
SCRIPT = """
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from benchmarks.mutants.bench import Bench

@dataclass(frozen=True)
class Change:
    name: str
    function: str
    before: str
    after: str
    path = "src/mtcd/small.py"
    readers = watchers = ()

    def mutated(self, root):
        return (root / self.path).read_text().replace(self.before, self.after)

root = Path(".").resolve()
bench = Bench(root, root / "place", jobs=2, preloaded="")
changes = [
    Change("same", "half", "", ""),
    Change("another result", "half", "/", "*"),
    Change("no function of that name", "half", "/ 2", "/ z"),
    Change("endless", "half", "    return x", "    while True: pass\\n    return x"),
    Change("cannot be compiled", "half", "return", "retrun x"),
    Change("another default", "half", "= 4", "= 5"),
    Change("another constant", "", "LIMIT = 3", "LIMIT = 4"),
    Change("a constant that nothing uses", "", "LITTLE = 1e3, 2", "LITTLE = 1e3, 3"),
    Change("seen by another process alone", "shown", '"shown"', '"hidden"'),
]
found = {change.name: outcome.status for change, outcome in bench.try_all(changes, 3)}
half = bench.callers["mtcd/small.py:half"]
print(json.dumps({"callers": sorted(half), "found": found}))
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "src" / "mtcd").mkdir(parents=True)
    (tmp_path / "src" / "mtcd" / "__init__.py").touch()
    (tmp_path / "src" / "mtcd" / "small.py").write_text(SOURCE)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_small.py").write_text(TESTS)
    (tmp_path / "place").mkdir()
    return tmp_path


@pytest.mark.long
def test_tests_run_on_a_changed_copy_and_say_what_they_call(project: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": ""}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["callers"] == [
        f"tests/test_small.py::test_{name}" for name in ("default", "half", "many")
    ]
    assert found["found"] == {
        "same": "passed",
        "another result": "failed",
        "no function of that name": "failed",
        "endless": "too long",
        "cannot be compiled": "failed",
        "another default": "failed",
        "another constant": "failed",
        "a constant that nothing uses": "passed",
        "seen by another process alone": "failed",
    }
    assert (project / "src" / "mtcd" / "small.py").read_text() == SOURCE


def test_tests_that_call_little_else_are_asked_first_and_all_cases_of_one_are_not() -> None:
    tests = {"whole": 0.1, "quick": 0.0, "about": 0.3, **{f"cases[{i}]": 0.2 for i in range(4)}}
    breadth = {"whole": 500, "quick": 500, "about": 4, **{f"cases[{i}]": 4 for i in range(4)}}
    order = [*nearest(tests, breadth, 1.0)]
    assert order == ["cases[0]", "quick", "about", "cases[1]", "cases[2]", "cases[3]"]
    assert [*nearest(tests, breadth, 0.1)] == ["cases[0]"]
    assert [*nearest(tests, breadth, 0.1, ("who",))] == ["whole"]


def test_what_was_killed_stays_so_and_survivors_are_tried_again_with_other_tests(
    project: Path,
) -> None:
    def results() -> Results:
        return Results(project / "results.jsonl", project / "tests")

    def known(seconds: float) -> list[bool]:
        return [results().get(key, seconds) is not None for key in ("one", "two", "three")]

    results().add("one", 10.0, killed=True)
    results().add("two", 10.0, killed=False)
    assert known(10.0) == [True, True, False]
    assert known(11.0) == [True, False, False]
    (project / "tests" / "test_more.py").write_text(TESTS)
    assert known(10.0) == [True, False, False]


def test_the_report_shows_survivors_and_a_score_per_package(
    capsys: pytest.CaptureFixture[str],
) -> None:
    row = {"place": "a.py:3", "how": "passed", "diff": "- x\n+ y"}
    report([row | {"package": "model", "killed": killed} for killed in (True, True, False)])
    shown = capsys.readouterr().out
    assert shown.count("a.py:3") == 1
    assert ["model", "2", "3", "66.7%"] in [line.split() for line in shown.splitlines()]


def test_mutants_are_in_code_that_runs_but_for_lines_that_are_listed(project: Path) -> None:
    pytest.importorskip("cosmic_ray")
    from benchmarks.mutants.mutations import mutations_of

    small = project / "src" / "mtcd" / "small.py"
    reasons = {"Counter.many": {"return half(8) > LIMIT": "for the test"}}
    found = list(mutations_of(small, "src/mtcd/small.py", reasons))
    lines = {(one.line, one.operator, one.function) for one in found}
    assert lines == {
        (2, "NumberReplacer", ""),
        (4, "NumberReplacer", ""),
        (6, "NumberReplacer", "half"),
        (7, "NumberReplacer", "half"),
        (7, "ReplaceBinaryOperator_Div_Mul", "half"),
    }
    listed = set(mutations_of(small, "src/mtcd/small.py", reasons, equivalent=True))
    assert {one.line for one in listed} == {11}
    assert listed | set(found) == set(mutations_of(small, "src/mtcd/small.py", {}))
    (division,) = [one for one in found if one.operator == "ReplaceBinaryOperator_Div_Mul"]
    assert division.diff(project) == "-    return x / 2\n+    return x * 2"
    assert division.package == ""


SLIPPING = """
from copy import deepcopy
from mtcd.core.seeding import stream, uniform

class Party:
    state_fields = ("t", "theta")

    def snapshot(self):
        return {"t": self.t, "more": 1}

    def restore(self, state):
        self.t = state["t"]

class Lone:
    state_fields = ("last",)

def bounded(x, low=0, high=9):
    if x < low:
        raise ValueError(
            f"{x} is below {low}."
        )
    check_high(x, high)
    return x

def order(seed, names):
    rng = stream(seed, "order", 1)
    draw = uniform(seed, "start", (), 0)
    kept = deepcopy(names)
    first = list(names)[0], names[list(rng)], 1 + array(rng), dumps(list(names))
    kept.sort()
    return sorted(
        kept, key=rng,
    ), bounded(draw, high=3)

def late(began):
    now, *others = monotonic(), began, began
    (*all, last) = (*others,)
    return now - began > 2 or time() < began
"""
SLIPS = {
    "dropped check": {
        ("    if x < low:", "    if ((x < low) and False):"),
        ("    check_high(x, high)", "    pass"),
    },
    "dropped state field": {
        ('    state_fields = ("t", "theta")', '    state_fields = ( "theta")'),
        ('    state_fields = ("t", "theta")', '    state_fields = ("t", )'),
        ('        self.t = state["t"]', "        pass"),
        ('{"t": self.t, "more": 1}', '{ "more": 1}'),
        ('{"t": self.t, "more": 1}', '{"t": self.t, }'),
        ('    state_fields = ("last",)', "    state_fields = ()"),
    },
    "dropped sort": {
        ("    kept.sort()", "    (None)"),
        ("    return sorted(\n        kept, key=rng,\n    ),", "    return (list(kept)\n\n),"),
    },
    "ignored argument": {
        ("    if x < low:", "    if x < (0):"),
        ("    check_high(x, high)", "    check_high(x, (9))"),
        ("bounded(draw, high=3)", "bounded(draw, )"),
    },
    "value on an edge": {("    if x < low:", "    if x <= low:")},
    "wrong seed purpose": {
        ('stream(seed, "order", 1)', 'stream(seed, "start", 1)'),
        ('uniform(seed, "start", (), 0)', 'uniform(seed, "order", (), 0)'),
    },
    "missing copy": {("    kept = deepcopy(names)", "    kept = (names)")},
}


def slips_in(project: Path, reasons: dict[str, dict[str, str]], **how: Any) -> list[Slip]:
    name = "src/mtcd/slipping.py"
    (project / name).write_text(SLIPPING)
    return list(slips_of(SLIPPING, name, reasons, examined([SLIPPING]), **how))


@pytest.mark.parametrize("operator", CATALOGUE)
def test_the_catalogue_of_slips_finds_each_sort_and_keeps_the_lines(
    project: Path, operator: str
) -> None:
    found = [slip for slip in slips_in(project, {}) if slip.operator == operator]
    made = {slip.mutated(project) for slip in found}
    assert made == {SLIPPING.replace(before, after, 1) for before, after in SLIPS[operator]}
    assert len(found) == len(made)
    assert {source.count("\n") for source in made} == {SLIPPING.count("\n")}


def test_whether_a_limit_in_time_itself_counts_is_not_changed(project: Path) -> None:
    """No clock hits a moment to its last digit; that a time is too long must show all the same."""
    pytest.importorskip("cosmic_ray")
    from benchmarks.mutants.mutations import mutations_of

    path = project / "src" / "mtcd" / "slipping.py"
    path.write_text(SLIPPING)
    found = [one for one in mutations_of(path, "slipping.py", {}) if one.function == "late"]
    compared = {one.operator for one in found if "Comparison" in one.operator}
    assert compared == {"ReplaceComparisonOperator_Gt_LtE", "ReplaceComparisonOperator_Lt_GtE"}


def test_a_wrong_purpose_is_shown_to_the_test_that_reads_purposes(project: Path) -> None:
    readers = {slip.operator: slip.readers for slip in slips_in(project, {})}
    assert readers == dict.fromkeys(CATALOGUE, ()) | {"wrong seed purpose": (PURPOSES,)}
    file, _, name = PURPOSES.partition("::")
    assert f"def {name}(" in (ROOT / file).read_text()


def test_what_is_kept_is_shown_to_the_tests_that_compare_all_parties(project: Path) -> None:
    watchers = {slip.operator: slip.watchers for slip in slips_in(project, {})}
    known = {"dropped state field": KEPT, "wrong seed purpose": (PURPOSES,)}
    assert watchers == dict.fromkeys(CATALOGUE, ()) | known
    assert all((ROOT / name.removesuffix("::")).exists() for name in KEPT)


def test_slips_on_lines_that_are_listed_are_left_out(project: Path) -> None:
    reasons = {"bounded": {"if x < low:": "for the test"}}
    rest, listed = slips_in(project, reasons), slips_in(project, reasons, equivalent=True)
    assert {(slip.function, slip.line) for slip in listed} == {("bounded", 18)}
    assert len(rest) + len(listed) == len(slips_in(project, {}))


def test_a_limit_that_is_listed_for_random_mutants_is_none_of_slips_either(project: Path) -> None:
    """It is the same change; of other slips on that line nothing is known."""
    both = {"bounded": {"if x < low:": "for the test", "kept = deepcopy(names)": "for the test"}}
    rest = slips_in(project, {}, edges=both)
    left_out = set(slips_in(project, {})) - set(rest)
    assert {(one.operator, one.function) for one in left_out} == {("value on an edge", "bounded")}
    assert slips_in(project, {}, equivalent=True, edges=both) == list(left_out)


def test_the_scores_of_slips_and_of_random_mutants_stand_side_by_side(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = Results(project / "results.jsonl", project / "tests")
    for key, kind, killed in (("a", "slip", True), ("b", "slip", False), ("c", "random", True)):
        results.add(key, 10.0, kind=kind, killed=killed)
    kept_scores(results)
    random, slips = capsys.readouterr().out.splitlines()
    assert random.split()[-4:] == ["random", "1", "1", "100.0%"]
    assert slips.split()[-4:] == ["slip", "1", "2", "50.0%"]


def test_the_lines_that_are_listed_are_in_the_source() -> None:
    assert stale_lines(ROOT) == []


def test_the_packages_and_modules_exist() -> None:
    pytest.importorskip("cosmic_ray")
    from benchmarks.mutants.mutations import GPU_ONLY, OUTSIDE, PACKAGES

    source = ROOT / "src" / "mtcd"
    assert all(list((source / package).glob("*.py")) for package in (*PACKAGES, *OUTSIDE))
    assert all((ROOT / module).exists() for module in GPU_ONLY)
    assert {"federation/connections", "methods/mtcd", "network", "privacy/labels"} < {*PACKAGES}
    assert not {"cli", "data", "data/prepare", "federation/commands"} & {*PACKAGES}


THREADS = """
from threading import Event, Thread

def ended():
    pass

def waiting(go):
    go.wait()

def at_once():
    pass

def long(go):
    at_once()
    waiting(go)
"""


@pytest.mark.skipif(
    sys.version_info >= (3, 12), reason="from Python 3.12 on, one profile serves all threads"
)
def test_calls_in_threads_are_recorded(tmp_path: Path) -> None:
    """The parties of a federation run in threads: their functions would count as never called."""
    script = f"""
import time
from benchmarks.mutants.collected import ThreadCalls
calls = ThreadCalls({str(tmp_path)!r} + "/")
from small import Event, Thread, ended, long
one = Thread(target=ended)
one.start()
one.join()
go = Event()
other = Thread(target=long, args=[go])
other.start()
first = calls.since()
while "small.py:at_once" not in first:
    first |= calls.since()
go.set()
other.join()
print(sorted(first), sorted(calls.since()), sorted(calls.since()))
"""
    (tmp_path / "small.py").write_text(THREADS)
    environment = os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"}
    shown = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    ).stdout
    first = ["small.py:at_once", "small.py:ended"]
    assert shown.strip() == f"{first} {['small.py:long', 'small.py:waiting']} []"
