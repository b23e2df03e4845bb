"""What the bundle of each member says, made from a federation file without certificates."""

from pathlib import Path
from typing import Any

import pytest

from federations import changed
from mtcd.core.errors import MtcdError
from mtcd.federation.credentials.bundle_schema import BundleConfig, as_yaml, bundle_config
from mtcd.federation.credentials.credentials import read_party_file
from mtcd.federation.credentials.membership import Membership
from mtcd.federation.file import check_keys, network_of

CERTIFICATES = {"a": "a", "b": "b~2", "c": None, "server": "server", "operator": "operator~3"}


def config_of(name: str, **changes: Any) -> BundleConfig:
    """On the path a, b, c; b holds the labels."""
    federation = check_keys(changed(**changes), "here")
    return bundle_config(federation, name, network_of(federation), CERTIFICATES)


def test_a_party_knows_its_neighbours_and_the_server_by_address_and_certificate() -> None:
    a = config_of("a")
    assert {name: (peer.address, peer.certificate) for name, peer in a.peers.items()} == {
        "b": ("127.0.0.1:7002", "b~2"),
        "server": ("127.0.0.1:7000", "server"),
    }
    assert (a.address, a.certificate, a.operator) == ("127.0.0.1:7001", "a", "operator~3")
    assert list(config_of("b").peers) == ["a", "c", "server"]
    assert config_of("c").certificate == "c", "it was revoked, and has no other name"


@pytest.mark.parametrize("name", ["server", "operator"])
def test_server_and_operator_know_everybody_else(name: str) -> None:
    config = config_of(name)
    assert [*config.peers] == [one for one in ("a", "b", "c", "server") if one != name]
    assert config.address == ("127.0.0.1:7000" if name == "server" else None)
    assert config.data.id is None


def test_the_names_of_columns_are_told_to_their_owner_alone() -> None:
    told = {name: config_of(name) for name in ("a", "b", "c", "server")}
    assert [name for name, one in told.items() if one.labels.column is not None] == ["b"]
    assert told["b"].data.id is not None
    assert {one.labels.held_by for one in told.values()} == {"b"}


def test_where_a_party_listens_is_its_own_affair() -> None:
    place = {"address": "127.0.0.1:7001", "listen": "0.0.0.0:7101"}
    assert config_of("a", parties__a=place).listen == "0.0.0.0:7101"
    assert config_of("b", parties__a=place).peers["a"].address == "127.0.0.1:7001"
    assert config_of("b", parties__a=place).listen is None


@pytest.mark.parametrize(("given", "seen_by"), [({}, "b"), ({"seen_by": "c"}, "c")])
def test_predictions_are_for_the_label_holder_unless_said_otherwise(
    given: dict[str, str], seen_by: str
) -> None:
    for name in ("a", "server"):
        assert config_of(name, predictions=given).predictions.seen_by == seen_by
        assert config_of(name, predictions=given).seen_by == seen_by


def test_all_have_the_same_links_in_order() -> None:
    links = {"links": [["c", "b"], ["b", "a"]]}
    for name in ("a", "b", "c", "server", "operator"):
        config = config_of(name, network=links)
        assert [tuple(link) for link in config.links] == [("a", "b"), ("b", "c")]
        assert list(config.parties) == ["a", "b", "c"]


def test_who_needs_the_members_alone_reads_no_settings_of_the_training(tmp_path: Path) -> None:
    """Its version of mtcd may not know the method of the run."""
    file = tmp_path / "party.yaml"
    file.write_bytes(as_yaml(config_of("a")))
    assert read_party_file(tmp_path, BundleConfig).method.kind == "mtcd"
    file.write_bytes(as_yaml(config_of("a")) + b"strange: 1\n")
    assert read_party_file(tmp_path, Membership, partial=True).name == "a"
    with pytest.raises(MtcdError, match="strange"):
        read_party_file(tmp_path, BundleConfig)
