"""Labels as bytes: what cannot be sent, and what is refused on arrival."""

import json

import numpy as np
import pytest

from mtcd.core.errors import DataError, WireError
from mtcd.federation.participant.labels import (
    LONGEST_CHARACTERS,
    labels_from_bytes,
    labels_to_bytes,
)


@pytest.mark.parametrize("label", ["", "x" * (LONGEST_CHARACTERS + 1)])
def test_a_label_that_nobody_would_accept_is_not_sent(label: str) -> None:
    longest = np.array(["x" * LONGEST_CHARACTERS, "no"])
    found, _ = labels_from_bytes(labels_to_bytes(longest), 2)
    assert found.tolist() == longest.tolist()
    with pytest.raises(DataError, match=f"empty, or longer than {LONGEST_CHARACTERS} letters"):
        labels_to_bytes(np.array([label, "no"]))


@pytest.mark.parametrize("numbers", [[1.0, np.nan], [np.inf, 1.0], [2.0, 2.0]])
def test_labels_from_which_nothing_can_be_learned_are_refused(numbers: list[float]) -> None:
    """The error tells none of them."""
    content = json.dumps({"kind": "f"}).encode() + b"\n" + np.array(numbers).tobytes()
    with pytest.raises(WireError, match="are not finite numbers or texts, at least two") as told:
        labels_from_bytes(content, 2)
    assert not any(word in str(told.value) for word in ("nan", "inf", "2.0"))
