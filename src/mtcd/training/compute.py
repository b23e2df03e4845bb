"""Device and precision of the arithmetic of split networks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mtcd.core.checks import check_whole
from mtcd.core.errors import ConfigError, check_known

PRECISIONS = ("full", "mixed")


@dataclass(frozen=True)
class Compute:
    """On what, and how precisely, split networks are computed.

    Apart from rounding, and from what dropout draws on a GPU, it does not change what is computed.

    Parameters
    ----------
    device : str, default 'auto'
        'auto' (a GPU if there is one), 'cpu', 'cuda' or 'cuda:1'.
    precision : 'full' or 'mixed', default 'full'
        'full': float32. 'mixed': networks run in bfloat16; parameters and tokens stay float32.
    graphs : bool or 'auto', default 'auto'
        Whether local updates on a GPU are replayed as CUDA graphs; 'auto': wherever possible.
    threads : int, optional
        CPU threads for one operation; by default one for small networks, and PyTorch's choice for
        others.

    Examples
    --------
    >>> import mtcd
    >>> mtcd.Compute(device="cpu", threads=1).precision
    'full'
    """

    device: str = "auto"
    precision: str = "full"
    graphs: bool | Literal["auto"] = "auto"
    threads: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.device, str) or self.device.partition(":")[0] not in (
            "auto",
            "cpu",
            "cuda",
        ):
            raise ConfigError(
                f"compute.device is 'auto', 'cpu', 'cuda' or 'cuda:N', but is {self.device!r}."
            )
        problem = f"compute.precision: nothing is called {self.precision!r};"
        check_known(self.precision, PRECISIONS, problem)
        if self.graphs not in (True, False, "auto"):
            raise ConfigError(f"compute.graphs is true, false or 'auto', but is {self.graphs!r}.")
        if self.threads is not None:
            check_whole("compute.threads", self.threads)
