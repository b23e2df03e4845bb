"""A split network as ONNX files: the network of each client, and one that joins their outputs and
predicts."""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import onnx  # noqa: F401  (the exporter of PyTorch needs both: a missing one is told before)
import onnxscript  # noqa: F401
import torch
from torch import Tensor, nn

from mtcd.core.errors import MtcdError
from mtcd.models.glm.onnx_file import finished
from mtcd.models.splitnet.aggregation import Aggregation, make_aggregation
from mtcd.models.splitnet.labels import decide
from mtcd.models.splitnet.trained import TrainedSplit

FUSION = "fusion"
TRIED = 3  # samples that the exporter runs the networks on


def split_onnx(trained: TrainedSplit) -> dict[str, bytes]:
    """Files by name: input ``X``, output ``h`` of each client's; the last takes all ``h_<number>``
    and predicts.

    Its outputs are ``decision``, and of classes ``probabilities`` and ``label``, the number of the
    class.
    """
    names = _file_names(trained.clients)
    files = {}
    for client, name in names.items():
        sample = torch.zeros(TRIED, *trained.shapes[client])
        columns = None if trained.columns is None else list(trained.columns[client])
        about: dict[str, Any] = {"client": client, "columns": columns}
        # In single precision, whatever the networks compute in: runtimes of others take it.
        files[name] = _exported(
            _Floats(trained.modules[client]), [sample], ["X"], ["h"], about, f"client {client!r}"
        )
    aggregation = make_aggregation(trained.aggregation, trained.clients, trained.widths)
    outputs = ["decision"] if trained.classes is None else ["decision", "probabilities", "label"]
    about = {"clients": trained.clients, "classes": trained.classes or ()}
    inputs = [torch.zeros(TRIED, width) for width in trained.widths]
    titles = [f"h_{number}" for number in range(len(inputs))]
    fused = _Fused(trained, aggregation)
    return files | {
        f"{FUSION}.onnx": _exported(fused, inputs, titles, outputs, about, "the fusion")
    }


def _file_names(clients: Sequence[str]) -> dict[str, str]:
    """The file of each client: by its name, or by its number if a name is no good as that of a
    file."""
    plain = all(re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,80}", name) for name in clients)
    # Of one spelling: some file systems do not tell capitals apart.
    distinct = len({name.lower() for name in (*clients, FUSION)}) > len(clients)
    usable = plain and distinct
    files = {}
    for number, name in enumerate(clients):
        stem = name if usable else f"client_{number}"
        files[name] = f"{stem}.onnx"
    return files


class _Floats(nn.Module):
    """A client's network, with outputs in single precision."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: Tensor) -> Tensor:
        h: Tensor = self.module(x).float()
        return h


class _Fused(nn.Module):
    """The aggregation and the fusion module."""

    def __init__(self, trained: TrainedSplit, aggregation: Aggregation) -> None:
        super().__init__()
        self.module = trained.fusion
        self.classes = trained.classes
        self.aggregation = aggregation

    def forward(self, *representations: Tensor) -> tuple[Tensor, ...]:
        z: Tensor = self.module(self.aggregation.of(representations)).float()
        if self.classes is None:
            return (z,)
        one = z.shape[1] == 1
        if one:
            shares = torch.cat([torch.sigmoid(-z), torch.sigmoid(z)], dim=1)
        else:
            shares = torch.softmax(z, dim=1)
        return z, shares, decide(z, self.classes)


def _exported(
    module: nn.Module,
    inputs: Sequence[Tensor],
    titles: list[str],
    outputs: list[str],
    about: dict[str, Any],
    whose: str,
) -> bytes:
    several = isinstance(module, _Fused)
    samples = torch.export.Dim("samples")
    # The number of samples is left open; all other sizes are those of the networks.
    each = tuple({0: samples} for _ in inputs)
    try:
        with _quiet():
            program = torch.onnx.export(
                module.eval(),
                tuple(inputs),
                dynamo=True,
                input_names=titles,
                output_names=outputs,
                dynamic_shapes=(each,) if several else each,
                verbose=False,
            )
        assert program is not None
        return finished(program.model_proto, about)
    except Exception as error:  # the user's code may hold anything
        # The exporter appends pages of advice to its errors.
        reason = str(error).strip().partition("\n")[0]
        raise MtcdError(
            f"The network of {whose} cannot be exported to ONNX by PyTorch: {reason}"
        ) from None


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the warnings of the exporter about packages and its own parts."""
    level = logging.getLogger("torch.onnx").level
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.getLogger("torch.onnx").setLevel(level)
