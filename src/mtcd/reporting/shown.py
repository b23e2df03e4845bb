"""What a report says in words and rows: facts of a run, its ledger, its largest coefficients."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from rich import filesize

from mtcd.protocol.ledger.ledger import LINKS, Account
from mtcd.reporting.record import RunRecord

EACH, ALL = 10, 200
"""The most coefficients shown of a client, and in all."""
DIGITS = 9
"""Of numbers in a report: all 17 would double the size of its curves."""
TRAINED = "scaled_coefficient"
LINK_NAMES = {
    "client_client": "between clients",
    "uplink": "to the server",
    "downlink": "from the server",
}


def finite(value: Any) -> Any:
    """The number, with as many digits as a page can show, or None where it is none that JSON
    knows."""
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def facts(record: RunRecord) -> list[list[str]]:
    """Labels and values: the settings that matter most, and the last measurement."""
    known: list[tuple[str, str | None]] = [
        ("method", record.method),
        ("step size", None if record.stepsize is None else f"{record.stepsize:.6g}"),
        ("clients", f"{len(record.clients):,}" if record.clients else None),
    ]
    # other methods have no tokens
    if record.trace is not None and record.trace.tokens and record.ledger.hops:
        known.append(("tokens", f"{record.trace.tokens:,}"))
    if record.history:
        last = record.history[-1]
        known += [
            ("objective", f"{last.objective:.8g}"),
            ("gap", None if last.gap is None else f"{last.gap:.3g}"),
            ("iterations", f"{last.iteration:,}"),
            ("epochs", None if last.epoch is None else f"{last.epoch:g}"),
            ("hops", f"{last.hops:,}"),
            ("syncs", f"{last.syncs:,}"),
            ("cost", f"{last.cost:,.6g}"),
            ("seconds of training", f"{last.seconds:.3g}"),
            *((name.replace("_", " "), f"{value:.6g}") for name, value in _metrics(record)),
        ]
    return [[label, value] for label, value in known if value is not None]


def _metrics(record: RunRecord) -> list[tuple[str, float]]:
    """The latest value of each metric: it is not in every measurement."""
    latest = {name: value for row in record.history for name, value in row.metrics.items()}
    learnt = {name: getattr(record.history[-1], name) for name in ("accuracy", "test_accuracy")}
    return list(
        ({name: value for name, value in learnt.items() if value is not None} | latest).items()
    )


def ledger_rows(record: RunRecord) -> list[list[str]]:
    """The ledger as labels and values: both accounts, by kind of link."""
    ledger, costs = record.ledger, record.costs
    rows = []
    for account in get_args(Account):
        messages = ledger.messages(account)
        sizes = ledger.bytes(account)
        rows += [
            [
                f"{account}, {LINK_NAMES[link]}",
                f"{_counted(messages[link])}, {filesize.decimal(sizes[link])}",
            ]
            for link in LINKS
            if messages[link]
        ]
        rows.append([f"{account}, cost per {costs.per}", f"{costs.total(ledger, account):,.6g}"])
    rows += [
        ["hops of all tokens", f"{ledger.hops:,}"],
        ["hops charged, but not sent", f"{ledger.unsent_hops:,}"],
        *([["hops that changed nothing", f"{ledger.unchanged:,}"]] if ledger.unchanged else []),
        ["bytes of a number", str(ledger.float_bytes)],
        ["price of a message with the server, in hops", f"{costs.ratio:g}"],
    ]
    return rows


def _counted(messages: int) -> str:
    return f"{messages:,} message{'' if messages == 1 else 's'}"


def coefficients(
    rows: Sequence[Mapping[str, Any]], importance: Sequence[Mapping[str, Any]] = ()
) -> list[dict[str, Any]]:
    """The largest coefficients by absolute value, as trained: those of scaled columns can be
    compared. Of trees, the largest shares of columns in the gain of all splits.
    """
    rows = [*rows, *({**row, TRAINED: row["share"]} for row in importance)]
    found = [
        (
            abs(value),
            -number,
            row["client"],
            row["column"] + name.removeprefix(TRAINED).replace("_", ", ", 1),
            value,
        )
        for number, row in enumerate(rows)
        if row["client"]
        for name in row
        if name.startswith(TRAINED) and math.isfinite(value := float(row[name]))
    ]
    left: dict[str, int] = {}
    shown = []
    for _, _, client, column, value in sorted(found, reverse=True):
        left[client] = left.get(client, EACH) - 1
        if left[client] >= 0:
            shown.append({"client": client, "column": column, "value": value})
    return shown[:ALL]
