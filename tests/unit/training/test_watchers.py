"""Watchers and listeners: what follows a training beside it, and what is attached to its run."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import pytest

import mtcd
from mtcd.core import features
from mtcd.core.errors import ConfigError, DivergedError
from mtcd.protocol.party import MONITOR, Message
from mtcd.protocol.state import Snapshot
from mtcd.training.history import Measurement
from mtcd.training.watchers import Started, Watcher, Watchers, watcher_of
from problems import MODELS, make_data

RIDGE = MODELS[0]
DATA = make_data(RIDGE, 20, [2, 3, 1, 2], seed=3)
METHODS = {
    "stcd": mtcd.STCD(stepsize=1e-3),
    "mtcd": mtcd.MTCD(2, 3, 2, 1e-3),
    "svfl": mtcd.SVFL(stepsize=1e-3),
    "dcpa": mtcd.DCPA(),
}


def train(method: str = "stcd", *followers: Any, stop: int = 12, **how: Any) -> mtcd.Run:
    most = mtcd.Stop(iterations=stop)
    return mtcd.train(DATA, RIDGE, "cycle", METHODS[method], most, callbacks=followers, **how)


class Counter:
    """A listener of a run that counts messages, and what it makes."""

    def __init__(self, training: Any, parties: Any, ledger: mtcd.Ledger) -> None:
        self.clients = training.network.size
        self.sent = self.rounds = 0

    def see(self, message: Message) -> None:
        assert message.to != MONITOR
        self.sent += message.sender != message.to

    def see_rounds(self, done: int) -> None:
        self.rounds = done

    def recorder(self) -> Callable[[], Any]:
        raise NotImplementedError

    def replay(self, recorded: Sequence[list[Any]]) -> None:
        raise NotImplementedError

    def state(self) -> dict[str, Any]:
        return {"sent": self.sent}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.sent = state["sent"]

    def attachment(
        self,
        rows: Sequence[Measurement],
        parameters: Sequence[Any] | None = None,
        running: bool = False,
    ) -> Count:
        return Count(self.sent, self.rounds, None if parameters is None else len(parameters))


class Count:
    """What is attached."""

    file: ClassVar[str] = "count.txt"

    def __init__(self, sent: int, rounds: int, clients: int | None) -> None:
        self.sent, self.rounds, self.clients = sent, rounds, clients

    def write(self, path: Path) -> None:
        path.write_text(f"{self.sent} {self.rounds} {self.clients}")

    @classmethod
    def read(cls, path: Path) -> Self:
        sent, rounds, clients = path.read_text().split()
        return cls(int(sent), int(rounds), int(clients))


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> None:
    """A feature that attaches ``Count``, beside the others."""
    own = features.Feature(
        parts={
            "mtcd.listeners": {"count": f"{__name__}:Counter"},
            "mtcd.attachments": {"count": f"{__name__}:Count"},
            "mtcd.run": {"twice": f"{__name__}:twice"},
        },
        run_files=("count.txt",),
    )
    everything = (*features.built_in(), own)
    monkeypatch.setattr(features, "built_in", lambda: everything)


def twice(run: mtcd.Run, more: int = 0) -> int:
    """Twice the messages of a run."""
    return 2 * run.attachments["count"].sent + more  # type: ignore[attr-defined]


@pytest.mark.usefixtures("counting")
@pytest.mark.parametrize("method", ["stcd", "mtcd", "svfl"])
def test_a_listener_sees_every_message_once(method: str, tmp_path: Path) -> None:
    run = train(method)
    assert run.count.sent == sum(run.ledger.messages("sent").values())
    assert run.count.clients == len(DATA.clients)
    assert run.trace.total > 0, "the trace is another listener"
    assert run.twice(1) == 2 * run.count.sent + 1
    assert {"count", "trace", "twice", "coefficients", "plot"} <= set(dir(run))

    run.save(tmp_path / "run")
    assert mtcd.load_run(tmp_path / "run").count.sent == run.count.sent
    train(method, stop=3).save(tmp_path / "run")
    assert mtcd.load_run(tmp_path / "run").count.sent < run.count.sent


@pytest.mark.usefixtures("counting")
def test_whole_rounds_are_shown_by_their_number() -> None:
    run = train("dcpa")
    assert (run.count.sent, run.count.rounds) == (0, run.final.iteration)


@pytest.mark.usefixtures("counting")
def test_checkpoints_keep_the_state_of_listeners(tmp_path: Path) -> None:
    whole = train(stop=20)
    train(stop=10, checkpoint=tmp_path)
    resumed = train(stop=20, checkpoint=tmp_path, resume=True)
    assert resumed.count.sent == sum(resumed.ledger.messages("sent").values())
    assert resumed.count.sent == whole.count.sent


@pytest.mark.usefixtures("counting")
def test_a_diverged_run_has_attachments_without_a_model() -> None:
    run = mtcd.train(DATA, RIDGE, "cycle", mtcd.STCD(stepsize=1e4), mtcd.Stop(iterations=2000))
    assert run.status == "diverged"
    assert (run.count.clients, run.trace.norms) == (None, None)
    with pytest.raises(DivergedError, match="has no model"):
        run.coefficients  # noqa: B018 - raises
    assert not hasattr(run, "coefficients")


def test_a_run_without_an_attachment_says_none_and_copies_are_whole() -> None:
    run = train()
    bare = replace(run, attachments={})
    assert bare.trace is None
    with pytest.raises(AttributeError, match="without plots"):
        run.plots  # noqa: B018 - raises
    assert copy.copy(run).trace is run.trace
    again = pickle.loads(pickle.dumps(replace(run, model=None)))
    assert again.final == run.final


# --- watchers -------------------------------------------------------------------------------------


class Following(Watcher):
    """Notes what it is told, and stops at a measurement if it is asked to."""

    def __init__(self, name: str, stop_at: int | None = None, syncs: bool = False) -> None:
        self.name, self.stop_at, self.wants_syncs = name, stop_at, syncs
        self.told: list[str] = []
        self.rows: list[Measurement] = []
        self._stopped: str | None = None

    @property
    def stopped(self) -> str | None:
        return self._stopped

    def start(self, started: Started) -> None:
        self.told.append(f"start {started.method} {started.trace().total}")

    def measured(
        self, row: Measurement, fraction: float, parameters: Callable[[], list[Any]]
    ) -> None:
        self.rows.append(row)
        assert len(parameters()) == len(DATA.clients)
        if self.stop_at is not None and row.iteration >= self.stop_at:
            self._stopped = f"{self.name}: enough"

    def synced(
        self,
        measure: Callable[[], Measurement],
        fraction: float,
        parameters: Callable[[], list[Any]],
    ) -> None:
        self.told.append(f"sync {measure().syncs}")

    def end(self, run: mtcd.Run) -> None:
        self.told.append(f"end {run.status}")

    def close(self) -> None:
        self.told.append("close")

    def state(self) -> Snapshot:
        return Snapshot({self.name: len(self.rows)}, {})

    def restore(self, state: Snapshot) -> None:
        self.told.append(f"restore {state.facts[self.name]}")


def test_several_watchers_follow_one_training(tmp_path: Path) -> None:
    first, second = Following("first", stop_at=4), Following("second", syncs=True)
    run = train("mtcd", first, mtcd.Callback(), second, checkpoint=tmp_path)
    assert run.status == "stopped"
    assert "by first: enough" in run.message
    assert first.rows == second.rows == list(run.history.rows)
    syncs = [f"sync {number}" for number in range(1, run.final.syncs + 1)]
    assert second.told == [f"start {run.method} 0", *syncs, "end stopped", "close"]
    assert first.told == [second.told[0], "end stopped", "close"]

    again, other = Following("first"), Following("second")
    train("mtcd", again, other, checkpoint=tmp_path, resume=True)
    assert again.told[0] == other.told[0] == f"restore {len(run.history)}"


def test_a_watcher_that_fails_to_close_does_not_keep_others_from_it() -> None:
    class Fails(Watcher):
        def close(self) -> None:
            raise RuntimeError("full disk")

    last = Following("last")
    with pytest.raises(RuntimeError, match="full disk"):
        train("stcd", Fails(), last)
    assert last.told[-1] == "close"


def test_the_first_watcher_that_chooses_has_its_model() -> None:
    class Chooses(Watcher):
        def __init__(self, factor: float) -> None:
            self.factor = factor

        def measured(self, row: Any, fraction: float, parameters: Any) -> None:
            self.latest = [self.factor * theta for theta in parameters()]

        def chosen(self) -> tuple[Sequence[Any], str] | None:
            return self.latest, f"times {self.factor}"

    plain, run = train(), train("stcd", Watcher(), Chooses(2.0), Chooses(3.0))
    assert (run.coefficients == 2.0 * plain.coefficients).all()
    assert "times 2.0" in run.notes


def test_without_the_feature_callbacks_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    others = tuple(one for one in features.built_in() if "mtcd.watchers" not in one.parts)
    assert len(others) == len(features.built_in()) - 1
    monkeypatch.setattr(features, "built_in", lambda: others)
    with pytest.raises(ConfigError, match="callbacks: this installation of mtcd has none"):
        train("stcd", mtcd.Callback())
    assert train("stcd", Following("it")).status == "iterations"


def test_nobody_is_called_where_nobody_follows() -> None:
    assert type(watcher_of((), lambda parameters: None)) is Watcher
    assert type(watcher_of([], lambda parameters: None)) is Watcher
    nobody = Watchers([])
    assert (nobody.stopped, nobody.chosen(), nobody.wants_syncs) == (None, None, False)
    assert nobody.state() == Snapshot({}, {})
    assert {one.name for one in fields(Started)} > {"method", "clients", "ledger"}
