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
        middle = rows[0]
        if len(rows) > 2:
            middle = rows[len(rows) // 2]

        done = rows[-1].iteration - middle.iteration
        if not done:
            return None
        return (rows[-1].seconds - middle.seconds) / done

    def seconds_to(self, gap: float) -> float | None:
        """When the gap was reached: between two measurements, in proportion to its logarithm; None
        if never."""
        for before, after in pairwise(self.run.history.rows):
            if before.gap is None or after.gap is None:
                return None
            if after.gap > gap:
                continue
            if before.gap <= gap or after.gap <= 0:
                # reached at the start already, or a gap of 0, which has no logarithm
                return after.seconds

            part = math.log(before.gap / gap) / math.log(before.gap / after.gap)
            return before.seconds + part * (after.seconds - before.seconds)
        return None

    def _name(self, party: int) -> str:
        """The name of a party; the server is -1 in messages, and K at the ends of links."""
        if party in (-1, len(self.clients)):
            return SERVER
        return self.clients[party]

    def _busiest_first(self, rows: list[dict[str, Any]]) -> Rows:
        """The rows in order, with ``busy``, the share of the whole time."""
        total = self.seconds or math.inf  # a share of 0 where no time has passed
        for row in rows:
            row["busy"] = row["seconds"] / total
        return Rows(sorted(rows, key=lambda row: -row["seconds"]))

    def link_rows(self) -> Rows:
        """A row for each link that was used, the busiest first; ``busy`` is the share of the
        time."""
        rows: list[dict[str, Any]] = []
        for link, seconds in self.use.sending.items():
            sender, to = link
            row = {
                "from": self._name(sender),
                "to": self._name(to),
                "messages": self.use.messages[link],
                "seconds": seconds,
                "busy": 0.0,  # until all are known; the order of columns is that of this row
                "queued_seconds": self.use.queueing[link],
            }
            rows.append(row)
        return self._busiest_first(rows)

    def interface_rows(self) -> Rows:
        """A row for each limited interface that was used, the busiest first; ``busy`` is the share
        of the time that its messages would have taken at its full rate."""
        rows: list[dict[str, Any]] = []
        for (host, direction), seconds in self.use.carrying.items():
            rows.append({"host": self._name(host), "direction": direction, "seconds": seconds})
        return self._busiest_first(rows)

    @property
    def busiest_party(self) -> tuple[str, float]:
        """The party that computed most, and its share of the time."""
        party, seconds = max(
            self.use.computing.items(), key=lambda item: item[1], default=(-1, 0.0)
        )
        return self._name(party), seconds / (self.seconds or math.inf)

    def summary(self, target: float | None) -> dict[str, Any]:
        """What was simulated, as plain values that JSON has."""
        party, share = self.busiest_party
        to_target = None
        if target is not None:
            to_target = self.seconds_to(target)

        return {
            "status": self.run.status,
            "seconds": self.seconds,
            "seconds_per_iteration": self.per_iteration,
            "seconds_to_target": to_target,
            "target": target,
            "iterations": self.run.final.iteration,
            "objective": self.run.final.objective,
            "gap": self.run.final.gap,
            "busiest_party": {"party": party, "busy": share},
            "busiest_link": next(iter(self.link_rows()), None),
            "busiest_interface": next(iter(self.interface_rows()), None),
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
    # refused here: the engine would wait for a message that takes NaN seconds
    if setup.method.has_server and not links.has_server:
        raise NetworkError(
            "The method has a server, but the links have none: add a row such as server,*,40,50."
        )
    engine = VirtualTime(links, visit_seconds)
    # the training itself is not changed: only its engine has another clock
    run = replace(setup, engine=engine).train(watch)
    return Simulation(run, engine.use, setup.network.clients)
