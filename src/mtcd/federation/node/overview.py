"""One overview of the whole federation, from the answers of all parties to the operator."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from mtcd.federation.kit_schema import KitConfig
from mtcd.federation.node.answers import read_status
from mtcd.ledger.costs import Costs
from mtcd.ledger.ledger import Ledger

NOT_REACHED, NOT_READABLE, ENDED = "not reached", "not readable", "ended"


def summarise(
    config: KitConfig, answers: Mapping[str, Any], before: Mapping[str, Any] = MappingProxyType({})
) -> dict[str, Any]:
    """Merge the answers of all parties: which are up, the locations of the tokens, progress and cost.

    Parties exit after the end. That a party has ended is known from the other parties, and from the answers
    ``before``.
    """
    checked = {name: read_status(answer) for name, answer in answers.items()}
    reported = {name: one for name, one in before.items() if one["phase"] == ENDED}
    reported |= {name: one for name, one in checked.items() if one is not None}
    ended = {name for one in reported.values() for name in one.get("heard_end", ())}
    trained = [one for one in reported.values() if "ledger" in one]
    ledger = Ledger.total(Ledger(**one["ledger"]) for one in trained)
    costs = Costs(**config.costs.model_dump())
    latest = max(trained, key=lambda one: one["iteration"], default=None)
    known = [one for one in trained if one.get("objective") is not None]
    return {
        "federation": config.federation,
        "parties": {name: reported.get(name, {"phase": _silent(name, answers, ended)}) for name in config.peers},
        "tokens": _places(reported),
        "iteration": None if latest is None else latest["iteration"],
        "syncs": max((one["syncs"] for one in trained), default=None),
        "hops": ledger.hops,
        "objective": None if not known else max(known, key=lambda one: one["iteration"])["objective"],
        "gap": _gap([reported[name] for name in config.parties if name in reported], len(config.parties)),
        "cost": costs.total(ledger),
        "cost_per": costs.both(ledger),
        "status": next((one["ended"] for one in trained if one["ended"]), None),
    }


def _silent(name: str, answers: Mapping[str, Any], ended: set[str]) -> str:
    """The phase of a party without a valid answer."""
    return NOT_READABLE if name in answers else ENDED if name in ended else NOT_REACHED


def _gap(parties: list[dict[str, Any]], count: int) -> float | None:
    """A bound on (f - f*)/|f|, the sum of the parts that the parties report as of their last visits."""
    parts: list[float] = [one["gap_part"] for one in parties if one.get("gap_part") is not None]
    known = [one["objective"] for one in parties if one.get("objective")]
    return max(sum(parts), 0.0) / abs(min(known)) if known and len(parts) == count else None


def _places(reported: dict[str, Any]) -> dict[str, str]:
    """The party that each token visited last."""
    last: dict[int, tuple[tuple[int, int], str]] = {}
    for name, one in reported.items():
        for token in one.get("tokens", []):
            seen = (token["sync"], token["hop"]), name
            last[token["token"]] = max(last.get(token["token"], ((-1, -1), "")), seen)
    return {str(index): name for index, (_, name) in sorted(last.items())}
