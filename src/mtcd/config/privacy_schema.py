"""The section ``privacy`` of a config."""

from __future__ import annotations

from typing import Literal

from mtcd.config.section import Section


class PrivacySection(Section):
    """What parties may learn of each other in training: see mtcd.Privacy."""

    mode: Literal["open", "sealed"] = "open"
    """`open`: every party reads the tokens that visit it, and the labels. `sealed`: the token is encrypted, and a
    party learns its own gradients only; `mtcd` (the server keeps the key) or `stcd` (the label holder does) with
    `walk: tour`, for `ridge`, `linear` and `logistic` without l1"""
    aggregation: Literal["plain", "masked"] = "plain"
    """`plain`: the server reads what each client uploads at a sync. `masked`: it learns the sum only; `svfl`, and
    `mtcd` with `batch`, `combine: average` or `combine: cluster`, with 3 clients or more
    ([privacy.md](privacy.md#masked-aggregation))"""
