"""stepsize: auto in a federation: the same rules, with bounds for what no party knows."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtcd.core.errors import DataError, WireError
from mtcd.methods.dcpa.dcpa import DCPA
from mtcd.methods.method import resolve_stepsize, resolved_stepsize
from mtcd.methods.mtcd.mtcd import MTCD, STCD
from mtcd.methods.svfl.svfl import SVFL
from mtcd.models.glm.block_smoothness import BlockSmoothness
from mtcd.models.glm.model import Glm
from mtcd.models.glm.party.stepsize import (
    CurvatureReport,
    ReportedSmoothness,
    own_curvature,
    resolve_from_reports,
)
from mtcd.models.sample_weights.weighted import Weighted
from mtcd.theory.stepsize import Smoothness
from own_parts import own_parts
from problems import MODELS, make_data

SAMPLES, WIDTHS = 12, [2, 1, 3, 2]


def both(model: Glm, seed: int = 3) -> tuple[Smoothness, ReportedSmoothness]:
    """As one process knows it, and as the parties of a federation do."""
    data = make_data(model, SAMPLES, WIDTHS, seed)
    parts = own_parts(data, model)
    weighted = model.class_weight is not None
    reported = [
        CurvatureReport.from_bytes(own_curvature(part).to_bytes(), weighted) for part in parts
    ]
    return BlockSmoothness(model.problem(data)), ReportedSmoothness(
        parts[1].problem, tuple(reported)
    )


@pytest.mark.parametrize(
    "method", [STCD(), MTCD(tokens=1, hops=4), MTCD(tokens=3), DCPA()], ids=str
)
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_where_only_blocks_count_the_step_is_the_same(method: Any, model: Glm) -> None:
    known, reported = both(model)
    settled, notes = resolve_from_reports(method, reported.problem, reported.reports)
    expected, same_notes = resolve_stepsize(method, known)
    assert resolved_stepsize(settled) == resolved_stepsize(expected)
    assert notes == same_notes


@pytest.mark.parametrize(
    "method", [SVFL(), SVFL(batch=4), MTCD(clusters=[[0, 1], [2, 3]], hops=4)], ids=str
)
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_where_all_blocks_count_the_step_is_at_most_that_and_the_note_says_why(
    method: Any, model: Glm
) -> None:
    known, reported = both(model)
    settled, notes = resolve_from_reports(method, reported.problem, reported.reports)
    expected = resolved_stepsize(resolve_stepsize(method, known)[0])
    assert expected / len(WIDTHS) <= resolved_stepsize(settled) <= expected * (1 + 1e-12)
    assert "a bound: l2 + sum_k" in notes[0]


@given(st.sampled_from(MODELS), st.integers(0, 10_000), st.integers(1, SAMPLES))
def test_the_bounds_are_bounds(model: Glm, seed: int, size: int) -> None:
    known, reported = both(model, seed)
    X, loss = np.hstack(known.problem.blocks), known.problem.loss
    if isinstance(loss, Weighted):
        X = np.sqrt(loss.weights)[:, None] * X
    l2, curvature = model.l2_weight, model.loss.curvature
    assert reported.overall >= (1 - 1e-9) * (curvature * np.linalg.norm(X, 2) ** 2 + l2)
    assert loss.curvature * reported.longest >= (1 - 1e-12) * curvature * max(
        row @ row for row in X
    )
    rows = np.random.default_rng(seed).permutation(SAMPLES)[:size]
    weighed = SAMPLES / size * curvature * np.linalg.norm(X[rows], 2) ** 2 + l2
    assert reported.batch(size) >= (1 - 1e-9) * weighed


def test_a_single_party_with_features_needs_no_bound() -> None:
    reported = [CurvatureReport(3.5, 2.0), CurvatureReport(0.5, 0.0)]
    problem = own_parts(make_data(Glm("ridge", alpha=0.5), 6, [1, 1], 0), Glm("ridge", alpha=0.5))[
        0
    ].problem
    assert ReportedSmoothness(problem, tuple(reported)).overall == 3.5


def test_features_that_are_all_0_are_refused() -> None:
    model = Glm("linear")
    problem = own_parts(make_data(model, 6, [1, 1], 0), model)[0].problem
    for method in (STCD(), SVFL()):
        with pytest.raises(DataError, match="All features are 0"):
            resolve_from_reports(method, problem, [CurvatureReport(0.0, 0.0)] * 2)


def test_a_step_that_was_given_stays() -> None:
    model = Glm("ridge")
    problem = own_parts(make_data(model, 6, [1, 1], 0), model)[0].problem
    assert resolve_from_reports(STCD(stepsize=0.1), problem, []) == (STCD(stepsize=0.1), ())


WRONG = [None, 3, [], [1.0, 2.0], {}, {"block": 1.0}, {"block": 1.0, "longest": 1.0, "more": 1.0}]
WRONG += [
    {"block": value, "longest": 1.0}
    for value in (None, "1", True, -1.0, float("nan"), float("inf"), [1.0])
]
WRONG += [{"block": 1.0, "longest": value} for value in (-0.5, float("nan"), {}, 1.0001e300)]
NORMS = [{"block": 1.0, "longest": 1.0, "norm": value} for value in (None, -0.5, float("inf"))]


@pytest.mark.parametrize(
    "content", [json.dumps(one).encode() for one in WRONG] + [b"", b"\xff", b"[" * 100_000]
)
def test_what_is_no_curvature_is_refused(content: bytes) -> None:
    with pytest.raises(WireError):
        CurvatureReport.from_bytes(content)
    with pytest.raises(WireError):
        CurvatureReport.from_bytes(content, weighted=True)


def test_curvatures_from_0_to_the_largest_whose_sums_are_finite_are_taken() -> None:
    content = json.dumps({"block": 0.0, "longest": 1e300}).encode()
    assert CurvatureReport.from_bytes(content) == CurvatureReport(0.0, 1e300)


@pytest.mark.parametrize("weighted", [False, True])
def test_with_weights_there_is_one_number_more(weighted: bool) -> None:
    sound = [{"block": 1.0, "longest": 2.0}, {"block": 1.0, "longest": 2.0, "norm": 3.0}]
    assert CurvatureReport.from_bytes(
        json.dumps(sound[weighted]).encode(), weighted
    ) == CurvatureReport(**sound[weighted])
    for wrong in (sound[not weighted], *NORMS):
        with pytest.raises(WireError):
            CurvatureReport.from_bytes(json.dumps(wrong).encode(), weighted)
