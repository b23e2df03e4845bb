"""Certificates that are renewed and revoked: what becomes of a party, and of all others' bundles."""

from pathlib import Path

import pytest

from bundles_on_disk import EVERYBODY, certificate, refused
from federations import written
from mtcd.core.errors import MtcdError
from mtcd.federation.administrator import init_federation, renew, revoke, standings
from mtcd.federation.credentials import private_files
from mtcd.federation.credentials.bundle import read_bundle
from mtcd.federation.credentials.certificates import common_name


@pytest.fixture
def bundles(tmp_path: Path) -> Path:
    init_federation(written(tmp_path, alignment="hashed"), tmp_path / "bundles", 90)
    return tmp_path / "bundles"


def test_a_renewal_that_fails_leaves_the_bundle_as_it_was(
    bundles: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {path: path.read_bytes() for path in (bundles / "a").iterdir()}

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(private_files.os, "fsync", full)
    with pytest.raises(MtcdError, match="No space left"):
        renew(bundles, "a", 90)
    assert before == {path: path.read_bytes() for path in (bundles / "a").iterdir()}


def test_a_renewal_keeps_the_name_and_touches_nobody_else(bundles: Path) -> None:
    old = {name: (bundles / name / "party.yaml").read_bytes() for name in EVERYBODY}
    keys, serial = (bundles / "a" / "key.pem").read_bytes(), certificate(bundles, "a").serial_number
    renew(bundles, "a", 200)
    assert common_name(certificate(bundles, "a")) == "a"
    assert certificate(bundles, "a").serial_number != serial
    assert (bundles / "a" / "key.pem").read_bytes() != keys
    assert old == {name: (bundles / name / "party.yaml").read_bytes() for name in EVERYBODY}
    assert read_bundle(bundles / "a").revoked == frozenset()
    assert next(s.days_left for s in standings(bundles) if s.name == "a") == 199


def test_who_is_revoked_is_refused_and_comes_back_under_a_new_name(bundles: Path) -> None:
    renew(bundles, "b", 90)
    serial = certificate(bundles, "b").serial_number
    assert revoke(bundles, "b")
    refused(bundles, "b", "was revoked")
    a = read_bundle(bundles / "a")
    assert serial in a.revoked
    assert len(a.revoked) == 2  # the one before the renewal too
    assert a.config.peers["b"].certificate is None
    assert "'b' was revoked" in a.notes[0]
    assert not revoke(bundles, "b")
    assert [s.state for s in standings(bundles)] == ["valid", "revoked", "valid", "valid", "valid"]
    stolen = {name: (bundles / "b" / name).read_bytes() for name in ("key.pem", "cert.pem")}
    renew(bundles, "b", 90)
    assert common_name(certificate(bundles, "b")) == "b~2"
    assert read_bundle(bundles / "b").config.certificate == "b~2"
    assert read_bundle(bundles / "a").config.peers["b"].certificate == "b~2"
    assert serial in read_bundle(bundles / "a").revoked
    private_files.write_files(bundles / "b", stolen)
    refused(bundles, "b", "is for 'b', but this bundle is for 'b~2'")


def test_the_operator_is_revoked_and_renewed_as_all_others_are(bundles: Path) -> None:
    renew(bundles, "operator", 90)
    assert read_bundle(bundles / "a").config.operator == "operator"
    revoke(bundles, "operator")
    refused(bundles, "operator", "was revoked")
    assert {read_bundle(bundles / name).config.operator for name in ("a", "b", "c", "server")} == {
        None
    }
    renew(bundles, "operator", 90)
    assert read_bundle(bundles / "operator").config.certificate == "operator~2"
    assert {read_bundle(bundles / name).config.operator for name in ("a", "b", "c", "server")} == {
        "operator~2"
    }


def test_a_bundle_that_was_given_away_can_be_renewed(bundles: Path) -> None:
    for path in (bundles / "a").iterdir():
        path.unlink()
    (bundles / "a").rmdir()
    revoke(bundles, "c")
    refused(bundles, "a", "key.pem")  # what there is to send: the public part
    assert {path.name for path in (bundles / "a").iterdir()} == {
        "party.yaml",
        "ca.pem",
        "revoked.pem",
        "README.txt",
        "expiry.json",
    }
    renew(bundles, "a", 90)
    assert (
        read_bundle(bundles / "a").alignment_secret()
        == read_bundle(bundles / "b").alignment_secret()
    )


def test_unknown_names_and_damaged_authorities_are_told(bundles: Path, tmp_path: Path) -> None:
    with pytest.raises(MtcdError, match="No party is called 'servr'; did you mean 'server'"):
        renew(bundles, "servr", 90)
    with pytest.raises(MtcdError, match="No party is called '../a'"):
        revoke(bundles, "../a")
    with pytest.raises(MtcdError, match="federation init makes one"):
        standings(tmp_path)
    (bundles / "authority" / "issued.json").write_text("{}x")
    with pytest.raises(MtcdError, match="issued.json is damaged"):
        standings(bundles)
    (bundles / "authority" / "ca.key").chmod(0o644)
    with pytest.raises(MtcdError, match="chmod 600"):
        standings(bundles)
