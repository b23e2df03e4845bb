"""What inspect says of the theory, and the sentences about step sizes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from inspected import said
from mtcd.core.terminal.findings import LEFT_OUT
from mtcd.data.synthetic import synthetic
from mtcd.inspection import tokens as shown_theory
from mtcd.inspection import walks as walk_theory
from mtcd.methods.dcpa.dcpa import DCPA
from mtcd.methods.method import Method
from mtcd.methods.mtcd.mtcd import MTCD, STCD
from mtcd.methods.svfl.svfl import SVFL
from mtcd.models.glm.block_smoothness import BlockSmoothness
from mtcd.models.glm.model import Glm
from mtcd.network.walks import WALKS
from waiting import computing_at_most


@pytest.fixture
def theory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    def ask(**config: Any) -> dict[str, dict[str, Any]]:
        assert said(tmp_path, "--json", **config) == 0
        found: dict[str, dict[str, Any]] = json.loads(capsys.readouterr().out)["theory"]
        assert all(fact["meaning"] and fact["shown"] for fact in found.values())
        return found

    return ask


def values(found: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return {key: fact["value"] for key, fact in found.items()}


def test_inspect_by_hand(theory: Any) -> None:
    found = values(
        theory(
            K=2,
            method="kind: mtcd, tokens: 2, hops: 2, combine: average, start: {client_0: 3, client_1: 1}",
        )
    )
    # the least likely: client_1 is not the start (3/4), then not gone to (1/2)
    assert found["pi"] == pytest.approx(1 - 3 / 8)
    assert found["pi_any_token"] == pytest.approx(1 - (3 / 8) ** 2)
    assert found["pi_start_bound"] == pytest.approx(1 / 4)
    assert found["pi_walk_bound"] == pytest.approx(3 / 4 / 4)
    assert (found["spectral_gap"], found["mixing_time"]) == (pytest.approx(1.0), 1)
    assert found["breakeven_cost"] is found["breakeven_time"] is None  # as many tokens as clients
    found = values(
        theory(K=3, method="kind: mtcd, tokens: 1, hops: 2, start: {client_1: 1, client_0: 3}")
    )
    assert found["pi"] == pytest.approx(1 / 4 / 3)  # client_2, from client_1 only


def test_inspect_with_clusters_mini_batches_and_pieces(theory: Any) -> None:
    found = values(theory(K=4, method="kind: mtcd, clusters: auto, tokens: 2, hops: 3, batch: 5"))
    assert found["pi"] == pytest.approx(1 - 1 / 8)
    assert "pi_any_token" not in found
    assert found["spectral_gap"] == pytest.approx(1.0)  # a cluster of two forgets at once
    assert (found["breakeven_cost"], found["breakeven_time"]) == (
        pytest.approx(3.0),
        pytest.approx(1.5),
    )
    apart = theory(K=4, kind="empty", method="kind: mtcd, tokens: 1, hops: 3")
    assert values(apart)["pi"] == pytest.approx(1 / 4)
    assert values(apart)["spectral_gap"] == 0.0
    assert (apart["mixing_time"]["value"], apart["mixing_time"]["shown"]) == (None, "infinite")


def test_inspect_of_methods_that_do_not_sync_or_do_not_walk(theory: Any) -> None:
    found = theory(method="kind: stcd")
    assert "pi" not in found
    assert values(found)["mixing_time"] > 0
    assert theory(method="kind: svfl") == {}


def test_inspect_knows_every_walk(theory: Any) -> None:
    found = {walk: theory(K=6, method=f"kind: mtcd, hops: 6, walk: {walk}") for walk in WALKS}
    pi = {walk: values(facts)["pi"] for walk, facts in found.items()}
    # the tour 0 1 2 3 4 5 4 3 2 1: client 0 from 0 and 5; around the tree, from 1 to 4 with 1/2 as
    # well
    assert (pi["tour"], pi["random-tour"]) == (pytest.approx(2 / 6), pytest.approx(4 / 6))
    assert pi["lazy"] < pi["metropolis"] < pi["non-backtracking"] < 1
    assert values(found["metropolis"])["hitting_time"] == pytest.approx(6 * 5)
    assert values(found["non-backtracking"])["hitting_time"] == pytest.approx(9)
    for walk, wait in (("tour", 10), ("random-tour", 18)):
        facts = values(found[walk])
        assert (facts["tour_length"], facts["longest_wait"], facts["cover"]) == (10, wait, 9)
        assert "pi_walk_bound" not in facts  # a tour may never take the shortest way
    assert "pi" not in theory(K=6, method="kind: stcd, walk: tour")
    two = values(
        theory(K=6, method="kind: mtcd, hops: 2, walk: tour, clusters: [[0, 1], [2, 3, 4, 5]]")
    )
    assert (two["pi"], two["tour_length"], two["longest_wait"], two["cover"]) == (
        pytest.approx(1 / 4),
        6,
        6,
        5,
    )
    even = theory(K=6, kind="cycle", method="kind: mtcd, walk: metropolis")
    assert (even["spectral_gap"]["value"], even["mixing_time"]["shown"]) == (0.0, "infinite")
    assert values(even)["hitting_time"] == pytest.approx(9)


@pytest.mark.parametrize("walk", ["lazy", "tour"])
def test_the_guarantee_shown_has_the_pi_of_the_walk(tmp_path: Path, capsys: Any, walk: str) -> None:
    settings_ = f"kind: mtcd, hops: 6, local_updates: 2, walk: {walk}, stepsize: "
    for stepsize, below in (("1.0e-9", True), ("0.01", False)):
        assert said(tmp_path, "--json", K=4, method=settings_ + stepsize) == 0
        found = json.loads(capsys.readouterr().out)
        eta = float(stepsize) if below else found["stepsize_limit"]
        promise, pi = found["theory"]["guarantee"], found["theory"]["pi"]["value"]
        data = synthetic("ridge", samples=20, features=4, clients=4, seed=0)
        assert promise["value"] == pytest.approx(2 * (data.labels**2).sum() / 2 / (eta * pi))
        assert ("this step size" in promise["meaning"]) == below
        assert "no visit raises f" in found["stepsize_auto_rule"]
    assert pi == 1.0 or walk == "lazy"
    for none in (
        "kind: mtcd, hops: 6, batch: 5",
        "kind: stcd",
        "kind: mtcd, tokens: 2, combine: visitors",
    ):
        assert said(tmp_path, "--json", method=none) == 0
        assert "guarantee" not in json.loads(capsys.readouterr().out)["theory"]


@pytest.mark.parametrize(
    ("method", "l1", "says", "proven"),
    [
        (MTCD(tokens=2), 0, "no visit raises f, nor does the average", True),
        (MTCD(tokens=1), 0.1, "no visit raises f; ", True),
        (MTCD(tokens=2, combine="cluster"), 0, "the theorems' limit, with L = ", True),
        (MTCD(tokens=2, combine="cluster"), 0.1, "do not cover l1)", False),
        (MTCD(tokens=2, combine="visitors"), 0.1, "do not cover l1 and combine: visitors)", False),
        (
            MTCD(tokens=1, batch=5, combine="visitors"),
            0,
            "limit, with L, of a mini-batch at worst, = ",
            True,
        ),
        (
            MTCD(tokens=2, combine="cluster", walk="tour", acceleration="anderson"),
            0,
            "cover acceleration)",
            False,
        ),
        (STCD(), 0, "no visit raises f; ", True),
        (SVFL(local_updates=3), 0, ", S = 1, Q = 3", True),
        (DCPA(), 0, "primal-dual methods bear, a rule of thumb", False),
    ],
)
def test_auto_says_which_rule_it_follows(
    method: Method, l1: float, says: str, proven: bool
) -> None:
    problem = Glm("linear", l1=l1).problem(synthetic("ridge", samples=20, features=4, clients=4))
    rule = method.stepsize_rules(BlockSmoothness(problem)).auto
    assert says in rule.reason
    assert rule.proven == proven


def test_inspect_says_what_it_leaves_out(theory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shown_theory, "VISIT_WORK", 10)
    for limit in ("MIXING_WORK", "HITTING_WORK"):
        monkeypatch.setattr(walk_theory, limit, 3)
    monkeypatch.setattr(walk_theory, "LINK_WORK", 3)
    found = theory(method="kind: mtcd, hops: 9")
    assert (found["pi"]["value"], found["pi"]["shown"]) == (None, LEFT_OUT)
    assert values(found)["pi_start_bound"] == pytest.approx(1 / 4)
    assert " to " in found["mixing_time"]["shown"]
    assert found["hitting_time"]["shown"] == found["cover"]["shown"] == LEFT_OUT
    for walk in ("non-backtracking", "tour", "random-tour"):
        found = theory(K=6, method=f"kind: mtcd, hops: 9, walk: {walk}")
        assert found["pi"]["shown"] == LEFT_OUT
        assert (found["cover"]["value"] is None) == (walk == "non-backtracking")
        assert "guarantee" not in found
    monkeypatch.setattr(walk_theory, "LINKS", 2)
    found = theory(method="kind: mtcd, hops: 9")
    assert found["spectral_gap"]["shown"] == found["mixing_time"]["shown"] == LEFT_OUT


def test_inspect_fits_a_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(tmp_path, method="kind: mtcd, tokens: 2, hops: 9") == 0
    shown = capsys.readouterr().out
    assert all(len(line) <= 80 for line in shown.splitlines())
    for title in (
        "pi, any token",
        "mixing time",
        "spectral gap",
        "step size, auto",
        "hitting time",
        "guarantee",
    ):
        assert title in shown


def test_inspect_of_ten_thousand_clients_is_quick(theory: Any) -> None:
    with computing_at_most(40):  # a few seconds; the exact pi alone would take far longer
        found = theory(K=10_000, method="kind: mtcd, tokens: 10, hops: 500")
    assert found["pi"]["shown"] == LEFT_OUT
    assert values(found)["spectral_gap"] > 0
