"""Settings of privacy on their limits, and just beyond them."""

from __future__ import annotations

import math
from typing import Any

import pytest

from mtcd.core.errors import ConfigError
from mtcd.privacy.settings import DP

JUST_ABOVE = 1.0 + 1e-12


@pytest.mark.parametrize(
    ("allowed", "refused", "said"),
    [
        ({"epsilon": 100.0}, {"epsilon": 100.0 * JUST_ABOVE}, "promises nothing"),
        ({"epsilon": 5e-324}, {"epsilon": 0.0}, "privacy.dp.epsilon must be above 0"),
        (
            {"parties": {"bank": 100.0}},
            {"parties": {"bank": 100.0 * JUST_ABOVE}},
            "promises nothing",
        ),
        ({"parties": {"bank": 5e-324}}, {"parties": {"bank": 0.0}}, "of 'bank' must be above 0"),
        ({"delta": math.nextafter(1.0, 0.0)}, {"delta": 1.0}, "must be below 1, but is 1"),
        ({"delta": 5e-324}, {"delta": 0.0}, "privacy.dp.delta must be above 0"),
        ({"clip": 1e3}, {"clip": 1e3 * JUST_ABOVE}, "choose one from 0.001 to 1000"),
        ({"clip": 1 / 1e3}, {"clip": 1e-3 / JUST_ABOVE}, "choose one from 0.001 to 1000"),
        ({"clip": 1.0}, {"clip": 0.0}, "privacy.dp.clip must be above 0"),
        ({"stepsize": 5e-324}, {"stepsize": 0.0}, "privacy.dp.stepsize must be above 0"),
        ({"tours": 1}, {"tours": 0}, "privacy.dp.tours must be 1 or more"),
    ],
)
def test_budgets(allowed: dict[str, Any], refused: dict[str, Any], said: str) -> None:
    made = DP(**{"epsilon": 1.0, **allowed})
    for name, value in allowed.items():
        assert getattr(made, name) == value
    with pytest.raises(ConfigError, match=said):
        DP(**{"epsilon": 1.0, **refused})
