"""Certificates and bundles: who signs whom, who may read what, and what becomes of those renewed or
revoked."""

import os
import stat
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from errno import EACCES
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.x509.oid import ExtendedKeyUsageOID

from bundles_on_disk import EVERYBODY, certificate, refused
from federations import written
from mtcd.core.errors import MtcdError
from mtcd.core.version import PROTOCOL
from mtcd.federation.administrator import init_federation
from mtcd.federation.credentials import bundle as bundle_module
from mtcd.federation.credentials import private_files
from mtcd.federation.credentials.authority import Authority
from mtcd.federation.credentials.bundle import WARN_BEFORE_DAYS, read_bundle
from mtcd.federation.credentials.certificates import (
    LONGEST_DAYS,
    common_name,
    issue,
    load_key,
    make_authority,
)
from mtcd.federation.credentials.credentials import read_party_file
from mtcd.federation.credentials.membership import Membership, PeerSection
from mtcd.federation.names import parse_address


@pytest.fixture
def bundles(tmp_path: Path) -> Path:
    init_federation(written(tmp_path, alignment="hashed"), tmp_path / "bundles", 90)
    return tmp_path / "bundles"


def test_every_bundle_reads_and_tells_its_own_part_only(bundles: Path) -> None:
    read = {name: read_bundle(bundles / name) for name in EVERYBODY}
    assert {name: list(bundle.config.peers) for name, bundle in read.items()} == {
        "a": ["b", "server"],
        "b": ["a", "c", "server"],
        "c": ["b", "server"],
        "server": ["a", "b", "c"],
        "operator": ["a", "b", "c", "server"],
    }
    for name, bundle in read.items():
        assert bundle.config.name == name
        assert bundle.config.network.neighbours == ((1,), (0, 2), (1,))
        assert bundle.config.method.hops == 4
        assert bundle.notes == ()
        text = (bundles / name / "party.yaml").read_text()
        # whose data it is
        assert [word in text for word in ("patient", "b.csv", "outcome")] == [name == "b"] * 3
    assert "c.example.org" not in (bundles / "a" / "party.yaml").read_text()  # no neighbour
    secrets = {read[name].alignment_secret() for name in "abc"}
    assert len(secrets) == 1
    assert len(secrets.pop()) == 32
    for name in ("server", "operator"):
        assert not (bundles / name / "parties.key").exists()
    assert "mtcd party bundles/a --data table.csv" in (bundles / "a" / "README.txt").read_text()
    assert "mtcd server bundles/server" in (bundles / "server" / "README.txt").read_text()
    assert (
        "mtcd federation status bundles/operator"
        in (bundles / "operator" / "README.txt").read_text()
    )


def test_certificates_say_who_and_where_and_are_for_tls_only(bundles: Path) -> None:
    authority = x509.load_pem_x509_certificate((bundles / "authority" / "ca.pem").read_bytes())
    for name in EVERYBODY:
        made = certificate(bundles, name)
        made.verify_directly_issued_by(authority)
        assert common_name(made) == name
        days = made.not_valid_after_utc - datetime.now(UTC)
        assert timedelta(days=89) < days <= timedelta(days=90)
        uses = made.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
        assert (ExtendedKeyUsageOID.SERVER_AUTH in uses) == (name != "operator")
        assert ExtendedKeyUsageOID.CLIENT_AUTH in uses
        assert not made.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
        assert not made.extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign
        if name == "operator":
            continue  # it is nowhere
        names = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        where = [str(one.value) for one in names]
        assert where == (["c.example.org"] if name == "c" else ["127.0.0.1"])
        assert isinstance(next(iter(names)), x509.DNSName if name == "c" else x509.IPAddress)
    assert (
        authority.extensions.get_extension_for_class(x509.BasicConstraints).value.path_length == 0
    )
    assert len({certificate(bundles, name).serial_number for name in EVERYBODY}) == 5


def test_only_the_owner_reads_keys(tmp_path: Path) -> None:
    before = os.umask(0)  # the worst case
    try:
        init_federation(written(tmp_path, alignment="hashed"), tmp_path / "bundles", 90)
    finally:
        os.umask(before)
    private = [
        path for path in (tmp_path / "bundles").rglob("*") if path.name in private_files.PRIVATE
    ]
    assert len(private) == 5 + 3 + 2
    assert {stat.S_IMODE(path.stat().st_mode) for path in private} == {0o600}
    folders = [path for path in (tmp_path / "bundles").rglob("*") if path.is_dir()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in [tmp_path / "bundles", *folders]} == {
        0o700
    }
    keyed = [
        path
        for path in (tmp_path / "bundles").rglob("*")
        if path.is_file() and b"PRIVATE" in path.read_bytes()
    ]
    assert {path.name for path in keyed} == {"key.pem", "ca.key"}


def test_private_files_are_private_from_their_first_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes = {}
    really = os.open

    def watched(path: str, flags: int, mode: int = 0o777, **others: int) -> int:
        modes[Path(path).name] = (mode, bool(flags & os.O_EXCL))
        return really(path, flags, mode, **others)

    monkeypatch.setattr(private_files.os, "open", watched)
    private_files.write_files(tmp_path, {"key.pem": b"k", "cert.pem": b"c"})
    made = {name: mode for name, mode in modes.items() if name.endswith(".pem")}
    assert made == {"key.pem": (0o600, True), "cert.pem": (0o644, True)}


@pytest.mark.parametrize("name", ["key.pem", "parties.key"])
def test_a_key_that_others_can_read_is_refused_with_the_command_to_run(
    bundles: Path, name: str
) -> None:
    path = bundles / "a" / name
    for mode in (0o640, 0o604):
        path.chmod(mode)
        refused(bundles, "a", f"chmod 600 {path}")
    path.chmod(0o600)
    read_bundle(bundles / "a")


def test_init_takes_an_empty_folder_and_no_other(bundles: Path, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in bundles.rglob("*") if path.is_file()}
    with pytest.raises(MtcdError, match="not an empty folder"):
        init_federation(tmp_path / "federation.yaml", bundles, 90)
    assert before == {path: path.read_bytes() for path in bundles.rglob("*") if path.is_file()}
    with pytest.raises(MtcdError, match="not an empty folder"):
        init_federation(tmp_path / "federation.yaml", tmp_path / "federation.yaml", 90)
    (tmp_path / "empty").mkdir()
    init_federation(tmp_path / "federation.yaml", tmp_path / "empty", 90)
    read_bundle(tmp_path / "empty" / "a")


@pytest.mark.parametrize("days", [0, -3, 10_000])
def test_init_is_whole_or_nothing(
    tmp_path: Path, days: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path)
    with pytest.raises(MtcdError, match="lasts 1 to"):
        init_federation(path, tmp_path / "bundles", days)
    calls = []

    def full(*_: object) -> None:
        calls.append(1)
        if len(calls) > 12:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(private_files.os, "fsync", full)
    with pytest.raises(MtcdError, match="No space left"):
        init_federation(path, tmp_path / "bundles", 90)
    assert sorted(tmp_path.iterdir()) == [path]


def test_bundles_whose_parts_do_not_belong_together_are_refused(
    bundles: Path, tmp_path: Path
) -> None:
    init_federation(tmp_path / "federation.yaml", tmp_path / "others", 90)
    good = {path.name: path.read_bytes() for path in (bundles / "a").iterdir()}

    def with_file(name: str, content: bytes, *words: str) -> None:
        private_files.write_files(bundles / "a", {**good, name: content})
        refused(bundles, "a", *words)
        private_files.write_files(bundles / "a", good)

    with_file(
        "cert.pem", (tmp_path / "others" / "a" / "cert.pem").read_bytes(), "not of this federation"
    )
    with_file(
        "cert.pem",
        (bundles / "b" / "cert.pem").read_bytes(),
        "is for 'b', but this bundle is for 'a'",
    )
    with_file("key.pem", (bundles / "b" / "key.pem").read_bytes(), "is not the key of cert.pem")
    with_file(
        "revoked.pem", (tmp_path / "others" / "a" / "revoked.pem").read_bytes(), "not signed by"
    )
    with_file("ca.pem", (bundles / "b" / "cert.pem").read_bytes(), "not signed by")
    for name, words in (
        ("cert.pem", "not a certificate"),
        ("key.pem", "not a private key"),
        ("revoked.pem", "list"),
    ):
        with_file(name, b"nonsense", words)
    with_file("parties.key", b"zz", "damaged")
    with_file("parties.key", b"00", "damaged")
    text = good["party.yaml"].decode()
    with_file(
        "party.yaml",
        text.replace(f"protocol: {PROTOCOL}", f"protocol: {PROTOCOL + 1}").encode(),
        f"protocol {PROTOCOL + 1}",
        "install",
    )
    with_file("party.yaml", text.replace("hops: 4", "hops: four").encode(), "method.hops")
    with_file(
        "party.yaml",
        text.replace("held_by: b", "held_by: z").encode(),
        "'z' is not a party of the federation",
    )
    with_file("party.yaml", b"[]", "is not a party")
    (bundles / "a" / "cert.pem").unlink()
    refused(bundles, "a", "there is no cert.pem")
    refused(bundles, "nobody", "There is no folder")


@pytest.mark.parametrize(
    ("ago", "words"), [(100, "expired on"), (-2, "Check the clock of this host")]
)
def test_a_certificate_out_of_its_time_is_refused(bundles: Path, ago: int, words: str) -> None:
    authority = Authority.load(bundles)
    when = datetime.now(UTC) - timedelta(days=ago)
    made = issue(authority.issued, "a", parse_address("127.0.0.1:7001"), 90, now=when)
    private_files.write_files(
        bundles / "a", {"key.pem": made.key_pem, "cert.pem": made.certificate_pem}
    )
    refused(bundles, "a", words)


def test_no_certificate_outlives_its_authority() -> None:
    then = datetime.now(UTC) - timedelta(days=3600)
    authority = make_authority("x", then)
    made = issue(authority, "a", parse_address("[::1]:1"), 365)
    assert made.certificate.not_valid_after_utc == authority.certificate.not_valid_after_utc
    with pytest.raises(MtcdError, match="The authority expired on"):
        issue(make_authority("x", then - timedelta(days=60)), "a", parse_address("[::1]:1"), 365)


def test_keys_do_not_show_when_printed() -> None:
    made = make_authority("x")
    number = str(made.key.private_numbers().private_value)
    der = made.key.private_bytes(
        serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    assert repr(made) == "Issued('mtcd x')"
    assert number not in repr(made)
    assert der.hex() not in repr(made)


@pytest.mark.parametrize(
    ("given", "seen_by"), [(None, "b"), ({"seen_by": "c"}, "c"), ({"seen_by": "server"}, "server")]
)
def test_every_bundle_tells_who_sees_predictions(
    given: dict[str, str] | None, seen_by: str, tmp_path: Path
) -> None:
    changes = {} if given is None else {"predictions": given}
    init_federation(written(tmp_path, **changes), tmp_path / "bundles", 90)
    for name in EVERYBODY:
        assert read_bundle(tmp_path / "bundles" / name).config.seen_by == seen_by
        assert f"seen_by: {seen_by}" in (tmp_path / "bundles" / name / "party.yaml").read_text()
    told = (tmp_path / "bundles" / "c" / "README.txt").read_text()
    assert ("Only you can see" if seen_by == "c" else f"Only '{seen_by}' can see") in told


def test_party_files_are_plain_yaml(bundles: Path) -> None:
    for name in EVERYBODY:
        assert yaml.safe_load((bundles / name / "party.yaml").read_text())["name"] == name


def test_a_folder_below_which_nothing_can_be_made_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(MtcdError, match="bundles could not be written to .*federation.yaml/below"):
        init_federation(path, path / "below", 90)
    (tmp_path / "locked").mkdir()

    def denied(self: Path) -> None:
        raise PermissionError(EACCES, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", denied)
    with pytest.raises(MtcdError, match=r"locked cannot be used \(Permission denied\): choose"):
        init_federation(path, tmp_path / "locked", 90)
    monkeypatch.undo()
    assert sorted(tmp_path.iterdir()) == [*before, tmp_path / "locked"]


def test_a_file_of_a_bundle_that_cannot_be_read_is_named(bundles: Path) -> None:
    path = bundles / "a" / "cert.pem"
    path.unlink()
    path.mkdir()
    refused(bundles, "a", f"{path} cannot be read", "Is a directory")


def test_an_authority_with_the_key_of_another_signs_nothing(bundles: Path, tmp_path: Path) -> None:
    """Parties would refuse what it signs, but only when they start."""
    (tmp_path / "other").mkdir()
    init_federation(written(tmp_path / "other"), tmp_path / "other" / "bundles", 90)
    copied = tmp_path / "other" / "bundles" / "authority" / "ca.key"
    (bundles / "authority" / "ca.key").write_bytes(copied.read_bytes())
    with pytest.raises(MtcdError, match="ca.key is not the key of ca.pem"):
        Authority.load(bundles)


@pytest.mark.parametrize("name", ["a~", "a~x", "a~-1", "a~1.0", "a~²", "a~1~2"])
def test_a_certificate_has_the_name_of_its_party_and_a_number(name: str) -> None:
    assert PeerSection(certificate="a~12").certificate == "a~12"
    with pytest.raises(ValueError, match="is not the name of a certificate"):
        PeerSection(certificate=name)


@pytest.mark.parametrize(
    ("days", "fits"), [(0, False), (1, True), (LONGEST_DAYS, True), (LONGEST_DAYS + 1, False)]
)
def test_a_certificate_lasts_1_day_to_5_years(days: int, fits: bool) -> None:
    authority = make_authority("x")
    if fits:
        now = datetime(2030, 1, 1, tzinfo=UTC)
        made = issue(authority, "a", None, days, now=now).certificate
        assert made.not_valid_after_utc == now + timedelta(days=days)
        return
    with pytest.raises(MtcdError, match="lasts 1 to 1825 days"):
        issue(authority, "a", None, days)


def test_an_authority_signs_up_to_its_last_second() -> None:
    authority = make_authority("x")
    end = authority.certificate.not_valid_after_utc
    last = issue(authority, "a", None, 90, now=end - timedelta(seconds=1)).certificate
    assert last.not_valid_after_utc == end
    with pytest.raises(MtcdError, match="The authority expired on"):
        issue(authority, "a", None, 90, now=end)


@pytest.mark.parametrize(
    ("days", "noted"), [(WARN_BEFORE_DAYS - 1, True), (WARN_BEFORE_DAYS, False)]
)
def test_a_certificate_that_expires_in_less_than_30_days_is_noted(
    bundles: Path, days: int, noted: bool
) -> None:
    bundle = read_bundle(bundles / "a")
    until = datetime.now(UTC) + timedelta(days=days, hours=1)
    notes = replace(bundle, until=until).notes
    assert len(notes) == int(noted)
    assert all(note.startswith(f"The certificate expires on {until:%Y-%m-%d}") for note in notes)


def test_a_key_of_another_kind_is_no_key_of_a_federation() -> None:
    of_another_kind = ed25519.Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    for content in (of_another_kind, b"", b"nonsense"):
        with pytest.raises(MtcdError, match="key.pem is not a private key of a federation"):
            load_key(content, "key.pem")


@pytest.mark.parametrize(("holder", "seer"), [("z", "a"), ("a", "z")])
def test_who_holds_labels_and_who_sees_predictions_are_members(
    holder: str, seer: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A party without a link to them has them in no other list."""
    config = SimpleNamespace(
        labels=SimpleNamespace(held_by=holder), name="a", parties=["a", "b"], seen_by=seer
    )
    monkeypatch.setattr(bundle_module, "read_party_file", lambda folder, schema: config)
    with pytest.raises(MtcdError, match="'z' is not a party of the federation"):
        bundle_module.read_bundle_without_code(tmp_path)


@pytest.mark.parametrize("protocol", [None, 0, PROTOCOL - 1, PROTOCOL + 1, str(PROTOCOL)])
def test_a_party_file_of_another_protocol_is_refused_before_its_other_keys(
    protocol: Any, tmp_path: Path
) -> None:
    (tmp_path / "party.yaml").write_text(yaml.safe_dump({"protocol": protocol, "strange": 1}))
    newer = isinstance(protocol, int) and protocol > PROTOCOL
    todo = "upgrade mtcd here" if newer else "who has an older version, for a new bundle"
    with pytest.raises(MtcdError, match=f"is for protocol {protocol!r}, but .*{todo}"):
        read_party_file(tmp_path, Membership)


def test_a_bundle_is_a_folder(tmp_path: Path) -> None:
    for path in (tmp_path / "none", tmp_path / "file"):
        if path.name == "file":
            path.write_text("")
        with pytest.raises(MtcdError, match=f"There is no folder {path}: give the folder"):
            read_party_file(path, Membership)
