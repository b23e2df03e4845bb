"""The model of many machines: against arithmetic by hand, and against simulated time."""

import json
from pathlib import Path

import pytest

import mtcd
from mtcd.cli.app import main
from mtcd.core.errors import ConfigError
from mtcd.network.topology import make_network
from mtcd.planner.links import read_links
from mtcd.planner.scaling import Machine, Work, placed, predict
from mtcd.planner.virtual_time import VirtualTime

N, K = 1000, 12
MACHINE = Machine(
    latency_ms=2.0, bandwidth_mbps=100.0, server_mbps=50.0, cores=2, memory_gb=1.0, process_mb=0.0
)
LATENCY, LINK, SERVER = 2e-3, 64 * N / 100e6, 64 * N / 50e6


def names(K: int) -> list[str]:
    return [f"client_{k}" for k in range(K)]


def work(kind: str = "cycle") -> Work:
    return Work(make_network(kind, names(K)), N, 1, 0, 2**30)


def test_neighbours_share_a_machine() -> None:
    where = placed(make_network("path", names(K)), 3)
    assert where == sorted(where)
    assert [where.count(one) for one in range(3)] == [4, 4, 4]
    assert placed(make_network("path", names(K)), 99) == list(range(K))
    assert len(set(placed(make_network("empty", names(K)), 3))) == 3


def test_a_lone_token_pays_for_the_hops_that_leave_a_machine() -> None:
    method = mtcd.STCD(1, 1.0, walk="tour")
    one, three, all_apart = (
        predict(method, 1e-3, work(), MACHINE, machines) for machines in (1, 3, K)
    )
    assert one.seconds == pytest.approx(1e-3)
    # a tour of 12 hops leaves three times
    assert three.parts["latency"] == pytest.approx(LATENCY * 3 / K, rel=0.05)
    assert all_apart.seconds == pytest.approx(1e-3 + LATENCY + LINK)
    assert (one.limit, all_apart.limit) == ("compute", "latency")


def test_rounds_of_a_server_are_limited_by_its_link() -> None:
    found = predict(mtcd.SVFL(1, 1.0), 1e-3, work(), MACHINE, K)
    assert found.parts == pytest.approx(
        {
            "compute": 1e-3,
            "latency": 2 * LATENCY,
            "link bandwidth": 0.0,
            "server link": 2 * K * SERVER,
        }
    )
    assert found.limit == "server link"
    crowded = predict(mtcd.SVFL(1, 1.0), 1e-3, work(), MACHINE, 2)
    assert crowded.parts["compute"] == pytest.approx(1e-3 * K / (2 * 2))


def test_tokens_sync_once_in_so_many_hops_and_share_cores() -> None:
    method = mtcd.MTCD(4, 8, 1, 1.0, walk="tour")
    found = predict(method, 1e-3, work(), MACHINE, K)
    assert found.parts["server link"] == pytest.approx(2 * 4 * SERVER / 8)
    assert found.parts["latency"] == pytest.approx(LATENCY + 2 * LATENCY / 8)
    # 4 tokens, 2 cores
    assert predict(method, 1e-3, work(), MACHINE, 1).parts["compute"] == pytest.approx(2e-3)


def test_memory_gives_out_first_where_the_data_does_not_fit() -> None:
    assert predict(mtcd.STCD(1, 1.0), 1e-3, work(), Machine(memory_gb=0.5), 1).limit == "memory"
    assert predict(mtcd.STCD(1, 1.0), 1e-3, work(), Machine(memory_gb=0.5), 4).fits


def test_the_model_agrees_with_simulated_time(tmp_path: Path) -> None:
    """Each client on a machine of its own; the simulation knows nothing of the model."""
    (tmp_path / "links.csv").write_text(
        "from,to,latency_ms,bandwidth_mbps\n*,*,2,100\nserver,*,2,100\n"
    )
    data, network = (
        mtcd.synthetic("ridge", samples=N, features=24, clients=K),
        make_network("cycle", names(K)),
    )
    for method in (mtcd.STCD(1, 1e-6, walk="tour"), mtcd.MTCD(2, 24, 1, 1e-6, walk="tour")):
        engine = VirtualTime(read_links(tmp_path / "links.csv", network), 1e-3)
        stop = mtcd.Stop(iterations=480)
        run = mtcd.train(data, mtcd.Glm("ridge"), network, method, stop, engine=engine, metrics=())
        model = predict(
            method,
            1e-3,
            work(),
            Machine(latency_ms=2.0, bandwidth_mbps=100.0, server_mbps=100.0),
            K,
        )
        assert run.final.seconds / 480 == pytest.approx(model.seconds, rel=0.1)


def test_bad_descriptions_of_a_machine_are_refused() -> None:
    for bad in (
        "latncy_ms=1",
        "latency_ms=x",
        "latency_ms=-1",
        "cores=0",
        "cores=1.5",
        "bandwidth_mbps=0",
    ):
        with pytest.raises(ConfigError):
            Machine.parse([bad])


def test_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("c.yaml").write_text(
        "data: {synthetic: ridge, samples: 40, features: 12, clients: 6}\nmodel: {kind: ridge, "
        "alpha: 1}\n"
        "network: {kind: cycle}\nmethod: {kind: mtcd, tokens: 2, hops: 4, local_updates: 5}\nstop: "
        "{gap: 1e-2}\n"
    )
    command = ["plan", "c.yaml", "--budget", "3s", "--machines", "30"]
    with pytest.raises(SystemExit, match="0"):
        main([*command, "--machine", "latency_ms=5", "--json"])
    said = json.loads(capsys.readouterr().out)
    rows = {row["machines"]: row for row in said["machines"]}
    assert set(rows) == {1, 10, 30, 100, 1000}
    assert rows[30]["method"] == said["chosen"]["method"]
    assert rows[1]["parts"]["latency"] == 0.0
    for wrong in (
        ["--machine", "cores=2"],
        ["--machines", "0"],
        ["--machines", "2", "--links", "c.yaml"],
    ):
        with pytest.raises(SystemExit, match="2"):
            main(["plan", "c.yaml", *wrong])
        assert capsys.readouterr().err


@pytest.mark.parametrize(
    ("target", "budget", "said"),
    [
        ("1e-12", "0.001s", "larger --budget or --target"),
        ("1e12", "1s", "nothing is to be trained"),
    ],
)
def test_without_a_measurement_there_is_no_advice_on_machines(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    target,
    budget,
    said,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("c.yaml").write_text(
        "data: {synthetic: ridge, samples: 60, features: 80, clients: 6}\nmodel: {kind: ridge, "
        "alpha: 1e-3}\n"
        "network: {kind: path}\nmethod: {kind: stcd}\n"
    )
    command = ["plan", "c.yaml", "--budget", budget, "--target", target, "--machines", "30"]
    with pytest.raises(SystemExit, match="0"):
        main(command)
    shown = " ".join(capsys.readouterr().out.split())
    assert (
        f"No advice on 30 machines: {'no candidate' if target == '1e-12' else 'the start'}" in shown
    )
    assert said in shown
    assert "nan" not in shown
    assert "gives out first" not in shown

    with pytest.raises(SystemExit, match="0"):
        main([*command, "--json"])
    assert json.loads(capsys.readouterr().out)["machines"] == []
