"""The clock of a plan: CPU seconds, of this process and of workers on its behalf.

A plan on a busy machine then tries what it tries on an idle one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from time import process_time


class CpuClock:
    """Reads how many CPU seconds have been spent.

    Examples
    --------
    >>> clock = CpuClock()
    >>> before = clock()
    >>> clock.add(2.0)  # a worker has computed for so long
    >>> clock() - before >= 2.0
    True
    """

    def __init__(self) -> None:
        self._elsewhere = 0.0

    def __call__(self) -> float:
        return process_time() + self._elsewhere

    def add(self, seconds: float) -> None:
        """Count the CPU seconds of another process.

        Parameters
        ----------
        seconds
            What it has spent since it was counted last.
        """
        self._elsewhere += seconds


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Have NumPy compute with one thread, where threadpoolctl is installed (scikit-learn has it).

    Threads of BLAS wait for each other by spinning, which counts as CPU time: on a busy machine,
    ten times what they compute.
    """
    try:
        limits = import_module("threadpoolctl").threadpool_limits
    except ImportError:
        yield
        return
    with limits(1, user_api="blas"):
        yield
