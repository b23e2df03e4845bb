"""A federation of real processes on this machine, every link through a proxy that can cut it."""

from __future__ import annotations

import shutil
import signal
import tempfile
from collections import deque
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import numpy as np
import polars as pl
import yaml

from faulty.plans import Plan
from faulty.proxies import CLOSED, OPEN, SILENT, Proxies, Proxy
from mtcd.federation.administrator import init_federation
from mtcd.federation.credentials.bundle import read_bundle
from mtcd.federation.credentials.credentials import read_credentials
from mtcd.federation.names import SERVER
from mtcd.federation.node.folder import JOURNAL
from mtcd.federation.node.operator import Timeouts, ask_everybody, operator_bundle
from mtcd.federation.participant.keeping import SUMMARY
from mtcd.federation.processes import Processes
from waiting import PATIENCE


class Faulty:
    """The processes of a plan, and what can befall them."""

    def __init__(self, folder: Path, plan: Plan, cuttable: bool = True) -> None:
        self.folder, self.plan, self.bundles = folder, plan, folder / "bundles"
        self.parties = plan.names
        self.names = [*self.parties, *([SERVER] if plan.server else [])]
        folder.mkdir(parents=True, exist_ok=True)
        tables = self._write_tables()
        self.file = folder / "federation.yaml"
        self.file.write_text(yaml.safe_dump(plan.file(), sort_keys=False))
        init_federation(self.file, self.bundles, 30)
        self.said: deque[str] = deque(maxlen=4000)
        self.processes = Processes(self.bundles, tables, self.said.append)
        self.proxies = Proxies()
        self.links: dict[tuple[str, str], Proxy] = {}
        if cuttable:
            self._go_through_proxies()
        self.down: set[str] = set(self.names)
        self.hung: set[str] = set()

    def __enter__(self) -> Faulty:
        return self

    def __exit__(self, *_: object) -> None:
        for name in self.hung:
            self.processes.signal(name, signal.SIGCONT)
        for name in self.names:
            if name in self.processes.running:
                self.processes.kill(name)
        self.proxies.close()

    def _write_tables(self) -> dict[str, Path]:
        data, tables = self.plan.data, {}
        for k, name in enumerate(self.parties):
            columns: dict[str, Any] = {
                f"x{j}": np.asarray(data.blocks[k])[:, j] for j in range(self.plan.features)
            }
            if k == 0:
                columns["outcome"] = np.asarray(data.labels)
            if self.plan.alignment != "given order":
                columns["person"] = [f"person-{i:04d}" for i in range(self.plan.samples)]
            tables[name] = self.folder / f"{name}.csv"
            pl.DataFrame(columns).write_csv(tables[name])
        return tables

    def _go_through_proxies(self) -> None:
        """Whoever calls another finds it at the port of their link."""
        for name in self.names:
            path = self.bundles / name / "party.yaml"
            rank, content = (
                read_bundle(self.bundles / name).config.rank,
                yaml.safe_load(path.read_text()),
            )
            for peer, place in content["peers"].items():
                if rank[peer] < rank[name]:
                    proxy = self.links[name, peer] = self.proxies.add(
                        int(place["address"].rpartition(":")[2])
                    )
                    place["address"] = f"127.0.0.1:{proxy.port}"
            path.write_text(yaml.safe_dump(content, sort_keys=False))

    # What befalls them

    def start(self, *names: str) -> None:
        self.processes.start(*names)
        self.down -= set(names)

    def kill(self, *names: str) -> None:
        for name in names:
            self.processes.kill(name)
            self.down.add(name)
            self.hung.discard(name)

    def hang(self, name: str) -> None:
        self.processes.signal(name, signal.SIGSTOP)
        self.hung.add(name)

    def wake(self, name: str) -> None:
        if name in self.hung:
            self.processes.signal(name, signal.SIGCONT)
            self.hung.discard(name)

    def cut(self, link: tuple[str, str], broken: bool) -> None:
        """Connections break, or bytes no longer arrive and nobody is told."""
        self.proxies.set(self.links[link], CLOSED if broken else SILENT)

    def heal(self, link: tuple[str, str]) -> None:
        self.proxies.set(self.links[link], OPEN)

    # How they are

    def run_folder(self, name: str) -> Path:
        return self.bundles / name / "run"

    def ended(self, name: str) -> bool:
        return (self.run_folder(name) / SUMMARY).exists()

    def journal_time(self, name: str) -> int:
        """When the journal was written last, in ns; 0 if there is none yet."""
        return max(
            (path.stat().st_mtime_ns for path in self.run_folder(name).glob(f"{JOURNAL}*")),
            default=0,
        )

    def holder(self, among: set[str]) -> str:
        """Who has just done something: a token is there, or has just left."""
        return max(sorted(among), key=self.journal_time)

    def ask(self, kind: str, seconds: float = 1.5) -> dict[str, Any]:
        return ask_everybody(
            operator_bundle(self.bundles, read_credentials), kind, Timeouts(seconds, seconds)
        )

    def iteration(self) -> int:
        """How far they are; with a server, at its last sync."""
        per_sync = self.plan.method.get("hops")
        told = self.ask("status").values()
        far = [
            one.get("iteration", 0) if per_sync is None else one.get("syncs", 0) * per_sync
            for one in told
        ]
        return max(far, default=0)

    def hops(self) -> int:
        """How far tokens are since the last sync."""
        tokens = [
            (one["sync"], one["hop"])
            for told in self.ask("status").values()
            for one in told.get("tokens", [])
        ]
        return max(tokens, default=(0, 0))[1]

    def wait_for_training(self) -> None:
        self.wait("training begins", lambda: all(map(self.journal_time, self.names)))

    def wait_for_everybody(self) -> None:
        """Until all are in training, and nobody counts as gone."""
        self.wait("everybody is back", lambda: not self._missed())

    def _missed(self) -> set[str]:
        told = self.ask("status")
        return {*self.names} - {*told} | {
            name for one in told.values() for name in one.get("gone", self.names)
        }

    def wait_for_iteration(self, least: int) -> int:
        """Until they are so far; there must be progress all the time."""
        last, since = self.iteration(), monotonic()
        while last < least:
            now = self.iteration()
            if now > last:
                last, since = now, monotonic()
            if monotonic() - since > PATIENCE:
                raise self.failure(f"no progress since iteration {last} of {least}")
            self.check_alive()
        return last

    def stop(self) -> None:
        """Ask everybody who is there to stop, until all have heard it or have ended."""
        heard: set[str] = set(self.down)

        def told() -> bool:
            heard.update(self.ask("stop"))
            return all(name in heard or self.ended(name) for name in self.names)

        self.wait("all are asked to stop", told)

    def wait_for_end(self, *names: str) -> None:
        """Until these have ended by themselves, with a result."""
        self.wait(
            "the end",
            lambda: all(self.processes.running[name].poll() is not None for name in names),
        )
        for name in names:
            code = self.processes.running[name].returncode
            if code or not self.ended(name):
                raise self.failure(f"{name} ended with {code}")
            self.down.add(name)

    def wait(self, what: str, there: Any) -> None:
        end = monotonic() + PATIENCE
        while not there():
            if monotonic() > end:
                raise self.failure(f"waited in vain until {what}")
            self.check_alive()
            sleep(0.05)

    def check_alive(self) -> None:
        """Nobody ends by itself before the run has ended."""
        for name, process in self.processes.running.items():
            if process.poll() is not None and (process.returncode != 0 or not self.ended(name)):
                raise self.failure(f"{name} ended by itself with {process.returncode}")

    def failure(self, why: str) -> AssertionError:
        """An error that tells what was said last; what they kept is put aside."""
        kept = Path(tempfile.mkdtemp(prefix="mtcd-failure-"))
        shutil.copytree(
            self.folder, kept, ignore=shutil.ignore_patterns("*.key", "key.pem"), dirs_exist_ok=True
        )
        told = "\n".join(list(self.said)[-60:])
        status = self.ask("status")
        return AssertionError(
            f"{why}; logs are in {kept}\n{told}\n{yaml.safe_dump(status, default_flow_style=None)}"
        )
