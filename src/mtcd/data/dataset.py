"""Samples for split networks: the features of a client may be a row, a picture, or any array of one
shape."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mtcd.core.arrays import Rows, dense, plain
from mtcd.core.checks import check_whole
from mtcd.core.errors import DataError, check_known, listing
from mtcd.core.seeding import stream
from mtcd.data.checks import check_labels
from mtcd.data.draws import drawn_holdout
from mtcd.data.labels import as_labels
from mtcd.data.samples import as_samples, check_samples, is_array, sample_shape, take
from mtcd.data.vertical import VerticalData


@dataclass(frozen=True, eq=False)
class VerticalDataset:
    """N samples of any shape, K clients: data for split networks.

    Parameters
    ----------
    features : mapping
        What each client, by name, sees of every sample: an array or tensor with one row (or
        picture) per sample, or a data set with a length that gives samples by number.
    labels : array
        Numbers or class names, known to all parties.
    transforms : mapping, optional
        Functions that change the training batches of a client: called with a tensor and a
        ``torch.Generator``, they give a tensor.
    test : VerticalDataset, optional
        Further samples of the same clients, which no party trains on.
    notes : tuple of str
        For the user.
    columns : mapping, optional
        The names of the features of each client, where these are columns of a table.
    table : VerticalData, optional
        The table with the columns as given, where these were prepared.
    true_labels : array, optional
        As in :class:`mtcd.VerticalData`.

    Examples
    --------
    >>> data = VerticalDataset({"a": np.eye(4), "b": np.ones((4, 3, 8, 8))}, [0, 1, 0, 1])
    >>> data.clients, data.samples, data.shapes["b"]
    (('a', 'b'), 4, (3, 8, 8))
    """

    features: Mapping[str, Any]
    labels: Any
    transforms: Mapping[str, Callable[..., Any]] | None = None
    test: VerticalDataset | None = None
    notes: tuple[str, ...] = ()
    columns: Mapping[str, tuple[str, ...]] | None = None
    table: VerticalData | None = None
    true_labels: NDArray[np.generic] | None = None

    _labels_may_be_equal: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not isinstance(self.features, Mapping):
            raise DataError(
                "The features must be a mapping from the names of the clients to what they hold."
            )
        if not self.features:
            raise DataError("There is no client: give the features of at least one.")
        for client in self.features:
            if not isinstance(client, str):
                raise DataError(f"The name of a client must be a text, but is {client!r}.")

        labels = as_labels(self.labels)
        check_labels(labels, self._labels_may_be_equal)
        # frozen for everybody else: the data of a training must not change under it
        object.__setattr__(self, "labels", labels)

        features = {client: as_samples(client, given) for client, given in self.features.items()}
        object.__setattr__(self, "features", features)
        for client, values in features.items():
            # here, with the names of columns: in training a NaN would show up far from its cause
            check_samples(client, values, self.samples, (self.columns or {}).get(client))
        self._check_transforms()
        if self.test is not None:
            self._check_test(self.test)

    def __repr__(self) -> str:
        held = [f"{client} ({_kind(values)})" for client, values in self.features.items()]
        test = ""
        if self.test is not None:
            test = f"; {self.test.samples:,} samples for the test"
        return f"VerticalDataset({self.samples:,} samples: {listing(held, 4)}{test})"

    @classmethod
    def from_table(cls, data: VerticalData) -> VerticalDataset:
        """A table split over clients, as dense arrays of single precision."""
        if data.weights is not None:
            raise DataError(
                "Split networks do not take weights of samples: leave the weights out, or give the "
                "SplitModel a loss with weights of classes, such as "
                "nn.CrossEntropyLoss(weight=...)."
            )

        with np.errstate(over="ignore"):  # the checks report numbers that are too large
            # single precision is what networks compute with, and half the memory
            features = dict(zip(data.clients, map(in_single, data.blocks), strict=True))

        columns = dict(zip(data.clients, data.columns, strict=True))
        test = None
        if data.test is not None:
            test = HeldOutDataset.from_table(data.test)
        # prepared columns are fitted again for every part of the samples, from the table
        table = None
        if data.preparations is not None:
            table = data
        return cls(features, data.labels, None, test, data.notes, columns, table, data.true_labels)

    @cached_property
    def fingerprint(self) -> str:
        """A digest of labels and features, as far as these are arrays or tensors: equal data, equal
        fingerprint."""
        # samples that are read one by one are left out: reading all of them may take hours
        digest = hashlib.blake2b(repr(self.labels.tolist()).encode(), digest_size=16)
        for client, values in self.features.items():
            digest.update(f"{client} {self.shapes[client]}".encode())
            if is_array(values):
                digest.update(np.ascontiguousarray(plain(values)).data)
        return digest.hexdigest()

    @property
    def clients(self) -> tuple[str, ...]:
        """The names of the clients."""
        return tuple(self.features)

    @property
    def samples(self) -> int:
        """N, the number of samples."""
        return len(self.labels)

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of one sample at each client, without the batch."""
        return {client: sample_shape(client, values) for client, values in self.features.items()}

    def part(self, samples: int, seed: int = 0) -> VerticalDataset:
        """Some of the samples, drawn from the seed, in their order; the test set stays whole."""
        check_whole("samples", samples)
        check_whole("seed", seed, least=0)
        if samples > self.samples:
            raise DataError(
                f"There are {self.samples} samples, fewer than {samples}: ask for {self.samples} "
                "or fewer."
            )

        rows = np.sort(stream(seed, "part of samples").choice(self.samples, samples, replace=False))
        note = f"A part: {samples} of {self.samples} samples, drawn with seed {seed}."
        return self._taken(rows, note)

    def holdout(self, fraction: float, seed: int = 0) -> VerticalDataset:
        """The same data with a random part of the samples, drawn from the seed, set aside as the
        test set.

        The draw depends on the number of samples and the seed alone, and is the same for all
        clients. It is not stratified by class.
        """
        if self.test is not None:
            raise DataError("There is a test set already: nothing more can be held out.")
        return self.parted(*drawn_holdout(fraction, self.samples, seed))

    def parted(self, rows: Rows, others: Rows, note: str) -> VerticalDataset:
        """These rows to train on, with the others as the test set, and a note about it."""
        if self.table is not None:
            table = self.table.parted(rows, others, note)
            return replace(self.from_table(table), transforms=self.transforms)

        features = {client: take(values, others) for client, values in self.features.items()}
        test = HeldOutDataset(
            features,
            self.labels[others],
            notes=(*self.notes, note),
            columns=self.columns,
            true_labels=self._true_labels(others),
        )
        return replace(self._taken(rows, note), test=test)

    def _taken(self, rows: Rows, note: str) -> VerticalDataset:
        labels: NDArray[np.generic] = self.labels[rows]
        if (labels == labels[0]).all():
            raise DataError(
                f"All labels of the {len(rows)} samples drawn are {labels[0]}: draw more samples."
            )

        if self.table is not None:
            taken = self.from_table(self.table.take(rows))  # prepared anew
            return replace(
                taken, transforms=self.transforms, test=self.test, notes=(*taken.notes, note)
            )
        features = {client: take(values, rows) for client, values in self.features.items()}
        return replace(
            self,
            features=features,
            labels=labels,
            notes=(*self.notes, note),
            true_labels=self._true_labels(rows),
        )

    def _true_labels(self, rows: Rows) -> NDArray[np.generic] | None:
        return None if self.true_labels is None else self.true_labels[rows]

    def _check_transforms(self) -> None:
        for client, transform in (self.transforms or {}).items():
            problem = f"A transform is given for client {client!r}:"
            check_known(client, self.features, problem, DataError)
            if not callable(transform):
                raise DataError(
                    f"The transform of client {client!r} cannot be called: give a function."
                )

    def _check_test(self, test: VerticalDataset) -> None:
        if not isinstance(test, VerticalDataset) or test.test is not None:
            raise DataError("The test set must be a VerticalDataset without a test set of its own.")
        other = sorted(set(self.clients) ^ set(test.clients))
        if other:
            raise DataError(
                "The test set must have the same clients, but only one of the two has "
                f"{listing(other)}."
            )

        # networks are built for these shapes
        for client, shape in self.shapes.items():
            if test.shapes[client] != shape:
                raise DataError(
                    f"Samples of client {client!r} have the shape {shape}, but "
                    f"{test.shapes[client]} in the test set."
                )
        self._check_test_labels(test)

    def _check_test_labels(self, test: VerticalDataset) -> None:
        texts = self.labels.dtype.kind == "U"
        if texts != (test.labels.dtype.kind == "U"):
            raise DataError(
                "The labels of the training and the test set must both be numbers, or both texts."
            )
        if not texts:
            return  # of a regression, every number may be new

        new = sorted(set(test.labels.tolist()) - set(self.labels.tolist()))
        if new:
            raise DataError(
                f"No training sample is of a class that the test set has: {listing(new)}."
            )


class HeldOutDataset(VerticalDataset):
    """Samples to test on: all labels may be equal there."""

    _labels_may_be_equal = True


def in_single(block: Any) -> NDArray[np.float32]:
    """A block of a table, in single precision, row by row."""
    return np.ascontiguousarray(dense(block), dtype=np.float32)


def _kind(values: Any) -> str:
    """What a client holds of a sample, in a word: the shape of an array, or the type of a data
    set."""
    if not is_array(values):
        return type(values).__name__
    return " x ".join(map(str, values.shape[1:]))
