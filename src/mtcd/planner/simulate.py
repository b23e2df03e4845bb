"""simulate(): a training over links with given latencies and bandwidths, in simulated time."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from mtcd.config.build import Setup
from mtcd.core.checks import check_number
from mtcd.core.errors import NetworkError
from mtcd.core.rows import Rows
from mtcd.planner.links import SERVER, Links
from mtcd.planner.virtual_time import Use, VirtualTime
from mtcd.training.observer import Watch
from mtcd.training.run import Run


@dataclass(frozen=True, eq=False)
class Simulation:
    """A run whose ``seconds`` are simulated, and what parties and links did meanwhile."""

    run: Run
    use: Use
    clients: tuple[str, ...]

    @property
    def seconds(self) -> float:
        """Simulated time from start to end."""
        return self.run.final.seconds

    @property
    def per_iteration(self) -> float | None:
        """Seconds per iteration, without the first measured ones, in which parties prepare for
        their first visit."""
        rows = self.run.history.rows
        middle = rows[len(rows) // 2] if len(rows) > 2 else rows[0]
        done = rows[-1].iteration - middle.iteration
        return (rows[-1].seconds - middle.seconds) / done if done else None

    def seconds_to(self, gap: float) -> float | None:
        """When the gap was reached: between two measurements, in proportion to its logarithm; None
        if never."""
        for before, after in pairwise(self.run.history.rows):
            if before.gap is None or after.gap is None:
                return None
            if after.gap <= gap:
                if not (before.gap > gap and after.gap > 0):
                    return after.seconds
                part = math.log(before.gap / gap) / math.log(before.gap / after.gap)
                return before.seconds + part * (after.seconds - before.seconds)
        return None

    def _name(self, party: int) -> str:
        return SERVER if party < 0 else self.clients[party]

    def link_rows(self) -> Rows:
        """A row for each link that was used, the busiest first; ``busy`` is the share of the
        time."""
        total = self.seconds or math.inf
        rows: list[dict[str, Any]] = [
            {
                "from": self._name(link[0]),
                "to": self._name(link[1]),
                "messages": self.use.messages[link],
                "seconds": seconds,
                "busy": seconds / total,
                "queued_seconds": self.use.queueing[link],
            }
            for link, seconds in self.use.sending.items()
        ]
        return Rows(sorted(rows, key=lambda row: -row["seconds"]))

    def interface_rows(self) -> Rows:
        """A row for each limited interface that was used, the busiest first; ``busy`` is the share
        of the time that its messages would have taken at its full rate."""
        total = self.seconds or math.inf
        rows: list[dict[str, Any]] = [
            {
                "host": SERVER if host == len(self.clients) else self.clients[host],
                "direction": direction,
                "seconds": seconds,
                "busy": seconds / total,
            }
            for (host, direction), seconds in self.use.carrying.items()
        ]
        return Rows(sorted(rows, key=lambda row: -row["seconds"]))

    @property
    def busiest_party(self) -> tuple[str, float]:
        """The party that computed most, and its share of the time."""
        party, seconds = max(
            self.use.computing.items(), key=lambda item: item[1], default=(-1, 0.0)
        )
        return self._name(party), seconds / self.seconds if self.seconds else 0.0

    def summary(self, target: float | None) -> dict[str, Any]:
        """What was simulated, as plain values that JSON has."""
        party, share = self.busiest_party
        links, interfaces = self.link_rows(), self.interface_rows()
        return {
            "status": self.run.status,
            "seconds": self.seconds,
            "seconds_per_iteration": self.per_iteration,
            "seconds_to_target": None if target is None else self.seconds_to(target),
            "target": target,
            "iterations": self.run.final.iteration,
            "objective": self.run.final.objective,
            "gap": self.run.final.gap,
            "busiest_party": {"party": party, "busy": share},
            "busiest_link": links[0] if links else None,
            "busiest_interface": interfaces[0] if interfaces else None,
        }


def simulate(
    setup: Setup, links: Links, visit_seconds: float | None = None, watch: Watch | None = None
) -> Simulation:
    """Train by a config over these links, in simulated time: the iterates are those of ``mtcd
    train``.

    ``visit_seconds`` is the time that a party takes for a message; measured on this machine unless
    given.
    """
    if visit_seconds is not None:
        check_number("visit_seconds", visit_seconds)
    if setup.method.has_server and not links.has_server:
        raise NetworkError(
            "The method has a server, but the links have none: add a row such as server,*,40,50."
        )
    engine = VirtualTime(links, visit_seconds)
    run = replace(setup, engine=engine).train(watch)
    return Simulation(run, engine.use, setup.network.clients)
