"""The benchmarks still run, on something tiny."""

import pytest
from benchmarks import calls, hops, masking, reading, sealed_cases, sealing, wire

import mtcd
from mtcd.data.synthetic import synthetic
from mtcd.methods.mtcd.mtcd import STCD
from mtcd.models.glm.model import Glm
from mtcd.network.topology import make_network


def test_hops_and_syncs_are_reported_as_ratios(capsys: pytest.CaptureFixture[str]) -> None:
    data = synthetic("ridge", 20, 12, 4)
    problem, network = Glm("ridge").problem(data), make_network("cycle", data.clients)
    hops.hop("a hop", problem, network, STCD(local_updates=3, stepsize=1e-4), 10)
    hops.sync("a visit", problem, network, 2, 4, floor=1e-6)
    assert capsys.readouterr().out.count("ratio") == 2


def test_tokens_as_bytes_are_reported_as_ratios(capsys: pytest.CaptureFixture[str]) -> None:
    wire.token(20, repeats=2)
    assert capsys.readouterr().out.count("ratio") == 3


def test_masks_are_timed(capsys: pytest.CaptureFixture[str]) -> None:
    """Every time is reported; how long anything took depends on the machine, so no time is
    checked."""
    masking.main(sizes=[(3, 20), (4, 30)])
    single, double, *others = capsys.readouterr().out.splitlines()
    assert single.startswith("K=  3 N=     20:")
    assert single.count(" ms") == 3
    assert double.split()[0] == "double:"
    assert double.count(" ms") == 3
    assert len(others) == 2


def test_reading_is_reported_against_polars(capsys: pytest.CaptureFixture[str]) -> None:
    reading.main(rows=200, rounds=1)
    assert capsys.readouterr().out.count("ratio") == 2


def test_a_sealed_visit_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    sealing.main(samples=(50,), columns=(2,), rounds=1)
    head, line = capsys.readouterr().out.splitlines()
    assert len(line.split()) == 12
    assert "visit ms" in head


@pytest.mark.parametrize(
    ("name", "method"),
    [
        ("STCD", mtcd.STCD(stepsize=1e-3)),
        ("MTCD, 3 tokens", mtcd.MTCD(tokens=3, hops=8, stepsize=1e-3)),
    ],
)
def test_a_visit_keeps_its_budget_of_calls_and_files(name: str, method: mtcd.MTCD) -> None:
    visit = calls.counted(calls.linear(method, 4000))
    assert visit.visits > 3000
    most_calls, most_files = calls.BUDGET[name]
    assert visit.calls <= most_calls
    assert visit.files <= most_files


def test_cases_of_sealed_training_say_where_they_end() -> None:
    arrives, capped = sealed_cases.CASES[0], sealed_cases.CASES[3]
    assert "| 6 | 4 tours |  |" in sealed_cases.line(arrives, "clear")
    assert "| 1 | gap 1.5e-01 at the cap | 7 |" in sealed_cases.line(capped, "clear")
