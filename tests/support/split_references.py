"""Split networks beside their plain version."""

import pytest

import mtcd
from mtcd.methods.mtcd.client import Plan
from mtcd.methods.mtcd.mtcd import MTCD
from mtcd.methods.mtcd.stepsizes import scheduled
from mtcd.methods.svfl.svfl import SVFL
from mtcd.protocol.batches import Batches
from mtcd.testing.references import splitnet as reference
from split_problems import (
    SplitCase,
    cross_entropy,
    tensors,
)

torch = pytest.importorskip("torch")


def task(one: SplitCase) -> reference.Task:
    features, labels = tensors(one)
    nets = [one.model.representations[client] for client in one.data.clients]
    return reference.Task(
        nets, one.model.fusion, one.model.aggregation, cross_entropy, features, labels
    )


def how(one: SplitCase, method: MTCD | SVFL, fusion_updates: int) -> reference.Settings:
    batches = Batches(one.data.samples, method.batch, one.seed)
    return reference.Settings(
        method.local_updates,
        lambda t: scheduled(method.stepsize, method.schedule, t, batches),
        batches,
        fusion_updates,
        0.0 if one.model.optimiser is None else 0.9,
    )


def check_equal(run: mtcd.Run, theta: reference.Theta, theta_0: reference.PartyWeights) -> None:
    parts = [run.modules[client] for client in run.trained().clients]
    for module, block in zip([*parts, run.fusion], [*theta, theta_0], strict=True):
        for name, p in module.named_parameters():
            torch.testing.assert_close(p.detach(), block.weights[name], rtol=1e-5, atol=1e-6)


def twin_of_mtcd(
    one: SplitCase, method: MTCD, T: int
) -> tuple[reference.Theta, reference.PartyWeights]:
    plan: Plan = method.plan(one.data.samples, 1, one.network, one.seed)
    steps = method.fusion_updates or method.hops * method.local_updates
    rule, settings_ = method.combine_rule, how(one, method, steps)
    return reference.mtcd(task(one), plan.roaming, settings_, plan.tokens, method.hops, rule, T)[T]
