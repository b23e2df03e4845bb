"""The objective of a split network at the start and at the end, evaluated by one party from the sum
of all parts.

As in one process, networks are in evaluation mode, and all training samples count. A party's part
is its representation in its slot of the aggregation, so that the aggregate is the sum of all parts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from mtcd.federation.transport import HEAD_BYTES, MEGABYTE
from mtcd.models.splitnet.client import NetClient
from mtcd.models.splitnet.feed import make_source
from mtcd.models.splitnet.fusion import CHUNK
from mtcd.models.splitnet.own import OwnProblem

# per number of the aggregate: at the start and at the end, each as a 64-bit integer
PART_BYTES = 2 * 8


def fits_into_message(samples: int, width: int, parties: int, message_mb: int) -> bool:
    """Whether the aggregates at the start and at the end can be sent in one message."""
    # 64-bit integers, as the sum is in fixed point (`node/passing.py`).
    return PART_BYTES * samples * width + HEAD_BYTES * parties <= message_mb * MEGABYTE


def represented(problem: OwnProblem, held_out: NDArray[Any] | None = None) -> Tensor:
    """h_k of all training samples, or of held-out ones, in evaluation mode."""
    own, net = problem.own, problem.net
    assert own is not None
    assert net is not None
    source, samples = own.source, problem.samples
    if held_out is not None:
        source = make_source(held_out, own.client, torch.device("cpu"))
        samples = len(held_out)
    # Evaluation mode, in chunks: a batch of all samples may not fit into memory.
    with net.evaluating(), problem.around.precision():
        chunks = torch.split(torch.arange(samples), CHUNK)
        return torch.cat([net.module(net.laid_out(source.rows(rows))).float() for rows in chunks])


def represented_at_start(problem: OwnProblem, client: NetClient, represents_first: bool) -> Tensor:
    """The same before the first update.

    ``represents_first``: the first batch is represented before the objective is first measured, and
    batch norm takes it in. The client is left as it was.
    """
    # The objective at the start is measured when training begins, which may be after the first pass
    # through the networks. Both must be done here in the same order.
    net = client.net
    buffers = net.buffers()
    contribution = client.contribution
    if represents_first:
        client.represent(0)
    h = represented(problem)
    net.load_buffers(buffers)
    client.contribution = contribution
    return h


def part_of(problem: OwnProblem, h: Tensor) -> NDArray[np.float64]:
    """This party's part of the aggregate, given its representation."""
    own, aggregation = problem.own, problem.common.aggregation
    assert own is not None
    return (
        aggregation.put(torch.zeros(len(h), aggregation.width), own.k, h).numpy().astype(np.float64)
    )


def objective(problem: OwnProblem, fusion: nn.Module, aggregate: NDArray[np.float64]) -> float:
    """The mean loss on the training samples; ``fusion`` is in evaluation mode."""
    H = torch.as_tensor(aggregate, dtype=torch.float32)
    labels = problem.common.labels
    total = 0.0
    with torch.no_grad(), problem.around.precision():
        for rows in torch.split(torch.arange(len(labels)), CHUNK):
            total += float(problem.common.loss(fusion(H[rows]).float(), labels[rows])) * len(rows)
    return total / len(labels)
