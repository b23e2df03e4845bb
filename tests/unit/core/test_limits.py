"""Limits of settings and of numbers: what is on a limit, and what is just beyond it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mtcd.core.checks import check_number, check_whole
from mtcd.core.errors import ConfigError, DataError, listing
from mtcd.core.fixed_point import NARROW, WIDE, FixedPoint
from mtcd.core.workers.processes import Backend


@pytest.mark.parametrize(
    ("value", "least", "said"),
    [
        (1, 1, None),
        (0, 1, "must be 1 or more, but is 0"),
        (0, 0, None),
        (-1, 0, "must be 0 or more, but is -1"),
        (2, 2, None),
        (1, 2, "must be 2 or more, but is 1"),
        (True, 1, "must be a whole number, but is True"),
        (1.0, 1, "must be a whole number, but is 1.0"),
    ],
)
def test_whole_numbers_from_the_least_on(value: Any, least: int, said: str | None) -> None:
    if said is None:
        check_whole("tokens", value, least)
        return
    with pytest.raises(ConfigError, match=f"tokens {said}"):
        check_whole("tokens", value, least)


@pytest.mark.parametrize(
    ("value", "above", "said"),
    [
        (0.0, None, None),
        (-1e-300, None, "must be 0 or more"),
        (1e-300, 0.0, None),
        (0.0, 0.0, "must be above 0, but is 0"),
        (1.0, 1.0, "must be above 1, but is 1"),
        (1.5, 1.0, None),
        (float("nan"), None, "must be a finite number"),
        (float("inf"), 0.0, "must be a finite number"),
        (False, None, "must be a number"),
        ("1", None, "must be a number"),
    ],
)
def test_numbers_from_0_or_above_a_limit(value: Any, above: float | None, said: str | None) -> None:
    if said is None:
        check_number("rate", value, above)
        return
    with pytest.raises(ConfigError, match=f"rate {said}"):
        check_number("rate", value, above)


def test_a_worker_is_the_least() -> None:
    assert Backend(workers=1).workers == 1
    with pytest.raises(ConfigError, match="workers must be 1 or more, but is 0"):
        Backend(workers=0)


@pytest.mark.parametrize(
    ("items", "limit", "shown"),
    [
        ("", 2, ""),
        ("ab", 2, "a, b"),
        ("abc", 2, "a, b and 1 more"),
        ("abcdefgh", 8, "a, b, c, d, e, f, g, h"),
    ],
)
def test_a_listing_is_cut_where_there_is_more(items: str, limit: int, shown: str) -> None:
    assert listing(items, limit) == shown


@pytest.mark.parametrize("form", [WIDE, NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize("summands", [1, 4])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_sums_stay_within_the_words(form: FixedPoint, summands: int, sign: float) -> None:
    """The largest number that is encoded can be added so often, in words that wrap around."""
    limit = form.largest / summands
    inside = np.array([0.0, sign * np.nextafter(limit, 0.0)])
    words = form.encode(inside, summands)
    total = words
    for _ in range(summands - 1):
        total = total + words
    # the same sum where nothing wraps around
    exact = summands * (words[1].item() / form.steps_per_unit)
    assert form.decode(total)[1] == exact

    on_it = np.array([0.0, sign * limit])
    assert not form.fits(on_it, summands)
    with pytest.raises(DataError, match=f"sums of {summands} numbers"):
        form.encode(on_it, summands)
