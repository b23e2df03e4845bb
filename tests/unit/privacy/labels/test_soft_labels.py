"""Soft labels: their noise, that it is drawn once, what is refused, and that nothing is promised."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import kstest, norm

import mtcd
from commands import run
from mtcd.core.errors import ConfigError, DataError
from mtcd.models.losses import LOSSES
from mtcd.privacy.labels.corrected import SoftLogistic
from mtcd.privacy.labels.draws import TableDraws
from mtcd.privacy.labels.mechanisms import SOFT_STEPS, soft_values
from mtcd.privacy.labels.settings import LabelDP
from mtcd.privacy.labels.soft import SoftLabels
from mtcd.privacy.settings import LabelSource

LABELS = np.random.default_rng(0).integers(0, 2, 400)
SEEDED = SoftLabels(soft=0.125, insecure_seeded_draws=True)


def source(folder: Path, name: str = "table.csv") -> LabelSource:
    path = folder / name
    path.write_text("label\n")
    return LabelSource(path, holder="bank")


def test_noise_is_normal_with_this_standard_deviation_and_without_bias() -> None:
    count = 200_000
    for value in (0.0, 1.0):
        found = soft_values(np.full(count, value), 0.0, 1.0, 0.125, b"secret", f"{value}")
        assert kstest(found - value, norm(0, 0.125).cdf).pvalue > 0.001
        assert abs(found.mean() - value) < 5 * 0.125 / np.sqrt(count)
    # the test notices a tenth more
    found = soft_values(np.zeros(count), 0.0, 1.0, 0.1375, b"secret", "wider")
    assert kstest(found, norm(0, 0.125).cdf).pvalue < 1e-6


def test_of_values_it_is_in_widths_of_the_range_which_they_are_cut_to() -> None:
    for value, expected in ((12.0, 12.0), (-5.0, 10.0), (99.0, 20.0)):
        found = soft_values(np.full(100_000, value), 10.0, 20.0, 0.1, b"secret", f"{value}")
        assert kstest(found - expected, norm(0, 1.0).cdf).pvalue > 0.001


def test_the_last_bits_do_not_tell_the_label() -> None:
    """The same noise on 0 and on 1 is the same number but for 1, and never 0 itself."""
    zeros, ones = (
        soft_values(np.full(1000, value), 0.0, 1.0, 0.125, b"secret", "same")
        for value in (0.0, 1.0)
    )
    assert (ones - 1.0 == zeros).all()
    for found in (zeros, ones):
        assert (found * SOFT_STEPS % 1 == 0.5).all()


def test_loss_and_gradient_are_unbiased() -> None:
    z = np.random.default_rng(1).standard_normal(len(LABELS))
    plain = mtcd.Glm("logistic", l2=1.0).loss
    loss = SoftLogistic(soft=0.125)
    draws = [
        soft_values(LABELS.astype(float), 0.0, 1.0, 0.125, b"secret", f"{i}") for i in range(500)
    ]
    y = LABELS.astype(float)
    values = np.array([loss.value(z, loss.encode(one)[0]) for one in draws])
    slopes = np.array([loss.gradient(z, loss.encode(one)[0]) for one in draws])
    assert abs(values.mean() - plain.value(z, y)) < 5 * values.std() / np.sqrt(len(draws))
    away = np.abs(slopes.mean(axis=0) - plain.gradient(z, y))
    assert away.max() < 6 * 0.125 / np.sqrt(len(draws))


def test_draws_are_made_once_for_a_table_and_differ_between_tables(tmp_path: Path) -> None:
    soft = SoftLabels(soft=0.125)
    first = soft.released(LABELS, source(tmp_path))
    assert (first == SoftLabels(soft=0.125).released(LABELS, source(tmp_path))).all()
    assert len(TableDraws(tmp_path / "table.csv").releases()) == 1
    assert (first != soft.released(LABELS, source(tmp_path, "copy.csv"))).all()

    # another deviation has noise of its own, not the same times a factor
    wider = SoftLabels(soft=0.25).released(LABELS, source(tmp_path))
    assert abs(np.corrcoef(first - LABELS, wider - LABELS)[0, 1]) < 0.2
    # of no file: for as long as this process runs
    memory = soft.released(LABELS, LabelSource())
    assert (memory == soft.released(LABELS, LabelSource())).all()
    assert (memory != first).all()


def test_account_and_notes_say_that_there_is_no_guarantee(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here, table = source(tmp_path), tmp_path / "table.csv"
    LabelDP(epsilon=1.0).released(LABELS, here)
    assert TableDraws(table).epsilon == 1.0
    soft = SoftLabels(soft=0.125)
    soft.released(LABELS, here)
    assert TableDraws(table).epsilon is None

    notes = soft.notes(here)
    assert "give no guarantee" in notes[0]
    assert "have no guarantee (2 releases, 1 of them soft)" in notes[1]
    LabelDP(epsilon=2.0).released(LABELS, here)
    assert "have no guarantee (3 releases, 1 of them soft)" in soft.notes(here)[1]
    assert run("budget", str(table)) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "normal noise of 0.125 on 0 and 1 for [0.0, 1.0], no guarantee" in shown
    assert run("budget", "--json", str(table)) == 0
    facts = json.loads(capsys.readouterr().out)[0]["labels"]
    assert facts["epsilon"] is None
    assert [one["epsilon"] for one in facts["releases"]] == [1.0, None, 2.0]


def test_classes_are_declared_unless_they_are_0_and_1() -> None:
    texts = np.array(["yes", "no"] * 50)
    with pytest.raises(DataError, match=r"name the two classes.*classes: \[no, yes\]"):
        SoftLabels(soft=0.125).released(texts, LabelSource())
    soft = SoftLabels(soft=0.125, classes=["no", "yes"])
    found = soft.released(texts, LabelSource())
    assert ((found > 0.5) == (texts == "yes")).all()
    assert (soft.as_known(found) == texts).all()
    with pytest.raises(DataError, match="Labels are not all 'no' or 'yes'"):
        soft.released(np.array([0, 1]), LabelSource())
    with pytest.raises(DataError, match="these are texts"):
        SoftLabels(soft=0.125, range=(0, 1)).released(texts, LabelSource())


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"soft": 0.125, "epsilon": 1}, "give one of them"),
        ({"soft": 0}, "soft must be above 0"),
        ({"soft": 2}, "leaves little to learn"),
        ({"soft": "wide"}, "must be a number"),
        ({"soft": 0.1, "scale": 1}, "no setting is called 'scale'"),
        ({"soft": 0.1, "classes": [1, 2, 3]}, "of two classes"),
        ({"soft": 0.1, "range": [2, 1]}, "the lowest and the highest"),
        ({"soft": 0.1, "insecure_seeded_draws": 1}, "true or false"),
    ],
)
def test_settings_that_mean_nothing_are_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        mtcd.Privacy(mode="sealed", labels=given)


def test_what_does_not_go_with_soft_labels_is_refused() -> None:
    for privacy in ({}, {"aggregation": "masked"}):
        with pytest.raises(ConfigError, match="rounding takes the noise off.*privacy.mode: sealed"):
            mtcd.Privacy(**privacy, labels={"soft": 0.125})
    with pytest.raises(ConfigError, match="derivatives of at most 1"):
        mtcd.Privacy(mode="sealed", dp=mtcd.DP(epsilon=1.0), labels={"soft": 0.125})

    noise, values = SoftLabels(soft=0.125), SoftLabels(soft=0.125, range=(0, 1))
    with pytest.raises(ConfigError, match="l2 must be above 0"):
        mtcd.Glm("logistic", label_noise=noise)
    for kind in ("huber", "squared-hinge", "multinomial"):
        with pytest.raises(ConfigError, match="soft labels are for logistic, ridge and linear"):
            mtcd.Glm(kind, l2=1.0, label_noise=noise)
    with pytest.raises(ConfigError, match="need a range"):
        mtcd.Glm("ridge", label_noise=noise)
    with pytest.raises(ConfigError, match="range is for labels that are values"):
        mtcd.Glm("logistic", l2=1.0, label_noise=values)
    with pytest.raises(ConfigError, match=r"model\.class_weight"):
        mtcd.Glm("logistic", l2=1.0, class_weight="balanced", label_noise=noise)
    with pytest.raises(ConfigError, match="must name the positive class, 'no', second"):
        mtcd.Glm("logistic", l2=1.0, positive="no", label_noise=noise)
    for positive in (1, "1", 1.0):
        assert mtcd.Glm("logistic", l2=1.0, positive=positive, label_noise=noise)
    with pytest.raises(ConfigError, match="split networks train in the open"):
        noise.corrected_network_loss(None)


def newton(X: np.ndarray, y: np.ndarray, l2: float) -> np.ndarray:
    """The minimum of the logistic loss for labels that may be any number."""
    theta = np.zeros(X.shape[1])
    for _ in range(50):
        p = 1 / (1 + np.exp(-X @ theta))
        slope = X.T @ (p - y) + l2 * theta
        theta -= np.linalg.solve((X.T * (p * (1 - p))) @ X + l2 * np.eye(X.shape[1]), slope)
    return theta


@pytest.mark.parametrize("intercept", [False, True])
def test_a_sealed_training_comes_near_the_optimum_of_the_soft_labels(intercept: bool) -> None:
    pytest.importorskip("tenseal")
    data = mtcd.synthetic("logistic", samples=400, features=24, clients=2, seed=3)
    noise = SoftLabels(soft=0.5, insecure_seeded_draws=True)
    run = mtcd.train(
        data,
        mtcd.Glm("logistic", l2=1.0, intercept=intercept),
        "complete",
        mtcd.MTCD(walk="tour"),
        stop=mtcd.Stop(iterations=200),
        privacy=mtcd.Privacy(mode="sealed", labels=noise),
    )
    assert any("give no guarantee" in note for note in run.notes)
    # metrics are those of the classes
    assert run.history.rows[-1].metrics["train_accuracy"] > 0.7
    if intercept:
        return

    X = np.hstack(data.blocks)
    found = np.concatenate([run.parameters[name] for name in data.clients])
    soft = newton(X, noise.released(data.labels, LabelSource()), 1.0)
    true = newton(X, data.labels, 1.0)
    assert np.linalg.norm(found - soft) < 0.3 * np.linalg.norm(found - true)


def test_a_sealed_training_of_values() -> None:
    pytest.importorskip("tenseal")
    data = mtcd.synthetic("ridge", samples=400, features=24, clients=2, seed=1)
    ends = float(data.labels.min()), float(data.labels.max())
    run = mtcd.train(
        data,
        mtcd.Glm("ridge"),
        "complete",
        mtcd.MTCD(walk="tour"),
        privacy=mtcd.Privacy(mode="sealed", labels={"soft": 0.125, "range": ends}),
    )
    assert np.corrcoef(run.predict(data), data.labels)[0, 1] > 0.8


@pytest.mark.parametrize("intercept", [False, True])
def test_the_loss_knows_what_the_settings_say(intercept: bool) -> None:
    model = mtcd.Glm("logistic", l2=1.0, intercept=intercept)
    soft = SoftLabels(soft=0.25, classes=("no", "yes"))
    loss = soft.corrected(LOSSES["logistic"](), model)
    assert (loss.soft, loss.names, loss.needs_shares) == (0.25, ("no", "yes"), intercept)
    assert loss.largest == 1.0 + 6.0 * 0.25
    encoded, names = loss.encode(np.array([-0.25, 0.5]))
    assert (encoded.tolist(), names) == ([-0.25, 0.5], ("no", "yes"))
    if intercept:
        with pytest.raises(DataError, match=r"a smaller privacy\.labels\.soft"):
            loss.encode(np.array([-0.5, 0.25]))
