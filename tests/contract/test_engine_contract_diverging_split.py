"""The engine contract of split networks on step sizes that are too large: the same status, and a
model or none."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from contract_split_cases import (
    Participant,
    assert_same_networks,
    bundles_for,
    federate,
    four_clinics,
    in_process,
    table_of,
)
from killed_at_end import KilledAtEnd, run_killing
from live import run_all
from mtcd.federation.node import ending, final_check
from mtcd.federation.node.node import Node
from mtcd.federation.participant.keeping import read_summary
from mtcd.models.splitnet.party import participant as networks
from mtcd.training.divergence import DIVERGED, HOPELESS, WORST_NOISY_END

pytestmark = pytest.mark.long

MTCD = {"kind": "mtcd", "local_updates": 2, "hops": 3, "clusters": [["a", "b"], ["c", "d"]]}
METHODS: dict[str, dict[str, Any]] = {
    "clusters": MTCD,
    "clusters in batches": {**MTCD, "batch": 5},
    "stcd": {"kind": "stcd", "fusion_client": "each"},
    "stcd, empty start": {"kind": "stcd", "first_pass": False},
    "svfl": {"kind": "svfl"},
    "svfl in batches": {"kind": "svfl", "batch": 6},
}
KEPT = "iterations"
# the aggregation, the step size, after how many iterations to end, and how
CASES: list[tuple[str, str, float, int, str]] = [
    ("clusters", "concat", 0.5, 12, KEPT),
    ("clusters", "concat", 2.0, 12, KEPT),
    ("clusters", "concat", 5.0, 6, DIVERGED),
    ("clusters", "sum", 2.0, 12, KEPT),
    ("clusters", "sum", 10.0, 3, DIVERGED),
    ("clusters", "mean", 1e5, 12, DIVERGED),
    ("clusters in batches", "concat", 0.5, 12, KEPT),
    ("clusters in batches", "concat", 2.0, 9, DIVERGED),
    ("clusters in batches", "sum", 2.0, 9, DIVERGED),
    ("stcd", "concat", 0.5, 12, KEPT),
    ("stcd", "concat", 5.0, 3, DIVERGED),
    ("stcd", "concat", 200.0, 1, DIVERGED),
    ("stcd", "sum", 2.0, 6, DIVERGED),
    ("stcd, empty start", "sum", 0.05, 12, KEPT),
    ("stcd, empty start", "concat", 1e5, 12, DIVERGED),
    ("svfl", "concat", 0.5, 12, KEPT),
    ("svfl", "concat", 50.0, 1, DIVERGED),
    ("svfl", "sum", 0.5, 12, DIVERGED),
    ("svfl in batches", "concat", 0.5, 12, KEPT),
    ("svfl in batches", "sum", 0.5, 12, DIVERGED),
]
STAYS_FINITE = {
    ("svfl", "sum", 0.5, 12),
    ("clusters", "concat", 5.0, 6),
    ("stcd", "concat", 5.0, 3),
}


@pytest.mark.parametrize(("name", "aggregation", "stepsize", "iterations", "status"), CASES)
def test_networks_diverge_in_a_federation_where_they_do_in_one_process(
    name: str, aggregation: str, stepsize: float, iterations: int, status: str, tmp_path: Path
) -> None:
    data, method = four_clinics(), {**METHODS[name], "stepsize": stepsize}
    model = {"kind": "split", "client": "mlp", "aggregation": aggregation}
    bundles, told = federate(tmp_path, data, iterations, model=model, method=method)
    same = in_process(data, bundles["a"])
    assert same.status == status
    assert {summary.status for summary in told.summaries.values()} == {status}
    if (name, aggregation, stepsize, iterations) in STAYS_FINITE:
        first, *_, last = same.history.rows
        assert last.objective > WORST_NOISY_END * first.objective
    if same.model is None:
        assert not list(tmp_path.glob("runs/*/*.safetensors"))
    else:
        assert_same_networks(tmp_path, bundles, same)


# that have no hope before they come to their limit, while all numbers are still finite
ON_THE_WAY: list[tuple[str, str, float]] = [
    ("clusters", "concat", 2.0),
    ("clusters", "mean", 10.0),
    ("clusters in batches", "concat", 0.5),
    ("clusters in batches", "mean", 10.0),
    ("stcd", "concat", 5.0),
    ("stcd, empty start", "sum", 10.0),
    ("svfl", "sum", 2.0),
    ("svfl in batches", "mean", 5.0),
]


@pytest.mark.parametrize(("name", "aggregation", "stepsize"), ON_THE_WAY)
def test_networks_without_hope_end_at_the_same_moment_in_every_engine(
    name: str, aggregation: str, stepsize: float, tmp_path: Path
) -> None:
    data, method = four_clinics(), {**METHODS[name], "stepsize": stepsize}
    model = {"kind": "split", "client": "mlp", "aggregation": aggregation}
    bundles, told = federate(tmp_path, data, 60, model=model, method=method)
    same = in_process(data, bundles["a"])
    assert same.status == DIVERGED
    assert same.objective > HOPELESS * same.history.rows[0].objective
    assert same.final.iteration < 60
    assert {(one.status, one.iterations) for one in told.summaries.values()} == {
        (DIVERGED, same.final.iteration)
    }
    assert told.ledger == same.ledger
    assert not list(tmp_path.glob("runs/*/*.safetensors"))


def test_what_does_not_fit_into_a_message_is_not_evaluated_and_the_run_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(networks, "fits_into_message", lambda *sizes: False)
    data, method = four_clinics(), {**METHODS["svfl"], "stepsize": 0.5}
    model = {"kind": "split", "client": "mlp", "aggregation": "sum"}
    bundles, told = federate(tmp_path, data, 12, model=model, method=method)
    assert in_process(data, bundles["a"]).status == DIVERGED
    assert {summary.status for summary in told.summaries.values()} == {KEPT}
    assert all(networks.NOT_EVALUATED in summary.notes for summary in told.summaries.values())


def test_a_party_started_again_after_the_end_keeps_theta_0_and_the_result(tmp_path: Path) -> None:
    data, method = four_clinics(), {**METHODS["svfl"], "stepsize": 0.1}
    model = {"kind": "split", "client": "mlp", "aggregation": "sum"}
    bundles, _ = federate(tmp_path, data, 3, model=model, method=method)
    again = Node(
        bundles["b"],
        tmp_path / "runs" / "b",
        Participant(bundles["b"], table_of(data, bundles["b"])),
        None,
    )
    assert run_all({"b": again}) == {"b": KEPT}
    assert read_summary(tmp_path / "runs" / "b").unjudged == ""
    assert_same_networks(tmp_path, bundles, in_process(data, bundles["a"]))


def test_a_result_that_was_missing_at_first_takes_the_networks_away(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(final_check, "UNREACHABLE_TIMEOUT_SECONDS", 1.0)
    monkeypatch.setattr(ending, "UNREACHABLE_STAY_SECONDS", 2.0)
    data, method = four_clinics(), {**METHODS["svfl"], "stepsize": 0.5}
    bundles = bundles_for(
        tmp_path, 12, model={"kind": "split", "client": "mlp", "aggregation": "sum"}, method=method
    )

    def nodes(last: type[Node] = Node) -> dict[str, Node]:
        kinds = {"d": last}
        return {
            name: kinds.get(name, Node)(
                bundle, tmp_path / "runs" / name, Participant(bundle, table_of(data, bundle)), None
            )
            for name, bundle in bundles.items()
        }

    run_killing(nodes(KilledAtEnd), "d")
    assert {read_summary(tmp_path / "runs" / name).status for name in "abc"} == {KEPT}
    assert len(list(tmp_path.glob("runs/*/*.safetensors"))) == 4  # of three parties and the server
    assert set(run_all(nodes()).values()) == {DIVERGED}
    assert not list(tmp_path.glob("runs/*/*.safetensors"))
