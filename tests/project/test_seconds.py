"""The benchmark of seconds, against the paper's formula; the one of mini-batches still runs."""

import sys
from pathlib import Path

import pytest
from benchmarks import minibatches, seconds


def test_a_round_takes_the_time_of_the_papers_formula() -> None:
    """K messages of 1,000 numbers up and K down share the server's 10 Mb/s: 2 K N / bandwidth."""
    place = seconds.Place(latency_ms=0, mbps=1000, server_mbps=10)
    rounds = seconds.contenders(4)[1]
    assert rounds.name.startswith("SVFL, step")
    took = seconds.seconds(4, rounds, seconds.Count(True, 3, 1000.0), place.links(4))
    assert took == pytest.approx(3 * 2 * 4 * 1000 * 64 / 10e6, rel=0.05)


def test_a_dear_server_does_not_slow_down_tours() -> None:
    tours = next(one for one in seconds.contenders(4) if one.name == "accelerated tours")
    count = seconds.Count(True, 40, 1000.0)
    near = seconds.seconds(4, tours, count, seconds.Place(1, 10, 10).links(4))
    dear = seconds.seconds(4, tours, count, seconds.Place(1, 10, 0.1).links(4))
    # 40 hops of a latency, 1,000 numbers at 10 Mb/s, and a visit
    assert near == pytest.approx(40 * (1e-3 + 64e3 / 10e6 + seconds.VISIT_SECONDS), rel=0.05)
    assert dear == near


def test_counts_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trained = []

    def train(clients: int, contender: seconds.Contender) -> seconds.Count:
        trained.append(clients)
        return seconds.Count(True, 7, 12.5)

    monkeypatch.setattr(seconds, "trained", train)
    contender = seconds.contenders(4)[0]
    first = seconds.Counts(tmp_path / "counts.json").of(4, contender)
    again = seconds.Counts(tmp_path / "counts.json").of(4, contender)
    assert first == again == seconds.Count(True, 7, 12.5)
    assert trained == [4]


def test_mini_batches_and_tours_have_a_row_each(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        sys, "argv", ["minibatches", "--samples", "2000", "--features", "16", "--most", "2"]
    )
    minibatches.main()
    rows = capsys.readouterr().out.splitlines()[2:]
    names = [*minibatches.tours(16, 2000), *minibatches.mini_batches(2000)]
    assert len(rows) == len(names)
    for row, name in zip(rows, names, strict=True):
        assert row.startswith(f"| {name} |")
