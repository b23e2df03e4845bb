"""A pytest session that collects all tests once, and runs chosen ones by hand, in forks."""

from __future__ import annotations

import cProfile
import json
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from types import CodeType
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings

OPTIONS = (
    "-q",
    "-s",
    "--tb=line",
    "-p",
    "no:cacheprovider",
    "-W",
    "ignore:Module already imported",
)
# seconds of processor time: a test that takes longer is stopped while it is recorded, and never
# asked
LONGEST = 15
CASES_TAKE = (
    10  # seconds: then, further cases of a parametrised test are neither recorded nor asked
)
Known = dict[str, tuple[float, list[str]]]
"""Of each test: how long it takes, and the functions that it calls."""


def called(profile: cProfile.Profile, source: str) -> set[str]:
    """The functions of modules below the folder that were called, as
    ``mtcd/module.py:qualified.name``."""
    return {_name(code, source) for code in _counts(profile, source)}


def _counts(profile: cProfile.Profile, source: str) -> dict[CodeType, int]:
    """How often each function of modules below the folder has returned."""
    counts: dict[CodeType, int] = {}
    for entry in profile.getstats():
        code = entry.code
        if isinstance(code, CodeType) and code.co_filename.startswith(source):
            counts[code] = entry.callcount

    return counts


def _name(code: CodeType, source: str) -> str:
    return f"{code.co_filename.removeprefix(source)}:{code.co_qualname}"


def _new_profile() -> cProfile.Profile:
    return cProfile.Profile(subcalls=False, builtins=False)


class ThreadCalls:
    """What threads call that are started from now on: a profile sees its own thread only, and
    the parties of a federation run in threads of their own."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._profiles: dict[threading.Thread, cProfile.Profile] = {}
        self._before: dict[threading.Thread, dict[CodeType, int]] = {}
        threading.setprofile(self._begin)

    def _begin(self, *_: Any) -> None:
        """The first event of a thread: the profile takes the place of this function."""
        profile = _new_profile()
        self._profiles[threading.current_thread()] = profile
        profile.enable()

    def since(self) -> set[str]:
        """What they have called since this was asked last, as ``called`` does."""
        found: set[str] = set()
        for thread, profile in list(self._profiles.items()):
            ended = not thread.is_alive()
            before = self._before.get(thread, {})
            counts = _counts(profile, self._source)
            for code, count in counts.items():
                if count > before.get(code, 0):
                    found.add(_name(code, self._source))

            self._before[thread] = counts
            if ended:
                del self._profiles[thread], self._before[thread]

        return found


@dataclass
class Collected:
    """A pytest plugin: what to do once tests are collected, in place of running them all. Random
    examples are the same each time, and not made small."""

    drive: Callable[[Collected], None]
    items: dict[str, pytest.Item] = field(default_factory=dict)
    passed: set[str] = field(default_factory=set)
    failed: str = ""
    recording: bool = False
    used: Counter[str] = field(default_factory=Counter)
    """While recording: the seconds that all cases of a test took."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        phases = (Phase.explicit, Phase.generate)
        made = settings(
            derandomize=True, deadline=None, phases=phases, suppress_health_check=list(HealthCheck)
        )
        settings.register_profile("mutants", made)
        settings.load_profile("mutants")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.items = {item.nodeid: item for item in session.items}
        self.drive(self)
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed = self.failed or report.nodeid
        elif report.when == "call" and report.passed:
            self.passed.add(report.nodeid)

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        if self.used[_without_case(item)] > CASES_TAKE:
            pytest.skip("its other cases have taken long enough")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Any:
        signal.signal(signal.SIGPROF, _stop)
        signal.setitimer(signal.ITIMER_PROF, LONGEST if self.recording else 0)
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)

    def run(self, names: Iterable[str]) -> int:
        """Run these tests in this order, up to the first that fails; 1 if one does."""
        items = [self.items[name] for name in names if name in self.items]
        print(f"ASKED {len(items)}")
        for item, following in _pairs(items):
            item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
            if self.failed:
                print(f"\nKILLED BY {self.failed}")
                return 1
        return 0

    def record(self, names: Iterable[str], source: str, file: Path) -> int:
        """Write how long each of these tests takes, and what it calls, of those that pass."""
        self.recording = True
        threads = ThreadCalls(source)
        known: Known = {}
        for item, following in _pairs([self.items[name] for name in names]):
            began, profile = time.process_time(), _new_profile()
            profile.enable()
            try:
                item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
            finally:
                profile.disable()
            spent = time.process_time() - began
            self.used[_without_case(item)] += spent
            calls = called(profile, source) | threads.since()
            if item.nodeid in self.passed:
                known[item.nodeid] = spent, sorted(calls)
        part = file.with_suffix(".part")
        part.write_text(json.dumps(known))
        part.rename(file)
        return 0


def collect(
    root: Path, drive: Callable[[Collected], None], tests: Iterable[str] = ("tests",)
) -> int:
    """Collect the tests, then drive them."""
    os.chdir(root)
    return int(pytest.main([*tests, *OPTIONS], [Collected(drive)]))


def _pairs(items: list[pytest.Item]) -> Iterable[tuple[pytest.Item, pytest.Item | None]]:
    return pairwise([*items, None])  # type: ignore[return-value]


def _without_case(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]


def _stop(*_: Any) -> None:
    pytest.skip("takes too long")
