"""Reading a config file, with the changes of the command line, into a checked Config."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from mtcd.config.explain import explain
from mtcd.config.schema import Config, FileData, OwnTable
from mtcd.config.yaml_file import parse_value, read_yaml
from mtcd.core.errors import ConfigError
from mtcd.core.mappings import without_none
from mtcd.core.own_code import look_in


def read_config(path: Path, changes: Sequence[str] = (), seed: int | None = None) -> Config:
    """The config in a file, with ``changes`` like 'method.hops=16' applied, checked key by key.

    Paths in it are looked for beside the file first, then from the current folder.
    """
    content = read_yaml(path, "config", "data, model, network, method")
    for change in changes:
        apply_change(content, change)
    if seed is not None:
        content["seed"] = seed
    # before the config is checked: kinds of one's own are looked up then
    look_in(path.resolve().parent / str(content.get("code") or "."))
    return locate(check_config(content, str(path)), path.resolve().parent)


def refuse_code(config: Config, how_to_run: str) -> None:
    """Reject a config that names code in a command that should not run code: the config may be from
    a third party."""
    named, folder = config.own_parts, config.code
    # modules of networks are in a folder of their own
    networks = config.model.own_networks
    if networks:
        named |= {f"model.{key}": name for key, name in networks.items()}
        folder = config.model.code_folder
    if named:
        listed = ", ".join(f"{key} {name}" for key, name in named.items())
        raise ConfigError(
            f"This config names code of somebody's own: {listed}, looked for in {folder}. Using it "
            f"runs that code. Read it first; if you trust it, {how_to_run}"
        )


def check_config(content: dict[str, Any], where: str = "the config") -> Config:
    """A Config from plain values; one error that names every wrong key. Empty sections count as
    left out."""
    # 'stop:' without anything below it, as people leave it
    given = without_none(content)
    if not isinstance(given.get("data", {}), dict):
        kinds = "table, label and clients, or synthetic and its sizes, or dataset and clients"
        raise ConfigError(f"{where}: data must hold keys: {kinds}.")
    try:
        return Config.model_validate(given)
    except ValidationError as error:
        raise ConfigError(f"{where}: {explain(error, given)}") from None


def apply_change(content: dict[str, Any], change: str) -> None:
    """Put the value of 'a.b=value' into nested dicts."""
    path, sign, value = change.partition("=")
    if not sign or not all(path.strip().split(".")):
        raise ConfigError(
            f"--set {change!r} is not of the form key.key=value, such as method.hops=16."
        )
    put_value(content, path.strip(), parse_value(value, f"--set {change!r}"), f"--set {change!r}")


def put_value(content: dict[str, Any], path: str, value: Any, where: str) -> None:
    """Put a value at 'a.b' into nested dicts."""
    *outer, last = path.split(".")
    place: Any = content
    for key in outer:
        if place.get(key) is None:  # an empty section counts as left out
            place[key] = {}
        place = place[key]
        if not isinstance(place, dict):
            raise ConfigError(f"{where}: {key!r} holds a value, not keys.")
    place[last] = value


def table_files(config: Config) -> list[Path]:
    """The files that the data of a config is read from."""
    data = config.data
    if not isinstance(data, FileData):
        return []

    files = [data.table]
    if isinstance(data.clients, dict):
        files += [share.table for share in data.clients.values() if isinstance(share, OwnTable)]

    return list(dict.fromkeys(files))  # several clients may share a table


def locate(config: Config, folder: Path) -> Config:
    """The config with absolute paths: looked for in ``folder`` first, then from the current one."""

    def found(path: Path) -> Path:
        beside = folder / path
        # one that is in neither place is reported as the file beside the config
        if os.path.exists(beside) or not os.path.exists(path):
            return beside
        return path.resolve()

    data: Any = config.data
    if isinstance(data, FileData):
        changed: dict[str, Any] = {"table": found(data.table)}
        if isinstance(data.clients, dict):
            changed["clients"] = dict(data.clients)
            for name, share in data.clients.items():
                if isinstance(share, OwnTable):
                    own = share.model_copy(update={"table": found(share.table)})
                    changed["clients"][name] = own
        data = data.model_copy(update=changed)

    network = config.network
    if network.edges is not None:
        network = network.model_copy(update={"edges": found(network.edges)})

    model = config.model.located(found)

    # the folder of code only where something in it is named: others keep the config as it was
    code = config.code
    if config.own_parts:
        code = found(config.code or Path("."))

    return config.model_copy(
        update={"data": data, "network": network, "model": model, "code": code}
    )
