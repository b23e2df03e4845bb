"""The kits of a party that dials out only; tests/processes/operations trains with one behind a firewall."""

from pathlib import Path

import pytest

pytest.importorskip("cryptography")

from federations import written
from kits_on_disk import EVERYBODY, certificate, settings
from mtcd.federation.administrator import init_federation, move
from mtcd.federation.credentials.bundle import read_kit


def test_its_kit_has_no_address_and_all_its_connections_go_out(tmp_path: Path) -> None:
    kits = tmp_path / "kits"
    init_federation(written(tmp_path, parties__b={"dial_out_only": True}), kits, 90)
    known = {name: read_kit(kits / name).config for name in EVERYBODY}
    assert known["b"].address is None
    assert settings(kits, "b")["listen"]["endpoints"] == []
    peers = {f"tls/{known[name].address}" for name in ("a", "c", "server")}
    assert set(settings(kits, "b")["connect"]["endpoints"]) == peers
    for name in ("a", "c", "server", "operator"):
        assert "b" in known[name].peers
        assert not any(
            "None" in endpoint for endpoint in settings(kits, name)["connect"]["endpoints"]
        )
    text = (kits / "b" / "README.txt").read_text()
    assert "accepts no connections" in text
    assert "None" not in text
    inbound = (kits / "c" / "README.txt").read_text().split("accepts TCP connections")[1]
    assert "    b\n" in inbound


def test_a_party_that_moves_to_an_address_listens_there(tmp_path: Path) -> None:
    kits = tmp_path / "kits"
    init_federation(written(tmp_path, parties__b={"dial_out_only": True}), kits, 90)
    before = certificate(kits, "b").serial_number
    place, new_key = move(kits, "b", "10.0.0.9:7447", None, 90)
    assert (place.address, new_key) == ("10.0.0.9:7447", True)
    assert certificate(kits, "b").serial_number != before
    assert settings(kits, "b")["listen"]["endpoints"] == ["tls/10.0.0.9:7447"]
    assert "tls/10.0.0.9:7447" in settings(kits, "c")["connect"]["endpoints"]
