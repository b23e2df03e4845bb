"""Limits: every training ends, at the limit that was asked for."""

from pathlib import Path
from typing import Any

import pytest

import mtcd
from mtcd.core.errors import ConfigError
from mtcd.federation.file import read_federation
from mtcd.federation.node.log import Log
from mtcd.federation.node.watch import Watch
from mtcd.methods.method import Method
from mtcd.network.topology import make_network
from mtcd.training.rules import Limit
from problems import MODELS, make_data

DATA = make_data(MODELS[0], 30, [2, 3, 1, 2], seed=4)
NETWORK = make_network("cycle", DATA.clients)
# iterations in one epoch: a pass over all 30 samples
EPOCHS: dict[str, tuple[Method, int]] = {
    "stcd": (mtcd.STCD(stepsize=1e-4), 1),
    "tour": (mtcd.STCD(stepsize=1e-4, walk="tour"), 1),
    "mtcd": (mtcd.MTCD(tokens=2, hops=5, stepsize=1e-4), 5),
    "optimal": (mtcd.MTCD(tokens=2, hops=5, stepsize=1e-4, combine="optimal"), 5),
    "svfl": (mtcd.SVFL(stepsize=1e-4), 1),
    "dcpa": (mtcd.DCPA(), 1),
    "mtcd in batches": (mtcd.MTCD(tokens=2, hops=5, stepsize=1e-4, batch=7), 20),
    "svfl in batches": (mtcd.SVFL(stepsize=1e-4, batch=10), 3),
}


def bounded(now: mtcd.Measurement, fraction: float) -> None:
    """A training that goes on and on is no test."""
    assert now.iteration < 2000


@pytest.mark.parametrize("epochs", [0, 1, 3])
@pytest.mark.parametrize("name", EPOCHS)
def test_epochs_are_passes_over_all_samples_with_any_batch(name: str, epochs: int) -> None:
    method, iterations = EPOCHS[name]
    run = mtcd.train(DATA, MODELS[0], NETWORK, method, mtcd.Stop(epochs=epochs), watch=bounded)
    assert (run.status, run.final.iteration, run.final.epoch) == (
        "epochs",
        epochs * iterations,
        epochs,
    )
    assert f"({epochs} epoch" in run.message


@pytest.mark.parametrize("kind", ["momentum", "conjugate"])
def test_accelerated_tours_end_at_the_first_tour_after_the_epochs(kind: str) -> None:
    method = mtcd.STCD(stepsize=1e-4, walk="tour", acceleration=kind)
    run = mtcd.train(DATA, MODELS[0], NETWORK, method, mtcd.Stop(epochs=10), watch=bounded)
    assert run.status == "epochs"
    assert 10 <= run.final.iteration <= 30


@pytest.mark.parametrize("name", EPOCHS)
def test_a_federation_counts_epochs_as_one_process_does(name: str) -> None:
    method, iterations = EPOCHS[name]
    watch = Watch(
        mtcd.Stop(epochs=3), method, NETWORK, mtcd.Costs(), 2, DATA.samples, Log("a", None)
    )
    assert watch.limits == (Limit("epochs", "iteration", 3 * iterations),)


def test_a_federation_file_may_stop_by_epochs_of_the_full_batch(tmp_path: Path) -> None:
    from federations import written

    file = written(tmp_path, stop={"epochs": 4})
    federation, _ = read_federation(file)
    assert federation.stop.epochs == 4


def test_the_full_batch_has_no_epochs_in_its_history_unless_they_were_asked_for() -> None:
    run = mtcd.train(DATA, MODELS[0], NETWORK, mtcd.SVFL(stepsize=1e-4), mtcd.Stop(iterations=5))
    assert run.final.epoch is None
    assert "epoch" not in run.message


@pytest.mark.parametrize("limits", [{"iterations": 0}, {"seconds": 0}, {"cost": 0}, {"gap": 1e9}])
@pytest.mark.parametrize("name", EPOCHS)
def test_a_limit_that_is_reached_at_the_start_ends_it_there(
    name: str, limits: dict[str, Any]
) -> None:
    run = mtcd.train(DATA, MODELS[0], NETWORK, EPOCHS[name][0], mtcd.Stop(**limits), watch=bounded)
    assert run.final.iteration == 0
    assert run.status in (*limits, "converged")


@pytest.mark.parametrize(
    ("method", "costs"),
    [(mtcd.DCPA(), mtcd.Costs()), (mtcd.STCD(stepsize=1e-4), mtcd.Costs(account="sent"))],
)
def test_a_cost_that_never_comes_is_refused_at_once(method: Method, costs: mtcd.Costs) -> None:
    alone = make_data(MODELS[0], 20, [5], seed=5)
    with pytest.raises(ConfigError, match=r"stop\.cost .* sends nothing"):
        mtcd.train(alone, MODELS[0], "path", method, mtcd.Stop(cost=3.0), costs, watch=bounded)
    run = mtcd.train(alone, MODELS[0], "path", method, mtcd.Stop(cost=3.0, iterations=7), costs)
    assert run.status == "iterations"


@pytest.mark.parametrize(
    ("method", "iterations"), [(mtcd.SVFL(1, 0.05), 3), (mtcd.STCD(1, 0.05), 3)]
)
def test_split_networks_count_epochs_of_the_full_batch_alike(
    method: Method, iterations: int
) -> None:
    pytest.importorskip("torch")
    from torch import nn

    model = mtcd.SplitModel(
        {client: nn.Linear(w, 1) for client, w in zip(DATA.clients, [2, 3, 1, 2], strict=True)},
        fusion=nn.Linear(4, 1),
        loss="squared",
    )
    run = mtcd.train(DATA, model, NETWORK, method, mtcd.Stop(epochs=3), watch=bounded)
    assert (run.status, run.final.iteration, run.final.epoch) == ("epochs", iterations, 3)


def test_a_limit_of_cost_counts_what_is_priced(tmp_path: Path) -> None:
    """Per float, a hop of N numbers at a ratio of 10 costs N/10: it takes 10 of them to cost N."""
    data = mtcd.synthetic("ridge", 30, 8, 4, seed=0)
    costs = mtcd.Costs(10, per="float")
    run = mtcd.train(data, MODELS[0], "cycle", mtcd.STCD(), mtcd.Stop(cost=30.0), costs)
    assert (run.status, run.final.iteration, run.final.cost) == ("cost", 10, 30.0)
    assert run.summary()["cost_per"] == {"message": 1.0, "float": 30.0}
    run.save(tmp_path / "run")
    again = mtcd.Run.load(tmp_path / "run")
    assert again.costs == costs
    assert again.summary()["cost_per"] == run.summary()["cost_per"]
