"""Where and how a split network computes: what is allowed, and what is refused."""

from typing import Any

import pytest

pytest.importorskip("torch")
from mtcd.core.errors import ConfigError
from mtcd.training.compute import PRECISIONS, Compute


@pytest.mark.parametrize(
    "given",
    [
        *({"graphs": graphs} for graphs in (True, False, "auto")),
        *({"device": device} for device in ("auto", "cpu", "cuda", "cuda:1")),
        *({"precision": precision} for precision in PRECISIONS),
        *({"threads": threads} for threads in (None, 1, 7)),
    ],
    ids=str,
)
def test_what_is_allowed(given: dict[str, Any]) -> None:
    made = Compute(**given)
    assert {name: getattr(made, name) for name in given} == given


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"graphs": "yes"}, "compute.graphs is true, false or 'auto', but is 'yes'"),
        ({"graphs": None}, "but is None"),
        ({"device": "gpu"}, "compute.device is 'auto', 'cpu', 'cuda' or 'cuda:N', but is 'gpu'"),
        ({"device": 0}, "but is 0"),
        ({"precision": "ful"}, "did you mean 'full'"),
        ({"threads": 0}, "compute.threads"),
        ({"threads": 1.5}, "compute.threads"),
    ],
    ids=str,
)
def test_what_is_refused(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        Compute(**given)
