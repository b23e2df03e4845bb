"""PromQL in files that others run: parsed by a parser of its own, and which metrics and labels it
names."""

from typing import Any

import promql_parser

GRAFANA = {"$__rate_interval": "5m", "$job": "clinics", "$party": ".*"}
SCRAPED = {"up", "scrape_duration_seconds"}  # Prometheus adds these itself
TARGET_LABELS = {"job", "instance", "le"}


def selectors(expression: str) -> dict[str, set[str]]:
    """The metrics of an expression, with the labels that its selectors match; an error if it is no
    PromQL."""
    for variable, value in GRAFANA.items():
        expression = expression.replace(variable, value)
    found: dict[str, set[str]] = {}
    _walk(promql_parser.parse(expression), found)
    return found


def _walk(expression: Any, found: dict[str, set[str]]) -> None:
    if isinstance(expression, promql_parser.VectorSelector):
        labels = {matcher.name for matcher in expression.matchers.matchers}
        found.setdefault(expression.name, set()).update(labels)
    for attribute in ("lhs", "rhs", "expr", "args", "vector_selector"):
        inner = getattr(expression, attribute, None) or ()
        for one in inner if isinstance(inner, list | tuple) else (inner,):
            _walk(one, found)
