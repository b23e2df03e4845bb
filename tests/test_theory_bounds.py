"""Bounds and break-even ratios against numbers done by hand and the methods' own costs; what inspect says of them."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtcd.cli import theory as shown_theory
from mtcd.cli.app import main
from mtcd.errors import ConfigError
from mtcd.ledger.costs import Costs
from mtcd.methods.mtcd import MTCD
from mtcd.methods.svfl import SVFL
from mtcd.network.topology import make_network
from mtcd.theory.bounds import Guarantee
from mtcd.theory.breakeven import Comparison


def test_the_right_hand_side_by_hand() -> None:
    promise = Guarantee(
        delta=3.0, stepsize=0.001, pi=0.25, hops=4, local_updates=5, smoothness=10.0, variance=2.0, batch=8
    )
    # 2*3/(0.001*0.25*T) = 24000/T;  0.001*400*2*10/(0.25*8) = 4
    assert promise.floor == pytest.approx(4.0)
    assert promise.after(1000) == pytest.approx(28.0)
    assert promise.iterations(4.5) == 48_000
    assert promise.batch_size(0.5) == 64
    assert promise.after(promise.iterations(5.3)) <= 5.3 < promise.after(promise.iterations(5.3) - 1)
    with pytest.raises(ConfigError, match="batch above 11"):
        promise.iterations(3.0)


def test_a_batch_of_the_size_asked_for_is_enough_and_the_next_smaller_is_not() -> None:
    settings_ = {"delta": 1.0, "stepsize": 0.0031, "pi": 0.37, "hops": 3, "local_updates": 2, "smoothness": 7.0}
    B = Guarantee(**settings_, variance=5.0).batch_size(0.1)
    assert Guarantee(**settings_, variance=5.0, batch=B).floor <= 0.1
    assert Guarantee(**settings_, variance=5.0, batch=B - 1).floor > 0.1
    assert Guarantee(**settings_).floor == 0.0
    assert Guarantee(**settings_).batch_size(0.1) == 1


@pytest.mark.parametrize(
    ("change", "says"),
    [({"stepsize": 0.1}, "1/\\(2 L S Q\\) = 0.0125"), ({"pi": 1.5}, "at most 1"), ({"pi": 0.0}, "pi must be above 0")],
)
def test_where_the_theorems_say_nothing_is_refused(change: dict[str, float], says: str) -> None:
    fine = {"delta": 1.0, "stepsize": 0.0125, "pi": 0.5, "hops": 5, "local_updates": 2, "smoothness": 4.0}
    Guarantee(**fine)
    with pytest.raises(ConfigError, match=says):
        Guarantee(**(fine | change))


@settings(deadline=None)
@given(st.integers(2, 40), st.integers(1, 40), st.integers(1, 99), st.booleans(), st.floats(-0.5, 0.5))
def test_breakeven_is_where_the_methods_costs_cross(
    K: int, tokens: int, hops: int, full_batch: bool, off: float
) -> None:
    network, batch = make_network("path", [f"c{k}" for k in range(K)]), None if full_batch else 7
    method, rival = MTCD(tokens=tokens, hops=hops, batch=batch), SVFL(batch=batch)
    comparison = Comparison(K, tokens, hops, full_batch=full_batch)
    turning = comparison.cost_ratio
    assert (turning == math.inf) == (tokens >= K)
    ratio = 1e9 if turning == math.inf else turning * math.exp(off)
    ours = method.iteration_cost(network, tokens, Costs(ratio=ratio))
    theirs = rival.iteration_cost(network, tokens, Costs(ratio=ratio))
    assert comparison.cost(1.0, 1 / ratio) == pytest.approx(ours)
    assert comparison.client_server_cost(1.0) == theirs
    if abs(off) > 1e-6 or turning == math.inf:
        assert (ours < theirs) == (turning < ratio)


def test_breakeven_ratios_of_the_paper() -> None:
    K, tokens = 80, 4
    paper = Comparison(K, tokens, hops=K // tokens)
    assert paper.cost_ratio == pytest.approx(20 * tokens / (K - tokens))
    assert paper.time_ratio == pytest.approx(K / (tokens * (K - tokens)))
    # by hand: 80 up, 4 down, 20 hops of 3 and 20 updates of 0.5; against 80 up, 80 down and 20 updates
    assert paper.time(tau_t=2.0, tau_s=3.0, tau_q=0.5) == 84 * 2 + 20 * 3 + 20 * 0.5
    assert paper.client_server_time(tau_t=2.0, tau_q=0.5) == 160 * 2 + 20 * 0.5
    for full_batch in (False, True):
        other = Comparison(K, tokens, hops=33, local_updates=3, full_batch=full_batch)
        tau_t = other.time_ratio * 0.7
        assert other.time(tau_t, 0.7, 0.1) == pytest.approx(other.client_server_time(tau_t, 0.1))
    assert Comparison(5, 5, hops=1).time_ratio == math.inf


CONFIG = """
data: {{synthetic: ridge, samples: 20, features: {K}, clients: {K}}}
model: {{kind: ridge, alpha: 1}}
network: {{kind: {kind}}}
method: {{{method}}}
"""


def said(where: Path, *options: str, K: int = 4, kind: str = "path", method: str) -> int:
    (where / "config.yaml").write_text(CONFIG.format(K=K, kind=kind, method=method))
    with pytest.raises(SystemExit) as ended:
        main(["inspect", str(where / "config.yaml"), *options])
    return int(ended.value.code or 0)


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
        theory(K=2, method="kind: mtcd, tokens: 2, hops: 2, combine: average, start: {client_0: 3, client_1: 1}")
    )
    # the least likely: client_1 is not the start (3/4), then not gone to (1/2)
    assert found["pi"] == pytest.approx(1 - 3 / 8)
    assert found["pi_any_token"] == pytest.approx(1 - (3 / 8) ** 2)
    assert found["pi_start_bound"] == pytest.approx(1 / 4)
    assert found["pi_walk_bound"] == pytest.approx(3 / 4 / 4)
    assert (found["spectral_gap"], found["mixing_time"]) == (pytest.approx(1.0), 1)
    assert found["breakeven_cost"] is found["breakeven_time"] is None  # as many tokens as clients
    found = values(theory(K=3, method="kind: mtcd, tokens: 1, hops: 2, start: {client_1: 1, client_0: 3}"))
    assert found["pi"] == pytest.approx(1 / 4 / 3)  # client_2, from client_1 only


def test_inspect_with_clusters_mini_batches_and_pieces(theory: Any) -> None:
    found = values(theory(K=4, method="kind: mtcd, clusters: auto, tokens: 2, hops: 3, batch: 5"))
    assert found["pi"] == pytest.approx(1 - 1 / 8)
    assert "pi_any_token" not in found
    assert found["spectral_gap"] == pytest.approx(1.0)  # a cluster of two forgets at once
    assert (found["breakeven_cost"], found["breakeven_time"]) == (pytest.approx(3.0), pytest.approx(1.5))
    apart = theory(K=4, kind="empty", method="kind: mtcd, tokens: 1, hops: 3")
    assert values(apart)["pi"] == pytest.approx(1 / 4)
    assert values(apart)["spectral_gap"] == 0.0
    assert (apart["mixing_time"]["value"], apart["mixing_time"]["shown"]) == (None, "infinite")


def test_inspect_of_methods_that_do_not_sync_or_do_not_walk(theory: Any) -> None:
    found = theory(method="kind: stcd")
    assert "pi" not in found
    assert values(found)["mixing_time"] > 0
    assert theory(method="kind: svfl") == {}


def test_inspect_says_what_it_leaves_out(theory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shown_theory, "VISIT_WORK", 10)
    monkeypatch.setattr(shown_theory, "MIXING_WORK", 3)
    found = theory(method="kind: mtcd, hops: 9")
    assert (found["pi"]["value"], found["pi"]["shown"]) == (None, shown_theory.LEFT_OUT)
    assert values(found)["pi_start_bound"] == pytest.approx(1 / 4)
    assert " to " in found["mixing_time"]["shown"]
    monkeypatch.setattr(shown_theory, "LINKS", 2)
    found = theory(method="kind: mtcd, hops: 9")
    assert found["spectral_gap"]["shown"] == found["mixing_time"]["shown"] == shown_theory.LEFT_OUT


def test_inspect_fits_a_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(tmp_path, method="kind: mtcd, tokens: 2, hops: 9") == 0
    shown = capsys.readouterr().out
    assert all(len(line) <= 80 for line in shown.splitlines())
    for title in ("pi, any token", "mixing time", "spectral gap", "break-even, cost", "break-even, time"):
        assert title in shown


def test_inspect_of_ten_thousand_clients_is_quick(theory: Any) -> None:
    begin = time.perf_counter()
    found = theory(K=10_000, method="kind: mtcd, tokens: 10, hops: 500")
    assert time.perf_counter() - begin < 40  # a few seconds; the exact pi alone would take far longer
    assert found["pi"]["shown"] == shown_theory.LEFT_OUT
    assert values(found)["spectral_gap"] > 0
