"""Checkpoints: a training that was cut goes on as if nothing had happened."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

import mtcd
from mtcd.core.errors import ConfigError, MtcdError
from mtcd.core.files import CHECKPOINT
from mtcd.methods.mtcd.mtcd import MTCD, STCD
from mtcd.methods.svfl.svfl import SVFL
from mtcd.models.splitnet.checkpoints import Checkpoint
from mtcd.models.splitnet.client import NetClient
from split_problems import (
    MOMENTUM,
    SplitCase,
    case,
    dropping,
    normed,
    rows_but_seconds,
    same_weights,
    weights_of,
)
from traces import assert_same_trace

METHODS = {
    "clusters": MTCD(2, 3, 2, 0.05, batch=5, combine="cluster", schedule=mtcd.Schedule(every=1)),
    "overlapping": MTCD(3, 3, 2, 0.05, batch=5),
    "visitors": MTCD(3, 3, 2, 0.05, batch=5, combine="visitors"),
    "full": MTCD(2, 3, 2, 0.05, combine="cluster"),
    "full-overlapping": MTCD(3, 3, 2, 0.05),
    "stcd": STCD(2, 0.05),
    "stcd-onwards": STCD(2, 0.05, walk="non-backtracking"),
    "stcd-each": STCD(2, 0.05, fusion_client="each"),
    "svfl": SVFL(2, 0.05, 5),
    "svfl-full": SVFL(2, 0.05),
}
OPTIMISERS = {"sgd": None, "momentum": MOMENTUM, "adam": torch.optim.Adam}


class KilledError(Exception):
    pass


def kill_after(moments: int) -> Any:
    """Like a kill: no more than the checkpoint of that measurement is left."""
    left = [moments]

    def watch(row: Any, fraction: float) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise KilledError

    return watch


def stop_for(method: Any, most: int) -> mtcd.Stop:
    return mtcd.Stop(iterations=most * method.timeline().hops_per_sync)


def check_resumed(one: SplitCase, method: Any, folder: Path, moments: int, most: int = 7) -> None:
    whole = one.train(method, stop_for(method, most))
    with pytest.raises(KilledError):
        one.train(method, stop_for(method, most), checkpoint=folder, watch=kill_after(moments))
    resumed = one.train(method, stop_for(method, most), checkpoint=folder, resume=True)
    assert same_weights(weights_of(resumed), weights_of(whole))
    assert resumed.ledger == whole.ledger
    assert rows_but_seconds(resumed) == rows_but_seconds(whole)
    assert_same_trace(resumed.trace, whole.trace)
    assert (resumed.status, resumed.message, resumed.notes) == (
        whole.status,
        whole.message,
        whole.notes,
    )
    assert resumed.final.seconds >= resumed.history.rows[moments - 1].seconds > 0 or moments == 1


@pytest.mark.parametrize("optimiser", OPTIMISERS.values(), ids=OPTIMISERS)
@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_going_on_equals_never_having_stopped(method: Any, optimiser: Any, tmp_path: Path) -> None:
    one = case(aggregation="sum", count=10, optimiser=optimiser)
    check_resumed(one, method, tmp_path / "kept", moments=3)


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
@pytest.mark.parametrize("made", [normed, dropping])
def test_with_batch_norm_and_dropout_too(method: Any, made: Any, tmp_path: Path) -> None:
    check_resumed(case("complete", count=10, made=made), method, tmp_path, moments=2, most=4)


@pytest.mark.parametrize("kind", ["clusters", "full-overlapping", "svfl"])
def test_with_batch_norm_in_the_fusion_module(kind: str, tmp_path: Path) -> None:
    check_resumed(case(count=10, head=normed), METHODS[kind], tmp_path, moments=2, most=4)


@pytest.mark.parametrize("moments", [1, 2, 3, 4])
@pytest.mark.parametrize("kind", ["overlapping", "stcd-onwards"])
def test_at_whatever_moment_it_was_cut(kind: str, moments: int, tmp_path: Path) -> None:
    check_resumed(case("cycle", count=10, test=4), METHODS[kind], tmp_path, moments)


def test_a_training_cut_in_its_first_pass_begins_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is trained yet, so there is no checkpoint: what is left in the folder is not in the
    way."""
    one, method, joined = case(), METHODS["stcd"], NetClient.join
    met: list[int] = []

    def cut(client: NetClient, H: Any, t: int) -> Any:
        met.append(client.k)
        if len(met) == 3:
            raise KilledError
        return joined(client, H, t)

    with monkeypatch.context() as patch:
        patch.setattr(NetClient, "join", cut)
        with pytest.raises(KilledError):
            one.train(method, stop_for(method, 5), checkpoint=tmp_path)
    with pytest.raises(MtcdError, match="start without"):
        one.train(method, stop_for(method, 5), checkpoint=tmp_path, resume=True)
    again = one.train(method, stop_for(method, 5), checkpoint=tmp_path)
    assert same_weights(weights_of(again), weights_of(one.train(method, stop_for(method, 5))))


def test_the_first_pass_must_be_the_same_when_a_training_goes_on(tmp_path: Path) -> None:
    one = case()
    one.train(STCD(1, 0.05, first_pass=False), mtcd.Stop(iterations=2), checkpoint=tmp_path)
    with pytest.raises(MtcdError, match="first_pass was False"):
        one.train(STCD(1, 0.05), mtcd.Stop(iterations=4), checkpoint=tmp_path, resume=True)


@pytest.mark.parametrize("limit", range(25, 31))
def test_the_limit_of_a_training_with_the_full_batch_holds_after_a_break(
    limit: int, tmp_path: Path
) -> None:
    """It is measured seldom, but never later than asked for."""
    one, method = case(), STCD(1, 0.05)
    stop = mtcd.Stop(iterations=limit)
    whole = one.train(method, stop)
    with pytest.raises(KilledError):
        one.train(method, stop, checkpoint=tmp_path, watch=kill_after(len(whole.history.rows) - 1))
    resumed = one.train(method, stop, checkpoint=tmp_path, resume=True)
    assert rows_but_seconds(resumed) == rows_but_seconds(whole)
    assert_same_trace(resumed.trace, whole.trace)
    assert resumed.final.iteration == limit


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_a_training_that_was_over_stays_as_it_is(method: Any, tmp_path: Path) -> None:
    one = case(count=10)
    whole = one.train(method, stop_for(method, 4), checkpoint=tmp_path)
    again = one.train(method, stop_for(method, 4), checkpoint=tmp_path, resume=True)
    assert same_weights(weights_of(again), weights_of(whole))
    assert (again.ledger, rows_but_seconds(again)) == (whole.ledger, rows_but_seconds(whole))
    assert again.status == whole.status


def test_it_can_go_on_for_longer_than_first_asked_for(tmp_path: Path) -> None:
    one, method = case(count=10), METHODS["clusters"]
    one.train(method, mtcd.Stop(epochs=2), checkpoint=tmp_path)
    longer = one.train(method, mtcd.Stop(epochs=5), checkpoint=tmp_path, resume=True)
    assert same_weights(weights_of(longer), weights_of(one.train(method, mtcd.Stop(epochs=5))))


def test_a_checkpoint_is_whole_or_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, method = case(count=10), METHODS["clusters"]
    one.train(method, mtcd.Stop(epochs=2), checkpoint=tmp_path)
    before = (tmp_path / CHECKPOINT).read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == [CHECKPOINT]

    def fail(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("mtcd.core.files.os.replace", fail)
    with pytest.raises(MtcdError, match="No space left"):
        one.train(method, mtcd.Stop(epochs=3), checkpoint=tmp_path, resume=True)
    assert [path.name for path in tmp_path.iterdir()] == [CHECKPOINT]
    assert (tmp_path / CHECKPOINT).read_bytes() == before


def other(one: SplitCase, **about: Any) -> SplitCase:
    return replace(one, model=replace(one.model, **about))


METHOD = MTCD(2, 3, 2, 0.05, batch=5, clusters=[["c0", "c1"], ["c2", "c3"]])


@pytest.mark.parametrize(
    "change",
    [
        lambda one: (one, replace(METHOD, hops=4)),
        lambda one: (one, replace(METHOD, stepsize=0.1)),
        lambda one: (one, replace(METHOD, schedule=mtcd.Schedule(every=1))),
        lambda one: (one, replace(METHOD, clusters=[["c0"], ["c1", "c2", "c3"]])),
        lambda one: (one, replace(METHOD, start=["c0", "c2"])),
        lambda one: (one, replace(METHOD, fusion_updates=1)),
        lambda one: (one, SVFL(2, 0.05, 5)),
        lambda one: (replace(one, seed=1), METHOD),
        lambda one: (replace(one, network=mtcd.make_network("complete", one.data.clients)), METHOD),
        lambda one: (other(one, aggregation="mean"), METHOD),
        lambda one: (other(one, optimiser=torch.optim.Adam), METHOD),
        lambda one: (other(one, optimiser=MOMENTUM), METHOD),
        lambda one: (other(one, representations=case(made=normed).model.representations), METHOD),
        lambda one: (
            other(one, representations=case(widths=[1] * 4).model.representations),
            METHOD,
        ),
        lambda one: (replace(one, data=case(count=15).data), METHOD),
    ],
)
def test_other_settings_are_refused(change: Any, tmp_path: Path) -> None:
    one = case(count=10, aggregation="sum")
    one.train(METHOD, mtcd.Stop(epochs=1), checkpoint=tmp_path)
    changed, method = change(one)
    with pytest.raises(MtcdError):
        changed.train(method, mtcd.Stop(epochs=2), checkpoint=tmp_path, resume=True)


def test_what_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    one = case(count=10)
    resume = partial(one.train, METHOD, mtcd.Stop(epochs=2), resume=True)
    with pytest.raises(ConfigError, match="resume needs checkpoint"):
        resume()
    with pytest.raises(MtcdError, match="no checkpoint"):
        resume(checkpoint=tmp_path / "nowhere")
    one.train(METHOD, mtcd.Stop(epochs=1), checkpoint=tmp_path)
    path = tmp_path / CHECKPOINT
    content = path.read_bytes()
    for damaged in (
        b"",
        content[:7],
        content[:200],
        content[:-1],
        b"x" * 100,
        b"\xff" * 8 + content[8:],
    ):
        path.write_bytes(damaged)
        with pytest.raises(MtcdError, match="cannot be read"):
            resume(checkpoint=tmp_path)
    run = one.train(METHOD, mtcd.Stop(epochs=1))
    run.save(tmp_path / "run")
    path.write_bytes((tmp_path / "run" / "model.safetensors").read_bytes())
    with pytest.raises(MtcdError, match="no checkpoint of this version"):
        resume(checkpoint=tmp_path)


def test_a_folder_that_cannot_be_is_refused_before_training(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be written"):
        case().train(METHOD, mtcd.Stop(epochs=1), checkpoint=tmp_path / "file" / "kept")


def test_a_checkpoint_holds_finite_facts_and_comes_back_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    with pytest.raises(ValueError, match="JSON"):
        Checkpoint({}, {"objective": float("nan")}).write(path)
    assert not path.exists()
    Checkpoint({"a": torch.arange(6.0).reshape(2, 3).T}, {"iteration": 3}).write(path)
    again = Checkpoint.read(path)
    assert again.facts == {"iteration": 3}
    assert again.tensors["a"].tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]
