"""Sealed messages: what the receiver reads, and what it refuses, from strangers and from parties
that cheat."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given
from hypothesis import strategies as st

from federations import written
from mtcd.core.errors import MtcdError, WireError
from mtcd.federation import relay_encryption
from mtcd.federation.administrator import init_federation, renew, revoke
from mtcd.federation.credentials.authority import Authority
from mtcd.federation.credentials.bundle import read_bundle
from mtcd.federation.credentials.certificates import Issued, issue
from mtcd.federation.credentials.private_files import write_files
from mtcd.federation.names import Address
from mtcd.federation.relay_encryption import NONCE_BYTES, OpenedMessage, Seal

BODY = b"outcome 1, outcome 0"


def founded(folder: Path) -> Path:
    folder.mkdir()
    init_federation(written(folder, limits={"message_mb": 1}), folder / "bundles", 90)
    return folder / "bundles"


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return founded(tmp_path_factory.mktemp("sealed") / "ours")


@pytest.fixture
def own_bundles(tmp_path: Path) -> Path:
    """Bundles that a test may change."""
    return founded(tmp_path / "own")


def seal_of(bundles: Path, name: str) -> Seal:
    return Seal(read_bundle(bundles / name))


def sealed_with(bundles: Path, name: str, made: Issued) -> bytes:
    """A message of a party for c, by the party that has this key and certificate and the parties'
    key."""
    bundle = read_bundle(bundles / name)
    write_files(bundles / name, {"key.pem": made.key_pem, "cert.pem": made.certificate_pem})
    return Seal(bundle).seal("c", "labels", BODY)


def flipped(data: bytes, place: int, bits: int = 1) -> bytes:
    return data[:place] + bytes([data[place] ^ bits]) + data[place + 1 :]


def test_the_receiver_reads_who_wrote_what(bundles: Path) -> None:
    a, b, c = (seal_of(bundles, name) for name in "abc")
    data = a.seal("c", "labels", BODY)  # a and c are no neighbours
    assert c.open(data) == c.open(data, expect_from="a") == OpenedMessage("a", "labels", BODY)
    assert c.open(b.seal("c", "x", b"")) == OpenedMessage("b", "x", b"")
    for word in (BODY, b"labels", b"outcome"):
        assert word not in data
    assert a.seal("c", "labels", BODY) != data
    assert "outcome" not in repr(c.open(data))


@given(
    body=st.binary(max_size=300),
    kind=st.text(st.characters(codec="ascii", categories=["L", "P"]), min_size=1),
)
def test_any_body_comes_through(bundles: Path, body: bytes, kind: str) -> None:
    assert seal_of(bundles, "c").open(seal_of(bundles, "a").seal("c", kind[:80], body)).body == body


def test_every_byte_counts(bundles: Path) -> None:
    c, data = seal_of(bundles, "c"), seal_of(bundles, "a").seal("c", "labels", BODY)
    for place in range(len(data)):
        with pytest.raises(WireError):
            c.open(flipped(data, place))
        with pytest.raises(WireError):
            c.open(data[:place])
    with pytest.raises(WireError):
        c.open(data + b"\0")


def content_of(bundles: Path, data: bytes) -> bytes:
    """What another party on the way reads of a message for c."""
    cipher = AESGCM(read_bundle(bundles / "b").secret("sealed"))
    return cipher.decrypt(data[:NONCE_BYTES], data[NONCE_BYTES:], b"mtcd sealed 1/clinics/c")


def encrypted(bundles: Path, content: bytes, to: str = "c") -> bytes:
    """What another party can make of it."""
    cipher, nonce = AESGCM(read_bundle(bundles / "b").secret("sealed")), bytes(NONCE_BYTES)
    return nonce + cipher.encrypt(nonce, content, f"mtcd sealed 1/clinics/{to}".encode())


# said by cryptography, before the signature is checked
@pytest.mark.filterwarnings("ignore:Parsed a serial number")
def test_a_party_on_the_way_can_change_nothing(
    bundles: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    c, data = seal_of(bundles, "c"), seal_of(bundles, "a").seal("c", "labels", BODY)
    content = content_of(bundles, data)
    assert c.open(encrypted(bundles, content)) == c.open(data)
    monkeypatch.setattr(c, "_cipher", Unencrypted())
    changes = [flipped(content, place, bits) for place in range(len(content)) for bits in (1, 0x80)]
    changes += [content[:place] for place in range(len(content))]
    for changed in changes:
        with pytest.raises(WireError):
            c.open(bytes(NONCE_BYTES) + changed)
    with pytest.raises(WireError, match="signature of 'a'"):
        c.open(bytes(NONCE_BYTES) + content + b"1")


class Unencrypted:
    """In the place of the cipher: what a party that has the key can reach."""

    def decrypt(self, _nonce: bytes, content: bytes, _bound: bytes) -> bytes:
        return content


def test_a_message_for_another_is_refused(bundles: Path) -> None:
    a, b = seal_of(bundles, "a"), seal_of(bundles, "b")
    data = a.seal("c", "labels", BODY)
    for other in (a, b):
        with pytest.raises(WireError, match="for another party"):
            other.open(data)
    with pytest.raises(WireError, match="signature of 'a'"):
        b.open(encrypted(bundles, content_of(bundles, data), to="b"))  # c cheats
    with pytest.raises(WireError, match="of 'b' came in the place of one of 'a'"):
        seal_of(bundles, "c").open(b.seal("c", "labels", BODY), expect_from="a")


def test_another_federation_is_refused(bundles: Path, own_bundles: Path) -> None:
    with pytest.raises(WireError, match="federation"):
        seal_of(bundles, "c").open(seal_of(own_bundles, "a").seal("c", "labels", BODY))
    key = (bundles / "a" / "parties.key").read_bytes()
    # an outsider who has got hold of the parties' key
    write_files(own_bundles / "a", {"parties.key": key})
    with pytest.raises(WireError, match="certificate of 'a'.*not of this federation"):
        seal_of(bundles, "c").open(seal_of(own_bundles, "a").seal("c", "labels", BODY))


@pytest.mark.parametrize(
    ("name", "ago", "told"),
    [
        ("a", 100, "certificate of 'a'.*expired on"),
        ("a", -2, "certificate of 'a'.*is valid only from"),
        ("server", 0, "of no party"),
        ("operator", 0, "of no party"),
        ("d", 0, "of no party"),
        ("b~2", 0, "certificate of 'b'.*revoked"),  # b's certificate is called b
    ],
)
def test_certificates_that_do_not_count_are_refused(
    own_bundles: Path, name: str, ago: int, told: str
) -> None:
    authority = Authority.load(own_bundles)
    when = datetime.now(UTC) - timedelta(days=ago)
    made = issue(authority.issued, name, Address("127.0.0.1", 1), 90, now=when)
    c = seal_of(own_bundles, "c")
    with pytest.raises(WireError, match=told):
        c.open(sealed_with(own_bundles, "a", made))


def test_the_authority_itself_is_no_party(own_bundles: Path) -> None:
    c = seal_of(own_bundles, "c")
    with pytest.raises(WireError, match="of no party"):
        c.open(sealed_with(own_bundles, "a", Authority.load(own_bundles).issued))


# c has the one as a stranger, the other as a neighbour
@pytest.mark.parametrize("name", ["a", "b"])
def test_who_is_revoked_is_refused_until_renewed(own_bundles: Path, name: str) -> None:
    old = seal_of(own_bundles, name).seal("c", "labels", BODY)
    revoke(own_bundles, name)
    with pytest.raises(WireError, match=f"certificate of '{name}'.*revoked"):
        seal_of(own_bundles, "c").open(old)
    renew(own_bundles, name, 90)
    c = seal_of(own_bundles, "c")
    with pytest.raises(WireError, match="revoked"):
        c.open(old)
    assert c.open(seal_of(own_bundles, name).seal("c", "labels", BODY)).origin == name


def test_sizes_kinds_and_receivers_are_checked(
    bundles: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, c = seal_of(bundles, "a"), seal_of(bundles, "c")
    with pytest.raises(MtcdError, match="limits.message_mb"):
        a.seal("c", "labels", bytes(1024 * 1024))
    with pytest.raises(WireError, match="larger"):
        c.open(bytes(1024 * 1024 + 1))
    for to in ("server", "operator", "d", ""):
        with pytest.raises(MtcdError, match="for a party only"):
            a.seal(to, "labels", BODY)
    for kind in ("", "x" * 81, "a\nb", "é"):
        with pytest.raises(MtcdError, match="of the kind"):
            a.seal("c", kind, BODY)
    for kind in ("", "x" * 81, "a\nb", "é"):
        with monkeypatch.context() as careless:
            careless.setattr(relay_encryption, "_usable", lambda kind: True)
            data = a.seal("c", kind, BODY)
        with pytest.raises(WireError, match="the kind of a sealed message of 'a' is not readable"):
            c.open(data)
    for name in ("server", "operator"):
        with pytest.raises(MtcdError, match=r"no parties\.key"):
            seal_of(bundles, name)


@pytest.mark.parametrize("kind", ["x", "x" * 80])
def test_a_kind_has_1_to_80_characters(bundles: Path, kind: str) -> None:
    opened = seal_of(bundles, "c").open(seal_of(bundles, "a").seal("c", kind, BODY))
    assert opened.kind == kind


def test_a_message_may_be_as_large_as_the_limit_and_not_a_byte_larger(
    bundles: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, c = seal_of(bundles, "a"), seal_of(bundles, "c")
    data = a.seal("c", "labels", BODY)
    monkeypatch.setattr(c, "_most", len(data))
    assert c.open(data).body == BODY
    monkeypatch.setattr(c, "_most", len(data) - 1)
    with pytest.raises(WireError, match="larger than this federation allows"):
        c.open(data)

    # real signatures have some bytes more or less
    monkeypatch.setattr(a, "_key", SimpleNamespace(sign=lambda *signed: bytes(70)))
    size = len(a.seal("c", "labels", BODY))
    monkeypatch.setattr(a, "_most", size)
    assert len(a.seal("c", "labels", BODY)) == size
    monkeypatch.setattr(a, "_most", size - 1)
    with pytest.raises(MtcdError, match=f"has {size} bytes, more than limits.message_mb"):
        a.seal("c", "labels", BODY)


def test_a_content_without_its_sizes_is_too_short(bundles: Path) -> None:
    c = seal_of(bundles, "c")
    for size in range(relay_encryption.SIZES.size):
        with pytest.raises(WireError, match="is too short"):
            c.open(encrypted(bundles, bytes(size)))
    with pytest.raises(WireError, match="certificate of a sealed message is not readable"):
        c.open(encrypted(bundles, bytes(relay_encryption.SIZES.size)))
