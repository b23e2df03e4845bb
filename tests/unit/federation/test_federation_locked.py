"""Messages locked for one party: those that share the parties' key cannot read them."""

from pathlib import Path

import pytest

from federations import written
from mtcd.core.errors import WireError
from mtcd.federation.administrator import init_federation, revoke
from mtcd.federation.credentials.bundle import read_bundle
from mtcd.federation.relay_encryption import Seal

BODY = b"a sum of many" * 50


@pytest.fixture
def bundles(tmp_path: Path) -> Path:
    init_federation(written(tmp_path), tmp_path / "bundles", 90)
    return tmp_path / "bundles"


def seal_of(bundles: Path, name: str) -> Seal:
    return Seal(read_bundle(bundles / name))


def test_only_the_one_it_is_locked_for_reads_it(bundles: Path) -> None:
    a, b, c = (seal_of(bundles, name) for name in "abc")
    locked = a.lock("c", c.certificate, BODY)
    assert BODY not in locked
    assert c.unlock(locked) == BODY
    assert a.lock("c", c.certificate, BODY) != locked  # every message has a key of its own
    for other in (a, b):
        with pytest.raises(WireError, match="damaged, or for another"):
            other.unlock(locked)


def test_every_byte_counts(bundles: Path) -> None:
    a, c = seal_of(bundles, "a"), seal_of(bundles, "c")
    locked = a.lock("c", c.certificate, b"short")
    for place in range(len(locked)):
        spoilt = locked[:place] + bytes([locked[place] ^ 1]) + locked[place + 1 :]
        with pytest.raises(WireError):
            c.unlock(spoilt)
    for cut in (b"", b"\0", locked[:1], locked[:20], locked[:-1], locked + b"\0"):
        with pytest.raises(WireError):
            c.unlock(cut)


def test_a_certificate_of_another_locks_nothing(bundles: Path, tmp_path: Path) -> None:
    a, b = seal_of(bundles, "a"), seal_of(bundles, "b")
    stranger = tmp_path / "others"
    stranger.mkdir()
    init_federation(written(stranger), stranger / "bundles", 90)
    for given, words in (
        (b.certificate, "in the place of"),
        (seal_of(stranger / "bundles", "c").certificate, "did not sign"),
        (b"nonsense", "not readable"),
    ):
        with pytest.raises(WireError, match=words):
            a.lock("c", given, BODY)
    old = seal_of(bundles, "c").certificate
    revoke(bundles, "c")
    with pytest.raises(WireError, match="revoked"):
        seal_of(bundles, "a").lock("c", old, BODY)
