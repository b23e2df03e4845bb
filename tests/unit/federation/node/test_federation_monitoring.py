"""GET /metrics and /healthz of a party, over real HTTP, held against what the party and its files
really hold."""

import json
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
import yaml

pytest.importorskip("prometheus_client")
pytest.importorskip("promql_parser")

from prometheus_client.parser import text_string_to_metric_families

from bundles_on_disk import certificate, found
from live import engine_of, make_bundles
from mtcd.core.errors import ConfigError
from mtcd.core.version import PROTOCOL, VERSION
from mtcd.federation.commands.party import PartyOptions, run_party
from mtcd.federation.delivery.journal import FIELDS
from mtcd.federation.node.counters import REASONS
from mtcd.federation.node.monitoring import COMMITS, LIVE_SECONDS, METRICS, Monitoring
from mtcd.federation.node.node import Node
from mtcd.federation.participant.keeping import read_summary
from mtcd.models.glm.party.participant import LinearParticipant
from mtcd.testing.federation_engine import FederationEngine
from ports import reserved_ports
from problems import MODELS, make_data
from project import ROOT
from promql import SCRAPED, TARGET_LABELS, selectors
from waiting import until

DATA = make_data(MODELS[0], 12, [2, 3, 1], seed=1)
SETTINGS: dict[str, Any] = {
    "model": {"kind": "ridge", "alpha": 1.0},
    "method": {"kind": "mtcd", "tokens": 2, "hops": 3, "stepsize": 0.05},
    "stop": {"iterations": 30},
}
PAGE, DEPLOY = ROOT / "docs" / "operations.md", ROOT / "deploy"
Labels = tuple[tuple[str, str], ...]


def get(address: str, **headers: str) -> tuple[int, str]:
    try:
        with urlopen(Request(address, headers=headers), timeout=60) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()


def values(text: str) -> dict[str, dict[Labels, float]]:
    """What is exposed: by the name of the sample and its labels."""
    exposed: dict[str, dict[Labels, float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            exposed.setdefault(sample.name, {})[tuple(sorted(sample.labels.items()))] = sample.value
    return exposed


@contextmanager
def watched(node: Node) -> Iterator[str]:
    with Monitoring("127.0.0.1:0") as monitoring:
        monitoring.watch(node)
        yield monitoring.url


@pytest.fixture(scope="module")
def trained(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[FederationEngine, dict[str, dict[str, str]]]:
    """A federation that has ended, and what all told: when they paused at the 12th iteration, and
    after the end."""
    engine = engine_of(tmp_path_factory.mktemp("watched"), DATA, **SETTINGS)
    told: dict[str, dict[str, str]] = {}
    with engine:
        for progress in engine.run():
            if progress is not None and progress.hop >= 12 and not told:
                for name, node in engine.nodes.items():
                    with watched(node) as address:
                        told[name] = {
                            "health": get(f"{address}/healthz")[1],
                            "training": get(f"{address}/metrics")[1],
                        }
    for name, node in engine.nodes.items():
        with watched(node) as address:
            told[name]["ended"] = get(f"{address}/metrics")[1]
    return engine, told


def test_what_is_measured_is_what_the_party_holds(trained: Any) -> None:
    engine, told = trained
    hops = 0.0
    for name, node in engine.nodes.items():
        exposed, folder = values(told[name]["ended"]), node.folder.path
        summary = read_summary(folder)
        assert exposed["mtcd_hops_total"][()] == summary.ledger.hops
        hops += exposed["mtcd_hops_total"][()]
        assert 20 < exposed["mtcd_iteration"][()] <= 30
        assert name != "server" or exposed["mtcd_iteration"][()] == 30
        heads = [slot.read_bytes()[: FIELDS.size] for slot in folder.glob("journal.[01]")]
        assert exposed[f"{COMMITS}_count"][()] == max(FIELDS.unpack(head)[1] for head in heads)
        assert exposed[f"{COMMITS}_bucket"][(("le", "+Inf"),)] == exposed[f"{COMMITS}_count"][()]
        until_then = certificate(
            engine.bundles[name].folder.parent, name
        ).not_valid_after_utc.timestamp()
        assert exposed["mtcd_certificate_expiry_timestamp_seconds"][()] == until_then
        assert exposed["mtcd_run_info"] == {(("run", node.agreed.run), ("status", "iterations")): 1}
        assert exposed["mtcd_build_info"] == {
            (("protocol", str(PROTOCOL)), ("version", VERSION)): 1
        }
        assert (
            exposed["mtcd_phase"][(("phase", "ended"),)] == 1 == sum(exposed["mtcd_phase"].values())
        )
    assert hops == 2 * 30  # of both tokens


def test_in_training_tokens_have_ages_and_peers_are_up(trained: Any) -> None:
    engine, told = trained
    for name, node in engine.nodes.items():
        exposed, peers = values(told[name]["training"]), set(node.bundle.config.peers)
        assert exposed["mtcd_peer_up"] == {(("peer", peer),): 1 for peer in peers}
        assert exposed["mtcd_phase"][(("phase", "training"),)] == 1
        sent = exposed["mtcd_sent_bytes_total"]
        assert {labels[0][1] for labels, value in sent.items() if value > 0} == peers
        ages = exposed["mtcd_token_age_seconds"]
        assert set(ages) <= {(("token", "0"),), (("token", "1"),)}
        assert all(0 <= age < 300 for age in ages.values())
        assert exposed["mtcd_messages_refused_total"] == {
            (("reason", reason),): 0 for reason in REASONS
        }
        health = json.loads(told[name]["health"])
        assert (health["status"], health["phase"], health["party"]) == ("ok", "training", name)
        assert health["missing_peers"] == []
    labels_known = [
        name for name in engine.nodes if "mtcd_objective" in values(told[name]["training"])
    ]
    assert labels_known == [name for name in engine.nodes if name != "server"]
    objective = values(told[labels_known[0]]["ended"])["mtcd_objective"][()]
    assert objective < values(told[labels_known[0]]["training"])["mtcd_objective"][()] * 1.5


def test_names_follow_the_conventions_and_the_page_lists_all(trained: Any) -> None:
    _, told = trained
    families = {
        one.name: one
        for one in text_string_to_metric_families(next(iter(told.values()))["training"])
    }
    rows = re.findall(
        r"^\| `(mtcd_\w+)` \| (\w+) \| ([^|]*) \| ([^|]*) \|$", PAGE.read_text(), re.MULTILINE
    )
    listed = {
        name: (kind, set(re.findall(r"`(\w+)`", labels)), text) for name, kind, labels, text in rows
    }
    known = {one.name: (set(one.labels), one.text) for one in METRICS}
    assert set(listed) == {*known, COMMITS}
    for name, (labels, text) in known.items():
        kind = "counter" if name.endswith("_total") else "gauge"
        assert listed[name] == (kind, labels, text), name
        family = families[name.removesuffix("_total")]
        assert (family.type, family.documentation) == (kind, text)
        assert {label for sample in family.samples for label in sample.labels} <= labels
    assert listed[COMMITS][0] == families[COMMITS].type == "histogram"
    assert not [name for name in known if re.search("_(ms|millis|minutes|days|kb|mb)(_|$)", name)]
    assert "process_resident_memory_bytes" in families


def test_a_loop_that_hangs_is_unhealthy_and_one_that_turns_is_not(tmp_path: Path) -> None:
    bundle = make_bundles(tmp_path, ("a", "b"))["server"]
    node = Node(bundle, tmp_path / "run", LinearParticipant(bundle, None), None)
    try:
        with Monitoring("127.0.0.1:0") as monitoring:
            status, text = get(f"{monitoring.url}/healthz")
            assert (status, json.loads(text)["status"]) == (503, "starting")
            assert "mtcd_" not in get(f"{monitoring.url}/metrics")[1]
            monitoring.watch(node)
            status, text = get(f"{monitoring.url}/healthz")
            health = json.loads(text)
            assert (status, health["phase"], health["missing_peers"]) == (
                200,
                "opening",
                ["a", "b"],
            )
            node.loop.turned -= LIVE_SECONDS
            status, text = get(f"{monitoring.url}/healthz")
            assert (status, json.loads(text)["status"]) == (503, "hangs")
            assert "has not turned for 60 s: see the log" in json.loads(text)["reason"]
            node.loop.call(node.loop.stop)
            node.loop.run()
            assert get(f"{monitoring.url}/healthz")[0] == 200
    finally:
        node.close()


def test_other_paths_names_and_forms() -> None:
    with Monitoring(str(reserved_ports(1)[0])) as monitoring:
        assert monitoring.url.startswith("http://127.0.0.1:")
        assert (
            get(f"{monitoring.url}/")[0]
            == get(f"{monitoring.url}/metrics", Host="evil.example")[0]
            == 404
        )
        text = get(
            f"{monitoring.url}/metrics", Accept="application/openmetrics-text; version=1.0.0"
        )[1]
        assert text.endswith("# EOF\n")
    with Monitoring("0.0.0.0:0") as monitoring:
        port = monitoring.url.rpartition(":")[2]
        assert get(f"http://127.0.0.1:{port}/healthz", Host="clinic.example:9100")[0] == 503
        said: list[str] = []
        monitoring.watch(
            SimpleNamespace(log=SimpleNamespace(say=lambda event, text: said.append(text)))
        )  # type: ignore
        assert "restrict access by a firewall" in said[0]


@pytest.mark.parametrize("address", ["", "here", "127.0.0.1:x", "99999", "http://127.0.0.1:9100"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(ConfigError, match="give HOST:PORT"):
        Monitoring(address)


def test_an_address_in_use_is_refused_before_anything_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("signal.signal", lambda number, handler: None)
    # nobody is there to be told
    monkeypatch.setattr("mtcd.federation.node.refusal.ALONE_SECONDS", 0.1)
    bundle = found(tmp_path) / "server"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(
            ConfigError, match=f"cannot be served at {address} .*in use.*: give another address"
        ):
            run_party(PartyOptions(bundle, metrics=address), server=True)
    assert not (bundle / "run").exists()


def test_the_command_serves_while_it_waits_for_others(tmp_path: Path) -> None:
    bundles, (port,) = found(tmp_path), reserved_ports(1)
    command = [
        sys.executable,
        "-m",
        "mtcd",
        "server",
        str(bundles / "server"),
        "--metrics",
        str(port),
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:

        def answered() -> bool:
            try:
                return get(f"http://127.0.0.1:{port}/healthz")[0] == 200
            except OSError:
                return False

        assert until(answered)
        exposed = values(get(f"http://127.0.0.1:{port}/metrics")[1])
        assert set(exposed["mtcd_peer_up"].values()) == {0}
        assert exposed["mtcd_phase"][(("phase", "opening"),)] == 1
    finally:
        process.terminate()
        assert process.wait() == 130


def expressions() -> dict[str, str]:
    """All PromQL of the board, its variables and the alerts, by where it is."""
    board = json.loads((DEPLOY / "grafana" / "federation.json").read_text())
    found = {
        f"{panel['title']} {target['refId']}": target["expr"]
        for panel in board["panels"]
        for target in panel["targets"]
    }
    for variable in board["templating"]["list"]:
        if variable["type"] == "query":
            found[variable["name"]] = (
                variable["query"]["query"].removeprefix("label_values(").rpartition(",")[0]
            )
    rules = yaml.safe_load((DEPLOY / "prometheus" / "alerts.yml").read_text())
    for group in rules["groups"]:
        found |= {rule["alert"]: rule["expr"] for rule in group["rules"]}
    return found


def test_board_and_alerts_ask_for_metrics_and_labels_that_a_party_exposes(trained: Any) -> None:
    _, told = trained
    texts = [text for one in told.values() for text in (one["training"], one["ended"])]
    known: dict[str, set[str]] = {name: set() for name in SCRAPED}
    for name, samples in (
        (name, samples) for text in texts for name, samples in values(text).items()
    ):
        known.setdefault(name, set()).update(label for labels in samples for label, _ in labels)
    asked = {where: selectors(expression) for where, expression in expressions().items()}
    assert len(asked) > 25
    for where, metrics in asked.items():
        assert metrics, where
        for name, labels in metrics.items():
            assert name in known, (where, name)
            assert labels <= known[name] | TARGET_LABELS, (where, name)
    used = {name for metrics in asked.values() for name in metrics}
    # whatever is exposed is shown or watched
    assert {one.name for one in METRICS} - used <= {"mtcd_syncs"}


def test_the_board_has_what_grafana_needs() -> None:
    board = json.loads((DEPLOY / "grafana" / "federation.json").read_text())
    places = [panel["gridPos"] for panel in board["panels"]]
    taken = [
        (x, y)
        for p in places
        for x in range(p["x"], p["x"] + p["w"])
        for y in range(p["y"], p["y"] + p["h"])
    ]
    assert len(taken) == len(set(taken))  # no panel lies on another
    assert max(x for x, _ in taken) == 23
    assert len({panel["id"] for panel in board["panels"]}) == len(places)
    names = {"datasource", "job", "party", "__all", "__rate_interval"}
    assert {variable["name"] for variable in board["templating"]["list"]} <= names
    assert set(re.findall(r"\$\{?(\w+)", json.dumps(board))) <= names


def test_every_alert_says_what_to_do_and_where_to_look() -> None:
    rules = yaml.safe_load((DEPLOY / "prometheus" / "alerts.yml").read_text())["groups"][0]["rules"]
    for rule in rules:
        assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
        assert set(rule["annotations"]) == {"summary", "action"}
        assert rule["labels"]["severity"] in ("info", "warning", "critical")
    scraped = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text())
    assert all((DEPLOY / "prometheus" / name).exists() for name in scraped["rule_files"])
