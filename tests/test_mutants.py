"""Mutation tests, on a small project of their own: what is changed, which tests are asked, and what becomes of it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.mutants.near import GPU_ONLY, NEAR
from benchmarks.mutants.results import Results, report

ROOT = Path(__file__).parents[1]
SOURCE = """
LIMIT = 3
MANY = 1000
MUCH = 1e3

def half(x: int | None = 4) -> float:
    return x / 2

class Counter:
    def many(self) -> bool:
        return half(8) > LIMIT  # no mutants: for the test
"""
TESTS = """
from mtcd.small import Counter, half

def test_half():
    assert half(6) == 3

def test_many():
    assert Counter().many()
"""
SCRIPT = """
import json, sys
from pathlib import Path
from benchmarks.mutants.trying import Bench

root, source = Path("."), Path("src/mtcd/small.py").read_text()
bench = Bench(root.resolve(), root.resolve() / "place", preloaded="")
known = bench.knows("tests/test_small.py")
order = {name: seconds for name, (seconds, _) in known.items()}
tried = {
    name: bench.attempt("src/mtcd/small.py", source.replace(*change), order, 3).status
    for name, change in {
        "same": ("", ""), "other": ("/", "*"), "broken": ("return", "retrun"),
        "endless": ("    return x", "    while True: pass\\n    return x"),
    }.items()
}
print(json.dumps({"calls": {name: calls for name, (_, calls) in known.items()}, "tried": tried}))
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
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=project, env=environment, capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout.splitlines()[-1])
    half, many = (f"tests/test_small.py::test_{name}" for name in ("half", "many"))
    assert found["calls"] == {
        half: ["mtcd/small.py:half"],
        many: ["mtcd/small.py:Counter.many", "mtcd/small.py:half"],
    }
    assert found["tried"] == {"same": "passed", "other": "failed", "broken": "failed", "endless": "too long"}
    assert (project / "src" / "mtcd" / "small.py").read_text() == SOURCE


def test_what_was_killed_stays_so_and_survivors_are_tried_again_with_other_tests(project: Path) -> None:
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


def test_the_report_shows_survivors_and_a_score_per_package(capsys: pytest.CaptureFixture[str]) -> None:
    row = {"place": "a.py:3", "how": "passed", "diff": "- x\n+ y"}
    report([row | {"package": "model", "killed": killed} for killed in (True, True, False)])
    shown = capsys.readouterr().out
    assert shown.count("a.py:3") == 1
    assert ["model", "2", "3", "66.7%"] in [line.split() for line in shown.splitlines()]


def test_mutants_are_in_code_that_runs_and_are_marked_where_they_change_nothing(project: Path) -> None:
    pytest.importorskip("cosmic_ray")
    from benchmarks.mutants.mutations import mutations_of

    found = list(mutations_of(project / "src" / "mtcd" / "small.py", "src/mtcd/small.py"))
    lines = {(one.line, one.operator, one.function) for one in found}
    assert lines == {
        (2, "NumberReplacer", ""),
        (6, "NumberReplacer", "half"),
        (7, "NumberReplacer", "half"),
        (7, "ReplaceBinaryOperator_Div_Mul", "half"),
    }
    (marked,) = {one.line for one in mutations_of(project / "src" / "mtcd" / "small.py", "src/mtcd/small.py", True)}
    assert "no mutants: for the test" in SOURCE.splitlines()[marked - 1]
    (division,) = [one for one in found if one.operator == "ReplaceBinaryOperator_Div_Mul"]
    assert division.diff(project) == "-    return x / 2\n+    return x * 2"
    assert division.package == ""


def test_the_test_files_that_are_asked_exist_and_so_do_the_packages() -> None:
    for package, near in NEAR.items():
        assert list((ROOT / "src" / "mtcd" / package).glob("*.py"))
        assert [test for test in near if not (ROOT / "tests" / f"{test}.py").exists()] == []
    assert all((ROOT / module).exists() for module in GPU_ONLY)
