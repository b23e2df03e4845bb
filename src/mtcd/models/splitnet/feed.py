"""The features (or the labels) of one party in mini-batches, on the device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mtcd.core.errors import DataError
from mtcd.core.seeding import stream
from mtcd.data.samples import check_finite
from mtcd.protocol.batches import Batches

Transform = Callable[[Tensor, torch.Generator], Tensor]


class Source(Protocol):
    """Where a feed takes samples from: by their numbers, in batches."""

    def rows(self, rows: Tensor | None) -> Tensor:
        """These samples, on the device; None stands for all of them."""


class Stored(Source):
    """Samples that are all stored on the device."""

    def __init__(self, values: Tensor) -> None:
        self.values = values

    def rows(self, rows: Tensor | None) -> Tensor:
        if rows is None:
            return self.values
        return self.values[rows]


class Fetched(Source):
    """A map-style dataset: samples are read one by one, and copied to the device in batches."""

    def __init__(self, dataset: Any, client: str, device: torch.device) -> None:
        self.dataset = dataset
        self.client = client
        self.device = device

    def rows(self, rows: Tensor | None) -> Tensor:
        numbers = range(len(self.dataset)) if rows is None else rows.tolist()
        try:
            samples = torch.stack([as_tensor(self.dataset[i]) for i in numbers])
        except Exception as error:  # the user's code may raise anything
            raise DataError(
                f"The dataset of client {self.client!r} must give one tensor of the same shape for "
                f"every sample, without the label: {error}"
            ) from None
        check_finite(self.client, samples, rows=numbers)
        return samples.to(self.device)


def as_tensor(values: Any) -> Tensor:
    """A tensor from an array, a tensor or a number; floats become float32."""
    if not isinstance(values, Tensor | np.ndarray | float | int):
        raise TypeError(f"got {type(values).__name__}")
    if isinstance(values, np.ndarray):
        # PyTorch has no read-only tensors: a read-only array is copied
        values = np.require(values, requirements=["C", "W"])
    tensor = torch.as_tensor(values)
    # Networks compute in float32: more digits would only cost time, and fewer are for the precision
    # in which passes run (`Surroundings.precision`).
    if tensor.dtype in (torch.float64, torch.float16, torch.bfloat16):
        return tensor.float()
    return tensor


def make_source(values: Any, client: str, device: torch.device) -> Source:
    """A stored source for arrays and tensors, a fetched source for datasets."""
    if isinstance(values, Tensor | np.ndarray):
        return Stored(as_tensor(values).to(device))
    return Fetched(values, client, device)


class BatchRows:
    """The rows of B^t on the device. The order of an epoch is copied once; a batch is a slice of
    it."""

    _order: Tensor

    def __init__(self, batches: Batches, device: torch.device) -> None:
        self.batches, self.device = batches, device
        self._epoch: int | None = None

    def at(self, t: int) -> Tensor | None:
        """B^t; None stands for all samples."""
        batches = self.batches
        if batches.size is None:
            return None
        epoch, place = divmod(t, batches.per_epoch)
        # The order is the same for all parties, and B^t a slice of it: B consecutive samples of an
        # epoch.
        if epoch != self._epoch:
            order: NDArray[np.intp] = batches.order(epoch)
            self._epoch = epoch
            self._order = torch.as_tensor(order).to(self.device)
        return self._order[place * batches.size : (place + 1) * batches.size]


class Feed:
    """The batch of iteration t, read and transformed once for all visits."""

    _batch: Tensor

    def __init__(
        self, source: Source, rows: BatchRows, transform: Transform | None = None, client: str = ""
    ) -> None:
        self.source = source
        self.rows = rows
        self.transform = transform
        self.client = client
        self._t: int | None = None

    def batch(self, t: int) -> Tensor:
        """The samples of B^t. The generator of a transform depends on the seed and t, not on the
        client, so that all clients can rotate or flip a sample in the same way.
        """
        # Full batches without a transform never change. A transform may draw anew at every t.
        always_the_same = self.rows.batches.size is None and self.transform is None
        if self._t is None or (t != self._t and not always_the_same):
            batch = self.source.rows(self.rows.at(t))
            if self.transform is not None:
                batch = self._transformed(self.transform, batch, t)
            self._batch, self._t = batch, t
        return self._batch

    def _transformed(self, transform: Transform, batch: Tensor, t: int) -> Tensor:
        generator = torch.Generator().manual_seed(draw_seed(self.rows.batches.seed, "transform", t))
        try:
            # a copy of a full batch, because a transform may work in place
            own = batch
            if self.rows.batches.size is None:
                own = batch.clone()
            found = transform(own, generator)
        except Exception as error:  # the user's code may raise anything
            raise DataError(
                f"The transform of client {self.client!r} failed: {type(error).__name__}: {error}"
            ) from None
        if not isinstance(found, Tensor) or found.shape != batch.shape:
            got = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
            raise DataError(
                f"The transform of client {self.client!r} must give a tensor of the same shape, "
                f"but made {got} of {tuple(batch.shape)}."
            )
        return found


def draw_seed(seed: int, purpose: str, *ids: int) -> int:
    """A seed for PyTorch's generators, for one purpose."""
    return int(stream(seed, purpose, *ids).integers(2**62))
