"""sweep(): trainings over a grid of settings and seeds, and which settings are best."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from mtcd.config.build import resolved_yaml
from mtcd.config.schema import Config
from mtcd.core.errors import ConfigError, MtcdError, did_you_mean
from mtcd.core.files import check_writable, whole_file, write_whole
from mtcd.core.optional import find
from mtcd.core.rows import Rows
from mtcd.core.workers import Backend
from mtcd.models.metrics import find_metric
from mtcd.studies.grid import Over, Point, grid
from mtcd.studies.outcomes import Outcomes, names_in
from mtcd.studies.running import FAILED, Finished, Progress, Record, Running
from mtcd.training.history import PARTS

TRAININGS, TABLE, PARQUET, BEST, PICTURE = (
    "trainings",
    "sweep.csv",
    "sweep.parquet",
    "best.yaml",
    "sweep.png",
)
WORDS = ("status", "reason")
DIVERGED = "diverged"


@dataclass(frozen=True, eq=False)
class Sweep(Outcomes):
    """The result of :func:`sweep`: a row for every training, in the order of the grid.

    Parameters
    ----------
    points : tuple of Point
        The settings of each training.
    records : tuple of Record
        What came out of each.
    by : str
        The column that decides which settings are best.
    kept : int
        How many trainings were there from before.

    Examples
    --------
    >>> import mtcd
    >>> config = {
    ...     "data": {"synthetic": "ridge", "samples": 40, "features": 6, "clients": 3},
    ...     "model": {"kind": "ridge", "l2": 1},
    ...     "stop": {"iterations": 5},
    ... }
    >>> found = mtcd.sweep(config, {"model.l2": [1, 10]}, workers=1)
    >>> [point.settings for point in found.points]
    [{'model.l2': 1}, {'model.l2': 10}]
    """

    points: tuple[Point, ...]
    records: tuple[Record, ...]
    by: str
    kept: int
    """Trainings that an earlier sweep into the same folder had finished."""

    def __repr__(self) -> str:
        return (
            f"Sweep({len(self.points)} trainings of {len(self.groups)} settings, best by {self.by}: "
            f"{self.best})"
        )

    @property
    def keys(self) -> list[str]:
        """The keys that differ."""
        return list(self.points[0].settings)

    def rows(self) -> Rows:
        """Settings, seed, status, reason, then the numbers."""
        # a column of a table holds one kind of values
        mixed = set()
        for key in self.keys:
            if not _one_kind([point.settings[key] for point in self.points]):
                mixed.add(key)

        rows = Rows()
        for point, record in zip(self.points, self.records, strict=True):
            cells = {key: _cell(value, key in mixed) for key, value in point.settings.items()}
            rows.append({**cells, "seed": point.seed, **record["row"]})

        return rows

    @property
    def groups(self) -> list[list[int]]:
        """The trainings of each setting, which differ in the seed."""
        found: dict[str, list[int]] = {}
        for number, point in enumerate(self.points):
            # settings may be lists or sections, which no dict takes as keys
            setting = json.dumps(point.settings, sort_keys=True, default=str)
            found.setdefault(setting, []).append(number)

        return list(found.values())

    @property
    def best_group(self) -> list[int]:
        """The trainings of the best settings; an error if all failed."""
        # one seed with a result is enough: rank() puts settings with failures behind the others
        usable = [group for group in self.groups if any(self._counts(number) for number in group)]
        if not usable:
            raise MtcdError(
                f"No training of this sweep succeeded. {self.records[0]['row']['reason']}"
            )
        return min(usable, key=self.rank)

    def _counts(self, number: int) -> bool:
        """Whether a training has a result: it has the number that decides, and did not diverge."""
        row = self.records[number]["row"]
        return row["status"] not in (FAILED, DIVERGED) and row.get(self.by) is not None

    def _reaches(self, number: int) -> bool:
        """Whether it reached the gap, where one is asked for."""
        config = self.points[number].config
        # without a gap, every training that ends has done what was asked
        if config is None or config.stop.gap is None:
            return True
        status: str = self.records[number]["row"]["status"]
        return status == "converged"

    def _succeeded(self, group: Sequence[int]) -> int:
        """How many of these trainings have a result, and reached the gap."""
        return sum(self._counts(number) and self._reaches(number) for number in group)

    def rank(self, group: Sequence[int]) -> tuple[float, float]:
        """First the share of seeds that failed, or did not reach the gap; then the mean of the
        deciding column."""
        missed = (len(group) - self._succeeded(group)) / len(group)
        values = self._deciding_values(group)
        if not values:
            return missed, math.inf

        # the least is the best
        mean = fmean(values)
        if higher_is_better(self.by):
            mean = -mean
        return missed, mean

    def _deciding_values(self, group: Sequence[int]) -> list[float]:
        """The deciding column of these trainings, of those that have a result."""
        return [self.records[number]["row"][self.by] for number in group if self._counts(number)]

    @property
    def value_column(self) -> str:
        """What is shown of how good a training was: its gap, or where none has one, the
        objective."""
        if any(record["row"].get("gap") is not None for record in self.records):
            return "gap"
        return "objective"

    @property
    def best(self) -> dict[str, Any] | None:
        """The best settings; None if all trainings failed."""
        try:
            return self.points[self.best_group[0]].settings
        except MtcdError:
            return None

    @property
    def best_config(self) -> Config:
        """The config with the best settings, and the first seed."""
        configs = [self.points[number].config for number in self.best_group]
        return next(filter(None, configs))  # a seed may have been refused

    def plot(self, file: str | Path) -> None:
        """Draw the curves of all settings, and the deciding column against each key."""
        find("mtcd.studies.plots").plot_sweep(self, Path(file))

    def write_all(self, folder: Path) -> list[Path]:
        """Write the tables, the picture, and the config of the best settings; returns the files."""
        files = [folder / TABLE, folder / PARQUET, folder / PICTURE]
        self.write(files[0])
        with whole_file(files[1]) as writing:
            self.to_polars().write_parquet(writing)
        with whole_file(files[2]) as writing:
            self.plot(writing)
        if self.best is not None:
            files.append(folder / BEST)
            write_whole(files[-1], f"# {self.best_sentence}\n{resolved_yaml(self.best_config)}")
        return files

    @property
    def best_sentence(self) -> str:
        """The best settings, and by what."""
        group = self.best_group
        values = self._deciding_values(group)
        settings = self.points[group[0]].settings
        said = ", ".join(f"{key}={value}" for key, value in settings.items()) or "the config's own"

        left = ""
        # a mean over the seeds that went well would be too good without this
        missed = len(group) - self._succeeded(group)
        if missed:
            why = "failed"
            if self.best_config.stop.gap is not None:
                why = "did not reach the gap"
            left = f"; {missed} of {len(group)} seeds {why}"

        by = self.by.replace("_", " ")
        mean = f"{fmean(values):.4g}"
        return f"Best by mean {by} over {len(values)} seed(s): {said} ({mean}){left}."


def sweep(
    config: str | Path | Mapping[str, Any],
    over: Over | None = None,
    seeds: int = 1,
    out: str | Path | None = None,
    workers: int | None = None,
    ray: str | None = None,
    by: str | None = None,
    changes: Sequence[str] = (),
    progress: Progress | None = None,
) -> Sweep:
    """Train a config over a grid of settings and seeds, several at a time.

    A training that fails is a row with its reason.

    Parameters
    ----------
    config : str, Path or mapping
        A config file, or its keys as a dict.
    over : mapping, optional
        The values of each key to try, such as ``{"method.tokens": [1, 2, 4], "method.hops": [4,
        16]}``.
    seeds : int, default 1
        How many seeds, counted from that of the config.
    out : str or Path, optional
        Where finished trainings are kept: the same sweep again, or a larger one, continues from
        them.
    workers : int, optional
        How many train at the same time: processes, or with ``ray`` actors of Ray.
    ray : str, optional
        'local', 'auto' or an address of Ray.
    by : str, optional
        The column by which the best settings are chosen, on average over the seeds: the cost if the
        config has a gap to reach, else the first metric of the test set, else the objective.
    changes : sequence of str
        Changes of the config, as ``--set`` on the command line.
    progress : callable, optional
        Called as trainings go on.

    Returns
    -------
    Sweep
        A row for every training.

    Examples
    --------
    >>> import mtcd
    >>> config = {
    ...     "data": {"synthetic": "ridge", "samples": 40, "features": 6, "clients": 3},
    ...     "model": {"kind": "ridge", "l2": 1},
    ...     "stop": {"iterations": 5},
    ... }
    >>> found = mtcd.sweep(config, {"model.l2": [1, 10]}, seeds=2, workers=1)
    >>> len(found.records)
    4
    """
    points = grid(config, over or {}, seeds, changes)
    if out is None:
        from tempfile import TemporaryDirectory

        # the trainings are in memory then: nothing is left on disk
        with TemporaryDirectory() as scratch:
            return _swept(points, Path(scratch), Backend(workers, ray), by, progress)

    folder = Path(out)
    check_sweep_folder(folder)
    found = _swept(points, folder, Backend(workers, ray), by, progress)
    found.write_all(folder)
    return found


def _swept(
    points: list[Point], folder: Path, backend: Backend, by: str | None, progress: Progress | None
) -> Sweep:
    running = Running(points, Finished(folder / TRAININGS))
    running.run(backend, progress or (lambda status: None))
    records = tuple(running.records[number] for number in range(len(points)))
    return Sweep(tuple(points), records, _deciding(by, points, records), running.kept)


def check_sweep_folder(out: Path) -> None:
    """Reject a folder that holds anything but a sweep."""
    # hidden files are those of desktops, or of writings that were interrupted
    known = {TRAININGS, TABLE, PARQUET, BEST, PICTURE}
    others = [name for name in sorted(names_in(out)) if name not in known and name[0] != "."]
    if others:
        raise ConfigError(
            f"{out} holds other files ({', '.join(others[:3])}): choose an empty or a new folder."
        )
    check_writable(out)


def _deciding(by: str | None, points: Sequence[Point], records: Sequence[Record]) -> str:
    """The column that decides."""
    rows = [record["row"] for record in records if record["row"]["status"] != FAILED]
    found: dict[str, None] = {}  # in the order in which they occur, each once
    for row in rows:
        found |= dict.fromkeys(name for name, value in row.items() if value is not None)
    numbers = [name for name in found if name not in WORDS]

    if by is not None:
        if rows and by not in numbers:
            raise ConfigError(f"by: there is no column {by!r}; {did_you_mean(by, numbers)}")
        return by
    configs = [point.config for point in points if point.config is not None]
    if any(config.stop.gap is not None for config in configs):
        return "cost"  # all go to the same gap, and differ in what that costs
    return next((name for name in numbers if name.startswith("test_")), "objective")


def higher_is_better(column: str) -> bool:
    """Whether more of it is better: of some metrics."""
    part, _, metric = column.partition("_")
    if column in ("accuracy", "test_accuracy"):
        return True
    return part in PARTS and find_metric(metric).higher_is_better


def _one_kind(values: Sequence[Any]) -> bool:
    """Whether these settings fit into one column as they are: all numbers, all texts, all true or
    false."""
    kinds: set[type] = set()
    for one in values:
        kind: type = type(one)
        if isinstance(one, int | float) and not isinstance(one, bool):
            kind = float  # whole numbers fit into a column of numbers
        kinds.add(kind)

    return len(kinds) == 1 and not kinds & {list, dict}


def _cell(value: Any, as_text: bool) -> Any:
    """A setting in the table; as text, lists and sections are JSON."""
    if not as_text or isinstance(value, str):
        return value
    return json.dumps(value)
