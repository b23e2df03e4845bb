"""A transformer of scikit-learn (or skrub, ...) as the preparation of a client, kept by skops.

The built-in transformers are kept as JSON of our own, which cannot run code. Any other object needs
a format for Python objects: skops writes one without pickle, and refuses to load types that are not
known to be harmless unless the reader trusts them by name.
"""

from __future__ import annotations

import base64
import copy
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mtcd.core.arrays import Array
from mtcd.core.errors import DataError, listing
from mtcd.core.optional import find
from mtcd.data.prepare.preparation import FORMAT, Preparation, check_outputs
from mtcd.data.prepare.values import is_category


@dataclass(frozen=True, eq=False)
class ForeignPreparation(Preparation):
    """A fitted transformer. It gets the client's columns as a data frame: of pandas where
    installed, else polars."""

    transformer: Any
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    @property
    def sources(self) -> tuple[int, ...]:  # type: ignore[override]
        """The first column, for all."""
        return (0,) * len(self.outputs)

    def apply(self, frame: pl.DataFrame) -> Array:
        try:
            found = self.transformer.transform(_native(frame.select(self.inputs)))
        except Exception as error:  # the transformer's code may raise anything
            raise _failed("could not transform new samples", self.transformer, error) from error
        block = _numbers(found)
        if block.shape != (frame.height, len(self.outputs)):
            raise DataError(
                f"{_name(self.transformer)} gave {block.shape[1]} columns for new samples, but "
                f"{len(self.outputs)} for the training rows."
            )
        return block

    def to_json(self) -> dict[str, Any]:
        files = find("mtcd.data.prepare.skops_files")
        try:
            stored = files.to_bytes(self.transformer)
        except Exception as error:  # skops raises what the object's code raises
            raise _failed("cannot be kept by skops", self.transformer, error) from error
        return {
            "format": FORMAT,
            "kind": "skops",
            "inputs": list(self.inputs),
            "outputs": list(self.outputs),
            "skops": base64.b64encode(stored).decode(),
        }

    @staticmethod
    def from_json(stored: dict[str, Any], trusted: Sequence[str] = ()) -> ForeignPreparation:
        """The preparation again, if all its types are known to skops as harmless, or trusted by
        name."""
        if stored["format"] != FORMAT:
            raise ValueError(f"a preparation of format {stored['format']}")
        # types that are not trusted are refused before anything of them is made
        content = base64.b64decode(stored["skops"], validate=True)
        transformer = find("mtcd.data.prepare.skops_files").from_bytes(content, trusted)
        return ForeignPreparation(transformer, tuple(stored["inputs"]), tuple(stored["outputs"]))


def fit_foreign(
    client: str, frame: pl.DataFrame, transformer: Any, labels: NDArray[np.generic]
) -> tuple[ForeignPreparation, Array, list[str]]:
    """A copy of the transformer, fitted on the training rows of a client; their block, and no
    notes."""
    # clients may be given one object: each fits its own
    own = copy.deepcopy(transformer)
    native = _native(frame)
    try:
        # some, such as target encoders, treat training rows differently from new ones
        if hasattr(own, "fit_transform"):
            found = own.fit_transform(native, labels)
        else:
            found = own.fit(native, labels).transform(native)
    except Exception as error:  # the transformer's code may raise anything
        raise _failed(f"of client {client!r} could not be fitted", own, error) from error
    block = _numbers(found)
    # a transformer may drop rows, which then belong to other labels
    if block.shape[0] != frame.height or not block.shape[1]:
        raise DataError(
            f"{_name(own)} of client {client!r} gave {block.shape} numbers for {frame.height} rows."
        )

    outputs = _output_names(own, found, block.shape[1])
    counts = zip(outputs, np.isnan(block).sum(axis=0), strict=True)
    lost = [f"{name} ({count:,})" for name, count in counts if count]
    if lost:
        raise DataError(
            f"{_name(own)} of client {client!r} leaves values missing: {listing(lost)}. Let an "
            "imputer follow it: make_pipeline(..., SimpleImputer())."
        )

    check_outputs(client, outputs)
    return ForeignPreparation(own, tuple(frame.columns), outputs), block, []


def _native(frame: pl.DataFrame) -> Any:
    """The columns as a data frame of pandas, which most transformers are written for; of polars
    without pandas."""
    if find_spec("pandas") is None:
        return frame
    pandas = import_module("pandas")
    return pandas.DataFrame({name: _pandas_column(pandas, frame[name]) for name in frame.columns})


def _pandas_column(pandas: Any, column: pl.Series) -> Any:
    if column.dtype.is_numeric() or (column.dtype == pl.Boolean and not column.null_count()):
        return column.to_numpy()

    if is_category(column):
        # categories that are whole numbers stay such: the transformer may have been fitted on them
        whole = column.cast(pl.String).cast(pl.Int64, strict=False)
        if whole.null_count() > column.null_count():
            return pandas.Categorical(column.to_list())
        return pandas.Categorical(whole.to_list())

    values = column.to_list()
    if column.dtype == pl.Date or column.dtype == pl.Datetime:
        return pandas.Series(pandas.to_datetime(values))
    # as pandas keeps texts: NaN is what transformers look for, not None
    objects = np.array(values, dtype=object)
    objects[column.is_null().to_numpy()] = np.nan
    return objects


def _numbers(found: Any) -> Array:
    """The result of a transformer as a dense matrix."""
    if hasattr(found, "toarray"):  # a sparse one
        found = found.toarray()
    try:
        block = np.asfortranarray(found, dtype=float)
    except (TypeError, ValueError) as error:
        raise DataError(f"The transformer of a client does not give numbers: {error}.") from None
    if block.ndim != 2:
        return block.reshape(len(block), -1)
    return block


def _output_names(transformer: Any, found: Any, width: int) -> tuple[str, ...]:
    # a data frame names its columns itself
    names = getattr(found, "columns", None)
    if names is None:
        try:
            names = transformer.get_feature_names_out()
        except Exception:  # not every transformer names its columns
            names = [f"t{j}" for j in range(width)]
    return tuple(str(name) for name in names)


def _name(transformer: Any) -> str:
    return type(transformer).__name__


def _failed(what: str, transformer: Any, error: Exception) -> DataError:
    reason = " ".join(str(error).split()[:60]) or type(error).__name__
    return DataError(f"{_name(transformer)} {what}: {reason}")
