"""The settings with which the planner tries tours: local updates, step sizes, local solvers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from mtcd.methods.mtcd.checks import GRADIENT, MAJORISE, NEWTON
from mtcd.methods.mtcd.features import ACCELERATIONS
from mtcd.methods.mtcd.mtcd import MTCD
from mtcd.methods.planned import PlanSetting
from mtcd.theory.stepsize import Smoothness

BLOCKS = (1, 5, 20, 100, 10_000, 10_000_000)
"""Q: from a gradient step to a block that is solved, all for two products on an upper bound of f."""
STEPS_OF_RULES = (5, 100, 10_000)
"""The same where the server chooses weights, or all are 1."""
TOURS = 3
"""Tours of a cluster between syncs, where one is not tried."""
STEPS = (5, 20, 100)
"""Q on f itself, which takes as many products."""
SHORT = (0.2, 0.02)
"""Parts of 1/max_k L_k for a single step: where there are more columns than samples."""
DEPTH = 20
"""What an acceleration remembers, where its steps are given: numbers in a token, one for each."""


def adaptive(method: MTCD, smoothness: Smoothness) -> MTCD:
    """Tours that choose their steps by themselves."""
    auto = replace(method, stepsize="auto")
    return auto.with_stepsize(auto.stepsize_rules(smoothness).auto.value)


def steps_of_tours(name: str, method: MTCD, setting: PlanSetting) -> Iterator[MTCD]:
    """The settings of accelerated tours, from gradient steps to blocks that are solved.

    Parameters
    ----------
    name
        The acceleration.
    method
        A method without it.
    setting
        The problem and the network.
    """
    method = replace(method, acceleration=name)
    step = 1.0 / float(setting.smoothness.blocks.max())  # of all samples
    if setting.nonsmooth:
        # each step is one more product, as the prox acts on single coefficients
        for Q in STEPS:
            yield replace(method, local_updates=Q, stepsize=step)
        yield replace(method, stepsize=step)
        yield replace(method, local_updates=20, stepsize=0.2 * step)
        return

    deep = replace(method, stepsize=step, depth=DEPTH)
    if not ACCELERATIONS[name].adapts:
        for Q in (5, 100):
            yield replace(deep, local_updates=Q, local_solver=MAJORISE)
        return

    yield adaptive(replace(method, local_solver=MAJORISE), setting.smoothness)
    for Q in BLOCKS:
        yield replace(deep, local_updates=Q, local_solver=MAJORISE)
    for part in SHORT:
        yield replace(deep, stepsize=part * step, local_solver=MAJORISE)
    # on f itself, whose curvature may be far below its bound
    if not setting.quadratic:
        yield replace(deep, local_solver=NEWTON)
        for Q in STEPS[:2]:
            yield replace(deep, local_updates=Q, local_solver=GRADIENT)


def steps_of_clusters(method: MTCD, setting: PlanSetting) -> Iterator[MTCD]:
    """The settings of a rule for a token per cluster.

    Parameters
    ----------
    method
        The method, whose roam is a tour of each cluster.
    setting
        The problem and the network.
    """
    assert method.hops is not None
    if setting.batch is not None:
        for Q, part in product(setting.local_updates, setting.parts_alone):
            yield replace(method, local_updates=Q, stepsize=part * setting.alone)
        return

    step = setting.alone
    if setting.nonsmooth:
        for Q in STEPS:
            yield replace(method, local_updates=Q, stepsize=step)
    else:
        for Q in STEPS_OF_RULES:
            yield replace(method, local_updates=Q, stepsize=step, local_solver=MAJORISE)
        if not setting.quadratic:
            yield replace(method, stepsize=step, local_solver=NEWTON)
    yield replace(method, local_updates=20, stepsize=step, hops=TOURS * method.hops)
