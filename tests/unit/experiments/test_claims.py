"""Claims: every check on made-up results of which the verdict is known."""

from __future__ import annotations

import pytest

from claim_readers import SPENT, reaches, reader, trained, two
from made_up_results import experiment, learnt
from mtcd_experiments import checks
from mtcd_experiments.claims import CLAIMS, check_claims
from mtcd_experiments.read import FIGURES, known_experiments, read_experiment
from mtcd_experiments.reading import Amount, helps, less, number, opposite, verdict
from mtcd_experiments.results import CurveResult, Results


def exact(value: float) -> Amount:
    return Amount(value, 5, 5, 1e-5)


def at_least(value: float, reached: int = 0) -> Amount:
    return Amount(value, reached, 5, 0.5)


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        (exact(10), exact(20), True),
        (exact(20), exact(10), False),
        (exact(100), exact(102), None),  # about the same
        (exact(10), at_least(20), True),
        (exact(20), at_least(10), None),  # it stopped too early to tell
        (at_least(20), exact(10), False),
        (at_least(10), exact(20), None),
        (at_least(10), at_least(20), None),
        (exact(10), at_least(20, reached=3), True),
    ],
)
def test_less_says_only_what_is_known(ours: Amount, theirs: Amount, expected: bool | None) -> None:
    assert less(ours, theirs) is expected


@pytest.mark.parametrize(
    ("amounts", "expected"),
    [
        ([exact(100), exact(50), exact(200)], True),
        ([exact(100), exact(99)], False),
        ([exact(100), exact(150)], False),
        ([exact(100), at_least(150)], False),
        ([exact(100), at_least(50)], None),
        ([at_least(100), exact(50)], True),
        ([at_least(100), exact(150)], None),
        ([at_least(100), at_least(100)], None),
    ],
)
def test_helps(amounts: list[Amount], expected: bool | None) -> None:
    assert helps(amounts) is expected


def test_amounts_in_words() -> None:
    assert str(exact(12345)) == "12,300"
    assert str(at_least(1000)) == "more than 1,000 (gap 5e-01 there)"
    assert str(at_least(1000, reached=3)) == "more than 1,000 (gap 5e-01 there, 3 of 5 seeds)"


def test_seeds_that_do_not_get_there_count_with_what_they_spent() -> None:
    some = CurveResult("", (trained(100), trained(None, seed=1)))
    amount = reader({("path", "us"): some}).amount("path", "us")
    assert (amount.value, amount.reached, amount.seeds) == (pytest.approx((100 + SPENT) / 2), 1, 2)
    assert not amount.exact


@pytest.mark.parametrize(
    ("values", "holds"),
    [
        ((10, 20, 30, 40), "yes"),
        ((10, 20, 50, 40), "in part"),
        ((30, 20, 50, 40), "no"),
        ((10, None, 30, 40), "yes"),
        ((1200, None, 30, 40), "in part"),
        ((None, 20, None, 40), "no"),
        ((None, None, None, None), "open"),
        ((None, None, 30, 40), "in part"),
    ],
)
def test_cheaper_in_every_case(values, holds) -> None:
    measured, found = checks.cheaper("us", "them")(two(*values))
    assert found == holds
    assert "cost to 0.0001 (R_C = 100)" in measured
    assert ("not so" in measured) == (holds == "in part" and 50 in values)
    if None in values:
        assert "more than 10 (gap 5e-01 there)" in measured


@pytest.mark.parametrize(
    ("values", "holds"),
    [
        ((10, 20, 30, 40), "no"),
        ((10, 20, 50, 40), "yes"),
        ((10, 20, None, None), "in part"),
        ((None, None, None, None), "open"),
        ((1200, None, 10, 20), "in part"),  # they stopped too early to tell
    ],
)
def test_not_always_faster(values, holds) -> None:
    assert checks.not_always_faster("us", "them")(two(*values))[1] == holds


@pytest.mark.parametrize(
    ("values", "holds"),
    [
        ((1, 2, 3), "yes"),
        ((1, 3, 2), "in part"),
        ((3, 2, 1), "no"),
        ((1, 2, None), "yes"),
        ((1, 20, None), "in part"),
    ],
)
def test_slower_along_cases_and_curves(values, holds) -> None:
    along_cases = {
        (f"case{i}", "us"): reaches(value and 100 * value) for i, value in enumerate(values)
    }
    assert checks.slower_along(["case0", "case1", "case2"], "us")(reader(along_cases))[1] == holds
    along_curves = {
        ("path", f"curve{i}"): reaches(value and 100 * value) for i, value in enumerate(values)
    }
    assert (
        checks.rises_along("path", ["curve0", "curve1", "curve2"], "iterations")(
            reader(along_curves)
        )[1]
        == holds
    )


@pytest.mark.parametrize(
    ("ours", "theirs", "holds"),
    [
        ((100, 0.0), (50, 1.0), "yes"),
        ((40, 0.0), (50, 1.0), "in part"),
        ((40, 5.0), (50, 1.0), "no"),
    ],
)
def test_slower_but_cheaper(ours, theirs, holds) -> None:
    read = reader({("path", "us"): reaches(*ours), ("path", "them"): reaches(*theirs)})
    assert checks.slower_but_cheaper("path", "us", ["them"])(read)[1] == holds


def test_the_cheapest_changes_with_the_ratio() -> None:
    # 1000/R against 10 + 10/R: even at R = 99
    curves = {("path", "hops"): reaches(1000.0), ("path", "server"): reaches(10.0, server=1.0)}
    read = reader(curves, ratios=[1, 10, 50, 200, 1000])
    measured, holds = checks.best_changes("path", ["hops", "server"])(read)
    assert measured == "cheapest: R_C 1 to 50: server; R_C 200 to 1000: hops"
    assert holds == "yes"
    assert checks.best_changes("path", ["hops"])(read)[1] == "no"
    never = reader({("path", "hops"): reaches(None)})
    assert checks.best_changes("path", ["hops"])(never) == ("cheapest: none gets there", "open")


@pytest.mark.parametrize(
    ("middle", "holds"), [(50.0, "yes"), (120.0, "in part"), (5000.0, "no"), (None, "no")]
)
def test_the_middle_beats_both_ends(middle, holds) -> None:
    curves = {("path", "all"): reaches(10.0, server=2.0), ("path", "none"): reaches(1000.0)}
    curves["path", "some"] = reaches(middle, server=0.1)
    check = checks.middle_wins("path", ["some"], ["all", "none"], [20, 5])
    assert check(reader(curves))[1] == holds


def test_the_middle_is_open_where_nobody_gets_there() -> None:
    read = reader({("path", name): reaches(None) for name in ("some", "all")})
    assert checks.middle_wins("path", ["some"], ["all"], [20])(read)[1] == "open"


@pytest.mark.parametrize(
    ("values", "holds", "says"),
    [
        ((100, 50, 60), "yes", "100 → 50 → 60 (least: b, by 2 times)"),
        ((100, 120, 130), "no", "100 → 120 → 130"),
        ((None, 50, 60), "yes", "(least: b, by more than 20 times)"),
        ((100, None, None), "no", "more than 1,000"),
        ((None, None, None), "open", "more than 1,000"),
    ],
)
def test_more_is_less_up_to_a_point(values, holds, says) -> None:
    read = reader(
        {("path", name): reaches(value) for name, value in zip("abc", values, strict=True)}
    )
    measured, found = checks.falls_along("abc")(read)
    assert (found, says in measured) == (holds, True), measured
    turned = {"yes": "no", "no": "yes", "open": "open"}
    assert checks.does_not_fall_along("abc")(read)[1] == turned[holds]


def test_what_is_not_decided_is_not_turned_into_a_yes() -> None:
    curves = {("one", "a"): reaches(100.0), ("one", "b"): reaches(150.0)}
    curves |= {("two", "a"): reaches(None), ("two", "b"): reaches(None)}
    assert checks.does_not_fall_along("ab")(reader(curves))[1] == "in part"
    assert opposite([True, False, None]) == [False, True, None]


def test_hops_turn_iterations_into_syncs() -> None:
    read = reader({("path", "a"): reaches(100.0), ("path", "b"): reaches(200.0)})
    measured, holds = checks.falls_along("ab", per=[1, 4])(read)
    assert "syncs to 0.0001" in measured
    assert "100 → 50" in measured
    assert holds == "yes"


def test_how_far_down() -> None:
    read = two(10, 20, None, 40)
    assert checks.gets_below("them", 0.1)(read)[1] == "yes"
    assert checks.gets_below("us", 0.1)(read)[1] == "in part"


@pytest.mark.parametrize(
    ("seen", "holds"),
    [
        ([True], "yes"),
        ([True, False], "in part"),
        ([False], "no"),
        ([None], "open"),
        ([True, None], "in part"),
        ([False, None], "in part"),
    ],
)
def test_verdicts(seen, holds) -> None:
    assert verdict(seen) == holds


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (0.01234, "0.0123"),
        (12.34, "12.3"),
        (123.4, "123"),
        (999.7, "1,000"),
        (1234567.0, "1,230,000"),
    ],
)
def test_numbers_have_three_figures(value: float, text: str) -> None:
    assert number(value) == text


def test_every_claim_finds_its_cases_and_curves_in_the_files() -> None:
    """A claim about a curve that was renamed would be left out without a word."""
    assert set(CLAIMS) == {*FIGURES, "beyond"}
    for name, path in known_experiments().items():
        given = read_experiment(path)
        made = reaches(100.0) if given.measure == "gap" else CurveResult("", (learnt(0.2),))
        curves = {(case, curve): made for case in given.cases for curve in given.shown(case)}
        found = check_claims(
            {name: Results(name, given, curves, seeds=2, quick=False, ratio=100.0)}
        )
        assert [claim.says for claim in found] == [says for says, _ in CLAIMS[name]]
        assert all(claim.figure == name and claim.measured for claim in found)


def test_claims_about_what_is_not_there_are_left_out() -> None:
    given = experiment({"path": {}}, {"mine": {}}, [{"x": "iterations"}])
    results = Results(
        "path80", given, {("path", "mine"): reaches(10.0)}, seeds=2, quick=False, ratio=100.0
    )
    assert check_claims({"path80": results, "my-own": results}) == []
