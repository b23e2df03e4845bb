"""What a run needs of a party is checked before anything is trained, and who cannot take part tells
all others."""

import json
import os
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from commands import run
from federations import written
from hubs import Hub, Passing, linear
from live import make_bundles
from mtcd.core.errors import DataError
from mtcd.federation import preflight as checks
from mtcd.federation.administrator import init_federation
from mtcd.federation.credentials.bundle import Bundle, read_bundle
from mtcd.federation.names import parse_address
from mtcd.federation.node import opening
from mtcd.federation.node.link import IncomingRequest
from mtcd.federation.node.refusal import Refusal, UnableError
from mtcd.federation.node.rpc import Rpc
from mtcd.federation.preflight import (
    FAILED,
    MET,
    NOTE,
    Finding,
    fits_version,
    needed_packages,
    preflight,
)
from mtcd.models.glm.party import participant
from own_parts import model_section
from ports import reserved_ports
from problems import MODELS, make_data
from waiting import PATIENCE

CLIENTS = ("a", "b", "c", "d")
WITHOUT = "import sys; sys.modules[sys.argv.pop(1)] = None; from mtcd.cli.app import main; main()"
"""A process in which a package is missing, as an interpreter sees it."""
SEALED: dict[str, Any] = {
    "model": {"kind": "logistic", "l2": 1.0},
    "privacy": {"mode": "sealed"},
    "labels__shared_with": None,
    "method": {"kind": "mtcd", "walk": "tour"},
    "stop": {"iterations": 2},
}
SPLIT: dict[str, Any] = {
    "model": {"kind": "split", "client": "mlp", "fusion": "linear"},
    "labels__shared_with": ["parties", "server"],
    "method": {"kind": "mtcd", "tokens": 1, "hops": 2, "batch": 4, "stepsize": 0.1},
}


def tables(folder: Path, clients: tuple[str, ...], **columns: Any) -> dict[str, Path]:
    """A table for each client; the first holds the labels."""
    some = np.random.default_rng(5)
    made = {}
    for name in clients:
        x = some.normal(size=(30, 2))
        label = ",outcome" if name == clients[0] else ""
        rows = [
            f"s{i},{a:.6f},{b:.6f}" + (f",{i % 2}" if label else "") for i, (a, b) in enumerate(x)
        ]
        made[name] = folder / f"{name}.csv"
        made[name].write_text("\n".join([f"id,x,y{label}", *rows]) + "\n")
    return made


def bundles_of(
    folder: Path, clients: tuple[str, ...] = CLIENTS, **changes: Any
) -> dict[str, Bundle]:
    return make_bundles(folder, clients, **{"alignment": "hashed", **changes})


def failures_of(bundle: Bundle, table: Path, **more: Any) -> list[Finding]:
    """What the party of a bundle would fail by, with this table."""
    found = preflight(bundle.folder, {"data": table, "key": "id"}, **more)
    return [one for one in found if one.level == FAILED]


def by_requirement(found: list[Finding], level: str) -> dict[str, str]:
    return {one.requirement: one.sentence for one in found if one.level == level}


# What one party checks alone


def test_a_party_that_has_everything_is_told_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundles, made = bundles_of(tmp_path), tables(tmp_path, CLIENTS)
    found = preflight(bundles["b"].folder, {"data": made["b"], "key": "id"})
    assert not by_requirement(found, FAILED)
    met = by_requirement(found, MET)
    assert set(met) == {
        "packages",
        "certificates",
        "clock",
        "table",
        "columns",
        "settings",
        "addresses",
    }
    assert "30 rows" in met["table"]
    # nobody is up
    assert "does not accept a connection" in by_requirement(found, NOTE)["addresses"]
    assert not list(tmp_path.rglob("run"))  # nothing was begun
    words = [str(bundles["b"].folder), "--data", str(made["b"]), "--id", "id", "--check"]
    assert run("party", *words) == 0
    assert "has all that the run needs" in capsys.readouterr().out
    assert run("server", str(bundles["server"].folder), "--check") == 0


@pytest.mark.parametrize(
    ("given", "requirement", "words"),
    [
        ({"data": "nowhere.csv", "key": "id"}, "table", "nowhere.csv"),
        ({"key": "nobody"}, "table", "nobody"),
        ({"key": "id", "columns": ["x", "zz"]}, "columns", "zz"),
        ({"key": "id", "columns": ["x", "w"]}, "columns", "secret text"),
        ({"key": "id", "label": "gone"}, "labels", "gone"),
        ({"key": "id", "weights": "w"}, "labels", "secret text"),
        ({"key": None}, "columns", "--id"),
    ],
)
def test_what_is_wrong_with_a_table_is_found_and_others_learn_no_more_than_the_kind(
    given: dict[str, Any], requirement: str, words: str, tmp_path: Path
) -> None:
    bundles = bundles_of(tmp_path)
    table = tables(tmp_path, CLIENTS)["a"]
    lines = table.read_text().splitlines()
    table.write_text(
        "\n".join([f"{lines[0]},w", *(f"{line},secret text" for line in lines[1:])]) + "\n"
    )
    found = preflight(bundles["a"].folder, {"data": table, "columns": ["x", "y"], **given})
    (failure,) = [one for one in found if one.level == FAILED]
    assert failure.requirement == requirement
    assert words in failure.sentence
    for private in ("nowhere", "nobody", "zz", "secret", "gone", ".csv"):
        assert private not in failure.told
    assert failure.told


def test_labels_that_do_not_fit_the_model_are_found(tmp_path: Path) -> None:
    bundles = bundles_of(tmp_path, model={"kind": "logistic", "l2": 0.1})
    table = tables(tmp_path, CLIENTS)["a"]
    table.write_text(table.read_text().replace(",1\n", ",2\n", 3))
    assert [one.requirement for one in failures_of(bundles["a"], table)] == ["labels"]


def test_a_bundle_that_cannot_be_used_is_a_finding(tmp_path: Path) -> None:
    bundles = bundles_of(tmp_path)
    (bundles["b"].folder / "cert.pem").write_bytes((bundles["a"].folder / "cert.pem").read_bytes())
    (failure,) = preflight(bundles["b"].folder)
    assert (failure.requirement, failure.level) == ("certificates", FAILED)
    assert "is for 'a'" in failure.sentence


def test_an_address_that_is_in_use_is_found(tmp_path: Path) -> None:
    bundles, made = bundles_of(tmp_path), tables(tmp_path, CLIENTS)
    host, port = bundles["b"].config.address.rsplit(":", 1)  # type: ignore[union-attr]
    with socket.create_server((host, int(port))):
        (failure,) = failures_of(bundles["b"], made["b"])
    assert failure.requirement == "addresses"
    assert "Cannot listen" in failure.sentence


def test_a_peer_whose_name_cannot_be_resolved_is_found(tmp_path: Path) -> None:
    bundle = bundles_of(tmp_path)["b"]
    peers = {
        **bundle.config.peers,
        "a": bundle.config.peers["a"].model_copy(update={"address": "nowhere.invalid:7447"}),
    }
    lost = replace(bundle, config=bundle.config.model_copy(update={"peers": peers}))
    assert "nowhere.invalid" in by_requirement(checks.peer_findings(lost), FAILED)["addresses"]


@pytest.mark.parametrize(
    ("changes", "needed", "at_server"),
    [
        ({}, set(), set()),
        ({"alignment": "psi"}, {"private_set_intersection"}, set()),
        (SEALED, {"tenseal", "zstandard"}, {"tenseal", "zstandard"}),
        ({"model": {"kind": "trees"}}, {"lightgbm"}, set()),
        (
            {"model": {"parties": {"b": "trees"}, "default": "linear", "loss": "logistic"}},
            {"lightgbm"},
            set(),
        ),
        (SPLIT, {"torch", "safetensors"}, {"torch", "safetensors"}),
    ],
)
def test_the_packages_that_are_needed_are_those_of_the_run(
    changes: dict[str, Any], needed: set[str], at_server: set[str], tmp_path: Path
) -> None:
    if "torch" in needed:
        pytest.importorskip("torch")  # the bundle of a split network is made with it
    bundles = bundles_of(tmp_path, **changes)
    always = {"cryptography", "msgpack"}
    assert set(needed_packages(bundles["b"].config)) == always | needed
    assert set(needed_packages(bundles["server"].config)) == always | at_server
    if "parties" in changes.get("model", {}):
        assert set(needed_packages(bundles["c"].config)) == always  # it has no trees


def test_a_missing_and_a_broken_and_an_old_package_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle, made = bundles_of(tmp_path, **SEALED)["b"], tables(tmp_path, CLIENTS)
    monkeypatch.setitem(sys.modules, "tenseal", None)
    real = checks.version
    monkeypatch.setattr(
        checks, "version", lambda name: "0.1" if name == "zstandard" else real(name)
    )
    found = failures_of(bundle, made["b"])
    assert [one.requirement for one in found] == ["packages", "packages"]
    assert "tenseal, which is not installed" in found[0].told
    assert "zstandard 0.1 is installed, but this mtcd works with >=0.22" in found[1].told
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "lightgbm.py").write_text("raise OSError('libgomp.so.1 is missing')\n")
    monkeypatch.syspath_prepend(str(tmp_path / "lib"))
    monkeypatch.delitem(sys.modules, "lightgbm", raising=False)
    (broken,) = checks.package_findings(["lightgbm"])
    assert "cannot be loaded (libgomp.so.1 is missing)" in broken.sentence


@pytest.mark.parametrize(
    ("there", "allowed", "fits"),
    [
        ("1.10.2", ">=1.10,<2", True),
        ("2", ">=1.10,<2", False),
        ("1.9", ">=1.10,<2", False),
        ("1.10", "<=1.10.0", True),
        ("1.10", "<1.10.0", False),
        ("1.10", ">1.10.0", False),
        ("1.10", "==1.10.0", True),
        ("1.10", "~=9.0", True),  # what cannot be compared
        ("unknown", ">=1.10", True),
        ("1.10", "~=9.0,<1.9", False),
    ],
)
def test_versions_are_compared_as_numbers(there: str, allowed: str, fits: bool) -> None:
    assert fits_version(there, allowed) is fits


def test_network_code_that_was_not_agreed_to_is_found_and_others_learn_no_more_than_that(
    tmp_path: Path,
) -> None:
    bundle, made = bundles_of(tmp_path)["b"], tables(tmp_path, CLIENTS)
    found = preflight(bundle.folder, {"data": made["b"], "key": "id"}, agreed=["0" * 64])
    (failure,) = [one for one in found if one.level == FAILED]
    assert failure.requirement == "settings"
    assert "--agree-code" in failure.sentence
    assert "network code" in failure.told
    assert "--agree-code" not in failure.told
    # all else is checked too
    assert {"packages", "certificates", "addresses"} <= set(by_requirement(found, MET))


def test_the_check_names_an_address_for_metrics_that_cannot_be_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle, made = bundles_of(tmp_path)["b"], tables(tmp_path, CLIENTS)
    words = [str(bundle.folder), "--data", str(made["b"]), "--id", "id", "--check"]
    with socket.create_server(("127.0.0.1", 0)) as other:
        where = f"127.0.0.1:{other.getsockname()[1]}"
        assert run("party", *words, "--metrics", where) == 2
    failed = [line for line in capsys.readouterr().out.splitlines() if line.startswith("failed")]
    assert len(failed) == 1
    assert where in failed[0]


# Whole federations: one cannot take part, and all end


def start(words: list[str], missing: str | None = None) -> subprocess.Popen[str]:
    command = (
        [sys.executable, "-c", WITHOUT, missing] if missing else [sys.executable, "-m", "mtcd"]
    )
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.Popen(
        [*command, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
    )


def test_a_sealed_federation_ends_if_one_member_lacks_a_package(tmp_path: Path) -> None:
    """On a path, so that the refusal passes through others."""
    lacking, package = "d", "tenseal"
    ports = reserved_ports(5)
    places = {name: f"127.0.0.1:{port}" for name, port in zip(CLIENTS, ports, strict=False)}
    changes = SEALED | {"labels__held_by": "a", "alignment": "hashed", "network": {"kind": "path"}}
    init_federation(
        written(tmp_path, parties=places, server=f"127.0.0.1:{ports[-1]}", **changes),
        tmp_path / "bundles",
        90,
    )
    made = tables(tmp_path, CLIENTS)
    running = {}
    for name in (*CLIENTS, "server"):
        words = (
            ["server"] if name == "server" else ["party", "--data", str(made[name]), "--id", "id"]
        )
        running[name] = start(
            [*words, str(tmp_path / "bundles" / name)], package if name == lacking else None
        )
    said = {name: process.communicate(timeout=PATIENCE)[0] for name, process in running.items()}
    assert {name: process.returncode for name, process in running.items()} == dict.fromkeys(
        running, 2
    ), said
    for name, text in said.items():
        assert f"need {package}, which is not installed" in text
        assert "pip install '.[sealed]'" in text
        assert "Traceback" not in text
        if name != lacking:
            assert f"because {lacking} cannot take part" in text
            assert not (tmp_path / "bundles" / name / "run" / "agreed.bin").exists()


def test_the_others_end_if_another_program_has_the_port_of_a_party(tmp_path: Path) -> None:
    """It cannot be called, so it calls all its peers to tell them."""
    bundles, made = (
        bundles_of(tmp_path, ("a", "b"), server=None, method={"kind": "stcd"}),
        tables(tmp_path, ("a", "b")),
    )
    place = parse_address(bundles["a"].config.address or "")
    with socket.create_server((place.host, place.port)):
        running = {
            name: start(
                ["party", str(bundles[name].folder), "--data", str(made[name]), "--id", "id"]
            )
            for name in bundles
        }
        said = {name: process.communicate(timeout=PATIENCE)[0] for name, process in running.items()}
    assert {name: process.returncode for name, process in running.items()} == {"a": 2, "b": 2}, said
    assert "because a cannot take part." in said["b"]
    assert "The reason: It cannot listen at its address (Address already in use)." in said["b"]


RIDGE = MODELS[0]
DATA = make_data(RIDGE, 10, [2, 1, 2], seed=3)
SETTINGS: dict[str, Any] = {"model": model_section(RIDGE), "stop": {"iterations": 9}}


def ends(hub: Hub, steps: int = 2000) -> Exception | None:
    """The first error by which a party ends; None if the run ends well."""
    try:
        for _ in range(steps):
            if all(node.loop._stopped for node in hub.nodes.values()):
                return None
            if not hub.act() and not hub.deliver() and not hub.leave():
                hub.wait()
    except Exception as error:
        return error
    raise AssertionError("nothing ended")


@pytest.mark.parametrize("off", [-7200.0, 3600.0])
def test_a_clock_that_is_far_off_is_named(
    off: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Hub(tmp_path, DATA.clients, linear(DATA), **SETTINGS) as hub:
        honest = opening.facts_of

        def facts(config: Any) -> bytes:
            told = json.loads(honest(config))
            return json.dumps({**told, "time": told["time"] + off * (config.name == "c2")}).encode()

        monkeypatch.setattr("mtcd.federation.node.opening.facts_of", facts)
        hub.begin()
        error = ends(hub)
    assert isinstance(error, UnableError)
    assert error.party == "c2"
    assert ("2.0 h behind" if off < 0 else "60 min ahead") in error.reason


def test_other_versions_are_noted_and_older_parties_are_not_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Hub(tmp_path, DATA.clients, linear(DATA), **SETTINGS) as hub:
        honest = opening.facts_of

        def facts(config: Any) -> bytes:
            told = json.loads(honest(config))
            return json.dumps(
                {**told, "packages": {**told["packages"], "msgpack": "1.99"}}
            ).encode()

        monkeypatch.setattr("mtcd.federation.node.opening.facts_of", facts)
        older = hub.nodes["c1"].rpc
        monkeypatch.setattr(
            older, "on", lambda kind, handler: kind == "check" or Rpc.on(older, kind, handler)
        )
        hub.train()
    noted = [line for line in hub.shown if "msgpack 1.99 (here" in line]
    assert any("c2 has other versions" in line for line in noted)
    assert not any("c1 has other versions" in line for line in noted)


def test_bundles_of_two_federations_are_found_before_samples_are_aligned(tmp_path: Path) -> None:
    with Hub(tmp_path, DATA.clients, linear(DATA), **SETTINGS) as hub:
        hub.nodes["c1"].bundle.config.__dict__["seed"] = 99
        hub.begin()
        error = ends(hub)
    assert isinstance(error, UnableError)
    assert error.party == "c1"
    assert "different 'federation init'" in error.reason


def test_a_party_whose_columns_fail_after_the_alignment_ends_with_its_own_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = participant.LinearParticipant.facts

    def facts(self: Any, rows: Any, labels: bytes = b"") -> bytes:
        if self.config.name == "c2":
            raise DataError("column 'income' holds 99")
        return original(self, rows, labels)

    monkeypatch.setattr(participant.LinearParticipant, "facts", facts)
    with Hub(tmp_path, DATA.clients, linear(DATA), **SETTINGS) as hub:
        hub.begin()
        error = ends(hub)
    assert str(error) == "column 'income' holds 99"
    assert not any("99" in line for line in hub.shown)


def test_once_training_has_begun_a_refusal_ends_nobody(tmp_path: Path) -> None:
    with Hub(tmp_path, DATA.clients, linear(DATA), **SETTINGS) as hub:
        hub.train()
        node = hub.nodes["c1"]
        begun = Refusal(node.context, node._has_begun)
        assert node._has_begun()
        count = node.loop._queue.qsize()
        body = json.dumps({"party": "c2", "reason": "no"}).encode()
        node.rpc._ending = False
        begun.rpc._handlers["unable"](_request("c0", body))
        assert node.loop._queue.qsize() == count  # no error is on its way


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b'{"party": "c9", "reason": "x"}',
        b'{"party": "c2"}',
        b'{"party": "c2", "reason": 3}',
    ],
)
def test_a_refusal_that_is_none_is_refused(body: bytes, tmp_path: Path) -> None:
    with Hub(tmp_path, DATA.clients, linear(DATA), **SETTINGS) as hub:
        answer = hub.ask(Passing("c1", "c0", "unable", body))
        assert answer[:1] == b"\1"
        assert hub.nodes["c0"].loop._queue.empty()


def _request(sender: str, body: bytes) -> Any:
    return IncomingRequest(sender, "unable", body, lambda answer: None)


def test_a_party_of_a_run_that_fails_at_its_restart_tells_nobody(tmp_path: Path) -> None:
    """The others train on, and would be ended in vain."""
    bundles, made = bundles_of(tmp_path, ("a", "b")), tables(tmp_path, ("a", "b"))
    out = bundles["b"].folder / "run"
    out.mkdir(mode=0o700)
    (out / "agreed.bin").write_bytes(b"x")
    words = ["party", str(bundles["b"].folder), "--data", str(made["b"]), "--id", "gone"]
    process = start(words)
    text, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2
    assert "Telling" not in text
    assert read_bundle(bundles["b"].folder).config.name == "b"
