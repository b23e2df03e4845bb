"""A whole federation on the report page: what the parties tell the operator, collected while it is
watched.

Parties report the last visit of each token. Of these, the passes that are certain are shown: two
visits of a token of which one follows the other directly. Passes between two looks are not known,
and count in the total only.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

from mtcd.core.version import VERSION
from mtcd.federation.credentials.bundle_schema import BundleConfig, settings_yaml
from mtcd.federation.names import SERVER
from mtcd.federation.node.overview import UP, WELL, in_words, is_dead
from mtcd.protocol.ledger.costs import Costs
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.protocol.party import SERVER as SERVER_NUMBER
from mtcd.reporting.document import MOST_POINTS, X_AXES, make_report
from mtcd.reporting.record import RUNNING, RunRecord
from mtcd.reporting.shown import finite
from mtcd.reporting.trace.trace import Trace

MOST_LOOKS = 500
"""Looks whose passes are shown."""
MOST_TOKENS = 1000
KEPT = ("objective", "syncs")
"""What is shown of a run that has ended as it was known last."""
COLUMNS = ("iteration", "hops", "cost", "bytes", "seconds", "gap", "objective")


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
        self._numbers = {name: k for k, name in enumerate(config.parties)} | {SERVER: SERVER_NUMBER}
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
        if runs and self._run not in (None, *runs):
            self._begin(runs[0])
        self._run = self._run or (runs[0] if runs else None)
        visits = [
            self._ledgers[name].hops if name in self._ledgers else 0 for name in self.config.parties
        ]
        self._ledgers |= {
            name: Ledger(**one["ledger"]) for name, one in parties.items() if "ledger" in one
        }
        ledger = Ledger.total(self._ledgers.values())
        sent = {"hops": ledger.hops, "cost": self._costs.total(ledger)}
        reached = [
            n
            for n in (summary["iteration"], *(row["iteration"] for row in self._rows[-1:]))
            if n is not None
        ]
        self._last |= {name: summary[name] for name in KEPT if summary[name] is not None}
        # also where nobody answers any more
        summary = {**summary, **self._last, **sent, "iteration": max(reached, default=None)}
        row = {name: summary.get(name) for name in COLUMNS}
        row |= {
            "seconds": round(seconds, 3),
            "bytes": sum(ledger.bytes(self._costs.account).values()),
        }
        if row["iteration"] is not None and (
            not self._rows or row["iteration"] > self._rows[-1]["iteration"]
        ):
            self._rows.append(row)
            if len(self._rows) > MOST_POINTS:
                self._rows = self._rows[::2]
        if passes := sorted(
            self._passes(parties, seconds), key=lambda one: (one.seconds, one.iteration)
        ):
            self._looks.append(passes)
            self._visits.append(visits)
        for one in parties.values():
            for token in one.get("tokens", ()):
                self._hops[token["token"]] = max(
                    self._hops.get(token["token"], 0), self._iteration(token)
                )
        self._document = make_report(
            [self._record(summary, ledger)], "federation", self._title, VERSION
        )
        self._document["runs"][0] |= self._own_parts(summary)

    def document(self) -> dict[str, Any]:
        """The document as of the last overview."""
        return self._document

    @property
    def _title(self) -> str:
        return f"mtcd: federation {self.config.federation}"

    def _record(self, summary: Mapping[str, Any], ledger: Ledger) -> RunRecord:
        phases = {name: one["phase"] for name, one in summary["parties"].items()}
        trains = "training" in phases.values()
        up = sum(phase in UP for phase in phases.values())
        well = all(phase in WELL for phase in phases.values())
        missing = [name for name, phase in phases.items() if phase not in WELL]
        over = well and not trains and "opening" not in phases.values()
        at = "" if summary["iteration"] is None else f" Iteration {summary['iteration']:,}."
        if over:
            ends = summary["status"] or "ended"
        elif "opening" in phases.values():
            ends = "opening"
        else:
            ends = "no answer"
        return RunRecord(
            name=self.config.federation,
            status=RUNNING if trains else ends,
            message=f"{self._attendance(phases, up, over)}{at}",
            method=self.config.method.kind,
            stepsize=None,
            history=(),
            ledger=ledger,
            costs=self._costs,
            notes=[
                f"Not up, or failed, and counted as of their last answers: {', '.join(missing)}."
            ]
            if missing
            else [],
            yaml=self._settings,
            trace=replace(self._network),
            clients=self.config.parties,
        )

    def _attendance(self, phases: Mapping[str, str], up: int, over: bool) -> str:
        """How many members answer, or that the run has ended for all."""
        if over:
            return f"The run has ended, and all {len(phases)} members know."
        return f"{up} of {len(phases)} members answer."

    def _own_parts(self, summary: Mapping[str, Any]) -> dict[str, Any]:
        parties = summary["parties"]
        shown = {
            "objective": ".8g",
            "gap": ".3g",
            "iteration": ",",
            "hops": ",",
            "syncs": ",",
            "cost": ",.6g",
        }
        facts = [["run", self._run or "not agreed yet"], ["method", self.config.method.kind]]
        facts += [
            [name, format(summary[name], how)]
            for name, how in shown.items()
            if summary[name] is not None
        ]
        facts += [[name, in_words(one)] for name, one in parties.items() if name == SERVER]
        rows = self._rows
        known = {name: [finite(one[name]) for one in rows] for name in COLUMNS}
        known = {
            name: column
            for name, column in known.items()
            if any(value is not None for value in column)
        }
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
        phase = one["phase"]
        gone = "finished"
        if phase not in WELL:
            gone = "gone" if is_dead(one) else "unknown"
        waits = phase == "opening" or bool(one.get("waiting_for"))
        return {
            "name": name,
            "cluster": None,
            "features": None,
            "visits": self._ledgers[name].hops if name in self._ledgers else None,
            "last_visit": max(last, default=None),
            "norm": None,
            "state": ("waiting" if waits else "up") if phase in ("opening", "training") else gone,
            "detail": ". Waits for: ".join(
                filter(None, [in_words(one), ", ".join(one.get("waiting_for", ()))])
            ),
        }

    def _iteration(self, token: Mapping[str, Any]) -> int:
        return int(token["sync"] * self._hops_per_sync + token["hop"])

    def _passes(self, parties: Mapping[str, Any], now: float) -> Iterator[Pass]:
        """The passes that are certain and were not seen before."""
        visits: dict[int, list[tuple[int, int, bool, str, Mapping[str, Any]]]] = {}
        for name, one in parties.items():
            for token in one.get("tokens", ()):
                if token["token"] < MOST_TOKENS:
                    own = visits.setdefault(token["token"], [])
                    own.append((token["sync"], token["hop"], name == SERVER, name, token))
        for index, seen in visits.items():
            for before, after in pairwise(sorted(seen, key=lambda visit: visit[:4])):
                certain = before[0] == after[0] and after[1] - before[1] <= 1
                if certain and after[:2] > self._latest.get(index, (-1, -1)):
                    self._latest[index] = after[:2]
                    ends = (self._numbers[before[3]], self._numbers[after[3]])
                    when = max(0.0, now - after[4]["seconds_ago"])
                    yield Pass(index, *ends, self._iteration(after[4]), round(when, 3))

    def _trace(self, hops: int) -> dict[str, Any] | None:
        passes = [one for look in self._looks for one in look]
        if not passes:
            return None
        windows = []
        start = 0
        for look in self._looks:
            windows.append([start, start + len(look)])
            start += len(look)
        columns = {name: [getattr(one, name) for one in passes] for name in Pass._fields}
        tokens = 1 + max(columns["token"])
        whole = [self._hops.get(token, 0) for token in range(tokens)]
        known = {
            "hops": columns["iteration"],
            "all_hops": whole,
            "visits_before": list(self._visits),
        }
        return {
            **columns,
            "tokens": tokens,
            "total": max(hops, len(passes)),
            "windows": windows,
            **known,
        }
