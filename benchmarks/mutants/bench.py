"""Which tests are asked about a mutant, and what they say."""

from __future__ import annotations

import compileall
import cProfile
import hashlib
import importlib
import json
import os
import pkgutil
import shutil
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.mutants.collected import LONGEST, Collected, Known, called, collect
from benchmarks.mutants.forks import Outcome, Task, run_all
from benchmarks.mutants.swapping import changed_functions, live_functions, place_of

if TYPE_CHECKING:
    from benchmarks.mutants.change import Change

PRELOADED = (
    "scipy.sparse.linalg scipy.optimize scipy.stats networkx pydantic polars torch torch._dynamo "
    "cvxpy "
    "sklearn.linear_model"
)
# seconds of processor time on top of twice what the tests take: imports and fixtures take some
SPARE = 20
# use Polars while they are collected: its threads would not survive a fork
THREADED = ("tests/unit/data/test_strange_input.py",)
FILES = 8  # of tests that are collected anew for a mutant that takes effect at import
LEAST = 0.002  # seconds that any test takes
READING = 1.0  # seconds that a test takes which reads the source
RECORDING = 1200  # seconds of processor time for the tests of one file, at most


class Bench:
    """Runs tests in forks on mutated copies of the source, so many at a time: the tree is
    untouched."""

    def __init__(
        self,
        root: Path,
        place: Path,
        jobs: int = 1,
        tests: Iterable[str] = ("tests",),
        preloaded: str = PRELOADED,
    ) -> None:
        self.root, self.place, self.jobs, self.tests = root, place, jobs, tests
        self.source = place / "src"
        self.callers: dict[str, dict[str, float]] = {}
        """Of each function: the tests that call it, and how long they take."""
        self.calls: dict[str, set[str]] = {}
        """Of each test file: the functions that its tests call."""
        self.breadth: dict[str, int] = {}
        """Of each test: how many functions it calls."""
        for copy in (self.source, *map(self._copy, range(jobs))):
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(
                root / "src", copy, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
            )
            compileall.compile_dir(copy, quiet=1)  # once, and not in every fork
        for name in preloaded.split():
            __import__(name)

    def _copy(self, slot: int) -> Path:
        """Source of which one fork at a time mutates a module."""
        return self.place / f"copy-{slot}" / "src"

    def try_all(
        self, mutations: Iterable[Change], seconds: float
    ) -> Iterator[tuple[Change, Outcome]]:
        """What the tests say about each: first of mutants that can be put into imported functions,
        then of others, and of those that survived in functions that were called at import."""
        waiting = list(mutations)
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            os._exit(self._in_session(waiting, seconds, writer))
        os.close(writer)
        with os.fdopen(reader) as lines:
            for line in lines:
                number, *outcome = json.loads(line)
                yield waiting[number], Outcome(*outcome)
                waiting[number] = None  # type: ignore[call-overload]
        if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0:
            raise SystemExit("The tests could not be collected, see above.")
        self._read_recordings()
        yield from run_all((self._anew(one, seconds) for one in filter(None, waiting)), self.jobs)

    # in a process that has collected the tests

    def _in_session(self, mutations: list[Change], seconds: float, writer: int) -> int:
        self._use(self.source)
        imports = cProfile.Profile(subcalls=False, builtins=False)

        def drive(session: Collected) -> None:
            imports.disable()
            _check_threads()
            self._record(session)
            self._read_recordings()
            imported = called(imports, f"{self.source}{os.sep}")
            with os.fdopen(writer, "w", buffering=1) as lines:
                for number, outcome in run_all(
                    self._prepared(session, mutations, seconds), self.jobs
                ):
                    if outcome.status != "passed" or self._call(mutations[number]) not in imported:
                        lines.write(
                            json.dumps([number, outcome.status, outcome.seconds, outcome.said])
                            + "\n"
                        )

        imports.enable()
        self._import_all()
        return collect(self.root, drive, [*self.tests, *(f"--ignore={file}" for file in THREADED)])

    def _import_all(self) -> None:
        """Import every module, also those that are imported late, so that their functions exist."""
        package = importlib.import_module("mtcd")
        for module in pkgutil.walk_packages(package.__path__, "mtcd."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)

    def _record(self, session: Collected) -> None:
        """What the tests of each file call; kept until the file changes."""
        (self.place / "tests").mkdir(exist_ok=True)
        files: dict[str, list[str]] = defaultdict(list)
        for name in session.items:
            files[name.partition("::")[0]].append(name)
        tasks = [
            Task(
                file,
                lambda _, names=names, kept=kept: session.record(
                    names, f"{self.source}{os.sep}", kept
                ),
                RECORDING,
            )
            for file, names in files.items()
            if not (kept := self._kept(file)).exists()
        ]
        for file, outcome in run_all(tasks, self.jobs):
            print(f"recorded {file}: {outcome.status}, {outcome.seconds:.0f} s", flush=True)

    def _kept(self, file: str) -> Path:
        content = (self.root / file).read_bytes()
        return (
            self.place
            / "tests"
            / f"{Path(file).stem}-{hashlib.sha256(content).hexdigest()[:12]}.json"
        )

    def _read_recordings(self) -> None:
        self.callers, self.calls = defaultdict(dict), defaultdict(set)
        for path in sorted((self.root / "tests").rglob("test_*.py")):
            file = path.relative_to(self.root).as_posix()
            kept = self._kept(file)
            known: Known = (
                json.loads(kept.read_text())
                if kept.exists() and file.startswith(tuple(self.tests))
                else {}
            )
            for name, (spent, calls) in known.items():
                self.calls[file].update(calls)
                self.breadth[name] = len(calls)
                for call in calls if spent <= LONGEST else ():
                    self.callers[call][name] = spent

    def _prepared(
        self, session: Collected, mutations: list[Change], seconds: float
    ) -> Iterator[Task[int]]:
        """Those whose change is in functions alone."""
        functions = live_functions(f"{self.source}{os.sep}")
        for number, mutation in enumerate(mutations):
            source = mutation.mutated(self.root)
            file = self.place / mutation.path
            pairs = changed_functions(str(file), file.read_text(encoding="utf-8"), source)
            if pairs is None or any(place_of(old) not in functions for old, _ in pairs):
                continue
            swaps = [(function, new) for old, new in pairs for function in functions[place_of(old)]]
            order = nearest(self.calling(mutation), self.breadth, seconds, mutation.watchers)

            def act(slot: int, mutation=mutation, source=source, swaps=swaps, order=order) -> int:
                package = self._mutate(slot, mutation, source) / "mtcd"
                # for tests that read the source
                sys.modules["mtcd"].__file__ = str(package / "__init__.py")
                for function, code in swaps:
                    function.__code__ = code
                return session.run(order)

            yield Task(number, act, int(SPARE + 2 * sum(order.values())))

    # in a process that has imported nothing of the package

    def _anew(self, mutation: Change, seconds: float) -> Task[Change]:
        """A fork that imports everything with the mutant in place."""
        source, tests = mutation.mutated(self.root), self.calling(mutation)
        files = self._nearest(mutation, {name.partition("::")[0] for name in tests})
        near = {name: spent for name, spent in tests.items() if name.partition("::")[0] in files}
        order = nearest(near, self.breadth, seconds, mutation.watchers)

        def act(slot: int) -> int:
            self._use(self._mutate(slot, mutation, source))
            failed = []
            code = (
                collect(self.root, lambda session: failed.append(session.run(order)), files)
                if files
                else 0
            )
            return code or max(failed, default=0)

        return Task(mutation, act, int(SPARE + 2 * sum(order.values())))

    def _nearest(self, mutation: Change, files: Iterable[str]) -> list[str]:
        """Of these test files, those that call little else than the module, as many as are soon
        collected."""
        near = self._near(mutation)

        def share(file: str) -> float:
            return sum(call.startswith(near) for call in self.calls[file]) / len(self.calls[file])

        first = [file for file in files if f"{file}::" in mutation.watchers]
        others = sorted({*files} - {*first}, key=share, reverse=True)
        return [*first, *others][:FILES]

    def _near(self, mutation: Change) -> str:
        """What the calls of tests begin with that are near a change outside of functions: those of
        its module, or of its folder, if nothing in the module can be called."""
        module = f"{mutation.path.removeprefix('src/')}:"
        if any(call.startswith(module) for call in self.callers):
            return module

        return f"{module.rpartition('/')[0]}/"

    def _mutate(self, slot: int, mutation: Change, source: str) -> Path:
        """Write the mutant into the copy of a slot, whose last mutant is undone, for processes that
        a test starts."""
        copy = self._copy(slot)
        done = copy.parent / "mutated"
        if done.exists():
            path = done.read_text()
            shutil.copy2(self.place / path, copy.parent / path)
        done.write_text(mutation.path)
        module = copy.parent / mutation.path
        module.write_text(source, encoding="utf-8")
        os.utime(module, (0, 0))  # so that it is compiled anew
        os.environ["PYTHONPATH"] = str(copy)
        return copy

    def _use(self, source: Path) -> None:
        os.environ |= {"CI": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(source)}
        sys.dont_write_bytecode = True
        sys.path.insert(0, str(source))

    def _call(self, mutation: Change) -> str:
        return f"{mutation.path.removeprefix('src/')}:{mutation.function}"

    def calling(self, mutation: Change) -> dict[str, float]:
        """The tests that call the function, and how long they take; outside of functions, all that
        call something near it. Those that read the source come with them."""
        readers = dict.fromkeys(mutation.readers, READING)
        if mutation.function:
            return self.callers.get(self._call(mutation), {}) | readers

        near = self._near(mutation)
        mine = [tests for call, tests in self.callers.items() if call.startswith(near)]
        return {name: spent for tests in mine for name, spent in tests.items()} | readers


def _check_threads() -> None:
    names = [(task / "comm").read_text() for task in Path("/proc/self/task").iterdir()]
    if any(name.startswith("polars-0") for name in names):
        raise SystemExit(
            "A test file uses Polars while it is collected, and tests would hang in forks: let it "
            "do so in "
            "its tests, or name it in THREADED."
        )


def nearest(
    tests: dict[str, float],
    breadth: dict[str, int],
    seconds: float,
    watchers: tuple[str, ...] = (),
) -> dict[str, float]:
    """The tests that tell most for their time, in order, until they together take so many seconds.

    A test that calls few functions is about them, and goes before one that runs a whole training.
    The second case of a parametrised test counts as taking twice its time, the third three times,
    so that a hundred quick cases of one test leave time for others. Those whose name begins as one
    of ``watchers`` count as about the change, whatever they call.
    """
    cases, order = Counter[str](), []
    for spent, name in sorted((spent, name) for name, spent in tests.items()):
        cases[name.partition("[")[0]] += 1
        # the clock does not see less than some milliseconds
        cost = max(spent, LEAST) * cases[name.partition("[")[0]]
        if not name.startswith(watchers):
            cost *= breadth.get(name, 1)
        order.append((cost, spent, name))
    order.sort()
    ends = accumulate(spent for _, spent, _ in order)
    return {
        name: spent
        for (_, spent, name), end in zip(order, ends, strict=True)
        if end - spent < seconds
    }
