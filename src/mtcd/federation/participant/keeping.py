"""The results of a run at a party, or at the server: a summary, and the party's block of the
model."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mtcd.core.errors import MtcdError
from mtcd.core.files import plain
from mtcd.core.version import VERSION
from mtcd.federation.credentials.private_files import write_files
from mtcd.federation.participant.kinds import Block
from mtcd.protocol.ledger.costs import Costs
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.training.divergence import DIVERGED
from mtcd.training.plateau import PLATEAU

SUMMARY = "summary.json"
METRICS = "metrics.json"
OWN_METRICS = "own_metrics.json"
"""At the label holder: those on labels that nobody else may know."""
FORMAT = 1
STOPPED = "stopped"  # by the operator


@dataclass(frozen=True)
class Summary:
    """The summary of a run at one party. ``ledger`` counts what this party sent; ``objective`` is
    None if unknown."""

    federation: str
    party: str
    status: str
    method: str
    stepsize: float
    iterations: int
    syncs: int
    ledger: Ledger
    costs: Costs
    seconds: float | None = None
    objective: float | None = None
    notes: tuple[str, ...] = ()
    metrics: Mapping[str, float] = field(default_factory=dict)
    """Metrics at a party that knows labels and aggregate of the end: 'train_auc', with a hold-out
    'test_auc', ..."""
    unjudged: str = ""
    """What could not be evaluated after the end, why, and what to do: whether the training has
    diverged, or held-out samples. Empty if nothing is missing."""

    @property
    def message(self) -> str:
        """The status in a sentence, and a warning if it is unknown whether the training has
        diverged."""
        # A run that has diverged needs no warning that this is unknown.
        if self.unjudged and self.status != DIVERGED:
            return f"{self._ended} {self.unjudged}"
        return self._ended

    @property
    def _ended(self) -> str:
        after = f"after {self.iterations} iterations and {self.syncs} syncs"
        if self.status == DIVERGED:
            return (
                f"Diverged {after}: the stepsize of {self.stepsize:.4g} is too large. No block is "
                "kept. Train again with a smaller method.stepsize in the federation file, or with "
                "auto."
            )
        if self.status == STOPPED:
            return f"Stopped by the operator {after}; the block is that of this moment."
        if self.status == PLATEAU:
            return f"Stopped on a plateau {after}."
        return f"Stopped at the limit of {self.status} {after}."

    def diverged(self) -> Summary:
        """The same summary with the status diverged."""
        # Metrics of parameters that overflowed would be numbers that mean nothing.
        return replace(self, status=DIVERGED, metrics={})

    def to_dict(self) -> dict[str, Any]:
        """The summary as plain values, for JSON."""
        # JSON has no infinity.
        known = self.objective is not None and math.isfinite(self.objective)
        return {
            "format": FORMAT,
            "version": VERSION,
            "federation": self.federation,
            "party": self.party,
            "status": self.status,
            "message": self.message,
            "method": self.method,
            "stepsize": self.stepsize,
            "iterations": self.iterations,
            "syncs": self.syncs,
            "objective": self.objective if known else None,
            "metrics": dict(self.metrics),
            "seconds": self.seconds,
            "ledger": self.ledger.to_dict(),
            "cost": self.costs.total(self.ledger),
            "cost_per": self.costs.both(self.ledger),
            "costs": self.costs.to_dict(),
            "notes": list(self.notes),
            "unjudged": self.unjudged,
        }


def keep_block(
    folder: Path, summary: Summary, block: Block | None, stale: Sequence[str]
) -> Summary:
    """Write the block and the summary; returns the summary as written.

    If the block is not finite, the training diverged, whatever the status of the run.

    Parameters
    ----------
    folder
        The run folder.
    summary
        The summary of the run.
    block
        The block of this party; None at a server that has none.
    stale
        The names of the files of a block: what an earlier run has left is removed where none is
        written.
    """
    # NaN in a block is divergence even if no rule has seen it: the objective is not known
    # everywhere.
    if block is not None and not block.finite:
        summary = summary.diverged()
    # A block of an earlier run in this folder must not be taken for the result of this one.
    if block is None or summary.status == DIVERGED:
        for name in stale:
            (folder / name).unlink(missing_ok=True)
        keep_run(folder, summary, {})
    else:
        keep_run(folder, summary, block.files())
    return summary


def keep_run(folder: Path, summary: Summary, files: Mapping[str, bytes]) -> None:
    """Write these files and the summary, readable by their owner only. The summary is written
    last."""
    # `summary.json` says that the run has ended well: a crash before it leaves a folder without a
    # summary, and the run is resumed.
    text = json.dumps(summary.to_dict(), indent=1, allow_nan=False, default=plain) + "\n"
    write_files(folder, {**files, SUMMARY: text.encode()}, private=True)


def keep_metrics(folder: Path, metrics: Mapping[str, float], name: str = METRICS) -> None:
    """Write the metrics of the end, before the summary, so that they survive a restart."""
    text = json.dumps(dict(metrics), indent=1, allow_nan=False) + "\n"
    write_files(folder, {name: text.encode()}, private=True)


def read_metrics(folder: Path) -> dict[str, float]:
    """The metrics that were kept in a run folder; none if there are none, or if they cannot be
    read."""
    try:
        found = {}
        for name, value in json.loads((folder / METRICS).read_text()).items():
            found[str(name)] = float(value)
        return found
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def read_summary(folder: Path) -> Summary:
    """Read the summary of a run folder."""
    path = folder / SUMMARY
    try:
        stored = json.loads(path.read_text())
        if stored["format"] != FORMAT:
            raise ValueError(
                f"its format is {stored['format']}, but this version of mtcd reads {FORMAT}"
            )
        same = (
            "federation",
            "party",
            "status",
            "method",
            "stepsize",
            "iterations",
            "syncs",
            "seconds",
            "objective",
        )
        return Summary(
            **{name: stored[name] for name in same},
            ledger=Ledger(**stored["ledger"]),
            costs=Costs(**stored["costs"]),
            notes=tuple(stored["notes"]),
            metrics=stored.get("metrics", {}),
            unjudged=stored.get("unjudged", ""),
        )
    except FileNotFoundError:
        raise MtcdError(
            f"There is no {SUMMARY} in {folder}: its run has not ended, or this is not its folder."
        ) from None
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise MtcdError(f"{path} cannot be read ({type(error).__name__}: {error}).") from None
