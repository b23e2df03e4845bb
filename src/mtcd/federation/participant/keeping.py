"""What a run leaves with a party, or with the server: how it ended, what was sent, and its own part of the model."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mtcd.divergence import DIVERGED
from mtcd.errors import MtcdError
from mtcd.federation.participant.block import CSV, NPZ, PartyBlock
from mtcd.federation.private_files import write_files
from mtcd.files import plain
from mtcd.ledger.costs import Costs
from mtcd.ledger.ledger import Ledger
from mtcd.version import VERSION

SUMMARY = "summary.json"
FORMAT = 1
STOPPED = "stopped"  # by the operator


@dataclass(frozen=True)
class Summary:
    """How a run ended, as one party knows it. ``ledger`` is what this party sent; ``objective`` None if not known."""

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
    unjudged: str = ""
    """Why it is not known whether the training has diverged, and what to do; empty where it is known."""

    @property
    def message(self) -> str:
        """The status in a sentence, and that it may have diverged, if nobody could tell."""
        return f"{self._ended} {self.unjudged}" if self.unjudged and self.status != DIVERGED else self._ended

    @property
    def _ended(self) -> str:
        after = f"after {self.iterations} iterations and {self.syncs} syncs"
        if self.status == DIVERGED:
            return (
                f"Diverged {after}, with a stepsize of {self.stepsize:.4g}, which is too large: no block is kept. "
                "Train again with a smaller method.stepsize in the federation file, or with auto."
            )
        if self.status == STOPPED:
            return f"Stopped by the operator {after}; the block is the one that this party held then."
        return f"Stopped at the limit of {self.status} {after}."

    def diverged(self) -> Summary:
        """The same, of a run that turns out to have diverged."""
        return replace(self, status=DIVERGED)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
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
            "seconds": self.seconds,
            "ledger": self.ledger.to_dict(),
            "cost": self.costs.total(self.ledger),
            "cost_per": self.costs.both(self.ledger),
            "costs": self.costs.to_dict(),
            "notes": list(self.notes),
            "unjudged": self.unjudged,
        }


def keep_block(folder: Path, summary: Summary, block: PartyBlock | None) -> Summary:
    """Write what a linear model leaves; the server has no block. Returns the summary as written.

    A block that is not finite diverged, whatever the run was ended by.
    """
    if block is not None and not block.finite:
        summary = summary.diverged()
    if block is None or summary.status == DIVERGED:
        for name in (NPZ, CSV):
            (folder / name).unlink(missing_ok=True)
        keep_run(folder, summary, {})
    else:
        keep_run(folder, summary, block.files())
    return summary


def keep_run(folder: Path, summary: Summary, files: Mapping[str, bytes]) -> None:
    """Write these files and the summary, for the owner's eyes only. The summary comes last: with it, all is there."""
    text = json.dumps(summary.to_dict(), indent=1, allow_nan=False, default=plain) + "\n"
    write_files(folder, {**files, SUMMARY: text.encode()}, private=True)


def read_summary(folder: Path) -> Summary:
    """How the run of a folder ended."""
    path = folder / SUMMARY
    try:
        told = json.loads(path.read_text())
        if told["format"] != FORMAT:
            raise ValueError(f"its format is {told['format']}, but this version of mtcd reads {FORMAT}")
        same = ("federation", "party", "status", "method", "stepsize", "iterations", "syncs", "seconds", "objective")
        return Summary(
            **{name: told[name] for name in same},
            ledger=Ledger(**told["ledger"]),
            costs=Costs(**told["costs"]),
            notes=tuple(told["notes"]),
            unjudged=told.get("unjudged", ""),
        )
    except FileNotFoundError:
        raise MtcdError(f"There is no {SUMMARY} in {folder}: its run has not ended, or is elsewhere.") from None
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise MtcdError(f"{path} cannot be read ({type(error).__name__}: {error}).") from None
