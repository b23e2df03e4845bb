"""Workers as processes, with pipes but without the processes."""

from __future__ import annotations

from multiprocessing import Pipe
from types import SimpleNamespace
from typing import Any

import pytest

from mtcd.core.errors import ConfigError
from mtcd.core.workers import Backend, Failed, open_workers, processes
from mtcd.core.workers.processes import ProcessWorkers


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The far ends of the pipes of workers, in the order in which they were started."""
    made: list[Any] = []

    def start() -> Any:
        here, there = Pipe()
        made.append(there)
        return SimpleNamespace(exitcode=-9, join=lambda timeout: None), here

    monkeypatch.setattr(processes, "_start", start)
    return made


def test_a_job_goes_to_the_worker_that_is_named(ends: list[Any]) -> None:
    workers: ProcessWorkers[str] = ProcessWorkers(3)
    workers.give("first", "job 1", worker=2)  # type: ignore[arg-type]
    assert workers.idle == [0, 1]
    assert ends[0].recv() == "job 1"
    ends[0].send("done")
    assert list(workers.news(1.0)) == [("first", "done")]
    # one that runs already goes before one that would have to be started
    workers.give("second", "job 2")  # type: ignore[arg-type]
    assert workers.idle == [0, 1]
    assert len(ends) == 1


def test_progress_keeps_a_worker_busy_and_its_death_frees_it(ends: list[Any]) -> None:
    workers: ProcessWorkers[str] = ProcessWorkers(1)
    workers.give("it", "job")  # type: ignore[arg-type]
    ends[0].send(0.5)
    assert list(workers.news(1.0)) == [("it", 0.5)]
    assert workers.free == 0
    assert list(workers.news(0.0)) == []

    ends[0].close()
    [(name, said)] = workers.news(1.0)
    assert name == "it"
    assert said.lost
    assert "killed by signal 9" in said.why
    assert workers.free == 1
    assert not Failed("it has no data").lost
    workers.give("again", "job")  # type: ignore[arg-type]
    assert len(ends) == 2


@pytest.mark.parametrize(
    ("code", "said"),
    [(0, "ended with code 0"), (None, "ended with code 0"), (-15, "killed by signal 15")],
)
def test_a_death_is_told_in_words(code: int | None, said: str) -> None:
    process: Any = SimpleNamespace(exitcode=code, join=lambda timeout: None)
    assert said in processes._death(process)


def test_workers_of_a_cluster_need_the_feature(monkeypatch: pytest.MonkeyPatch) -> None:
    assert open_workers(Backend(workers=3)).jobs == 3
    monkeypatch.setattr(processes.features, "parts", lambda group: {})
    with pytest.raises(ConfigError, match="no workers on Ray: leave it out"):
        open_workers(Backend(ray="auto"))
    with pytest.raises(ConfigError, match="ray is 'local', 'auto' or the address"):
        Backend(ray=" ")
