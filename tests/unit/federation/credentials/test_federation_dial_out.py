"""The bundles of a party that dials out only; tests/processes/operations trains with one behind a firewall."""

from pathlib import Path

from bundles_on_disk import EVERYBODY, called, certificate, listening
from federations import written
from mtcd.federation.administrator import init_federation, move
from mtcd.federation.credentials.bundle import read_bundle


def test_its_bundle_has_no_address_and_all_its_connections_go_out(tmp_path: Path) -> None:
    bundles = tmp_path / "bundles"
    init_federation(written(tmp_path, parties__b={"dial_out_only": True}), bundles, 90)
    known = {name: read_bundle(bundles / name).config for name in EVERYBODY}
    assert known["b"].address is None
    assert listening(bundles, "b") is None
    peers = {name: known[name].address for name in ("a", "c", "server")}
    assert called(bundles, "b") == peers
    for name in ("a", "c", "server", "operator"):
        assert "b" in known[name].peers
        assert "b" not in called(bundles, name)
    text = (bundles / "b" / "README.txt").read_text()
    assert "accepts no connections" in text
    assert "None" not in text
    inbound = (bundles / "c" / "README.txt").read_text().split("accepts TCP connections")[1]
    assert "    b\n" in inbound


def test_a_party_that_moves_to_an_address_listens_there(tmp_path: Path) -> None:
    bundles = tmp_path / "bundles"
    init_federation(written(tmp_path, parties__b={"dial_out_only": True}), bundles, 90)
    before = certificate(bundles, "b").serial_number
    place, new_key = move(bundles, "b", "10.0.0.9:7447", None, 90)
    assert (place.address, new_key) == ("10.0.0.9:7447", True)
    assert certificate(bundles, "b").serial_number != before
    assert listening(bundles, "b") == "10.0.0.9:7447"
    assert called(bundles, "c")["b"] == "10.0.0.9:7447"
