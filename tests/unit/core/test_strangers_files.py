"""Files and names from somebody else: reading them runs nothing, and reaches nothing outside their
place."""

import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

import mtcd
from commands import run
from federations import written
from mtcd.core.errors import ConfigError, MtcdError
from mtcd.federation.file import read_federation

CONFIG = """
data: {synthetic: multinomial, samples: 60, features: 8, clients: 2}
model: {kind: split, client: "trap:make", fusion: FUSION}
method: {kind: svfl, batch: 20, stepsize: 0.05}
"""


@pytest.fixture
def trap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A config of a stranger, with code beside it that leaves a file when it runs."""
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "config.yaml").write_text(CONFIG.replace("FUSION", "linear"))
    (tmp_path / "trap.py").write_text(
        "open('proof', 'w').close()\nfrom torch import nn\ndef make(shape): return "
        "nn.Linear(*shape, 2)"
    )
    return tmp_path / "proof"


def test_inspecting_a_config_runs_no_code_unless_asked_to(
    trap: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("inspect", "config.yaml") == 2
    told = " ".join(capsys.readouterr().err.split())
    for words in ("model.client trap:make", str(trap.parent), "--run-code", "Read it first"):
        assert words in told
    assert not trap.exists()
    assert run("inspect", "config.yaml", "--run-code") == 0
    assert trap.exists()


def test_code_of_the_fusion_counts_too(trap: Path) -> None:
    changes = [
        "--set",
        "model.client=mlp",
        "--set",
        "model.fusion=os:system",
        "--set",
        "model.fusion_settings={a: 1}",
    ]
    assert run("inspect", "config.yaml", *changes) == 2


def test_planning_for_a_split_network_runs_no_code(
    trap: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("plan", "config.yaml") == 2
    assert "linear models" in capsys.readouterr().err
    assert not trap.exists()


def test_a_run_folder_of_a_stranger_runs_no_code_unless_asked_to(trap: Path) -> None:
    assert run("train", "config.yaml", "--out", "out", "--quiet", "--set", "stop.epochs=1") == 0
    trap.unlink()
    sys.modules.pop("trap", None)
    with pytest.raises(ConfigError, match=r"run_code=True"):
        mtcd.load_run("out")
    assert not trap.exists()
    assert mtcd.load_run("out", run_code=True).modules
    assert trap.exists()


@pytest.mark.parametrize("table", ["/etc/passwd", "../../secret.csv", "a/../../b.csv", ".."])
def test_a_bundle_does_not_choose_files_of_the_host(table: str, tmp_path: Path) -> None:
    data = {"address": "127.0.0.1:7002", "data": {"table": table}}
    with pytest.raises(MtcdError, match="--data"):
        read_federation(written(tmp_path, parties__b=data))


def test_nor_does_one_whose_file_was_changed(tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    from mtcd.federation.administrator import init_federation
    from mtcd.federation.credentials.bundle import read_bundle

    init_federation(written(tmp_path), tmp_path / "bundles", 90)
    path = tmp_path / "bundles" / "b" / "party.yaml"
    content = yaml.safe_load(path.read_text())
    content["data"]["table"] = "/etc/passwd"
    path.write_text(yaml.safe_dump(content))
    with pytest.raises(MtcdError, match="not a path inside the bundle"):
        read_bundle(path.parent)


@pytest.mark.parametrize("name", ["log.jsonl", "journal.0", "agreed.bin"])
def test_a_link_in_a_run_folder_is_not_written_through(name: str, tmp_path: Path) -> None:
    from mtcd.federation.node.folder import RunFolder

    (tmp_path / "run").mkdir()
    (tmp_path / "run" / name).symlink_to(tmp_path / "precious")
    with pytest.raises(ConfigError, match="symbolic link"):
        RunFolder(tmp_path / "run")
    assert not (tmp_path / "precious").exists()


def test_a_run_folder_in_a_bundle_that_points_elsewhere_has_to_be_named(tmp_path: Path) -> None:
    from mtcd.federation.commands.party import own_run

    (tmp_path / "run").symlink_to(tmp_path)
    with pytest.raises(ConfigError, match="--out"):
        own_run(tmp_path)
    (tmp_path / "run").unlink()
    assert own_run(tmp_path) == tmp_path / "run"


def test_addresses_in_brackets_are_shown_as_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("cryptography")
    file = written(tmp_path, parties__a="[fd00::red]:7447")  # no IPv6 number
    assert run("federation", "init", str(file), "--out", str(tmp_path / "bundles")) == 2
    assert "[fd00::red]:7447" in "".join(capsys.readouterr())


@pytest.mark.parametrize("odd", ["[/bold]", "[red]x", "$\\frac$", "../up", "a/b", "\x1b[2J"])
@pytest.mark.parametrize("command", [["train", "--out", "here"], ["inspect"]])
def test_odd_names_of_clients_and_columns_are_only_names(
    odd: str,
    command: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "inside").mkdir()
    monkeypatch.chdir(tmp_path / "inside")
    rows = "\n".join(f"{i},{i % 3},{i % 2}" for i in range(8))
    Path("table.csv").write_text(f'"{odd}1","{odd}2",y\n{rows}\n')
    content: dict[str, Any] = {
        "data": {
            "table": "table.csv",
            "label": "y",
            "clients": {odd: [f"{odd}1"], "other": [f"{odd}2"]},
        },
        "method": {"kind": "mtcd", "tokens": 1, "hops": 2, "start": odd},
        "stop": {"iterations": 20},
    }
    Path("config.yaml").write_text(yaml.safe_dump(content))
    assert run(command[0], "config.yaml", *command[1:]) == 0
    shown = capsys.readouterr()
    assert "\x1b[2J" not in shown.out + shown.err
    if command == ["inspect"] and "\x1b" not in odd:
        assert odd in shown.out
    assert [path.name for path in tmp_path.iterdir()] == ["inside"]
    assert {path.name for path in Path.cwd().iterdir()} <= {"table.csv", "config.yaml", "here"}
