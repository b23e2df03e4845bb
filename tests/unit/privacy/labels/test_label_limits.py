"""Settings and draws of labels on their limits, and just beyond them."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from mtcd.core.errors import ConfigError, DataError
from mtcd.models.losses.logistic import Logistic
from mtcd.privacy.labels import mechanisms
from mtcd.privacy.labels.corrected import check_shares
from mtcd.privacy.labels.mechanisms import ONE, noisy_places, responses, threshold
from mtcd.privacy.labels.networks import CorrectedCrossEntropy
from mtcd.privacy.labels.settings import LabelDP, check_bounded
from mtcd.privacy.labels.soft import SoftLabels
from mtcd.privacy.settings import LabelSource

ABOVE_1 = math.nextafter(1.0, 2.0)


@pytest.mark.parametrize(
    ("kind", "allowed", "refused", "said"),
    [
        (LabelDP, {"epsilon": 100.0}, {"epsilon": 100.0 * ABOVE_1}, "use at most 100"),
        (LabelDP, {"epsilon": 5e-324}, {"epsilon": 0.0}, "epsilon must be above 0"),
        (SoftLabels, {"soft": 1.0}, {"soft": ABOVE_1}, "use at most 1"),
        (SoftLabels, {"soft": 5e-324}, {"soft": 0.0}, "soft must be above 0"),
    ],
)
def test_noise(kind: Any, allowed: dict[str, Any], refused: dict[str, Any], said: str) -> None:
    kind(**allowed)
    with pytest.raises(ConfigError, match=said):
        kind(**refused)


@pytest.mark.parametrize(
    ("made", "given"), [(LabelDP, {"epsilon": 1.0}), (SoftLabels, {"soft": 0.125})]
)
def test_ranges_and_classes(made: Any, given: dict[str, Any]) -> None:
    assert made(**given, range=[1, math.nextafter(1.0, 2.0)]).range == (1.0, ABOVE_1)
    for pair in ([1, 1], [2, 1], [1], [1, 2, 3], [1, math.inf], "12", [False, 1]):
        with pytest.raises(ConfigError, match="the lowest and the highest label"):
            made(**given, range=pair)

    assert made(**given, classes=["no", "yes"]).classes == ("no", "yes")
    for classes in (["no"], ["no", "no"], "no", []):
        with pytest.raises(ConfigError, match="two different classes or more"):
            made(**given, classes=classes)
    with pytest.raises(ConfigError, match="all be texts, or all be numbers"):
        made(**given, classes=["no", 1])


def test_the_least_number_of_classes() -> None:
    labels = LabelDP(20.0, insecure_seeded_draws=True)
    released = labels.released(np.array([0.0, 1.0] * 10), LabelSource())
    assert set(released) == {0.0, 1.0}
    with pytest.raises(DataError, match="All labels are the same"):
        labels.released(np.zeros(20), LabelSource())

    loss = CorrectedCrossEntropy(1.0)
    numbers = torch.tensor([0, 1, 1])
    assert torch.isfinite(loss(torch.zeros(3, 2), numbers))
    with pytest.raises(ConfigError, match="an output for every class"):
        loss(torch.zeros(3, 1), torch.zeros(3, dtype=torch.int64))


def test_a_class_needs_a_share_of_the_samples() -> None:
    check_shares(np.array([[0.5, 0.5], [0.25, 0.75]]), "x")
    check_shares(np.array([1.5, -0.5]), "x")
    for shares in ([0.0, 0.0], [1.0, 1.0], [-0.5, 0.5], [1.5, 0.5]):
        with pytest.raises(DataError, match="leave no share"):
            check_shares(np.array(shares), "x")


def test_the_corrected_loss_needs_l2() -> None:
    check_bounded(SimpleNamespace(l2_weight=5e-324))
    check_bounded(SimpleNamespace(l2_weight=None))
    with pytest.raises(ConfigError, match="model.l2 must be above 0"):
        check_bounded(SimpleNamespace(l2_weight=0.0))
    with pytest.raises(ConfigError, match="model.parties.bank.l2 must be above 0"):
        check_bounded(SimpleNamespace(parties={"bank": {"l2": 0}}))


@pytest.mark.parametrize("classes", [2, 5])
def test_a_label_is_kept_for_words_below_the_threshold(classes: int) -> None:
    """So many words of 2^53: the word on the threshold is not one of them."""
    limit = threshold(1.0, classes)
    drawn = np.array([limit - 1, limit, 0, 0], np.uint64)
    kept, changed = responses(np.array([0, 0]), classes, 1.0, drawn)
    assert (kept, changed) == (0, 1)


def test_bits_of_noise_are_set_for_words_below_their_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words on the share of a bit leave it 0, in the one number and in the other."""
    rate = 1.0 * (1.0 - mechanisms.MARGIN) / 4

    def share(purpose: str) -> int:
        odds = math.exp(-rate * 2.0 ** int(purpose.rpartition(" ")[2]))
        return int(odds / (1.0 + odds) * ONE)

    def noise(below_of: str) -> Any:
        def words(secret: bytes, purpose: str, count: int) -> Any:
            return np.full(count, share(purpose) - (below_of in purpose), np.uint64)

        monkeypatch.setattr(mechanisms, "words", words)
        return noisy_places(np.array([2]), 4, 1.0, b"", "of").tolist()

    beyond = math.ceil(mechanisms.TAIL / rate)
    assert noise("nothing") == [2]
    # all bits set: beyond what is not cut off
    assert noise("up") == [4 + beyond]
    assert noise("down") == [-beyond]


@pytest.mark.parametrize("made", [LabelDP(1.0), SoftLabels(0.125)])
def test_every_class_needs_a_share_where_there_is_an_intercept(made: Any) -> None:
    """A model that knows nothing of intercepts has none."""
    about = {"class_weight": None, "l2_weight": 1.0}
    for more, needed in (({}, False), ({"intercept": False}, False), ({"intercept": True}, True)):
        model = SimpleNamespace(**about, **more)
        assert made.corrected(Logistic(), model).needs_shares == needed
