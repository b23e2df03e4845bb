"""A federation on one machine: a process for each party, as it would run on a host of its own."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from pathlib import Path
from threading import Thread
from typing import IO, Any

from mtcd.federation.names import SERVER

PORTS = range(20_000, 32_000)  # below the ephemeral ports of outgoing connections
TERMINATION_SECONDS = 5.0  # between SIGTERM and SIGKILL


def free_ports(count: int, host: str = "127.0.0.1") -> list[int]:
    """Ports that are free now, and are not given to outgoing connections while a party restarts."""
    # tests seed `random`, in several processes alike
    drawn = random.SystemRandom().sample(PORTS, len(PORTS))
    # Drawn at random and tested, not asked of the system: a port that the system gives is an
    # ephemeral one, which it may give away again while a party restarts.
    return list(islice((port for port in drawn if _is_free(host, port)), count))


def _is_free(host: str, port: int) -> bool:
    try:
        socket.create_server((host, port)).close()
    except OSError:
        return False
    return True


class Processes:
    """Starts and ends the parties whose bundles are in a folder. ``show`` gets their output."""

    def __init__(
        self,
        bundles: Path,
        tables: Mapping[str, Path],
        show: Callable[[str], None] | None = None,
        prefix: Mapping[str, Iterable[str]] | None = None,
    ) -> None:
        self.bundles, self.tables, self.show, self.prefix = bundles, tables, show, prefix or {}
        self.running: dict[str, subprocess.Popen[str]] = {}

    def start(self, *names: str) -> None:
        """Start the processes of these parties."""
        threads = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # the cores are shared
        for name in names:
            process = subprocess.Popen(
                [*self.prefix.get(name, ()), sys.executable, "-m", "mtcd", *self._arguments(name)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                env={**os.environ, **threads, "PYTHONUNBUFFERED": "1"},
            )
            self.running[name] = process
            # A pipe that nobody reads fills up, and then the party waits for ever in a print.
            Thread(target=self._read, args=(process.stdout,), daemon=True).start()

    def _arguments(self, name: str) -> list[str]:
        bundle = str(self.bundles / name)
        if name == SERVER:
            return ["server", bundle]
        arguments = ["party", bundle]
        if name in self.tables:
            arguments += ["--data", str(self.tables[name])]
        return arguments

    def _read(self, stream: IO[str] | Any) -> None:
        with stream:
            for line in stream:
                if self.show is not None:
                    self.show(line.rstrip("\n"))

    def signal(self, name: str, number: int) -> None:
        """Send a signal to a process."""
        self.running[name].send_signal(number)

    def kill(self, name: str) -> None:
        """Kill a process, as if its host had crashed."""
        process = self.running.pop(name)
        process.kill()
        process.wait()

    def wait(self, seconds: float | None = None) -> dict[str, int]:
        """Wait until all have ended; returns their exit codes."""
        return {name: process.wait(seconds) for name, process in list(self.running.items())}

    def end(self) -> None:
        """Terminate all running processes."""
        # All are told before any is waited for, so that they end side by side.
        for process in self.running.values():
            if process.poll() is None:
                process.terminate()
        for process in self.running.values():
            try:
                process.wait(TERMINATION_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
