"""Checkpoints: the complete state of a training of split networks in one file, without pickle.

It is taken at a moment when all parties hold one model. Everything random is a function of the seed
and of the iteration, so the numbers that the parties hold, and where they are, are all that there
is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from mtcd.core.errors import MtcdError
from mtcd.core.files import plain, write_whole

FORMAT = "1"


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """Tensors by name, and plain values: the settings, the position, the history and the ledger of
    the training."""

    tensors: Mapping[str, Tensor]
    facts: Mapping[str, Any]

    def write(self, path: Path) -> None:
        """Write the file atomically."""
        # safetensors takes whole, dense tensors of the CPU.
        tensors = {name: value.detach().cpu().contiguous() for name, value in self.tensors.items()}
        metadata = {
            "format": FORMAT,
            "facts": json.dumps(self.facts, allow_nan=False, default=plain),
        }
        write_whole(path, save(tensors, metadata))

    @staticmethod
    def read(path: Path) -> Checkpoint:
        """Read a checkpoint; an MtcdError says what to do if that is not possible."""
        try:
            with safe_open(path, "pt") as file:
                metadata = file.metadata() or {}
                if metadata.get("format") != FORMAT:
                    raise MtcdError(
                        f"{path} is no checkpoint of this version: start without --resume, "
                        f"elsewhere."
                    )
                # copies, because the rounding of sums may depend on the alignment in memory
                tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
                return Checkpoint(tensors, json.loads(metadata["facts"]))
        except FileNotFoundError:
            raise MtcdError(
                f"There is no checkpoint {path} to go on from: start without --resume."
            ) from None
        except (OSError, SafetensorError, ValueError, KeyError) as error:
            raise MtcdError(f"The checkpoint {path} cannot be read: {error}") from None
