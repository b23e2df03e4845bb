"""A whole federation on the report page: what the parties tell the operator, collected while it is
watched.

Parties report the last visit of each token. Of these, the passes that are certain are shown: two
visits of a token of which one follows the other directly. Passes between two looks are not known,
and count in the total only.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

from mtcd.core.mappings import positions
from mtcd.core.version import VERSION
from mtcd.federation.credentials.bundle_schema import BundleConfig, settings_yaml
from mtcd.federation.names import SERVER
from mtcd.federation.node.overview import UP, WELL, in_words, is_dead
from mtcd.protocol.ledger.costs import Costs
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.protocol.party import SERVER as SERVER_NUMBER
from mtcd.reporting.document import MOST_POINTS, X_AXES, known_columns, make_report
from mtcd.reporting.record import RUNNING, RunRecord
from mtcd.reporting.trace.trace import Trace

MOST_LOOKS = 500
"""Looks whose passes are shown."""
MOST_TOKENS = 1000
KEPT = ("objective", "syncs")
"""What is shown of a run that has ended as it was known last."""
COLUMNS = ("iteration", "hops", "cost", "bytes", "seconds", "gap", "objective")


FACTS = {
    "objective": ".8g",
    "gap": ".3g",
    "iteration": ",",
    "hops": ",",
    "syncs": ",",
    "cost": ",.6g",
}
"""The numbers among the facts of a federation, and how they are written."""
OPENING = "opening"
"""The phase in which members connect and compare their settings."""


class Pass(NamedTuple):
    """A token that went from one member to another."""

    token: int
    sender: int
    receiver: int
    iteration: int
    seconds: float


class FederationView:
    """Collects overviews of a federation (``summarise``); ``document`` may be called by another
    thread."""

    def __init__(self, config: BundleConfig) -> None:
        self.config = config
        self._numbers = positions(config.parties) | {SERVER: SERVER_NUMBER}
        self._network = Trace.of(config.network, None, SERVER in config.peers)
        self._settings = settings_yaml(config)
        self._costs = Costs(**config.costs.model_dump())
        self._hops_per_sync = getattr(config.method, "hops", None) or 0
        self._begin(None)
        self._document: dict[str, Any] = {}

    def _begin(self, run: str | None) -> None:
        self._run = run
        self._looks: deque[list[Pass]] = deque(maxlen=MOST_LOOKS)
        self._visits: deque[list[int]] = deque(maxlen=MOST_LOOKS)
        """The visits of each party that were known before each look."""
        self._hops: dict[int, int] = {}
        """Of each token, as of its last visit that is known."""
        self._last: dict[str, Any] = {}
        """The last values that were known."""
        self._latest: dict[int, tuple[int, int]] = {}
        self._rows: list[dict[str, Any]] = []
        self._ledgers: dict[str, Ledger] = {}
        """Of each member, as of its last answer: what one that is gone has sent still counts."""

    def observe(self, summary: Mapping[str, Any], seconds: float) -> None:
        """Take in an overview, ``seconds`` after watching began. Another run begins anew."""
        parties = summary["parties"]
        runs = [one["run"] for one in parties.values() if one.get("run")]
        # only if nobody is in the old run any more: parties change over one by one
        if runs and self._run not in (None, *runs):
            self._begin(runs[0])
        if runs and self._run is None:
            self._run = runs[0]

        visits = [self._visits_of(name) or 0 for name in self.config.parties]
        for name, one in parties.items():
            if "ledger" in one:
                self._ledgers[name] = Ledger(**one["ledger"])
        ledger = Ledger.total(self._ledgers.values())

        summary = self._completed(summary, ledger)
        self._add_row(summary, ledger, seconds)
        self._add_passes(parties, seconds, visits)

        # last, and as a whole: another thread may read the document at any time
        record = self._record(summary, ledger)
        made = make_report([record], "federation", self._title, VERSION)
        made["runs"][0] |= self._own_parts(summary)
        self._document = made

    def _visits_of(self, party: str) -> int | None:
        """The visits of a party so far; None before its first answer."""
        if party not in self._ledgers:
            return None
        return self._ledgers[party].hops

    def _completed(self, summary: Mapping[str, Any], ledger: Ledger) -> dict[str, Any]:
        """The overview with what was known before, also where nobody answers any more; counts of
        the federation never fall."""
        self._last |= {name: summary[name] for name in KEPT if summary[name] is not None}
        reached = [row["iteration"] for row in self._rows[-1:]]
        if summary["iteration"] is not None:
            reached.append(summary["iteration"])
        return {
            **summary,
            **self._last,
            "hops": ledger.hops,
            "cost": self._costs.total(ledger),
            "iteration": max(reached, default=None),
        }

    def _add_row(self, summary: Mapping[str, Any], ledger: Ledger, seconds: float) -> None:
        """A point of the curves, if the federation has gone on since the last one."""
        row = {name: summary.get(name) for name in COLUMNS}
        row["seconds"] = round(seconds, 3)
        row["bytes"] = sum(ledger.bytes(self._costs.account).values())
        if row["iteration"] is None:
            return
        if self._rows and row["iteration"] <= self._rows[-1]["iteration"]:
            return

        self._rows.append(row)
        if len(self._rows) > MOST_POINTS:
            # half as dense, over the whole time
            self._rows = self._rows[::2]

    def _add_passes(self, parties: Mapping[str, Any], seconds: float, visits: list[int]) -> None:
        """The passes that this look has shown; ``visits`` of the parties were known before it."""
        passes = list(self._passes(parties, seconds))
        if passes:
            passes.sort(key=lambda one: (one.seconds, one.iteration))
            self._looks.append(passes)
            self._visits.append(visits)

        for one in parties.values():
            for token in one.get("tokens", ()):
                index = token["token"]
                self._hops[index] = max(self._hops.get(index, 0), self._iteration(token))

    def document(self) -> dict[str, Any]:
        """The document as of the last overview."""
        return self._document

    @property
    def _title(self) -> str:
        return f"mtcd: federation {self.config.federation}"

    def _record(self, summary: Mapping[str, Any], ledger: Ledger) -> RunRecord:
        phases = {name: one["phase"] for name, one in summary["parties"].items()}
        status = _status(phases.values(), summary["status"])
        missing = [name for name, phase in phases.items() if phase not in WELL]

        notes = []
        if missing:
            notes = [
                f"Not up, or failed, and counted as of their last answers: {', '.join(missing)}."
            ]

        up = sum(phase in UP for phase in phases.values())
        message = f"{up} of {len(phases)} members answer."
        if not missing and not {"training", OPENING}.intersection(phases.values()):
            message = f"The run has ended, and all {len(phases)} members know."
        if summary["iteration"] is not None:
            message += f" Iteration {summary['iteration']:,}."

        return RunRecord(
            name=self.config.federation,
            status=status,
            message=message,
            method=self.config.method.kind,
            stepsize=None,
            history=(),
            ledger=ledger,
            costs=self._costs,
            notes=notes,
            yaml=self._settings,
            trace=replace(self._network),
            clients=self.config.parties,
        )

    def _own_parts(self, summary: Mapping[str, Any]) -> dict[str, Any]:
        parties = summary["parties"]
        facts = [["run", self._run or "not agreed yet"], ["method", self.config.method.kind]]
        for name, how in FACTS.items():
            if summary[name] is not None:
                facts.append([name, format(summary[name], how)])
        if SERVER in parties:  # it is in no row of the table of clients
            facts.append([SERVER, in_words(parties[SERVER])])

        known = known_columns(self._rows, COLUMNS)
        x = [name for name in X_AXES if name in known]
        y = [name for name in ("objective", "gap") if name in known]
        return {
            "facts": facts,
            "clients": [self._client(name, parties[name]) for name in self.config.parties],
            "curves": {"columns": known, "x": x, "y": y},
            "trace": self._trace(summary["hops"]),
        }

    def _client(self, name: str, one: Mapping[str, Any]) -> dict[str, Any]:
        last = [self._iteration(token) for token in one.get("tokens", ())]
        detail = in_words(one)
        if one.get("waiting_for"):
            detail += f". Waits for: {', '.join(one['waiting_for'])}"
        return {
            "name": name,
            "cluster": None,
            "features": None,
            "visits": self._visits_of(name),
            "last_visit": max(last, default=None),
            "norm": None,
            "state": _state(one),
            "detail": detail,
        }

    def _iteration(self, token: Mapping[str, Any]) -> int:
        return int(token["sync"] * self._hops_per_sync + token["hop"])

    def _passes(self, parties: Mapping[str, Any], now: float) -> Iterator[Pass]:
        """The passes that are certain and were not seen before."""

        visits: dict[int, list[tuple[int, int, bool, str, Mapping[str, Any]]]] = {}
        for name, one in parties.items():
            for token in one.get("tokens", ()):
                # a number from another party: a page with a million tokens would stop the browser
                if token["token"] < MOST_TOKENS:
                    own = visits.setdefault(token["token"], [])
                    own.append((token["sync"], token["hop"], name == SERVER, name, token))

        # parties tell their last visit only: two in a row are known where both are still the last
        for index, seen in visits.items():
            for before, after in pairwise(sorted(seen, key=lambda visit: visit[:4])):
                certain = before[0] == after[0] and after[1] - before[1] <= 1
                if certain and after[:2] > self._latest.get(index, (-1, -1)):
                    self._latest[index] = after[:2]
                    ends = (self._numbers[before[3]], self._numbers[after[3]])
                    # clocks of parties may differ: seconds since then do not depend on them
                    when = max(0.0, now - after[4]["seconds_ago"])
                    yield Pass(index, *ends, self._iteration(after[4]), round(when, 3))

    def _trace(self, hops: int) -> dict[str, Any] | None:
        passes: list[Pass] = []
        windows = []
        for look in self._looks:
            windows.append([len(passes), len(passes) + len(look)])
            passes += look
        if not passes:
            return None

        columns = {name: [getattr(one, name) for one in passes] for name in Pass._fields}
        tokens = 1 + max(columns["token"])
        return {
            **columns,
            "tokens": tokens,
            "total": max(hops, len(passes)),
            "windows": windows,
            "hops": columns["iteration"],
            "all_hops": [self._hops.get(token, 0) for token in range(tokens)],
            "visits_before": list(self._visits),
        }


def _status(phases: Collection[str], ended: str | None) -> str:
    """The status of the run, by the phases of its members; ``ended`` is how it ended."""
    if "training" in phases:
        return RUNNING
    if OPENING in phases:
        return OPENING
    if all(phase in WELL for phase in phases):
        return ended or "ended"
    return "no answer"


def _state(one: Mapping[str, Any]) -> str:
    """The state of a member, by which its place in the drawing is coloured."""
    phase = one["phase"]
    if phase == OPENING:
        return "waiting"
    if phase == "training":
        if one.get("waiting_for"):
            return "waiting"
        return "up"
    if phase in WELL:
        return "finished"
    if is_dead(one):
        return "gone"
    return "unknown"
