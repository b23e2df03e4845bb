"""Certificates that are renewed and revoked: what becomes of a party, and of all others' kits."""

from pathlib import Path

import pytest

pytest.importorskip("cryptography")

from federations import written
from kits_on_disk import EVERYBODY, certificate, refused
from mtcd.core.errors import MtcdError
from mtcd.federation.administrator import init_federation, renew, revoke, standings
from mtcd.federation.credentials import private_files
from mtcd.federation.credentials.bundle import read_kit
from mtcd.federation.credentials.certificates import common_name


@pytest.fixture
def kits(tmp_path: Path) -> Path:
    init_federation(written(tmp_path, alignment="hashed"), tmp_path / "kits", 90)
    return tmp_path / "kits"


def test_a_renewal_that_fails_leaves_the_kit_as_it_was(
    kits: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {path: path.read_bytes() for path in (kits / "a").iterdir()}

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(private_files.os, "fsync", full)
    with pytest.raises(MtcdError, match="No space left"):
        renew(kits, "a", 90)
    assert before == {path: path.read_bytes() for path in (kits / "a").iterdir()}


def test_a_renewal_keeps_the_name_and_touches_nobody_else(kits: Path) -> None:
    old = {name: (kits / name / "party.yaml").read_bytes() for name in EVERYBODY}
    keys, serial = (kits / "a" / "key.pem").read_bytes(), certificate(kits, "a").serial_number
    renew(kits, "a", 200)
    assert common_name(certificate(kits, "a")) == "a"
    assert certificate(kits, "a").serial_number != serial
    assert (kits / "a" / "key.pem").read_bytes() != keys
    assert old == {name: (kits / name / "party.yaml").read_bytes() for name in EVERYBODY}
    assert read_kit(kits / "a").revoked == frozenset()
    assert next(s.days_left for s in standings(kits) if s.name == "a") == 199


def test_who_is_revoked_is_refused_and_comes_back_under_a_new_name(kits: Path) -> None:
    renew(kits, "b", 90)
    serial = certificate(kits, "b").serial_number
    assert revoke(kits, "b")
    refused(kits, "b", "was revoked")
    a = read_kit(kits / "a")
    assert serial in a.revoked
    assert len(a.revoked) == 2  # the one before the renewal too
    assert a.config.peers["b"].certificate is None
    assert "'b' was revoked" in a.notes[0]
    assert not revoke(kits, "b")
    assert [s.state for s in standings(kits)] == ["valid", "revoked", "valid", "valid", "valid"]
    stolen = {name: (kits / "b" / name).read_bytes() for name in ("key.pem", "cert.pem")}
    renew(kits, "b", 90)
    assert common_name(certificate(kits, "b")) == "b~2"
    assert read_kit(kits / "b").config.certificate == "b~2"
    assert read_kit(kits / "a").config.peers["b"].certificate == "b~2"
    assert serial in read_kit(kits / "a").revoked
    private_files.write_files(kits / "b", stolen)
    refused(kits, "b", "is for 'b', but this kit is for 'b~2'")


def test_the_operator_is_revoked_and_renewed_as_all_others_are(kits: Path) -> None:
    renew(kits, "operator", 90)
    assert read_kit(kits / "a").config.operator == "operator"
    revoke(kits, "operator")
    refused(kits, "operator", "was revoked")
    assert {read_kit(kits / name).config.operator for name in ("a", "b", "c", "server")} == {None}
    renew(kits, "operator", 90)
    assert read_kit(kits / "operator").config.certificate == "operator~2"
    assert {read_kit(kits / name).config.operator for name in ("a", "b", "c", "server")} == {
        "operator~2"
    }


def test_a_kit_that_was_given_away_can_be_renewed(kits: Path) -> None:
    for path in (kits / "a").iterdir():
        path.unlink()
    (kits / "a").rmdir()
    revoke(kits, "c")
    refused(kits, "a", "key.pem")  # what there is to send: the public part
    assert {path.name for path in (kits / "a").iterdir()} == {
        "party.yaml",
        "ca.pem",
        "revoked.pem",
        "README.txt",
        "expiry.json",
    }
    renew(kits, "a", 90)
    assert read_kit(kits / "a").alignment_secret() == read_kit(kits / "b").alignment_secret()


def test_unknown_names_and_damaged_authorities_are_told(kits: Path, tmp_path: Path) -> None:
    with pytest.raises(MtcdError, match="No party is called 'servr'; did you mean 'server'"):
        renew(kits, "servr", 90)
    with pytest.raises(MtcdError, match="No party is called '../a'"):
        revoke(kits, "../a")
    with pytest.raises(MtcdError, match="federation init makes one"):
        standings(tmp_path)
    (kits / "authority" / "issued.json").write_text("{}x")
    with pytest.raises(MtcdError, match="issued.json is damaged"):
        standings(kits)
    (kits / "authority" / "ca.key").chmod(0o644)
    with pytest.raises(MtcdError, match="chmod 600"):
        standings(kits)
