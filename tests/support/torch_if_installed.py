"""PyTorch for files of which a few tests need it; where it is not installed, the test that uses it
is skipped."""

from typing import Any

import pytest


class _Missing:
    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # pytest looks at all names of a module
            raise AttributeError(name)
        pytest.skip("needs PyTorch", allow_module_level=True)


nn: Any
torch: Any
try:
    import torch
    from torch import nn
except ModuleNotFoundError:
    torch = nn = _Missing()
