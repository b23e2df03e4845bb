"""Pickled messages and states, for a process that may have another device: tensors of a GPU travel
by the CPU."""

from __future__ import annotations

import io
import pickle
import sys
from typing import Any


def dumps(value: Any) -> bytes:
    """Pickle a value; only a process of the same training reads it again."""
    # importing torch takes seconds: a process that has not done so has no tensors
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return pickle.dumps(value, protocol=5)

    file = io.BytesIO()
    _Pickler(file, protocol=5).dump(value)
    return file.getvalue()


loads = pickle.loads


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        """Tensors on a GPU arrive on the GPU of the receiver, if it has one."""
        torch: Any = sys.modules["torch"]
        # exactly this class: subclasses are pickled in their own way
        if type(value) is torch.Tensor and value.is_cuda:
            return _placed, (value.detach().cpu(),)
        return NotImplemented


def _placed(tensor: Any) -> Any:
    import torch

    if not torch.cuda.is_available():
        return tensor
    return tensor.cuda()
