"""A training of a linear model that was interrupted at any moment resumes to the same iterates,
history and ledger."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("cryptography")

import mtcd
from commands import run as command
from mtcd.core.errors import ConfigError
from mtcd.core.files import LINEAR_CHECKPOINT
from mtcd.models.glm.checkpoints import ArrayFile
from mtcd.models.glm.training import LinearTraining
from mtcd.privacy.masked.masked import with_masks
from mtcd.privacy.sealed.dp.settings import PrivateTours
from mtcd.privacy.sealed.settings import SealedTours
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.protocol.party import Parties
from mtcd.training.checkpoints import Checkpoints
from problems import make_data
from recorded import LASSO, LOGISTIC, MULTINOMIAL, RIDGE, TRAININGS, linear, table
from same_objects import differences
from traces import assert_same_trace
from waiting import until

MORE = {
    "float32": (RIDGE, "cycle", mtcd.MTCD(2, 3, 2, 0.01, transport="float32")),
    "one client": (RIDGE, [], mtcd.STCD(2, 0.01)),
    "server, clients that leave": (
        LASSO,
        "complete",
        mtcd.SVFL(2, 0.005),
        mtcd.Stop(iterations=30),
    ),
    "accelerated rounds": (
        LOGISTIC,
        "cycle",
        mtcd.SVFL(acceleration="conjugate"),
        mtcd.Stop(iterations=25),
    ),
    "by cost": (LOGISTIC, "cycle", mtcd.MTCD(2, 3, 2, 0.01), mtcd.Stop(cost=3000)),
    "by epochs": (MULTINOMIAL, "cycle", mtcd.MTCD(2, 3, 2, 0.01, batch=7), mtcd.Stop(epochs=9)),
}
LEAVING = [mtcd.Change(10, leave=("client_1",)), mtcd.Change(20, join=("client_1",))]
CASES: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    name: (made.args, made.keywords) for name, made in TRAININGS.items() if made.func is linear
} | {name: (args, {"changes": LEAVING} if "leave" in name else {}) for name, args in MORE.items()}


class KilledError(Exception):
    pass


def train(name: str, stop: Any = None, **how: Any) -> mtcd.Run:
    (model, network, method, *given), more = CASES[name]
    data = table(model, clients=1 if name == "one client" else 6)
    more = dict(more)
    changes = more.pop("changes", None)
    if changes is not None:
        network = mtcd.with_changes(mtcd.make_network(network, data.clients), changes)
    limit = stop or (given[0] if given else mtcd.Stop(iterations=120))
    return mtcd.train(data, model, network, method, limit, seed=5, **more, **how)


@cache
def whole(name: str) -> mtcd.Run:
    return train(name)


def kill_at(moment: int) -> Any:
    left = [moment]

    def watch(row: Any, fraction: float) -> None:
        if not left[0]:
            raise KilledError
        left[0] -= 1

    return watch


def keep_at(moment: int) -> Any:
    """Checkpoints.write, which writes at this measurement only."""
    write, left = Checkpoints.write, [moment]

    def written(self: Checkpoints, observer: Any, last: bool = False) -> None:
        if not left[0]:
            write(self, observer, True)
        left[0] -= 1

    return written


def assert_same(found: mtcd.Run, expected: mtcd.Run) -> None:
    """Bit for bit, except for the seconds."""
    for name, theta in expected.parameters.items():
        assert found.parameters[name].tobytes() == theta.tobytes()
    assert found.ledger == expected.ledger
    assert_same_trace(found.trace, expected.trace)
    ours, theirs = (
        [asdict(row) | {"seconds": 0} for row in run.history] for run in (found, expected)
    )
    assert ours == theirs
    assert (found.status, found.message, found.notes) == (
        expected.status,
        expected.message,
        expected.notes,
    )


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
@given(share=st.floats(0, 0.999))
@settings(max_examples=4, deadline=None)
def test_resuming_equals_never_having_stopped(name: str, share: float) -> None:
    expected = whole(name)
    moment = int(share * len(expected.history))
    with tempfile.TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpoints, "write", keep_at(moment))
        with pytest.raises(KilledError):
            train(name, checkpoint=place, watch=kill_at(moment))
        assert_same(train(name, checkpoint=place, resume=True), expected)


@pytest.mark.parametrize("name", ["stcd, conjugate", "dcpa", "tree-cg", "mtcd, batches"])
def test_it_may_be_interrupted_again_and_again_and_at_checkpoints_that_are_rare(
    name: str, tmp_path: Path
) -> None:
    for count, moment in enumerate((9, 3, 5)):
        with pytest.raises(KilledError):
            train(name, checkpoint=tmp_path, resume=count > 0, watch=kill_at(moment))
        assert [path.name for path in tmp_path.iterdir()] == [LINEAR_CHECKPOINT]
    assert_same(train(name, checkpoint=tmp_path, resume=True), whole(name))


@pytest.mark.parametrize(
    "name", ["stcd, momentum", "mtcd, optimal", "svfl, batches", "dcpa", "tree-cg"]
)
def test_a_finished_training_goes_on_to_a_larger_limit(name: str, tmp_path: Path) -> None:
    expected = whole(name)
    first = train(name, mtcd.Stop(iterations=8), checkpoint=tmp_path)
    assert_same(train(name, mtcd.Stop(iterations=8), checkpoint=tmp_path, resume=True), first)
    found = train(
        name, mtcd.Stop(iterations=expected.final.iteration), checkpoint=tmp_path, resume=True
    )
    for client, theta in expected.parameters.items():
        assert found.parameters[client].tobytes() == theta.tobytes()
    assert found.ledger == expected.ledger


HIDDEN: dict[str, Any] = {
    "sealed": SealedTours(scheme="clear"),
    "sealed, no server": SealedTours(scheme="clear", server=False),
    "private": PrivateTours(scheme="clear", dp=mtcd.DP(epsilon=8.0, tours=40)),
    "double masks": with_masks(mtcd.SVFL(2, 0.005, batch=7), "double-masked"),
    "masks": with_masks(mtcd.MTCD(2, 4, 2, 0.01, combine="cluster")),
}
DERIVED = (
    "model",
    "plan",
    "unchanged",
    "masks",
    "double_masks",
    "_prepared",
    "scales",
    "rounded",
    "column_scales",
)
"""What is the same at all times, or is made anew: with what it has computed already."""


@pytest.mark.parametrize("name", [*CASES, *HIDDEN])
def test_parties_of_a_checkpoint_have_every_attribute_of_those_that_wrote_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So no field is missing in what is kept, also where it seldom matters."""
    if name in ("masks", "double masks"):
        apart: tuple[str, ...] = (*DERIVED, "private", "public", "opening", "early")  # keys are new
    else:
        apart = DERIVED
    made, seen = LinearTraining.parties, []

    def parties(training: LinearTraining) -> Parties:
        seen.append(training)
        return made(training)

    count = [0]

    def compared(self: Checkpoints, observer: Any, last: bool = False) -> None:
        count[0] += 1
        if count[0] % 3:
            return
        engine = observer.engine
        again = type(engine)(made(seen[0]), Ledger())
        again.resume(engine.snapshot())
        for one, other in zip(all_parties(engine), all_parties(again), strict=True):
            assert differences(one, other, apart) == []

    monkeypatch.setattr(LinearTraining, "parties", parties)
    monkeypatch.setattr(Checkpoints, "write", compared)
    if name in HIDDEN:
        data = make_data(LOGISTIC, 60, [14, 15, 14, 16], seed=3)
        mtcd.train(
            data, LOGISTIC, "cycle", HIDDEN[name], mtcd.Stop(iterations=30), checkpoint=tmp_path
        )
    else:
        train(name, mtcd.Stop(iterations=40), checkpoint=tmp_path)
    assert count[0] >= 6


def all_parties(engine: Any) -> list[Any]:
    parties = engine.parties
    return [*parties.clients, parties.server, getattr(engine, "monitor", None)]


def test_ctrl_c_leaves_a_model_and_a_checkpoint(tmp_path: Path) -> None:
    def interrupt(row: Any, fraction: float) -> None:
        if row.iteration >= 20:
            raise KeyboardInterrupt

    name = "mtcd, visitors"
    assert train(name, checkpoint=tmp_path, watch=interrupt).status == "interrupted"
    assert_same(train(name, checkpoint=tmp_path, resume=True), whole(name))


@pytest.mark.parametrize(
    ("what", "changed"),
    [
        ("method", {"method": mtcd.STCD(4, 0.01)}),
        ("seed", {"seed": 6}),
        ("network", {"network": "path"}),
        ("model", {"model": mtcd.Glm("ridge", alpha=0.8)}),
        ("data", {"data": table(RIDGE, seed=2)}),
        ("data", {"standardise": True}),
        ("costs", {"costs": mtcd.Costs(ratio=7)}),
        ("costs", {"costs": mtcd.Costs(per="float")}),
        ("costs", {"costs": mtcd.Costs(account="sent")}),
        (
            "network",
            {
                "network": mtcd.with_changes(
                    mtcd.make_network("cycle", table(RIDGE).clients), LEAVING
                )
            },
        ),
        ("data", {"data": replace(table(RIDGE), labels=table(RIDGE).labels[::-1])}),
        ("data", {"data": replace(table(RIDGE), weights=np.arange(1.0, 31.0))}),
        ("samples", {"data": table(RIDGE).take(np.arange(20))}),
        ("start", {"start": {f"client_{k}": np.ones(2) for k in range(6)}}),
        ("clients", {"data": mtcd.split(np.eye(30, 12), np.arange(30.0), clients=list("abcdef"))}),
    ],
)
def test_another_training_is_refused_by_the_name_of_what_differs(
    what: str, changed: Any, tmp_path: Path
) -> None:
    given: dict[str, Any] = {
        "data": table(RIDGE),
        "model": RIDGE,
        "network": "cycle",
        "method": mtcd.STCD(3, 0.01),
    }
    given |= {"stop": mtcd.Stop(iterations=20), "checkpoint": tmp_path}
    mtcd.train(**given)
    with pytest.raises(mtcd.MtcdError, match=f"of another training: its {what} was"):
        mtcd.train(**{**given, **changed}, resume=True)


def test_a_network_with_as_many_changes_of_another_kind_is_another_one(tmp_path: Path) -> None:
    network = mtcd.make_network("cycle", table(RIDGE).clients)
    later = [replace(change, iteration=change.iteration + 1) for change in LEAVING]
    given = {"method": mtcd.STCD(3, 0.01), "stop": mtcd.Stop(iterations=20), "checkpoint": tmp_path}
    mtcd.train(table(RIDGE), RIDGE, mtcd.with_changes(network, LEAVING), **given)
    with pytest.raises(mtcd.MtcdError, match="its network was"):
        mtcd.train(table(RIDGE), RIDGE, mtcd.with_changes(network, later), **given, resume=True)


def test_checkpoints_that_are_missing_damaged_or_of_another_format_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match="resume needs checkpoint"):
        train("svfl", resume=True)
    with pytest.raises(mtcd.MtcdError, match="no checkpoint"):
        train("svfl", checkpoint=tmp_path, resume=True)
    train("svfl", checkpoint=tmp_path)
    path = tmp_path / LINEAR_CHECKPOINT
    content = path.read_bytes()
    path.write_bytes(content.replace(b'"format": 1', b'"format": 2'))
    with pytest.raises(mtcd.MtcdError, match="cannot be read"):  # its checksum is wrong
        train("svfl", checkpoint=tmp_path, resume=True)
    with monkeypatch.context() as later:
        later.setattr("mtcd.models.glm.checkpoints.FORMAT", 2)
        train("svfl", checkpoint=tmp_path)
    with pytest.raises(mtcd.MtcdError, match="no checkpoint of this version"):
        train("svfl", checkpoint=tmp_path, resume=True)
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(mtcd.MtcdError, match="cannot be read"):
        train("svfl", checkpoint=tmp_path, resume=True)


CONFIG = """
data: {synthetic: logistic, samples: 200, features: 40, clients: 8, seed: 1}
model: {kind: logistic, l2: 0.1}
network: {kind: cycle}
method: {kind: METHOD, local_updates: 2}
stop: {iterations: 10000000}
"""
OFTEN = """
import sys
import mtcd.models.glm.checkpoints as checkpoints
from mtcd.cli.app import main
checkpoints.SPACING = checkpoints.Spacing()
main(sys.argv[1:])
"""


@pytest.mark.long
@pytest.mark.parametrize(("method", "milliseconds"), [("mtcd", 130), ("stcd", 310)])
def test_a_killed_command_is_resumed(method: str, milliseconds: int, tmp_path: Path) -> None:
    config, out = tmp_path / "config.yaml", tmp_path / "out"
    config.write_text(CONFIG.replace("METHOD", method))
    asked = ("train", str(config), "--quiet", "--out")
    process = subprocess.Popen([sys.executable, "-c", OFTEN, *asked, str(out)])
    assert until(lambda: (out / LINEAR_CHECKPOINT).exists())
    time.sleep(milliseconds / 1000)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert command(*asked, str(out)) == 2  # not without --resume
    reached = ArrayFile().read(out / LINEAR_CHECKPOINT)[0]["rows"][-1]["iteration"]
    config.write_text(config.read_text().replace("10000000", str(reached + 300)))
    assert command(*asked, str(out), "--resume") == 0
    assert command(*asked, str(tmp_path / "whole")) == 0
    assert_same(mtcd.load_run(out), mtcd.load_run(tmp_path / "whole"))
    assert (out / LINEAR_CHECKPOINT).exists()
    assert command(*asked, str(out)) == 0  # it has ended, so it may be overwritten
