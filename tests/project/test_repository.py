"""The files around the code: the targets that CI and the workflows call, the Pythons, the lanes,
random examples."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from project import ROOT

MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
    "project"
]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def run(*command: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in command], cwd=ROOT, capture_output=True, text=True, **options
    )


def targets() -> set[str]:
    (line,) = re.findall(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)
    return set(line.split())


def called(text: str) -> set[str]:
    """The targets in the commands ``make ...`` of a text."""
    commands = re.findall(r"\bmake ((?:[a-z][a-z-]*\b(?!=) ?)+)", text)
    return {word for command in commands for word in command.split()}


# --- targets


def test_ci_calls_the_command_of_the_readme_and_targets_that_exist() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    names = called("\n".join(line for line in script.splitlines() if not line.startswith("#")))
    assert names <= targets()
    assert {"test", "long-test", "lint", "try-pythons", "wheel"} <= names
    assert "make test " in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_call_targets_that_exist(path: Path) -> None:
    jobs = yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"]
    for job in jobs.values():
        matrix = job.get("strategy", {}).get("matrix", {})
        made = [step["run"] for step in job["steps"] if "run" in step]
        assert made
        for text in made:
            assert text.startswith("make ")
            assert (
                called(text.replace("${{ matrix.target }}", " ".join(matrix.get("target", []))))
                <= targets()
            )


def test_commits_are_checked_by_the_programs_of_make_lint() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"][
        0
    ]["hooks"]
    (recipe,) = re.findall(r"^lint: .*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
    programs = set(re.findall(r"\$\(BIN\)/(\S+)", recipe))
    assert {Path(hook["entry"].split()[0]).name for hook in hooks} == programs


def test_forms_for_issues_ask_for_something() -> None:
    for name in ("bug.yml", "feature.yml"):
        form = yaml.safe_load(
            (ROOT / ".github" / "ISSUE_TEMPLATE" / name).read_text(encoding="utf-8")
        )
        questions = [part for part in form["body"] if part["type"] == "textarea"]
        assert any(part.get("validations", {}).get("required") for part in questions)
        assert len({part["id"] for part in questions}) == len(questions)


# --- Pythons


def test_the_pythons_of_the_classifiers_are_those_that_are_tried() -> None:
    prefix = "Programming Language :: Python :: 3."
    stated = [
        "3." + line.removeprefix(prefix)
        for line in PROJECT["classifiers"]
        if line.startswith(prefix)
    ]
    (tried,) = re.findall(r"^PYTHONS \?= (.*)$", MAKEFILE, re.MULTILINE)
    assert tried.split() == stated
    matrix = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text())["jobs"]["pythons"][
        "strategy"
    ]["matrix"]
    assert matrix["python"] == stated
    assert PROJECT["requires-python"] == f">={stated[0]}"


def test_a_python_that_is_not_there_is_named_and_the_next_one_is_tried() -> None:
    done = run(".ci/pythons", "try", "3.98", "3.99")
    assert done.returncode == 1
    assert "There is no Python 3.98: install it" in done.stderr
    assert "Failed on Python 3.98 3.99." in done.stderr
    assert run(".ci/pythons", "try").returncode == 2


def test_requirements_of_the_tests_can_leave_an_extra_out() -> None:
    listed = run(sys.executable, ".ci/requirements.py", "test", check=True).stdout.split()
    without = run(sys.executable, ".ci/requirements.py", "test", "torch", check=True).stdout.split()
    assert set(listed) - set(without) == set(PROJECT["optional-dependencies"]["torch"])
    assert not any(line.startswith("mtcd[") for line in listed)


# --- lanes


def lanes(folder: Path, *asked: str) -> tuple[int, list[str]]:
    done = run(ROOT / ".ci" / "lanes", folder / "logs", *asked)
    return done.returncode, done.stdout.splitlines()


def test_lanes_add_up_the_tests_of_all_steps(tmp_path: Path) -> None:
    first = "echo '1 failed in the text is no closing line'; echo '40 passed, 3 skipped in 65.51s (0:01:05)'"
    code, lines = lanes(
        tmp_path, f"one: {first}", "two: echo '===== 2 passed, 8 deselected in 0.10s ====='; true"
    )
    assert code == 0
    assert lines[-1] == "42 passed, 0 failed, 3 skipped"


def test_a_step_that_fails_is_named_and_the_others_run(tmp_path: Path) -> None:
    asked = (
        "one: echo before; echo '3 failed, 4 passed, 1 error in 2.00s'; false",
        "two: exit 7; echo after; pwd",
    )
    code, lines = lanes(tmp_path, *asked)
    assert code == 1
    assert {"FAILED: false", "FAILED: exit 7"} <= set(lines)
    assert str(ROOT) in lines
    assert lines[-1] == "4 passed, 2 failed, 0 skipped"
    failing = "sh -c \"echo '3 failed, 4 passed, 1 error in 2.00s' && exit 1\""
    code, lines = lanes(tmp_path, f"one: {failing}")
    assert (code, lines[-1]) == (1, "8 passed, 4 failed, 0 skipped")  # run twice


def test_the_output_of_a_lane_is_in_one_place_and_steps_have_no_input(tmp_path: Path) -> None:
    code, lines = lanes(tmp_path, "a: echo a1; cat; echo a2 >&2", "b: echo b1; echo b2")
    assert code == 0
    for name in "ab":
        start = lines.index(f"======== lane {name}")
        shown = [line for line in lines[start + 1 :] if line in ("a1", "a2", "b1", "b2")]
        assert shown[:2] == [f"{name}1", f"{name}2"]


def test_a_lane_that_is_killed_fails(tmp_path: Path) -> None:
    code, lines = lanes(tmp_path, "one: kill -9 $PPID; echo never", "two: echo '5 passed in 0.10s'")
    assert code == 1
    assert "FAILED: lane one" in lines
    assert lines[-1] == "5 passed, 1 failed, 0 skipped"


# --- random examples


def examples(profile: str) -> list[int]:
    seen: list[int] = []

    @settings(settings.get_profile(profile), database=None)
    @given(st.integers(0, 10**9))
    def draw(number: int) -> None:
        seen.append(number)

    draw()
    return seen


def test_tests_take_the_same_random_examples_every_time_and_fresh_ones_when_asked(
    pytestconfig: pytest.Config,
) -> None:
    assert examples("repeat") == examples("repeat")
    assert examples("fresh") != examples("fresh")
    # of a run without the option
    assert settings().derandomize == (pytestconfig.getoption("--hypothesis-profile") != "fresh")
    assert "--hypothesis-profile=fresh" in MAKEFILE
