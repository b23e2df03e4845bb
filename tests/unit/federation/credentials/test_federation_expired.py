"""A party whose certificate has expired cannot say so: those that wait for it do."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from federation_commands import run
from hubs import Hub, linear
from mtcd.core.errors import ConfigError
from mtcd.federation.administrator import renew
from mtcd.federation.credentials import authority
from mtcd.federation.credentials.bundle import read_bundle
from mtcd.federation.credentials.credentials import EXPIRY_FILE, expired_peers
from mtcd.federation.preflight import CERTIFICATES, NOTE, peer_findings
from problems import MODELS, make_data

DATA = make_data(MODELS[0], 10, [2, 1, 2], seed=3)
LONG_AGO = datetime.now(UTC) - timedelta(days=40)
EXPIRED = LONG_AGO + timedelta(days=10)
SENTENCE = f"The certificate of c2 expired on {EXPIRED:%Y-%m-%d}, unless it has a newer one"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """All but c2 are up; c2 has a certificate of 40 days ago, for 10 days."""
    with Hub(tmp_path, DATA.clients, linear(DATA)) as hub:
        with monkeypatch.context() as patched:
            patched.setattr(authority, "issue", partial(authority.issue, now=LONG_AGO))
            renew(tmp_path / "bundles", "c2", 10)
        yield hub


def said(hub: Hub, name: str) -> str:
    """What a party logs while it waits."""
    node = hub.nodes[name]
    node._say_waiting()
    return str(node.log.tail[-1]["text"])


def test_who_waits_for_it_names_the_date_until_it_is_there(hub: Hub, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="expired"):
        read_bundle(tmp_path / "bundles" / "c2")
    hub.nodes["c0"]._begin()
    text = said(hub, "c0")
    assert SENTENCE in text
    assert "mtcd federation renew BUNDLES c2" in text
    assert "certificate of c1" not in text

    hub.wires["c0"].up.add("c2")  # it has a newer one than c0 knows of
    assert "certificate" not in said(hub, "c0")


def test_the_check_and_status_say_it_too(
    hub: Hub, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    notes = [
        one for one in peer_findings(hub.bundles["c0"], 0.1) if one.requirement == CERTIFICATES
    ]
    assert [one.level for one in notes] == [NOTE]
    assert SENTENCE in notes[0].sentence

    _, shown, _ = run(capsys, "status", tmp_path / "bundles", "--timeout", "0.1")
    shown = " ".join(shown.split())
    assert SENTENCE in shown
    assert "certificate of c1" not in shown


@pytest.mark.parametrize("content", [None, "[]", "{", '{"c2": 3}', '{"c2": "soon"}'])
def test_a_bundle_without_dates_tells_nothing(
    content: str | None, hub: Hub, tmp_path: Path
) -> None:
    bundle = tmp_path / "bundles" / "c0"
    assert expired_peers(bundle, ["c1", "c2", "server"])
    (bundle / EXPIRY_FILE).unlink()
    if content is not None:
        (bundle / EXPIRY_FILE).write_text(content)
    assert expired_peers(bundle, ["c1", "c2", "server"]) == ""
