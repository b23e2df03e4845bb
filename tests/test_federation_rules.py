"""The Zenoh configuration of a kit, by its text."""

import json
from pathlib import Path

import pytest

pytest.importorskip("cryptography")

from kits_on_disk import found, settings
from mtcd.federation.founder import revoke
from mtcd.federation.kit import read_kit


@pytest.fixture
def kits(tmp_path: Path) -> Path:
    return found(tmp_path)


def test_the_settings_are_those_of_the_trial(kits: Path) -> None:
    config = settings(kits, "b")
    assert config["mode"] == "peer"
    assert config["scouting"] == {"multicast": {"enabled": False}, "gossip": {"enabled": False}}
    assert config["transport"]["shared_memory"]["enabled"] is False
    assert config["transport"]["link"]["tx"]["lease"] == 2000
    assert config["transport"]["link"]["protocols"] == ["tls"]
    tls = config["transport"]["link"]["tls"]
    assert tls["enable_mtls"] is True
    assert tls["verify_name_on_connect"] is True
    assert {Path(tls[key]).name for key in tls if key.endswith(("key", "certificate"))} == {
        "ca.pem",
        "key.pem",
        "cert.pem",
    }
    assert config["listen"]["endpoints"] == [f"tls/{read_kit(kits / 'b').config.address}"]
    assert "PRIVATE" not in json.dumps(config)


def test_every_link_is_called_from_one_side(kits: Path) -> None:
    address = {name: read_kit(kits / name).config.address for name in ("a", "b", "c", "server")}
    called = [
        {name, next(other for other in address if endpoint == f"tls/{address[other]}")}
        for name in address
        for endpoint in settings(kits, name)["connect"]["endpoints"]
    ]
    wanted = [{"a", "b"}, {"b", "c"}, {"a", "server"}, {"b", "server"}, {"c", "server"}]
    assert len(called) == 5
    assert all(pair in called for pair in wanted)


def test_rules_let_each_write_under_its_own_name_only(kits: Path) -> None:
    rules = settings(kits, "b")["access_control"]
    assert (rules["enabled"], rules["default_permission"]) == (True, "deny")
    assert {s["id"]: s["cert_common_names"] for s in rules["subjects"]} == {
        name: [name] for name in ("a", "c", "server")
    }
    by_id = {rule["id"]: rule for rule in rules["rules"]}
    assert {rule["permission"] for rule in by_id.values()} == {"allow"}
    for policy in rules["policies"]:
        [peer] = policy["subjects"]
        mine = [by_id[rule] for rule in policy["rules"]]
        assert all(len(rule["flows"]) == len(rule["key_exprs"]) == 1 for rule in mine)
        keys = {(rule["flows"][0], message): rule["key_exprs"][0] for rule in mine for message in rule["messages"]}
        assert keys["ingress", "put"] == keys["ingress", "query"] == f"mtcd/clinics/to/b/from/{peer}/**"
        assert keys["egress", "put"] == keys["egress", "query"] == f"mtcd/clinics/to/{peer}/from/b/**"
        assert keys["ingress", "liveliness_token"] == f"mtcd/clinics/alive/{peer}"
        assert ("ingress", "delete") not in keys
    revoke(kits, "a")
    rules = settings(kits, "b")["access_control"]
    assert [s["id"] for s in rules["subjects"]] == ["c", "server"]
    assert "from/a" not in json.dumps(rules)
