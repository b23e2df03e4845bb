"""Optimisers of the local updates, schedules of the step size, and the ledger against closed
forms."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import mtcd
from mtcd.core.errors import ConfigError
from mtcd.federation.node.log import Log
from mtcd.federation.node.watch import Watch
from mtcd.methods.mtcd.mtcd import MTCD, STCD
from mtcd.methods.svfl.svfl import SVFL
from mtcd.models.splitnet.modules import Trainable
from mtcd.models.splitnet.optimiser import (
    capturable,
    describe_optimiser,
    load_optimiser_tensors,
    named_optimiser,
    optimiser_tensors,
)
from mtcd.models.splitnet.setup import opening_cost, split_parties, split_sizes
from split_problems import MOMENTUM, case, same_weights

KINDS = [
    name
    for name, entry in vars(torch.optim).items()
    if isinstance(entry, type) and name != "Optimizer"
]
REFUSED = {
    "LBFGS": "LBFGS.*closure",
    "SparseAdam": "optimiser cannot be made",
    "Muon": "Muon only supports 2D",
}


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in REFUSED])
def test_every_optimiser_trains(kind: str, tmp_path: Path) -> None:
    one = case(count=10, optimiser=named_optimiser(kind))
    method = MTCD(3, 2, 2, 0.01, batch=5)
    if kind in ("ASGD", "NAdam", "Rprop"):  # their memory does not begin with 0
        with pytest.raises(ConfigError, match=f"The state of {kind}"):
            one.train(method, mtcd.Stop(epochs=2))
        method = SVFL(2, 0.01, 5)
    run = one.train(method, mtcd.Stop(epochs=2), checkpoint=tmp_path)
    assert run.status == "epochs"
    start = one.model.representations["c0"].state_dict()
    assert not same_weights(run.modules["c0"].state_dict(), start)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind in REFUSED])
def test_or_is_refused_in_words(kind: str) -> None:
    with pytest.raises(ConfigError, match=REFUSED[kind]):
        case(optimiser=named_optimiser(kind)).train(SVFL(1, 0.1, 4), mtcd.Stop(epochs=1))


@pytest.mark.parametrize(
    "kind", ["SGD", "Adam", "NAdam", "RAdam", "ASGD", "Rprop", "Adagrad", "Adadelta", "RMSprop"]
)
def test_a_copy_that_has_not_moved_yet_begins_like_a_fresh_one(kind: str) -> None:
    """Tokens that come second start from the same theta_k, with an optimiser that remembers
    nothing."""
    settings = {"momentum": 0.9, "dampening": 0.5} if kind == "SGD" else {}
    make = named_optimiser(kind, **settings)
    torch.manual_seed(0)
    module, gradients = nn.Linear(2, 2), [[torch.randn(2, 2), torch.randn(2)] for _ in range(3)]
    device = torch.device("cpu")
    used, fresh = Trainable(module, device, make), Trainable(module, device, make)
    start = used.state()
    for g in gradients:
        used.move([x + 1 for x in g], 0.05)
    used.load(start)
    for one in (used, fresh):
        for g in gradients:
            one.move(g, 0.05)
    assert all(torch.equal(a, b) for a, b in zip(used.parameters, fresh.parameters, strict=True))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in REFUSED])
def test_only_what_begins_with_0_is_recorded(kind: str) -> None:
    """What a recording did is undone by 0: an optimiser that does not begin so is not recorded."""
    make = capturable(named_optimiser(kind), torch.device("cpu"))
    weight = nn.Parameter(torch.ones(2, 2))
    try:
        optimiser = make([weight], lr=0.0)
    except ConfigError:
        return
    if kind not in ("Adagrad", "SGD"):  # theirs is there from the beginning, or is 0 and none
        plain = named_optimiser(kind)([weight], lr=0.1)
        weight.grad = torch.zeros(2, 2)
        plain.step()
        counted = {name: value for name, value in plain.state[weight].items() if name != "step"}
        assert all(
            value.abs().max() < 1e-6
            for value in counted.values()
            if isinstance(value, torch.Tensor)
        )
    assert type(optimiser).__name__ == kind


def test_optimisers_that_cannot_be() -> None:
    with pytest.raises(ConfigError, match="no 'Adamm'.*Adam"):
        named_optimiser("Adamm")
    with pytest.raises(ConfigError, match="leave lr out"):
        named_optimiser("SGD", lr=0.1)
    for optimiser, words in (
        (named_optimiser("SGD", speed=3), "speed"),
        (named_optimiser("SGD", momentum=-1), "momentum"),
        (lambda parameters, lr: None, "made None"),
        (lambda parameters: None, "called with the parameters and lr"),
        (torch.optim.LBFGS, "LBFGS.*closure"),
    ):
        with pytest.raises(ConfigError, match=words):
            case(optimiser=optimiser).train(SVFL(1, 0.1), mtcd.Stop(iterations=1))


def test_momentum_is_kept_from_visit_to_visit() -> None:
    """With one client SVFL is plain descent: as torch.optim does it, in a loop."""
    torch.manual_seed(0)
    data = case(count=10).data
    data = mtcd.VerticalDataset({"c0": data.features["c0"]}, data.labels)
    net = nn.Linear(2, 3)
    model = mtcd.SplitModel({"c0": net}, nn.Identity(), optimiser=MOMENTUM)
    run = mtcd.train(data, model, [], SVFL(2, 0.1), mtcd.Stop(iterations=5))
    optimiser = MOMENTUM(net.parameters(), lr=0.1)
    for _ in range(10):
        optimiser.zero_grad()
        nn.functional.cross_entropy(
            net(torch.as_tensor(data.features["c0"])), torch.as_tensor(data.labels)
        ).backward()
        optimiser.step()
    torch.testing.assert_close(run.modules["c0"].weight, net.weight)


@pytest.mark.parametrize(
    ("schedule", "values"),
    [
        (mtcd.Schedule(every=2), [1, 1, 0.5, 0.5, 0.25]),
        (mtcd.Schedule("exponential", every=1, factor=0.1), [1, 0.1, 0.01]),
        (mtcd.Schedule("exponential", every=2, factor=0.25), [1, 0.5, 0.25]),
        (mtcd.Schedule("cosine", every=2, factor=0.2), [1, 0.6, 0.2, 0.2]),
        (mtcd.Schedule(every=4, warmup=3), [0.25, 0.5, 0.75, 1, 0.5]),
    ],
)
def test_schedules(schedule: mtcd.Schedule, values: list[float]) -> None:
    assert [schedule.at(epoch) for epoch in range(len(values))] == pytest.approx(values)


@pytest.mark.parametrize(
    "given", [{"kind": "steps"}, {"every": 0}, {"factor": 0}, {"warmup": -1}, {"factor": "a"}]
)
def test_schedules_that_cannot_be(given: Any) -> None:
    with pytest.raises(ConfigError, match=f"schedule.{next(iter(given))}"):
        mtcd.Schedule(**given)


class Watching(torch.optim.SGD):
    rates: list[float] = []  # noqa: RUF012

    def step(self, closure: Any = None) -> None:
        Watching.rates.append(self.param_groups[0]["lr"])
        super().step(closure)


@pytest.mark.parametrize(
    "method", [SVFL(1, 0.1, 5), MTCD(2, 2, 1, 0.1, batch=5, combine="cluster")]
)
def test_the_step_size_follows_the_schedule_from_epoch_to_epoch(method: Any) -> None:
    one = case(count=10, optimiser=Watching)
    Watching.rates.clear()
    one.train(replace(method, schedule=mtcd.Schedule(every=1)), mtcd.Stop(epochs=3))
    per_epoch = len(Watching.rates) // 3
    expected = [0.1 * 0.5**epoch for epoch in range(3) for _ in range(per_epoch)]
    assert Watching.rates == pytest.approx(expected)
    steps_of_theta_0 = 1 if isinstance(method, SVFL) else 2
    assert per_epoch == 2 * (4 + steps_of_theta_0)  # 4 clients, or 2 tokens with 2 hops


@pytest.mark.parametrize("method", [MTCD(2, 3, 2, 1e-3, batch=5), SVFL(2, 1e-3, 5)])
def test_linear_models_follow_schedules_too(method: Any) -> None:
    """By the first epoch nothing has changed; after it, steps are so small that nothing moves any
    more."""
    data = mtcd.synthetic("ridge", 20, 6, 3)
    still = replace(method, schedule=mtcd.Schedule(every=1, factor=1e-12))
    epochs = [
        mtcd.train(data, mtcd.Glm("ridge"), "path", one, mtcd.Stop(epochs=e)).coefficients
        for one, e in ((method, 1), (still, 1), (still, 3), (method, 3))
    ]
    assert (epochs[0] == epochs[1]).all()
    assert epochs[2] == pytest.approx(epochs[1], abs=1e-9)
    assert abs(epochs[3] - epochs[1]).max() > 1e-3


K, B, W, N = 4, 5, 3, 10  # clients, batch, width, samples


def fused(aggregation: str) -> tuple[int, int]:
    """The width of H, and the numbers in theta_0: a linear layer to 3 classes."""
    width = K * W if aggregation == "concat" else W
    return width, 3 * width + 3


@pytest.mark.parametrize("aggregation", ["sum", "mean", "concat"])
@pytest.mark.parametrize("combine", ["cluster", "average", "visitors"])
def test_what_mini_batches_send(aggregation: str, combine: str) -> None:
    T, S, G = 6, 3, 2
    one = case(count=N, aggregation=aggregation)
    method = MTCD(G, S, 2, 0.05, batch=B, combine=combine)
    run = one.train(method, mtcd.Stop(iterations=T * S))
    width, theta_0 = fused(aggregation)
    token = B * width + theta_0
    ledger = run.ledger
    assert ledger.messages() == {
        "client_client": T * S * G,
        "uplink": K * (T + 1),
        "downlink": G * T,
    }
    assert ledger.floats() == {
        "client_client": T * S * G * token,
        "uplink": K * (T + 1) * B * W,
        "downlink": G * T * token,
    }
    assert ledger.bytes() == {link: 4 * floats for link, floats in ledger.floats().items()}
    assert ledger.messages("sent")["client_client"] <= T * (S - 1) * G
    assert run.final.cost == pytest.approx(K + T * (K + G + S * G / 100))
    assert method.prices(one.network, G).iteration(mtcd.Costs()) == pytest.approx(
        K + G + S * G / 100
    )


@pytest.mark.parametrize("aggregation", ["sum", "concat"])
@pytest.mark.parametrize("per", ["message", "float"])
@pytest.mark.parametrize(
    "method",
    [
        MTCD(2, 3, 2, 0.05, batch=4, combine="cluster"),
        MTCD(2, 3, 2, 0.05, combine="cluster"),
        SVFL(2, 0.05, 4),
        SVFL(2, 0.05),
        STCD(1, 0.05),
        STCD(1, 0.05, first_pass=False),
    ],
    ids=lambda method: f"{method.describe()} {getattr(method, 'first_pass', '')}",
)
def test_what_is_charged_is_the_opening_and_then_the_same_for_every_iteration(
    method: Any, per: str, aggregation: str
) -> None:
    """And a federation stops at the same moment for it."""
    one, costs, T = case(aggregation=aggregation), mtcd.Costs(7, per=per), 3
    run = one.train(method, mtcd.Stop(iterations=T * method.timeline().hops_per_sync), costs=costs)
    problem = one.problem()
    plan = split_parties(method, problem, one.network, one.seed).clients[0].plan
    shapes = problem.around.aggregation.widths, problem.fusion.size
    sizes, opening = split_sizes(plan, *shapes), opening_cost(plan, *shapes, costs)
    each = method.prices(one.network, plan.tokens).iteration(costs, sizes)
    assert run.final.cost == pytest.approx(opening + T * each) == costs.total(run.ledger)
    assert run.summary()["cost_per"][per] == run.final.cost
    limit = mtcd.Stop(cost=opening + 1.5 * each)
    stopped = one.train(method, limit, costs=costs)
    given = limit, method, one.network, costs, plan.tokens, problem.samples, Log("a", None)
    watch = Watch(*given, sizes=sizes, opening_cost=opening)
    (cost_limit,) = watch.limits
    assert cost_limit.status == "cost"
    assert cost_limit.most == stopped.final.iteration == 2 * method.timeline().hops_per_sync


@pytest.mark.parametrize("aggregation", ["sum", "concat"])
def test_what_the_full_batch_sends(aggregation: str) -> None:
    T, S, G = 5, 3, 2
    width, theta_0 = fused(aggregation)
    token = N * width + theta_0
    one = case(count=N, aggregation=aggregation)
    ledger = one.train(MTCD(G, S, 2, 0.05, combine="cluster"), mtcd.Stop(iterations=T * S)).ledger
    assert ledger.messages() == {"client_client": T * S * G, "uplink": K + G * T, "downlink": G * T}
    assert ledger.floats()["uplink"] == K * N * W + G * T * token
    assert ledger.floats()["downlink"] == G * T * token
    crossing = one.train(MTCD(1, 1, 2, 0.05), mtcd.Stop(iterations=T)).ledger
    assert crossing.messages()["uplink"] == K + T
    lone = one.train(STCD(1, 0.05, start="c0"), mtcd.Stop(iterations=20)).ledger
    first_pass = K - 1  # a path, to its end
    assert lone.messages() == {"client_client": first_pass + 20, "uplink": 0, "downlink": 0}
    assert lone.floats()["client_client"] == (first_pass + 20) * token
    server = one.train(SVFL(1, 0.05, B), mtcd.Stop(iterations=T)).ledger
    assert server.messages() == {"client_client": 0, "uplink": K * (T + 1), "downlink": K * T}
    assert server.floats()["downlink"] == K * T * (B * width + theta_0)


def test_with_the_full_batch_only_those_who_were_visited_upload_again() -> None:
    """Averaging theta_k does not average h_k, so that each of them represents its samples anew."""
    one = case(count=N)
    method = MTCD(2, 2, 1, 0.05, start=["c1", "c2"], walk="metropolis")
    run = one.train(method, mtcd.Stop(iterations=20))
    roaming = method.plan(N, 1, one.network, one.seed).roaming
    trails = [
        [(k := roaming.first(i, t)), roaming.next(i, t, 1, k, -1)]
        for t in range(10)
        for i in range(2)
    ]
    visited = [set(trails[2 * t] + trails[2 * t + 1]) for t in range(10)]
    assert run.ledger.messages()["uplink"] == K + sum(map(len, visited))
    assert sum(map(len, visited)) < K * 10


@pytest.mark.parametrize(
    ("kind", "meant"),
    [
        ("adam", "'Adam'"),
        ("sgd", "'SGD'"),
        ("Adan", "'Adam'"),
        ("Optimizer", ""),
        ("lr_scheduler", ""),
    ],
)
def test_an_optimiser_by_a_wrong_name(kind: str, meant: str) -> None:
    with pytest.raises(ConfigError, match=f"torch.optim has no '{kind}'; .*{meant}"):
        named_optimiser(kind)


def stepped(kind: str = "Adam", times: int = 1) -> tuple[torch.optim.Optimizer, list[Any]]:
    """An optimiser with its parameters, after so many steps."""
    parameters = [nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(3))]
    made = named_optimiser(kind)(parameters, lr=0.1)
    for _ in range(times):
        for parameter in parameters:
            parameter.grad = torch.ones_like(parameter)
        made.step()
    return made, parameters


def test_the_state_of_an_optimiser_has_one_order_and_its_description_too() -> None:
    """Whatever the order in which PyTorch, or an optimiser of one's own, keeps them."""
    one, parameters = stepped()
    names = ["exp_avg", "exp_avg_sq", "step"]
    expected = [f"optimiser.{i}.{name}" for i in range(2) for name in names]
    assert list(optimiser_tensors(one, parameters)) == expected
    for parameter in parameters:
        one.state[parameter] = dict(reversed(one.state[parameter].items()))
    assert list(optimiser_tensors(one, parameters)) == expected

    other, _ = stepped()
    other.defaults = dict(reversed(other.defaults.items()))
    assert describe_optimiser(one) == describe_optimiser(other)
    assert "lr=" not in describe_optimiser(one)


@pytest.mark.parametrize("kind", ["Adam", "SGD", "RMSprop"])
def test_what_an_optimiser_is_restored_from_stays_as_it_is(kind: str) -> None:
    before, parameters = stepped(kind)
    saved = {name: value.clone() for name, value in optimiser_tensors(before, parameters).items()}
    kept = {name: value.clone() for name, value in saved.items()}
    again, others = stepped(kind, times=0)
    load_optimiser_tensors(again, others, saved)
    for parameter in others:
        parameter.grad = torch.ones_like(parameter)
    again.step()
    assert saved.keys() == kept.keys()
    assert all(torch.equal(saved[name], kept[name]) for name in kept)


def test_a_recordable_optimiser_is_made_of_parameters_that_are_given_once() -> None:
    parameters = [nn.Parameter(torch.ones(2))]
    made = capturable(MOMENTUM, torch.device("cpu"))(iter(parameters), 0.1)
    assert made.param_groups[0]["params"] == parameters
    assert made.param_groups[0]["momentum"] == 0.9
