"""The actor around a host: what the driver and other actors call. Calls are short; the host works
in a thread."""

from __future__ import annotations

import logging
import pickle
import platform
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import process_time
from typing import Any

from mtcd.core.errors import MtcdError
from mtcd.core.version import VERSION
from mtcd.protocol.engine import HostedShare, Recorder
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.protocol.model import EpochLoss
from mtcd.ray import portable
from mtcd.ray.host import Host, HostState, Report

THREADS = 8  # one waits in poll, the others deliver
MOST_WARNINGS = 20


class Actor:
    """Hosts clients for a driver."""

    host: Host

    def __init__(self) -> None:
        self.warnings = Warnings()

    def begin(self) -> tuple[str, str]:
        """Collect the warnings of this process from now on; returns the versions of mtcd and of
        Python here."""
        # Ray would print them at the driver, amid its progress bar
        logging.captureWarnings(True)
        logging.getLogger().addHandler(self.warnings)
        return VERSION, platform.python_version()

    def usage(self) -> tuple[float, int]:
        """CPU seconds of this process, and the bytes of memory that it shares with no other."""
        # without pages that are shared: Ray's object store would count for every actor
        rows = Path("/proc/self/smaps_rollup").read_text().splitlines()
        kilobytes = [int(row.split()[1]) for row in rows if row.startswith("Private_")]
        return process_time(), 1024 * sum(kilobytes)

    def open(
        self, share: HostedShare, number: int, clients: Sequence[int], server: int | None
    ) -> None:
        """Make the parties; their data is read here. Those of an earlier training are dropped."""
        if hasattr(self, "host"):
            self.host.close()
        self.host = Host(share, number, clients, server)

    def prepare(
        self,
        term: int,
        peers: Sequence[Any],
        routes: Mapping[int, int],
        due: float,
        state: bytes | None,
        float_bytes: int,
        recorders: Sequence[Callable[[], Recorder]],
    ) -> None:
        """See :meth:`Host.prepare`; ``peers`` are the handles of all actors."""

        def send(to: int, term: int, due: float, data: bytes) -> None:
            peers[to].deliver.remote(term, due, data)

        start: HostState | None = None
        if state is not None:
            start = portable.loads(state)
        self.host.prepare(term, send, routes, due, start, float_bytes, recorders)

    def deliver(self, term: int, due: float, data: bytes) -> None:
        """Messages from another actor."""
        self.host.deliver(term, due, data)

    def release(self, term: int, due: float) -> None:
        """Continue after an observation."""
        self.host.release(term, due)

    def hold_at(self, due: float) -> None:
        """Hold at the next progress that is not before this iteration."""
        self.host.hold_at(due)

    def poll(self) -> Report:
        """Wait for the next report of the host."""
        report = self.host.reports.get()
        if report.error is None:
            return report
        return report._replace(error=_sendable(report.error))

    def state(self) -> bytes:
        """The state of the host, pickled: only an actor of the same training reads it again."""
        state: HostState = self.host.state()
        return portable.dumps(state)

    def parameters(self) -> dict[int, Any]:
        """The parameters of the clients here."""
        return self.host.parameters()

    def aggregate(self, parameters: Mapping[int, Any]) -> Any:
        """The sum of the representations of the clients here, with these parameters."""
        return self.host.aggregate(parameters)

    def epoch_loss(self) -> EpochLoss | None:
        """The loss of a split network, at the actor that reported."""
        return self.host.epoch_loss()

    def observed(self) -> tuple[Ledger, list[list[Any]], list[str]]:
        """The ledger of the host, and what its recorders have taken since the last call; the
        warnings of this process."""
        return (*self.host.observed(), self.warnings.take())


class Warnings(logging.Handler):
    """Keeps warnings for the driver, which has the terminal: the latest of them, if there are
    many."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._lines: deque[str] = deque(maxlen=MOST_WARNINGS)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record as text, until :meth:`take` hands it to the driver."""
        self._lines.append(self.format(record))

    def take(self) -> list[str]:
        """Those since the last call."""
        return [self._lines.popleft() for _ in range(len(self._lines))]


def _sendable(error: BaseException) -> BaseException:
    """The error, or one with the same words if it cannot be sent."""
    try:
        # tried here: at the driver, it would fail without a word of what went wrong
        pickle.loads(pickle.dumps(error))
        return error
    except Exception:  # whatever the error of a user's own code does
        return MtcdError(f"{type(error).__name__}: {error}")
