"""Parties that move: others find them at the new address, and a new host takes a new
certificate."""

from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509

from bundles_on_disk import EVERYBODY, called, certificate, listening
from federations import written
from mtcd.core.errors import MtcdError
from mtcd.federation.administrator import init_federation, move, renew, revoke, standings
from mtcd.federation.credentials import private_files
from mtcd.federation.credentials.authority import Authority
from mtcd.federation.credentials.bundle import read_bundle


@pytest.fixture
def bundles(tmp_path: Path) -> Path:
    init_federation(written(tmp_path), tmp_path / "bundles", 90)
    return tmp_path / "bundles"


def hosts(bundles: Path, name: str) -> list[object]:
    names = (
        certificate(bundles, name)
        .extensions.get_extension_for_class(x509.SubjectAlternativeName)
        .value
    )
    return [one.value for one in names]


@pytest.mark.parametrize("name", ["b", "server"])
def test_on_another_host_a_party_has_a_new_certificate_and_its_peers_know(
    bundles: Path, name: str
) -> None:
    serials = {who: certificate(bundles, who).serial_number for who in EVERYBODY}
    place, new_key = move(bundles, name, "10.0.0.9:7100", None, 90)
    assert (place.address, place.listen, new_key) == ("10.0.0.9:7100", None, True)
    assert hosts(bundles, name) == [ip_address("10.0.0.9")]
    changed = [who for who in EVERYBODY if certificate(bundles, who).serial_number != serials[who]]
    assert changed == [name]
    read = {who: read_bundle(bundles / who).config for who in EVERYBODY}
    assert read[name].address == "10.0.0.9:7100"
    assert read[name].certificate == name  # its name stays, so rules do
    told = {who: config.peers[name].address for who, config in read.items() if name in config.peers}
    assert set(told) == set(EVERYBODY) - {name}
    assert set(told.values()) == {"10.0.0.9:7100"}
    assert listening(bundles, name) == "10.0.0.9:7100"
    assert "10.0.0.9:7100" in called(bundles, "c").values()
    assert {s.name: s.address for s in standings(bundles)}[name] == "10.0.0.9:7100"
    revoke(bundles, name)  # the certificate for the old host is on record too
    assert {serials[name]} < read_bundle(bundles / "a").revoked


def test_on_the_same_host_the_certificate_stays(bundles: Path) -> None:
    key = (bundles / "a" / "key.pem").read_bytes()
    place, new_key = move(bundles, "a", "127.0.0.1:7100", "0.0.0.0:7100", 90)
    assert (place.listen, new_key) == ("0.0.0.0:7100", False)
    assert (bundles / "a" / "key.pem").read_bytes() == key
    assert listening(bundles, "a") == "0.0.0.0:7100"
    place, _ = move(bundles, "a", "127.0.0.1:7200", None, 90)
    assert place.listen == "0.0.0.0:7100"  # behind another door, the same room


def test_all_else_stays_as_it_was(bundles: Path) -> None:
    before = Authority.load(bundles).federation
    move(bundles, "c", "d.example.org:7001", None, 90)
    after = Authority.load(bundles).federation
    assert after.parties.pop("c") != before.parties.pop("c")
    assert after == before
    assert hosts(bundles, "c") == ["d.example.org"]


def test_who_is_revoked_gets_its_certificate_when_renewed(bundles: Path) -> None:
    revoke(bundles, "b")
    assert not move(bundles, "b", "10.0.0.9:7100", None, 90)[1]
    assert read_bundle(bundles / "a").config.peers["b"].certificate is None
    renew(bundles, "b", 90)
    assert hosts(bundles, "b") == [ip_address("10.0.0.9")]
    assert read_bundle(bundles / "a").config.peers["b"].certificate == "b~2"


def test_a_move_that_fails_on_the_way_is_made_good_by_a_renewal(
    bundles: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    really, written_to = private_files.os.replace, []

    def full(source: Path, target: Path) -> None:
        written_to.append(Path(target).parent.name)
        if written_to[-1] == "a":
            raise OSError(28, "No space left on device")
        really(source, target)

    monkeypatch.setattr(private_files.os, "replace", full)
    with pytest.raises(MtcdError, match="No space left"):
        move(bundles, "b", "10.0.0.9:7100", None, 90)
    monkeypatch.undo()
    with pytest.raises(MtcdError, match="already.*federation renew"):
        move(bundles, "b", "10.0.0.9:7100", None, 90)
    renew(bundles, "b", 90)
    assert hosts(bundles, "b") == [ip_address("10.0.0.9")]
    assert read_bundle(bundles / "a").config.peers["b"].address == "10.0.0.9:7100"


@pytest.mark.parametrize(
    ("name", "address", "listen", "days", "told"),
    [
        ("a", "127.0.0.1:7002", None, 90, "'a' and 'b' have the same address"),
        ("a", "127.0.0.1", None, 90, "host:port"),
        ("a", "0.0.0.0:7001", None, 90, "cannot be reached by others"),
        ("a", "127.0.0.1:7001", None, 90, "already"),
        ("a", "127.0.0.1:7005", "nowhere", 90, "parties.a.listen.*host:port"),
        ("server", "x", None, 90, "server.address.*host:port"),
        ("operator", "127.0.0.1:7005", None, 90, "operator accepts no connections"),
        ("d", "127.0.0.1:7005", None, 90, "No party is called 'd'"),
        ("a", "10.0.0.9:7001", None, 0, "lasts 1 to"),
    ],
)
def test_what_cannot_be_changes_nothing(
    name: str, address: str, listen: str | None, days: int, told: str, bundles: Path
) -> None:
    before = {path: path.read_bytes() for path in bundles.rglob("*") if path.is_file()}
    with pytest.raises(MtcdError, match=told):
        move(bundles, name, address, listen, days)
    assert before == {path: path.read_bytes() for path in bundles.rglob("*") if path.is_file()}
