"""The Zenoh configuration of a bundle, by its text."""

import json
from pathlib import Path

import pytest

pytest.importorskip("cryptography")

from bundles_on_disk import found, settings
from mtcd.federation.administrator import revoke
from mtcd.federation.credentials.bundle import read_bundle


@pytest.fixture
def bundles(tmp_path: Path) -> Path:
    return found(tmp_path)


def test_the_settings_are_those_of_the_trial(bundles: Path) -> None:
    config = settings(bundles, "b")
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
    assert config["listen"]["endpoints"] == [f"tls/{read_bundle(bundles / 'b').config.address}"]
    assert "PRIVATE" not in json.dumps(config)


def test_every_link_is_called_from_one_side(bundles: Path) -> None:
    address = {
        name: read_bundle(bundles / name).config.address for name in ("a", "b", "c", "server")
    }
    called = [
        {name, next(other for other in address if endpoint == f"tls/{address[other]}")}
        for name in address
        for endpoint in settings(bundles, name)["connect"]["endpoints"]
    ]
    wanted = [{"a", "b"}, {"b", "c"}, {"a", "server"}, {"b", "server"}, {"c", "server"}]
    assert len(called) == 5
    assert all(pair in called for pair in wanted)


def test_rules_let_each_write_under_its_own_name_only(bundles: Path) -> None:
    rules = settings(bundles, "b")["access_control"]
    assert (rules["enabled"], rules["default_permission"]) == (True, "deny")
    assert {s["id"]: s["cert_common_names"] for s in rules["subjects"]} == {
        name: [name] for name in ("a", "c", "server", "operator")
    }
    by_id = {rule["id"]: rule for rule in rules["rules"]}
    assert {rule["permission"] for rule in by_id.values()} == {"allow"}
    for policy in rules["policies"]:
        [peer] = policy["subjects"]
        if peer == "operator":
            continue
        mine = [by_id[rule] for rule in policy["rules"]]
        assert all(len(rule["flows"]) == len(rule["key_exprs"]) == 1 for rule in mine)
        keys = {
            (rule["flows"][0], message): rule["key_exprs"][0]
            for rule in mine
            for message in rule["messages"]
        }
        assert (
            keys["ingress", "put"]
            == keys["ingress", "query"]
            == f"mtcd/clinics/to/b/from/{peer}/**"
        )
        assert (
            keys["egress", "put"] == keys["egress", "query"] == f"mtcd/clinics/to/{peer}/from/b/**"
        )
        assert keys["ingress", "liveliness_token"] == f"mtcd/clinics/alive/{peer}"
        assert ("ingress", "delete") not in keys
    revoke(bundles, "a")
    rules = settings(bundles, "b")["access_control"]
    assert [s["id"] for s in rules["subjects"]] == ["c", "server", "operator"]
    assert "from/a" not in json.dumps(rules)


@pytest.mark.parametrize(
    ("name", "question", "answer"), [("b", "ingress", "egress"), ("operator", "egress", "ingress")]
)
def test_the_operator_asks_and_is_answered_and_no_more(
    bundles: Path, name: str, question: str, answer: str
) -> None:
    config = settings(bundles, name)
    rules = [
        rule for rule in config["access_control"]["rules"] if "operator" in rule["key_exprs"][0]
    ]
    asked = {"b"} if name == "b" else {"a", "b", "c", "server"}
    assert {
        (*rule["flows"], message, *rule["key_exprs"])
        for rule in rules
        for message in rule["messages"]
    } == {
        (flow, message, f"mtcd/clinics/to/{who}/from/operator/control/**")
        for who in asked
        for flow, message in ((question, "query"), (answer, "reply"), (answer, "declare_queryable"))
    }
    if name == "operator":
        assert rules == config["access_control"]["rules"]
        assert config["listen"]["endpoints"] == []
        assert len(config["connect"]["endpoints"]) == 4
    revoke(bundles, "operator")
    assert "operator" not in json.dumps(settings(bundles, "b")["access_control"])
