"""Checkpoints of linear models: one npz file, without pickle."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from mtcd.core.errors import MtcdError
from mtcd.core.files import LINEAR_CHECKPOINT, plain, whole_file
from mtcd.data.vertical import VerticalData
from mtcd.training.checkpoints import Checkpoints, Spacing, training_facts
from mtcd.training.kinds import Request

FORMAT = 1
SPACING = Spacing(seconds=2.0, times=50.0)  # writing takes no more than 2% of the time


class ArrayFile:
    """An npz file: plain values as JSON, and the bytes of all arrays in one, as thousands of
    members would be slow."""

    name = LINEAR_CHECKPOINT

    def write(self, path: Path, facts: Mapping[str, Any], tensors: Mapping[str, Any]) -> None:
        arrays = []
        for name, array in tensors.items():
            arrays.append((name, array.dtype.str, array.shape, _order(array)))

        text = json.dumps({"format": FORMAT, "arrays": arrays, **facts}, default=plain).encode()
        # As bytes: arrays of several types fit into one member of the file.
        parts = [array.ravel(order="K").view(np.uint8) for array in tensors.values()]
        with whole_file(path) as writing:
            # The empty array is there for a state without arrays, which `concatenate` refuses.
            data = np.concatenate([np.empty(0, np.uint8), *parts])
            np.savez(writing, facts=np.frombuffer(text, np.uint8), data=data)

    def read(self, path: Path) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as content:
                # Without pickle, a file from elsewhere can hold wrong numbers at worst, and run no
                # code.
                facts, data = json.loads(content["facts"].tobytes()), content["data"]
            if facts.pop("format") != FORMAT:
                raise MtcdError(
                    f"{path} is no checkpoint of this version: start without --resume, elsewhere."
                )
            return facts, _arrays(facts.pop("arrays"), data)
        except FileNotFoundError:
            raise MtcdError(
                f"There is no checkpoint {path} to go on from: start without --resume."
            ) from None
        except (OSError, EOFError, BadZipFile, KeyError, TypeError, ValueError) as error:
            raise MtcdError(f"The checkpoint {path} cannot be read: {error}") from None


def _order(array: NDArray[Any]) -> Literal["C", "F"]:
    """How the array lies in memory: columns first (F), or rows first (C)."""
    # a product with a block in the other order rounds differently, so the order is kept too
    if array.flags.f_contiguous and not array.flags.c_contiguous:
        return "F"
    return "C"


def _arrays(described: Sequence[Sequence[Any]], data: NDArray[np.uint8]) -> dict[str, NDArray[Any]]:
    """The arrays, which lie in the data one after the other."""
    found, start = {}, 0
    for name, dtype, shape, order in described:
        count = math.prod(shape)
        array = np.empty(0, dtype)
        if count:  # frombuffer refuses nothing
            array = np.frombuffer(data, dtype, count, start)

        found[name] = array.reshape(shape, order=order)
        start += array.nbytes
    return found


def linear_checkpoints(
    asked: Request, data: VerticalData, start: Sequence[NDArray[np.float64]] | None = None
) -> Checkpoints | None:
    """The checkpoints of a linear model on this data, standardised if asked for."""
    # A resumed training must have started from the same parameters: the checkpoint does not tell.
    warm = None
    if start is not None:
        digest = hashlib.sha256(np.concatenate(start).tobytes()).hexdigest()
        warm = f"parameters {digest[:8]}"

    return array_checkpoints(asked, data, warm)


def array_checkpoints(
    asked: Request, data: VerticalData, start: str | None = None
) -> Checkpoints | None:
    """The checkpoints of a model whose parties hold arrays, with the method as it was given;
    ``start`` describes where it starts. None where none are asked for."""
    if asked.checkpoint is None:
        return None
    common = training_facts(
        asked.method,
        asked.seed,
        data.clients,
        asked.network,
        asked.costs,
        data.samples,
        data.fingerprint,
    )
    # All that decides the iterates. A checkpoint of other settings would be continued without an
    # error, to a model that no training gives.
    facts = {**common, "model": repr(asked.model), "start": start}
    return Checkpoints(Path(asked.checkpoint), asked.resume, facts, ArrayFile(), SPACING)
