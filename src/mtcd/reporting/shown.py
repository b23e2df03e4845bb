"""What a report says in words and rows: facts of a run, its ledger, its largest coefficients."""

from __future__ import annotations

import math
from collections import Counter
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
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    return value


def facts(record: RunRecord) -> list[list[str]]:
    """Labels and values: the settings that matter most, and the last measurement."""
    # label, value and format; what is None is not known, or does not apply
    known: list[tuple[str, Any, str]] = [
        ("method", record.method, ""),
        ("step size", record.stepsize, ".6g"),
        ("clients", len(record.clients) or None, ","),
    ]
    # other methods have no tokens
    if record.trace is not None and record.trace.tokens and record.ledger.hops:
        known.append(("tokens", record.trace.tokens, ","))
    if record.history:
        last = record.history[-1]
        known += [
            ("objective", last.objective, ".8g"),
            ("gap", last.gap, ".3g"),
            ("iterations", last.iteration, ","),
            ("epochs", last.epoch, "g"),
            ("hops", last.hops, ","),
            ("syncs", last.syncs, ","),
            ("cost", last.cost, ",.6g"),
            ("seconds of training", last.seconds, ".3g"),
        ]
        for name, value in _metrics(record).items():
            known.append((name.replace("_", " "), value, ".6g"))
    return [[label, format(value, how)] for label, value, how in known if value is not None]


def _metrics(record: RunRecord) -> dict[str, float | None]:
    """The latest value of each metric: it is not in every measurement."""
    last = record.history[-1]
    # of split networks, which know them at every measurement
    latest: dict[str, float | None] = {
        "accuracy": last.accuracy,
        "test_accuracy": last.test_accuracy,
    }
    for row in record.history:
        latest |= row.metrics
    return latest


def ledger_rows(record: RunRecord) -> list[list[str]]:
    """The ledger as labels and values: both accounts, by kind of link."""
    ledger, costs = record.ledger, record.costs
    rows = []
    for account in get_args(Account):
        messages = ledger.messages(account)
        sizes = ledger.bytes(account)
        for link in LINKS:
            if messages[link]:
                sent = f"{_counted(messages[link])}, {filesize.decimal(sizes[link])}"
                rows.append([f"{account}, {LINK_NAMES[link]}", sent])
        rows.append([f"{account}, cost per {costs.per}", f"{costs.total(ledger, account):,.6g}"])

    rows.append(["hops of all tokens", f"{ledger.hops:,}"])
    rows.append(["hops charged, but not sent", f"{ledger.unsent_hops:,}"])
    if ledger.unchanged:
        rows.append(["hops that changed nothing", f"{ledger.unchanged:,}"])

    rows.append(["bytes of a number", str(ledger.float_bytes)])
    rows.append(["price of a message with the server, in hops", f"{costs.ratio:g}"])
    return rows


def _counted(messages: int) -> str:
    if messages == 1:
        return "1 message"
    return f"{messages:,} messages"


def coefficients(
    rows: Sequence[Mapping[str, Any]], importance: Sequence[Mapping[str, Any]] = ()
) -> list[dict[str, Any]]:
    """The largest coefficients by absolute value, as trained: those of scaled columns can be
    compared. Of trees, the largest shares of columns in the gain of all splits.
    """
    rows = [*rows, *({**row, TRAINED: row["share"]} for row in importance)]
    found: list[tuple[float, int, str, str, float]] = []
    for number, row in enumerate(rows):
        if not row["client"]:  # the intercept, which is nobody's
            continue
        for name in row:
            if name.startswith(TRAINED):
                value = float(row[name])
                # 'scaled_coefficient_b' is that of class b
                of_class = name.removeprefix(TRAINED).replace("_", ", ", 1)
                if math.isfinite(value):
                    # equal ones in the order of their rows
                    key = (abs(value), -number)
                    found.append((*key, row["client"], row["column"] + of_class, value))

    taken: Counter[str] = Counter()
    shown = []
    for _, _, client, column, value in sorted(found, reverse=True):
        taken[client] += 1
        if taken[client] <= EACH:
            shown.append({"client": client, "column": column, "value": value})
    return shown[:ALL]
