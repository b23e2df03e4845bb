"""Reading a config file, with the changes of the command line, into a checked Config."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from mtcd.config.explain import explain
from mtcd.config.schema import Config, FileData, OwnTable, SplitSection
from mtcd.errors import ConfigError
from mtcd.own_code import look_in


class _Loader(yaml.SafeLoader):
    """YAML as people write it: 1e-5 is a number, the keys on and yes are texts, and a key given twice is an error."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                if key.value in seen:
                    problem = f"the key {key.value!r} is given twice"
                    raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
                seen.add(key.value)
                if key.tag == "tag:yaml.org,2002:bool":
                    key.tag = "tag:yaml.org,2002:str"
        return super().construct_mapping(node, deep)


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$"),
    list("-+.0123456789"),
)


def read_config(path: Path, changes: Sequence[str] = (), seed: int | None = None) -> Config:
    """The config in a file, with ``changes`` like 'method.hops=16' applied, checked key by key.

    Paths in it are looked for beside the file first, then from the current folder.
    """
    content = read_yaml(path, "config", "data, model, network, method")
    for change in changes:
        apply_change(content, change)
    if seed is not None:
        content["seed"] = seed
    look_in(path.resolve().parent / str(content.get("code") or "."))
    return locate(check_config(content, str(path)), path.resolve().parent)


def read_yaml(path: Path, what: str, keys: str) -> dict[str, Any]:
    """The keys of a YAML file; errors say ``what`` it should be, and name some ``keys`` that it should hold."""
    content = _parse(_text(path, what), str(path))
    if not isinstance(content, dict):
        article = "an" if what.startswith("e") else "a"
        raise ConfigError(f"{path} is not {article} {what}: it must hold keys such as {keys}.")
    return content


def refuse_code(config: Config, how_to_run: str) -> None:
    """Reject a config that names code in a command that should not run code: the config may be from a third party."""
    named, folder = config.own_parts, config.code
    if isinstance(config.model, SplitSection) and config.model.own_networks:
        named |= {f"model.{key}": name for key, name in config.model.own_networks.items()}
        folder = config.model.code
    if named:
        listed = ", ".join(f"{key} {name}" for key, name in named.items())
        raise ConfigError(
            f"This config names code of somebody's own: {listed}, looked for in {folder}. Using it runs that code. "
            f"Read it first; if you trust it, {how_to_run}"
        )


def check_config(content: dict[str, Any], where: str = "the config") -> Config:
    """A Config from plain values; one error that names every wrong key. Empty sections count as left out."""
    given = {key: value for key, value in content.items() if value is not None}
    if not isinstance(given.get("data", {}), dict):
        kinds = "table, label and clients, or synthetic and its sizes, or dataset and clients"
        raise ConfigError(f"{where}: data must hold keys: {kinds}.")
    try:
        return Config.model_validate(given)
    except ValidationError as error:
        raise ConfigError(f"{where}: {explain(error, given)}") from None


def _text(path: Path, what: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError(f"There is no {what} file {path}.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"The {what} {path} cannot be read: {error}.") from None


def _parse(text: str, where: str) -> Any:
    try:
        return yaml.load(text, Loader=_Loader)
    except RecursionError:
        raise ConfigError(f"{where} is nested too deeply to be read.") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or str(error)
        raise ConfigError(f"{where}{line} is not valid YAML: {problem}.") from None


def apply_change(content: dict[str, Any], change: str) -> None:
    """Put the value of 'a.b=value' into nested dicts."""
    path, sign, value = change.partition("=")
    if not sign or not all(path.strip().split(".")):
        raise ConfigError(f"--set {change!r} is not of the form key.key=value, such as method.hops=16.")
    put_value(content, path.strip(), parse_value(value, f"--set {change!r}"), f"--set {change!r}")


def put_value(content: dict[str, Any], path: str, value: Any, where: str) -> None:
    """Put a value at 'a.b' into nested dicts."""
    *outer, last = path.split(".")
    place: Any = content
    for key in outer:
        place[key] = {} if place.get(key) is None else place[key]
        place = place[key]
        if not isinstance(place, dict):
            raise ConfigError(f"{where}: {key!r} holds a value, not keys.")
    place[last] = value


def parse_value(text: str, where: str) -> Any:
    """A value as a config writes it."""
    return _parse(text, where)


def table_files(config: Config) -> list[Path]:
    """The files that the data of a config is read from."""
    data = config.data
    if not isinstance(data, FileData):
        return []
    shares = data.clients.values() if isinstance(data.clients, dict) else ()
    return list(dict.fromkeys([data.table, *(share.table for share in shares if isinstance(share, OwnTable))]))


def locate(config: Config, folder: Path) -> Config:
    """The config with absolute paths: looked for in ``folder`` first, then from the current one."""

    def found(path: Path) -> Path:
        beside = folder / path
        return beside if os.path.exists(beside) or not os.path.exists(path) else path.resolve()

    data: Any = config.data
    if isinstance(data, FileData):
        data = data.model_copy(update={"table": found(data.table)})
        if isinstance(data.clients, dict):
            clients = {
                name: share if isinstance(share, list) else share.model_copy(update={"table": found(share.table)})
                for name, share in data.clients.items()
            }
            data = data.model_copy(update={"clients": clients})
    network = config.network
    if network.edges is not None:
        network = network.model_copy(update={"edges": found(network.edges)})
    model = config.model
    if isinstance(model, SplitSection) and ":" in model.client + model.fusion:
        model = model.model_copy(update={"code": found(model.code or Path("."))})
    code = found(config.code or Path(".")) if config.own_parts else config.code
    return config.model_copy(update={"data": data, "network": network, "model": model, "code": code})
