"""The least objective where some blocks stay as they are."""

from collections.abc import Sequence

import numpy as np

from mtcd.models.glm.model import LinearProblem
from mtcd.models.glm.optimum.optimum import optimum


def best_without(problem: LinearProblem, dead: Sequence[int], held: Sequence[np.ndarray]) -> float:
    """Of squared loss: what the dead hold shifts the labels."""
    living = [k for k in range(len(problem.blocks)) if k not in dead]
    fixed = sum(problem.client(k).represent(held[k]) for k in dead)
    labels = problem.labels - np.asarray(fixed).reshape(problem.labels.shape)
    blocks, penalties = [problem.blocks[k] for k in living], [problem.penalties[k] for k in living]
    apart = sum(problem.client(k).penalty(held[k]) for k in dead)
    return optimum(blocks, labels, problem.loss, penalties).value + apart
