"""Runs tests in forks of this process, on a copy of the source: the tree is untouched, imports are shared."""

from __future__ import annotations

import compileall
import cProfile
import hashlib
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings

PRELOADED = (
    "scipy.sparse.linalg scipy.optimize scipy.stats networkx pydantic polars torch torch._dynamo cvxpy "
    "sklearn.linear_model"
)
OPTIONS = ("-q", "--tb=line", "-p", "no:cacheprovider", "-W", "ignore:Module already imported")
LONGEST = 15  # seconds of processor time: a test that takes longer is stopped while it is recorded, and never asked
CASES_TAKE = 5  # seconds: then, further cases of a parametrised test are neither recorded nor asked
Known = dict[str, tuple[float, list[str]]]
"""Of each test: how long it takes, and the functions that it calls."""


@dataclass
class Selection:
    """A pytest plugin: only these tests, the quickest first, and random examples the same each time, not made small."""

    order: dict[str, float] | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        phases = (Phase.explicit, Phase.generate)
        made = settings(derandomize=True, deadline=None, phases=phases, suppress_health_check=list(HealthCheck))
        settings.register_profile("mutants", made)
        settings.load_profile("mutants")

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self.order is not None:
            items[:] = sorted((item for item in items if item.nodeid in self.order), key=lambda i: self.order[i.nodeid])


@dataclass
class Recording(Selection):
    """Also notes for each test how long it takes, and which functions of the package it calls: of a parametrised test
    some cases."""

    source: str = ""
    known: Known = field(default_factory=dict)
    used: Counter[str] = field(default_factory=Counter)
    """The seconds of all cases of a test."""
    passed: set[str] = field(default_factory=set)
    """Only these are asked: a test that was stopped may make later ones fail."""

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        if self.used[item.nodeid.partition("[")[0]] > CASES_TAKE:
            pytest.skip("its other cases have taken long enough")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        began, profile = time.process_time(), cProfile.Profile(subcalls=False, builtins=False)
        profile.enable()
        try:
            return (yield)
        finally:
            profile.disable()
            codes = {entry.code for entry in profile.getstats() if isinstance(entry.code, CodeType)}
            mine = {code for code in codes if code.co_filename.startswith(self.source)}
            names = sorted({f"{code.co_filename.removeprefix(self.source)}:{code.co_qualname}" for code in mine})
            spent = time.process_time() - began
            self.used[item.nodeid.partition("[")[0]] += spent
            if item.nodeid in self.passed:
                self.known[item.nodeid] = (spent, names)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self.passed.add(report.nodeid)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Any:
        signal.signal(signal.SIGPROF, _stop)
        signal.setitimer(signal.ITIMER_PROF, LONGEST)
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)


def _stop(*_: Any) -> None:
    pytest.skip("takes too long")


@dataclass
class Outcome:
    """How a fork ended."""

    status: str
    """passed, failed, or too long"""
    seconds: float
    said: str


class Bench:
    """Where tests run on mutated source."""

    def __init__(self, root: Path, place: Path, preloaded: str = PRELOADED) -> None:
        self.root, self.place, self.source = root, place, place / "src"
        self._known: dict[str, Known] = {}
        shutil.rmtree(self.source, ignore_errors=True)
        shutil.copytree(root / "src", self.source, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        compileall.compile_dir(self.source, quiet=1)  # once, and not in every fork
        for name in preloaded.split():
            __import__(name)

    def knows(self, test: str) -> Known:
        """What each test of a file calls; kept until the file changes."""
        if test not in self._known:
            self._known[test] = self._recorded(test)
        return self._known[test]

    def _recorded(self, test: str) -> Known:
        content = (self.root / test).read_bytes()
        kept = self.place / "tests" / f"{Path(test).stem}-{hashlib.sha256(content).hexdigest()[:12]}.json"
        if not kept.exists():
            kept.parent.mkdir(exist_ok=True)
            part = kept.with_suffix(".part")

            def record() -> int:
                plugin = Recording(source=f"{self.source}{os.sep}")
                code = pytest.main([test, *OPTIONS], [plugin])
                part.write_text(json.dumps(plugin.known))
                return 0 if plugin.known or code == pytest.ExitCode.NO_TESTS_COLLECTED else code

            ended = self._forked(record, 1200)
            if ended.status != "passed":
                raise SystemExit(f"{test} fails without any mutant:\n{ended.said[-3000:]}")
            part.rename(kept)
        found: Known = json.loads(kept.read_text())
        return found

    def record(self, tests: Iterable[str], jobs: int) -> None:
        """What the tests of all these files call, so many files at a time."""
        with ThreadPoolExecutor(jobs) as pool:
            list(pool.map(self.knows, tests))

    def attempt(self, path: str, source: str, order: dict[str, float], seconds: int) -> Outcome:
        """Run tests, of which we know how long they take, with other source in place of a module's."""
        files = list(dict.fromkeys(test.partition("::")[0] for test in sorted(order, key=order.__getitem__)))
        module = self.place / path
        try:
            module.write_text(source, encoding="utf-8")
            os.utime(module, (0, 0))  # so that it is compiled anew
            return self._forked(lambda: pytest.main([*files, "-x", *OPTIONS], [Selection(order)]), seconds)
        finally:
            shutil.copy2(self.root / path, module)

    def _forked(self, act: Callable[[], int], seconds: int) -> Outcome:
        """In a process of its own, with so much processor time."""
        began = time.monotonic()
        with tempfile.TemporaryFile() as log:
            child = os.fork()
            if child == 0:
                code = 70
                try:
                    self._enter(log.fileno(), seconds)
                    code = int(act())
                except BaseException:
                    traceback.print_exc()
                finally:
                    sys.stdout.flush()
                    os._exit(code)
            _, status, used = os.wait4(child, 0)
            _end_group(child)
            log.seek(0)
            said = log.read().decode(errors="replace")
        code = os.waitstatus_to_exitcode(status)
        name = "too long" if code == -signal.SIGXCPU else "passed" if code == 0 else "failed"
        if code in (3, 4, 5, 70):
            raise SystemExit(f"The tests could not be run:\n{said[-3000:]}")
        return Outcome(name, min(used.ru_utime + used.ru_stime, time.monotonic() - began), said[-5000:])

    def _enter(self, log: int, seconds: int) -> None:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
        signal.alarm(10 * seconds)  # for one that waits instead of computing
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.chdir(self.root)
        os.environ |= {"CI": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(self.source)}
        sys.dont_write_bytecode = True
        sys.path.insert(0, str(self.source))


def _end_group(leader: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)
