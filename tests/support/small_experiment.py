"""A small experiment, and workers that train it in this process, for the tests of experiments."""

from collections import deque
from copy import deepcopy
from pathlib import Path

import pytest
import yaml

from mtcd.core.workers import Backend, Job
from mtcd.core.workers.pool import outcome
from mtcd_experiments.plan import FigurePlan, plan_figure
from mtcd_experiments.schema import Experiment

SMALL = {
    "title": "Small",
    "about": "A figure for tests.",
    "problem": {
        "data": {"synthetic": "ridge", "samples": 30, "features": 12, "clients": 4},
        "model": {"kind": "ridge", "alpha": 1},
        "network": {"kind": "cycle"},
        "stop": {"gap": 1e-5, "iterations": 4000},
        "costs": {"ratio": 20},
    },
    "cases": {
        "ring": {"title": "A ring"},
        "row": {"title": "A row", "changes": {"network": {"kind": "path"}}},
    },
    "curves": {
        "svfl": {"label": "SVFL", "method": {"kind": "svfl", "local_updates": 2, "stepsize": 1e-3}},
        "mtcd": {
            "label": "MTCD",
            "method": {"kind": "mtcd", "tokens": 2, "hops": 4, "local_updates": 2},
        },
    },
    "panels": [{"x": "iterations"}, {"x": "cost"}],
    "target": 1e-3,
    "quick": {"changes": {"stop": {"gap": 1e-2}}, "seeds": 2},
}
FOREVER = {"kind": "mtcd", "hops": 4, "stepsize": 1e-12}
GONE = ...  # a change that takes a key out
FIXED = {"problem": {"data": {"seed": 7}}}  # the same data for every seed


def changed(*changes: dict) -> dict:
    """The small experiment with some keys changed, however deep."""

    def lay(base: dict, change: dict) -> dict:
        for key, value in change.items():
            base[key] = (
                lay(base[key], value)
                if isinstance(value, dict) and isinstance(base.get(key), dict)
                else value
            )
        return {key: value for key, value in base.items() if value is not GONE}

    content = deepcopy(SMALL)
    for change in changes:
        content = lay(content, deepcopy(change))
    return content


def text(content: dict) -> str:
    return yaml.safe_dump(content, sort_keys=False)


def plan(
    content: dict, seeds: int | None = 2, quick: bool = False, folder: Path = Path()
) -> FigurePlan:
    return plan_figure("small", Experiment.model_validate(content), folder, seeds, quick)


class Inline:
    """Workers that train in this process when they are asked for news, and count."""

    trained = 0

    @classmethod
    def take_over(cls, monkeypatch: pytest.MonkeyPatch) -> type["Inline"]:
        """From now on, they do all trainings."""
        monkeypatch.setattr("mtcd_experiments.run.open_workers", cls)
        cls.trained = 0
        return cls

    def __init__(self, backend: Backend) -> None:
        self.jobs, self.tasks = backend.workers or 2, deque()

    def __enter__(self) -> "Inline":
        return self

    def __exit__(self, *raised: object) -> None:
        pass

    @property
    def free(self) -> int:
        return self.jobs - len(self.tasks)

    def give(self, name: object, job: Job) -> None:
        self.tasks.append((name, job))

    def news(self, timeout: float):
        name, job = self.tasks.popleft()
        Inline.trained += 1
        yield name, outcome(job, lambda fraction: None)
