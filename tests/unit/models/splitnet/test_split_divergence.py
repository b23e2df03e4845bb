"""What shows on the way that a split network diverges: the loss that one who has (H, theta_0) and
the labels sees."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils.parametrizations import spectral_norm

import mtcd
from mtcd.methods.mtcd.mtcd import MTCD, STCD
from mtcd.methods.svfl.svfl import SVFL
from mtcd.models.metrics.metric import Score
from mtcd.models.splitnet.problem import NetProblem
from mtcd.training.divergence import DIVERGED, HOPELESS
from split_problems import case, dropping, normed, rows_but_seconds, same_weights, weights_of


def remembering(inputs: int, outputs: int) -> nn.Module:
    """Every pass in training mode changes its buffers."""
    return nn.Sequential(spectral_norm(nn.Linear(inputs, 4)), nn.Tanh(), nn.Linear(4, outputs))


@pytest.mark.parametrize("head", [nn.Linear, normed, dropping, remembering])
@pytest.mark.parametrize("method", [SVFL(2, 0.05), SVFL(2, 0.05, batch=5)], ids=["full", "batches"])
def test_to_look_at_the_loss_changes_nothing(
    head: Any, method: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = case(head=head).train(method, mtcd.Stop(epochs=4))
    monkeypatch.setattr("mtcd.training.observer.looks_hopeless", lambda seen: False)
    monkeypatch.setattr("mtcd.models.splitnet.parties.SplitServer._first_loss", lambda self: 1.0)
    monkeypatch.setattr("mtcd.models.splitnet.parties.SplitServer.epoch_loss", lambda self: None)
    ignored = case(head=head).train(method, mtcd.Stop(epochs=4))
    assert same_weights(weights_of(looked), weights_of(ignored))
    assert rows_but_seconds(looked) == rows_but_seconds(ignored)


@pytest.mark.parametrize(
    "method", [SVFL(1, 0.05), MTCD(2, 3, 1, 0.05, combine="cluster"), STCD(1, 0.05)]
)
def test_with_the_full_batch_it_is_the_objective(
    method: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []
    monkeypatch.setattr("mtcd.training.observer.looks_hopeless", lambda one: bool(seen.append(one)))
    run = case().train(method, mtcd.Stop(iterations=12))
    # the last look is for the objective at the end
    objectives = [row.objective for row in run.history.rows[:-1]]
    np.testing.assert_allclose([one.loss for one in seen], objectives, rtol=1e-5)
    np.testing.assert_allclose([one.start for one in seen], objectives[0], rtol=1e-5)


def test_with_batches_it_is_their_mean_over_an_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr("mtcd.training.observer.looks_hopeless", lambda one: bool(seen.append(one)))
    # the networks stay as they are, so an epoch has the objective, but for the first batch of the
    # next
    still = 1e-12
    run = case(count=12).train(SVFL(1, still, batch=2), mtcd.Stop(epochs=3))
    batches = case(count=12).problem()
    order = [
        mtcd.core.seeding.shuffled(0, "batch", (epoch,), 12).reshape(6, 2) for epoch in range(3)
    ]
    outputs = torch.cat([out for _, out in batches._outputs(batches.sources, 12)])
    losses = [
        [float(batches.around.loss(outputs[rows], batches.labels[rows])) for rows in one]
        for one in order
    ]
    expected = [losses[0][0], *(np.mean([*losses[e - 1][1:], losses[e][0]]) for e in (1, 2))]
    np.testing.assert_allclose([one.loss for one in seen], expected, rtol=1e-5)
    assert run.status == "epochs"


def test_a_first_batch_that_is_fit_by_chance_is_not_the_measure_of_all_others() -> None:
    data, rng = case(count=12).data, np.random.default_rng(3)
    labels = rng.standard_normal(12)
    labels[mtcd.core.seeding.shuffled(0, "batch", (0,), 12)[0]] = 0.0
    nets = {client: nn.Linear(data.shapes[client][0], 1, bias=False) for client in data.clients}
    for one in nets.values():
        nn.init.zeros_(one.weight)
    fits = mtcd.SplitModel(nets, nn.Identity(), "sum", loss="squared")
    made = mtcd.VerticalDataset(dict(data.features), labels)
    run = mtcd.train(
        made,
        fits,
        mtcd.make_network("path", data.clients),
        SVFL(1, 1e-3, batch=1),
        mtcd.Stop(epochs=5),
    )
    assert run.status == "epochs"
    assert run.objective < run.history.rows[0].objective


@pytest.mark.parametrize(
    "method", [STCD(2, 20.0), SVFL(1, 10.0), SVFL(1, 3.0, batch=4)], ids=["stcd", "svfl", "batches"]
)
def test_a_training_that_goes_on_from_a_checkpoint_measures_by_the_same_start(
    method: Any, tmp_path: Path
) -> None:
    one = case(aggregation="sum")
    whole = one.train(method, mtcd.Stop(iterations=60))
    last = whole.final.iteration
    assert whole.status == DIVERGED
    assert 2 < last < 60
    assert math.isfinite(whole.objective)
    assert whole.objective > HOPELESS * whole.history.rows[0].objective
    before = whole.history.rows[-2].iteration
    one.train(method, mtcd.Stop(iterations=before), checkpoint=tmp_path)
    rest = one.train(method, mtcd.Stop(iterations=60), checkpoint=tmp_path, resume=True)
    assert (rest.status, rest.final.iteration) == (DIVERGED, last)
    assert rest.ledger == whole.ledger


def test_an_objective_that_is_no_number_on_the_way_does_not_count_while_the_batches_are_fine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    measure, measured = NetProblem.score, []

    def score(self: NetProblem, *given: Any) -> Score:
        measured.append(measure(self, *given))
        return Score(math.nan) if len(measured) == 3 else measured[-1]

    monkeypatch.setattr(NetProblem, "score", score)
    run = case().train(SVFL(1, 0.05), mtcd.Stop(iterations=4))
    assert run.status == "iterations"
    assert [row.iteration for row in run.history.rows] == [0, 1, 3, 4]
