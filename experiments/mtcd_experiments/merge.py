"""Laying changes over a config, key by key."""

from __future__ import annotations

from typing import Any

from mtcd_experiments.schema import Changes

# keys that say what a section is about: with another of them, the keys of the section before mean
# nothing
DATA_KINDS = frozenset({"synthetic", "table", "dataset"})
NETWORK_KINDS = frozenset({"kind", "edges"})


def laid_over(base: Changes, *changes: Changes) -> Changes:
    """The base with each of the changes laid over it, one key of a section at a time.

    A change to another kind of data, or one that says what the network is, replaces the whole
    section.

    >>> laid_over({"network": {"kind": "erdos-renyi", "p": 0.1}, "stop": {"gap": 1}}, {"network": {"kind": "path"}})
    {'network': {'kind': 'path'}, 'stop': {'gap': 1}}
    >>> laid_over({"stop": {"gap": 1, "iterations": 5}}, {"stop": {"iterations": 9}})
    {'stop': {'gap': 1, 'iterations': 9}}
    """
    merged = dict(base)
    for change in changes:
        for name, section in change.items():
            merged[name] = _section(name, merged.get(name), section)
    return merged


def _section(name: str, before: Any, change: Any) -> Any:
    if (
        not isinstance(before, dict)
        or not isinstance(change, dict)
        or _another_kind(name, before, change)
    ):
        return change
    return {**before, **change}


def _another_kind(name: str, before: Changes, change: Changes) -> bool:
    if name == "data":
        given = DATA_KINDS & change.keys()
        return bool(given) and given != DATA_KINDS & before.keys()
    return name == "network" and bool(NETWORK_KINDS & change.keys())
