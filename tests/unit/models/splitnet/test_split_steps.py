"""The steps of a client and of the fusion module on a batch against sums by hand, and the state of
optimisers."""

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from mtcd.core.errors import ConfigError
from mtcd.models.splitnet.aggregation import make_aggregation
from mtcd.models.splitnet.client import CONTRIBUTION, NetClient, Surroundings
from mtcd.models.splitnet.feed import BatchRows, Feed, Stored, draw_seed
from mtcd.models.splitnet.fusion import CHUNK, NetFusion
from mtcd.models.splitnet.labels import squared
from mtcd.models.splitnet.modules import Trainable
from mtcd.models.splitnet.optimiser import (
    capturable,
    describe_optimiser,
    load_optimiser_tensors,
    make_optimiser,
    named_optimiser,
    optimiser_tensors,
    plain_sgd,
    set_rate,
)
from mtcd.protocol.batches import Batches
from mtcd.protocol.model import Visit
from split_problems import MOMENTUM

CPU = torch.device("cpu")
X, Y = [1.0, 2.0, -1.0], [0.5, 1.0, 3.0]
OTHERS = [0.3, -0.2, 0.1]
W, V = 0.5, 2.0


def column(values: Any) -> Any:
    return torch.tensor(values).reshape(-1, 1)


def times(value: float) -> nn.Module:
    """One number times another."""
    layer = nn.Linear(1, 1, bias=False)
    nn.init.constant_(layer.weight, value)
    return layer


def surroundings(clients: int = 3, name: str = "sum", **given: Any) -> Surroundings:
    aggregation = make_aggregation(name, [f"c{k}" for k in range(clients)], [1] * clients)
    facts = {"loss": squared, "device": CPU, "mixed": False, "seed": 4, "draws": False, **given}
    return Surroundings(aggregation=aggregation, **facts)


def feeds(size: int | None = None, labels: Any = Y) -> tuple[Feed, Feed]:
    rows = partial(BatchRows, Batches(len(labels), size, 0), CPU)
    return Feed(Stored(column(X)), rows()), Feed(Stored(column(labels)), rows())


def client(
    net: Any = None, fusion: Any = None, optimiser: Any = plain_sgd, **about: Any
) -> NetClient:
    parts = [Trainable(part, CPU, optimiser) for part in (net or times(W), fusion or times(V))]
    return NetClient(1, *parts, *feeds(), surroundings(**about))


def fused(net: Any = None, optimiser: Any = plain_sgd, labels: Any = Y, **about: Any) -> NetFusion:
    return NetFusion(
        Trainable(net or times(V), CPU, optimiser), feeds(labels=labels)[1], surroundings(**about)
    )


# --- a client ------------------------------------------------------------------------------------


@pytest.mark.parametrize("fuses", [True, False])
@pytest.mark.parametrize("first", [True, False], ids=["before the first", "later"])
def test_a_visit_replaces_the_contribution_and_takes_gradient_steps(
    fuses: bool, first: bool
) -> None:
    one, eta = client(), 0.1
    H = column(OTHERS) if first else column(OTHERS) + one.represent(0)
    theta_0 = [torch.tensor([[V]])]
    new = one.local_update(H, theta_0, Visit(0, None, 3, eta, fuses))
    x, y, rest, w, v = (*map(np.array, (X, Y, OTHERS)), W, V)
    for _ in range(3):
        error = 2 * (v * (rest + w * x) - y) / len(y)
        slopes = (error * v * x).sum(), (error * (rest + w * x)).sum()
        w, v = w - eta * slopes[0], v - eta * slopes[1] * fuses
    np.testing.assert_allclose(new[:, 0], rest + w * x, rtol=1e-5)
    np.testing.assert_allclose(one.contribution[:, 0], w * x, rtol=1e-5)
    np.testing.assert_allclose([one.net.values()[0].item(), theta_0[0].item()], [w, v], rtol=1e-5)


def test_a_client_joins_the_aggregate_once() -> None:
    one, H = client(), column(OTHERS)
    joined = one.join(H, 0)
    np.testing.assert_allclose(joined, column(OTHERS) + W * column(X), rtol=1e-6)
    assert one.join(joined, 0) is joined
    assert not one.represent(0).requires_grad


@pytest.mark.parametrize("updates", [True, False])
def test_statistics_take_in_uploads_and_visits_that_say_so(updates: bool) -> None:
    one = client(nn.Sequential(nn.BatchNorm1d(1), times(W)))
    one.represent(0)
    assert int(one.net.norms[0].num_batches_tracked) == 1
    one.local_update(
        column(OTHERS), [torch.tensor([[V]])], Visit(0, None, 2, 0.1, updates_statistics=updates)
    )
    assert int(one.net.norms[0].num_batches_tracked) == 1 + updates


def test_a_parameter_that_does_nothing_stays() -> None:
    net = times(W)
    net.register_parameter("unused", nn.Parameter(torch.ones(2)))
    one = client(net)
    one.update(column(OTHERS), column(X), column(Y), None, 0.1, fuse=False)
    assert one.net.module.unused.tolist() == [1.0, 1.0]
    assert one.net.module.weight.item() != W


def test_the_state_of_a_client_comes_back_with_its_contribution_and_its_head() -> None:
    one = client(optimiser=MOMENTUM)
    assert CONTRIBUTION not in one.state()
    one.represent(0)
    one.local_update(column(OTHERS), [torch.tensor([[V]])], Visit(0, None, 2, 0.1, True))
    kept = one.full_state()
    again = client(optimiser=MOMENTUM)
    again.restore(kept)
    found = again.full_state()
    assert (
        {"parameter.0", "optimiser.0.momentum_buffer", CONTRIBUTION, "head.parameter.0"}
        <= found.keys()
        == {*kept}
    )
    assert all(torch.equal(found[name], value) for name, value in kept.items())
    one.represent(0).zero_()
    assert not torch.equal(one.contribution, kept[CONTRIBUTION])
    again.contribution.zero_()
    assert not torch.equal(again.contribution, kept[CONTRIBUTION])
    again.load(client().state())
    assert again.contribution is None


def test_changes_of_copies_are_added_by_weight_and_what_is_missing_counts_as_0() -> None:
    start = {"a": torch.tensor([1.0, 2.0]), CONTRIBUTION: torch.ones(3)}
    copies = [
        {"a": torch.tensor([2.0, 2.0]), "m": torch.tensor([4.0])},
        {"a": torch.tensor([4.0, 1.0])},
    ]
    mixed = client().mixed(start, copies, 0.5)
    assert {name: value.tolist() for name, value in mixed.items()} == {"a": [3.0, 1.5], "m": [2.0]}
    slow = client(optimiser=torch.optim.NAdam)
    with pytest.raises(ConfigError, match="The state of NAdam does not start at 0"):
        slow.mixed(start, copies, 0.5)
    assert slow.mixed(start, [{"a": torch.tensor([2.0, 2.0])}], 0.5)["a"].tolist() == [1.5, 2.0]


def test_dropout_draws_by_party_and_draw_if_anything_draws() -> None:
    around, torch_seeds = surroundings(draws=True), []
    before = torch.get_rng_state()
    for party, draw in ((1, (3,)), (2, (3,)), (1, (3, 2))):
        with around.drawing(party, draw):
            torch_seeds.append(torch.initial_seed())
        assert torch.equal(torch.get_rng_state(), before)
    assert torch_seeds == [draw_seed(4, "dropout", *ids) for ids in ((1, 3), (2, 3), (1, 3, 2))]
    for still, draw in ((around, None), (surroundings(draws=False), (3,))):
        with still.drawing(1, draw):
            assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("mixed", [True, False])
def test_networks_run_in_half_precision_only_where_it_is_mixed(mixed: bool) -> None:
    with surroundings(mixed=mixed).precision():
        assert times(W)(column(X)).dtype == (torch.bfloat16 if mixed else torch.float32)
    one = client(mixed=mixed)
    assert one.represent(0).dtype == torch.float32


# --- the fusion module ---------------------------------------------------------------------------


def test_the_fusion_takes_steps_and_tells_the_loss_before_the_first() -> None:
    one, H, eta, v = fused(), column(X), 0.1, V
    loss = one.local_update(H, 0, 3, eta)
    assert loss.item() == pytest.approx(np.mean((V * np.array(X) - Y) ** 2))
    for _ in range(3):
        v -= eta * np.mean(2 * (v * np.array(X) - Y) * X)
    assert one.values()[0].item() == pytest.approx(v, rel=1e-5)
    assert not loss.requires_grad
    assert (one.size, one.number) == (1, 3)
    flat = fused(nn.Identity())
    assert flat.local_update(H, 0, 3, eta).item() == pytest.approx(np.mean((np.array(X) - Y) ** 2))


def test_statistics_of_the_fusion_take_in_the_first_step_alone_and_its_loss_none() -> None:
    one = fused(nn.Sequential(nn.BatchNorm1d(1), times(V)))
    norm = one.net.norms[0]
    for steps, tracked in ((1, 1), (3, 2)):
        one.local_update(column(X), 0, steps, 0.1)
        assert int(norm.num_batches_tracked) == tracked
    before = {name: value.clone() for name, value in one.weights().items()}
    other = [torch.ones(1), torch.zeros(1), torch.tensor([[0.0]])]
    assert one.loss(column(X), other, 0).item() == pytest.approx(np.mean(np.square(Y)))
    assert all(torch.equal(value, before[name]) for name, value in one.weights().items())


def test_the_loss_of_empty_representations_is_the_mean_over_all_samples() -> None:
    labels = np.r_[np.zeros(CHUNK), 6.0, 3.0].astype(np.float32)
    shifted = nn.Linear(2, 1)
    nn.init.constant_(shifted.bias, 1.0)
    one = fused(shifted, labels=labels, clients=2, name="concat")
    assert one.blank_loss() == pytest.approx((CHUNK + 25 + 4) / (CHUNK + 2))
    assert one.net.module.training


# --- optimisers ----------------------------------------------------------------------------------


def stepped(make: Any, steps: int = 1) -> tuple[Any, list[Any]]:
    parameters = [nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(3))]
    optimiser = make(parameters, lr=0.1)
    for _ in range(steps):
        for parameter in parameters:
            parameter.grad = torch.full_like(parameter, 2.0)
        optimiser.step()
    return optimiser, parameters


def test_the_state_of_an_optimiser_has_fixed_names_and_comes_back() -> None:
    optimiser, parameters = stepped(torch.optim.Adam, 2)
    saved = {
        name: value.clone() for name, value in optimiser_tensors(optimiser, parameters).items()
    }
    assert {*saved} == {
        f"optimiser.{i}.{name}" for i in (0, 1) for name in ("exp_avg", "exp_avg_sq", "step")
    }
    assert saved["optimiser.1.exp_avg"].shape == (3,)
    for steps in (0, 1):
        fresh, own = stepped(torch.optim.Adam, steps)
        held = dict(optimiser_tensors(fresh, own))
        load_optimiser_tensors(fresh, own, saved)
        found = optimiser_tensors(fresh, own)
        assert all(torch.equal(found[name], value) for name, value in saved.items())
        assert all(found[name] is value for name, value in held.items())
        assert all(found[name].data_ptr() != value.data_ptr() for name, value in saved.items())
    load_optimiser_tensors(optimiser, parameters, {"optimiser.0.exp_avg": torch.ones(2)})
    found = optimiser_tensors(optimiser, parameters)
    assert {name: value.tolist() for name, value in found.items()} == {
        "optimiser.0.exp_avg": [1.0, 1.0],
        "optimiser.0.exp_avg_sq": [0.0, 0.0],
        "optimiser.0.step": 0.0,
    }
    load_optimiser_tensors(optimiser, parameters, {"optimiser.1.exp_avg": torch.ones(3)})
    assert {name.partition(".")[2] for name in optimiser_tensors(optimiser, parameters)} == {
        "1.exp_avg"
    }
    assert optimiser_tensors(None, parameters) == {}
    load_optimiser_tensors(None, parameters, saved)


def test_a_state_that_is_no_tensor_cannot_be_kept() -> None:
    optimiser, parameters = stepped(plain_sgd)
    optimiser.state[parameters[1]]["nothing"] = None
    assert optimiser_tensors(optimiser, parameters) == {}
    load_optimiser_tensors(optimiser, parameters, {"optimiser.1.momentum_buffer": torch.ones(3)})
    assert optimiser.state[parameters[1]]["nothing"] is None
    optimiser.state[parameters[1]]["count"] = 3
    with pytest.raises(ConfigError, match="SGD stores 'count' as int"):
        optimiser_tensors(optimiser, parameters)


def test_the_state_of_a_recorded_optimiser_stays_in_its_place() -> None:
    optimiser, parameters = stepped(capturable(torch.optim.Adam, CPU), 0)
    state = optimiser.state[parameters[0]]
    state["exp_avg"] = held = torch.ones(2)
    load_optimiser_tensors(optimiser, parameters, {})
    assert (state["exp_avg"] is held, held.tolist()) == (True, [0.0, 0.0])
    load_optimiser_tensors(optimiser, parameters, {"optimiser.0.step": torch.tensor(3.0)})
    assert state["step"].item() == 3.0


def test_recorded_optimisers_keep_their_settings_and_have_a_tensor_as_rate() -> None:
    weight = [nn.Parameter(torch.ones(2))]
    sgd = capturable(partial(torch.optim.SGD, momentum=0.7, nesterov=True), CPU)(weight, lr=0.5)
    assert {name: sgd.defaults[name] for name in ("momentum", "nesterov", "fused", "foreach")} == {
        "momentum": 0.7,
        "nesterov": True,
        "fused": True,
        "foreach": False,
    }
    adam = capturable(partial(torch.optim.AdamW, weight_decay=0.3), CPU)(weight, lr=0.5)
    assert (type(adam), adam.defaults["weight_decay"], adam.defaults["capturable"]) == (
        torch.optim.AdamW,
        0.3,
        True,
    )
    for made in (sgd, adam):
        rate = made.param_groups[0]["lr"]
        assert rate.item() == 0.0
        set_rate(made, 0.25)
        assert made.param_groups[0]["lr"] is rate
        assert rate.item() == 0.25
    for kind, settings in (
        ("SGD", {"momentum": 0.9, "dampening": 0.5}),
        ("NAdam", {}),
        ("Adafactor", {}),
    ):
        with pytest.raises(ConfigError, match=f"{kind} cannot be recorded"):
            capturable(named_optimiser(kind, **settings), CPU)(weight, lr=0.5)


def test_an_optimiser_that_needs_the_loss_is_refused() -> None:
    class Bare(torch.optim.SGD):
        def step(self) -> None:
            """Without a closure."""

    weight = [nn.Parameter(torch.ones(2))]
    with pytest.raises(ConfigError, match="LBFGS evaluates the loss itself"):
        make_optimiser(torch.optim.LBFGS, weight)
    assert isinstance(make_optimiser(Bare, weight), Bare)
    with pytest.raises(ConfigError, match="must make a torch.optim.Optimizer, but made 3"):
        make_optimiser(lambda parameters, lr: 3, weight)


def test_optimisers_are_described_without_rate_and_speed() -> None:
    made = make_optimiser(partial(torch.optim.Adagrad, eps=0.5), [nn.Parameter(torch.ones(2))])
    described = describe_optimiser(made)
    assert described.startswith("Adagrad(eps=0.5, ")
    assert "lr_decay=0" in described
    assert not any(f"{name}=" in described for name in ("lr", "fused", "foreach", "differentiable"))
    assert describe_optimiser(make_optimiser(plain_sgd, [])) == "none"
