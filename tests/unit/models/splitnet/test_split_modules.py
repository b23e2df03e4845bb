"""What training does to somebody's modules and randomness: nothing; and dropout, batch norm and
frozen weights."""

import copy
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import mtcd
from mtcd.methods.mtcd.mtcd import MTCD, STCD
from mtcd.methods.svfl.svfl import SVFL
from mtcd.protocol.batches import Batches
from split_problems import case, dropping, net, normed, same_weights, weights_of

CLUSTERS = MTCD(2, 3, 2, 0.1, batch=5, combine="cluster")
METHODS = [
    CLUSTERS,
    MTCD(3, 3, 2, 0.1, batch=5),
    MTCD(2, 3, 2, 0.1, combine="cluster"),
    STCD(2, 0.1),
    SVFL(2, 0.1, 5),
]


def both(inputs: int, width: int) -> nn.Module:
    return nn.Sequential(normed(inputs, 4), nn.Dropout(0.3), nn.Linear(4, width))


@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.describe())
@pytest.mark.parametrize("training", [True, False])
def test_the_owners_modules_and_randomness_are_untouched(method: Any, training: bool) -> None:
    one = case(count=10, made=both, test=4)
    modules = [*one.model.representations.values(), one.model.fusion]
    for module in modules:
        module.train(training)
    before = [copy.deepcopy(module.state_dict()) for module in modules]
    torch.manual_seed(5)
    np.random.seed(5)  # noqa: NPY002
    states = torch.get_rng_state(), np.random.get_state()[1].tolist()  # noqa: NPY002
    run = one.train(method, mtcd.Stop(iterations=6))
    run.predict(one.data)
    assert torch.equal(torch.get_rng_state(), states[0])
    assert np.random.get_state()[1].tolist() == states[1]  # noqa: NPY002
    for module, state in zip(modules, before, strict=True):
        assert same_weights(module.state_dict(), state)
        assert all(part.training == training for part in module.modules())
        assert all(p.grad is None for p in module.parameters())
        norms = [part for part in module.modules() if isinstance(part, nn.BatchNorm1d)]
        assert all(norm.track_running_stats for norm in norms)
    trained = [part for module in run.modules.values() for part in module.modules()]
    assert all(part.track_running_stats for part in trained if isinstance(part, nn.BatchNorm1d))
    assert not any(part.training for part in trained)


@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.describe())
def test_randomness_of_the_owner_does_not_matter(method: Any) -> None:
    one = case(count=10, made=dropping)
    runs = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        runs.append(one.train(method, mtcd.Stop(iterations=6)))
    assert same_weights(weights_of(runs[0]), weights_of(runs[1]))
    again = mtcd.train(
        one.data,
        one.model,
        one.network,
        method,
        mtcd.Stop(iterations=6),
        seed=7,
        compute=mtcd.Compute(),
    )
    assert not same_weights(weights_of(runs[0]), weights_of(again))


MASKS: list[tuple[str, Any]] = []


class Recording(nn.Module):
    """A linear layer, then dropout whose mask is written down."""

    def __init__(self, name: str, inputs: int, width: int) -> None:
        super().__init__()
        self.name, self.inner = name, nn.Linear(inputs, width)

    def forward(self, x: Any) -> Any:
        mask = nn.functional.dropout(torch.ones(len(x), 3), 0.5, self.training)
        if self.training and len(x) == 5:
            MASKS.append((self.name, mask))
        return self.inner(x) * mask


def test_all_updates_of_an_iteration_see_the_same_mask_and_the_next_another() -> None:
    one = case(count=10)
    shapes = one.data.shapes
    nets = {client: Recording(client, shapes[client][0], 3) for client in one.data.clients}
    model = mtcd.SplitModel(nets, nn.Linear(12, 3))
    MASKS.clear()
    T, Q = 4, 3
    mtcd.train(
        one.data,
        model,
        "complete",
        SVFL(Q, 0.1, 5),
        mtcd.Stop(iterations=T),
        compute=mtcd.Compute("cpu"),
    )
    by_client = {client: [mask for name, mask in MASKS if name == client] for client in nets}
    different = set()
    for masks in by_client.values():
        passes = Q + 2  # one to upload, Q updates, one to put into the token
        assert len(masks) == T * passes + 1  # and the upload for the next
        for t in range(T):
            first, *others = masks[t * passes : (t + 1) * passes]
            assert all(torch.equal(first, mask) for mask in others)
            different.add(tuple(first.flatten().tolist()))
    assert len(different) == T * len(nets)  # another in each iteration, and at each client


class Counted(nn.BatchNorm1d):
    pass


def test_running_statistics_take_in_each_batch_once_at_the_start_of_its_iteration() -> None:
    """By hand, of a batch norm right at the features: its statistics do not depend on any
    weights."""
    one = case(count=10)
    shapes = one.data.shapes
    nets = {c: nn.Sequential(Counted(shapes[c][0]), net(shapes[c][0], 3)) for c in one.data.clients}
    T = 4
    for method in (
        MTCD(2, 3, 2, 0.1, batch=5, combine="cluster"),
        MTCD(3, 2, 2, 0.1, batch=5),
        SVFL(3, 0.1, 5),
    ):
        stop = mtcd.Stop(iterations=T * method.timeline().hops_per_sync)
        run = mtcd.train(
            one.data, mtcd.SplitModel(nets, nn.Linear(12, 3)), "complete", method, stop
        )
        batches = Batches(10, 5, 0)
        for client, module in run.modules.items():
            by_hand = nn.BatchNorm1d(shapes[client][0])
            # the last is the upload for the iteration that did not happen any more
            for t in range(T + 1):
                by_hand(torch.as_tensor(one.data.features[client])[batches.rows(t)])
            assert int(module[0].num_batches_tracked) == T + 1
            torch.testing.assert_close(module[0].running_mean, by_hand.running_mean)
            torch.testing.assert_close(module[0].running_var, by_hand.running_var)


def test_the_fusions_running_statistics_take_in_each_batch_once_however_many_steps() -> None:
    one, T = case(count=10), 4
    fusion = nn.Sequential(nn.BatchNorm1d(12), nn.Linear(12, 3))
    model = mtcd.SplitModel(one.model.representations, fusion)
    method = MTCD(2, 3, 2, 0.1, batch=5, combine="cluster", fusion_updates=5)
    run = mtcd.train(one.data, model, "complete", method, mtcd.Stop(iterations=3 * T))
    assert int(run.fusion[0].num_batches_tracked) == T


def test_with_the_full_batch_each_visit_counts_once() -> None:
    one = case(made=normed)
    for first_pass in (True, False):
        run = one.train(STCD(3, 0.1, first_pass=first_pass), mtcd.Stop(iterations=20))
        counts = [int(run.modules[c][1].num_batches_tracked) for c in one.data.clients]
        assert sum(counts) == 20 + 4 * first_pass
    run = one.train(SVFL(3, 0.1), mtcd.Stop(iterations=5))
    assert {int(run.modules[c][1].num_batches_tracked) for c in one.data.clients} == {1 + 5}


@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.describe())
@pytest.mark.parametrize("optimiser", [None, torch.optim.AdamW])
def test_frozen_weights_stay_and_unused_ones_do_no_harm(method: Any, optimiser: Any) -> None:
    one = case(count=10, optimiser=optimiser)
    for module in one.model.representations.values():
        module[0].weight.requires_grad_(False)
        module.register_parameter("unused", nn.Parameter(torch.ones(2)))
    one.model.fusion.bias.requires_grad_(False)
    run = one.train(method, mtcd.Stop(iterations=40))
    for client, module in run.modules.items():
        given = one.model.representations[client]
        assert torch.equal(module[0].weight, given[0].weight)
        assert not torch.equal(module[0].bias, given[0].bias)
        # AdamW lets weights decay
        assert torch.equal(module.unused, given.unused) or optimiser is not None
    assert torch.equal(run.fusion.bias, one.model.fusion.bias)
    assert not torch.equal(run.fusion.weight, one.model.fusion.weight)


def test_a_fusion_without_parameters() -> None:
    data = case(count=10).data
    nets = {client: net(shape[0], 3) for client, shape in data.shapes.items()}
    for method in METHODS:
        run = mtcd.train(
            data,
            mtcd.SplitModel(nets, nn.Identity(), "mean"),
            "path",
            method,
            mtcd.Stop(iterations=30),
        )
        assert run.objective < run.history.rows[0].objective
        assert run.ledger.floats()["client_client"] % 3 == 0  # nothing but aggregates


@pytest.mark.parametrize("made", [normed, dropping, both])
def test_accuracy_and_loss_are_those_in_evaluation_mode(made: Any) -> None:
    one = case(count=20, made=made, test=12)
    run = one.train(CLUSTERS, mtcd.Stop(epochs=3))
    for data, measured in (
        (one.data, run.final.accuracy),
        (one.data.test, run.final.test_accuracy),
    ):
        told = [run.modules[c].eval()(torch.as_tensor(data.features[c])) for c in data.clients]
        outputs = run.fusion(torch.cat(told, dim=1))
        shown = outputs.argmax(dim=1).numpy()
        assert measured == pytest.approx((shown == data.labels).mean())
        assert (run.predict(data) == shown).all()
        np.testing.assert_allclose(
            run.decision(data), outputs.detach().numpy(), rtol=1e-5, atol=1e-6
        )
        if data is one.data:
            loss = nn.functional.cross_entropy(outputs, torch.as_tensor(data.labels))
            assert run.objective == pytest.approx(loss.item(), rel=1e-5)
