"""Training a linear model: its step size, its optimum, and what to say if it diverges."""

from __future__ import annotations

import numpy as np

from mtcd.data.scaling import standardise as standardised
from mtcd.data.vertical import VerticalData
from mtcd.divergence import DIVERGED, worst_end_of
from mtcd.following import Training, Watch, sentence
from mtcd.history import History
from mtcd.ledger.costs import Costs
from mtcd.methods.method import Method, settle_stepsize
from mtcd.model.linear import Glm, LinearProblem
from mtcd.model.trained import TrainedModel
from mtcd.network.topology import Network
from mtcd.objective.cache import cached_optimum
from mtcd.objective.optimum import optimum
from mtcd.pace import Growing
from mtcd.run import Run
from mtcd.stop import Stop
from mtcd.theory.stepsize import Smoothness, stability_limit


def train_linear(
    data: VerticalData,
    model: Glm,
    network: Network,
    method: Method,
    stop: Stop,
    costs: Costs,
    seed: int,
    standardise: bool,
    watch: Watch | None,
) -> Run:
    """Train a generalised linear model: see :func:`mtcd.train`."""
    stop.check(method, network, costs)
    data, scaling = standardised(data) if standardise else (data, None)
    problem = model.problem(data)
    smoothness = Smoothness(problem)
    method, notes = settle_stepsize(method, smoothness)
    cast = method.cast(problem, network, seed)
    best = best_objective(data, model, problem) if stop.gap is not None else None
    worst_end = worst_end_of(method, linear=True)
    training = Training(problem, cast, costs, best, worst_end, pace=Growing(stop.epoch(method, data.samples)))
    status = training.follow(stop, watch)
    thetas = cast.parameters()
    if not all(np.isfinite(theta).all() for theta in thetas):
        status = DIVERGED
    return Run(
        status=status,
        message=_divergence(method, smoothness) if status == DIVERGED else sentence(status, training.rows[-1]),
        method=method.describe(),
        stepsize=None if method.stepsize is None else method.settled_stepsize(),
        history=History(training.rows),
        ledger=training.ledger,
        costs=costs,
        model=None if status == DIVERGED else TrainedModel.assemble(model, data, problem.classes, thetas, scaling),
        notes=(*data.notes, *notes, *method.notes(network)),
    )


def best_objective(data: VerticalData, model: Glm, problem: LinearProblem) -> float:
    """f*, from the cache if this data and model have been seen before."""
    key = f"1 {data.fingerprint} {model}"  # count up when the solver changes
    return cached_optimum(key, lambda: optimum(problem.blocks, problem.labels, problem.loss, problem.penalties).value)


def _divergence(method: Method, smoothness: Smoothness) -> str:
    if method.stepsize is None:
        return (
            "Diverged: the numbers grew beyond what floats can hold. The features are too large, or too different in "
            "size: scale them (standardise: true)."
        )
    limit = method.stepsize_limit(smoothness)
    said = f"Diverged: the objective grew beyond where it started, with a stepsize of {method.stepsize:.4g}"
    if method.batch is not None and method.settled_stepsize() <= limit.value:
        return f"{said}. Mini-batches of {method.batch} are too noisy for it: set a larger batch or a smaller stepsize."
    alone = ""
    if method.gradient_steps:
        alone = f"; above {stability_limit(smoothness):.4g} a client alone can diverge"
    return (
        f"{said}, which is too large. It is {'guaranteed' if limit.proven else 'likely'} to work up to "
        f"{limit.value:.4g} ({limit.reason}){alone}. "
        "Set a smaller stepsize, or stepsize: auto."
    )
