"""The section ``engine`` of a config, and ``engine=`` in Python; nothing here starts Ray."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

import mtcd
from mtcd.config.build import build
from mtcd.config.read import check_config
from mtcd.core.errors import ConfigError, MtcdError
from mtcd.core.optional import find
from mtcd.ray import connection as ray_connection
from mtcd.ray.cluster import RayActors

DATA = {"synthetic": "ridge", "samples": 20, "features": 6, "clients": 3}


def engine_of(**section: Any) -> Any:
    return build(check_config({"data": DATA, "engine": section})).engine


def test_a_config_names_an_engine_and_its_settings() -> None:
    assert engine_of(kind="ray", actors=3, address="10.0.0.1:6379") == mtcd.Ray(
        "10.0.0.1:6379", actors=3
    )
    assert build(check_config({"data": DATA})).engine is None


def test_the_local_engine_is_the_default() -> None:
    method, stop = mtcd.STCD(), mtcd.Stop(iterations=50)
    data = mtcd.synthetic("ridge", samples=20, features=6, clients=3)
    runs = [
        mtcd.train(data, None, "path", method, stop, engine=one)
        for one in (None, engine_of(kind="local"))
    ]
    assert runs[0].final.objective == runs[1].final.objective


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ({"kind": "rai"}, "engine.kind: no engine is called 'rai'; did you mean 'ray'"),
        (
            {"kind": "ray", "adress": "auto"},
            "engine: ray has no key 'adress'; did you mean 'address'",
        ),
        ({"kind": "ray", "actors": "two"}, "engine.actors: "),
        ({"kind": "ray", "actors": 0}, "engine.actors must be 1 or more"),
        ({"kind": "ray", "gpus": -1}, "engine.gpus must be 0 or more"),
        ({"kind": "ray", "address": ""}, "engine.address is 'auto'"),
        ({"kind": "mine:Engine"}, "an engine is one that is installed"),
    ],
)
def test_settings_that_cannot_work_are_refused(section: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        engine_of(**section)


def test_train_refuses_anything_but_an_engine() -> None:
    data = mtcd.synthetic("ridge", samples=20, features=6, clients=3)
    with pytest.raises(
        ConfigError, match=r"engine must be a kind of engine, such as mtcd.Ray\(\), but is 'ray'"
    ):
        mtcd.train(data, None, "path", mtcd.STCD(), engine="ray")


@pytest.mark.parametrize("address", ["127.0.0.1:1", "127.0.0.1:99999"])
def test_nothing_at_the_address_is_said_at_once(address: str) -> None:
    find("ray")
    with pytest.raises(MtcdError, match=f"there is no Ray cluster at {address}.*ray start --head"):
        RayActors(mtcd.Ray(address)).start()


def test_an_address_without_port_is_refused() -> None:
    with pytest.raises(
        ConfigError, match="engine.address is 'auto', 'local' or 'host:port', but is 'somewhere'"
    ):
        RayActors(mtcd.Ray("somewhere")).start()


def test_auto_joins_what_ray_start_has_begun_and_still_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not the Ray that another process has started for itself, nor a cluster that was killed and
    left its address."""
    services = find("ray._private.services")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    (tmp_path / "ray").mkdir()
    monkeypatch.setattr(services, "find_gcs_addresses", lambda: {"127.0.0.1:2"})
    assert ray_connection._running() is None
    with socket.create_server(("127.0.0.1", 0)) as cluster:
        address = f"127.0.0.1:{cluster.getsockname()[1]}"
        find("ray._private.utils").write_ray_address(address)
        assert ray_connection._running() == address
    assert ray_connection._running() is None


def test_a_cluster_that_the_environment_names_must_be_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    with pytest.raises(MtcdError, match="RAY_ADDRESS: there is no Ray cluster at 127.0.0.1:1"):
        RayActors(mtcd.Ray()).start()


def test_messages_of_ray_go_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    worker = find("ray._private.worker")
    for _ in range(2):
        ray_connection._errors_to_stderr(worker)
    worker.print_to_stdstream(
        {"lines": ["a node died"], "pid": "raylet", "is_err": False}, ignore_prefix=False
    )
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("a node died") == 1
