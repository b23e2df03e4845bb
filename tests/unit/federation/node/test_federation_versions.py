"""Versions that do not fit: peers that speak another protocol, and folders of a version with
another format."""

import json
from pathlib import Path
from typing import Any

import pytest

from hubs import Hub, Passing, linear
from mtcd.core.errors import ConfigError
from mtcd.core.version import JOURNAL_FORMAT, PROTOCOL, VERSION
from mtcd.federation.node.folder import RunFolder
from mtcd.federation.node.opening import Agreed
from mtcd.federation.node.refusal import UnableError
from problems import MODELS, make_data

DATA = make_data(MODELS[0], 8, [1, 1], seed=0)
STCD = {"server": None, "method": {"kind": "stcd", "stepsize": 0.01}, "stop": {"iterations": 20}}

AGREED = Agreed("run1", {}, b"", b"")


def hub(folder: Path) -> Hub:
    return Hub(folder, DATA.clients, linear(DATA), **STCD)


def hello(protocol: Any, version: Any = "9.9") -> Passing:
    return Passing(
        "c1",
        "c0",
        "hello",
        json.dumps({"protocol": protocol, "version": version, "new": 1}).encode(),
    )


@pytest.mark.parametrize(("protocol", "older"), [(PROTOCOL + 1, "c0"), (PROTOCOL - 1, "c1")])
def test_a_peer_of_another_protocol_is_refused_until_it_speaks_ours(
    protocol: int, older: str, tmp_path: Path
) -> None:
    ready = Passing("c1", "c0", "ready", b"run")
    with hub(tmp_path) as parties:
        parties.begin()
        answer = parties.ask(hello(protocol))
        assert json.loads(answer[1:]) == {"protocol": PROTOCOL, "version": VERSION}
        refusal = parties.ask(ready)
        assert refusal[:1] == b"\1"
        said = next(line for line in parties.shown if "protocol" in line)
        assert (
            f"c1 speaks protocol {protocol} (mtcd 9.9), c0 speaks protocol {PROTOCOL} (mtcd "
            f"{VERSION})" in said
        )
        assert f"upgrade mtcd at {older}" in said
        assert said.endswith(refusal[1:].decode())
        assert parties.ask(Passing("c1", "c0", "relay", b"")) == refusal
        parties.nodes["c0"].context.say_waiting(["c1"])
        assert f"upgrade mtcd at {older}" in parties.shown[-1]
        parties.ask(hello(PROTOCOL))
        assert parties.ask(ready) != refusal
        parties.run()
        assert {node.status for node in parties.nodes.values()} == {"iterations"}


def test_both_parties_of_a_link_learn_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """c1 has another version, which is patched in while it writes and reads a hello."""
    from mtcd.federation.node import context

    with hub(tmp_path) as parties:
        mine = parties.nodes["c1"].context._handshake
        for act in ("greet", "_compare", "_receive"):
            original = getattr(mine, act)

            def patched(*words: Any, original: Any = original) -> None:
                with monkeypatch.context() as other:
                    other.setattr(context, "PROTOCOL", PROTOCOL + 1)
                    other.setattr(context, "VERSION", "9.9")
                    original(*words)

            setattr(mine, act, patched)
        mine.rpc.on("hello", mine._receive)
        parties.begin()
        for name, other in (("c0", "c1"), ("c1", "c0")):
            parties.nodes[name].context._handshake.greet(other)
        with pytest.raises(UnableError, match="c1 cannot take part.* speaks protocol"):
            parties.run()
        assert all(node.trainer is None for node in parties.nodes.values())
        for name, other in (("c0", "c1"), ("c1", "c0")):
            said = [line for line in parties.shown if f" {name}: {other} speaks protocol" in line]
            assert said
            assert all(
                str(one) in said[0] for one in (PROTOCOL, PROTOCOL + 1, "upgrade mtcd at c0")
            )


@pytest.mark.parametrize(
    "body", [b"", b"[]", b'{"protocol": "6", "version": "1"}', b'{"protocol": 6}', b"[" * 10**5]
)
def test_a_hello_that_is_none_is_refused(body: bytes, tmp_path: Path) -> None:
    with hub(tmp_path) as parties:
        answer = parties.ask(Passing("c1", "c0", "hello", body))
        assert answer[:1] == b"\1"
        assert not parties.nodes["c0"].rpc.incompatible


@pytest.fixture
def version_file(tmp_path: Path) -> Path:
    """That of a run folder."""
    folder = RunFolder(tmp_path)
    folder.agree(AGREED)
    folder.close()
    return tmp_path / "version.json"


def resume(version_file: Path) -> None:
    folder = RunFolder(version_file.parent)
    try:
        known = folder.agreed()
        assert known[0] == AGREED
    finally:
        folder.close()


@pytest.mark.parametrize("key", ["protocol", "journal"])
def test_the_folder_of_another_version_is_refused(key: str, version_file: Path) -> None:
    version_file.write_text(
        json.dumps(json.loads(version_file.read_text()) | {key: 99, "mtcd": "9.9"})
    )
    ours = rf"mtcd {VERSION} \(protocol {PROTOCOL}, journal format {JOURNAL_FORMAT}\)"
    with pytest.raises(
        ConfigError, match=rf"run of mtcd 9\.9 \(.*99.* and this is {ours}.*end it with mtcd 9\.9"
    ):
        resume(version_file)


def test_the_folder_of_another_version_with_the_same_numbers_is_used(version_file: Path) -> None:
    version_file.write_text(version_file.read_text().replace(VERSION, "0.0.9"))
    resume(version_file)
    assert json.loads(version_file.read_text()) == {
        "mtcd": VERSION,
        "protocol": PROTOCOL,
        "journal": JOURNAL_FORMAT,
    }
    version_file.unlink()  # as of versions from before this file, which had journals of format 8
    with pytest.raises(ConfigError, match="journal format 8"):
        resume(version_file)


@pytest.mark.parametrize("damage", ["", "[1]", "{"])
def test_a_damaged_version_file_is_refused(damage: str, version_file: Path) -> None:
    version_file.write_text(damage)
    with pytest.raises(ConfigError, match="cannot be read"):
        resume(version_file)
