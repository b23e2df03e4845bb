"""Reading a config file, with the changes of the command line, into a checked Config."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel, ValidationError

from mtcd.config.schema import Config, SyntheticData, TableData
from mtcd.errors import ConfigError, did_you_mean


class _Loader(yaml.SafeLoader):
    """YAML as people write it: 1e-5 is a number, and a key given twice is an error."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise yaml.MarkedYAMLError(problem=f"the key {key!r} is given twice", problem_mark=key_node.start_mark)
            seen.add(key)
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
    content = _parse(_text(path), str(path))
    if not isinstance(content, dict):
        raise ConfigError(f"{path} is not a config: it must hold keys such as data, model, network, method.")
    for change in changes:
        _apply(content, change)
    if seed is not None:
        content["seed"] = seed
    return _locate(check_config(content, str(path)), path.resolve().parent)


def check_config(content: dict[str, Any], where: str = "the config") -> Config:
    """A Config from plain values; one error that names every wrong key."""
    try:
        return Config.model_validate(content)
    except ValidationError as error:
        problems = [_explain(problem) for problem in error.errors()]
        raise ConfigError(f"{where}: {'; '.join(dict.fromkeys(problems))}.") from None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError(f"There is no config file {path}.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"The config {path} cannot be read: {error}.") from None


def _parse(text: str, where: str) -> Any:
    try:
        return yaml.load(text, Loader=_Loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or str(error)
        raise ConfigError(f"{where}{line} is not valid YAML: {problem}.") from None


def _apply(content: dict[str, Any], change: str) -> None:
    """Put the value of 'a.b=value' into nested dicts."""
    path, sign, value = change.partition("=")
    keys = path.strip().split(".")
    if not sign or not all(keys):
        raise ConfigError(f"--set {change!r} is not of the form key.key=value, such as method.hops=16.")
    place: Any = content
    for key in keys[:-1]:
        place[key] = {} if place.get(key) is None else place[key]
        place = place[key]
        if not isinstance(place, dict):
            raise ConfigError(f"--set {change!r}: {key!r} holds a value, not keys.")
    place[keys[-1]] = _parse(value, f"--set {change!r}")


def _locate(config: Config, folder: Path) -> Config:
    """Make the paths in the config absolute."""

    def found(path: Path) -> Path:
        beside = folder / path
        return beside if beside.exists() or not path.exists() else path.resolve()

    data: Any = config.data
    if isinstance(data, TableData):
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
    return config.model_copy(update={"data": data, "network": network})


def _explain(problem: Any) -> str:
    """One problem of pydantic's, in words that name the key."""
    place = [str(part) for part in problem["loc"] if part not in ("table", "synthetic") or problem["loc"][-1] == part]
    key = ".".join(place)
    if problem["type"] == "extra_forbidden":
        return f"unknown key {key!r}, {did_you_mean(place[-1], _known_keys(problem['loc'][:-1]))}"
    if problem["type"] == "missing":
        return f"the key {key!r} is missing"
    said = problem["msg"].removeprefix("Value error, ")
    return f"{key}: {said[:1].lower()}{said[1:]} (got {problem['input']!r})" if key else said


def _known_keys(place: Sequence[Any]) -> list[str]:
    """The keys that the section at this place knows."""
    if not place:
        return list(Config.model_fields)
    if place[0] == "data":
        section: type[BaseModel] = SyntheticData if "synthetic" in place else TableData
    else:
        annotation = Config.model_fields[str(place[0])].annotation
        section = next((a for a in (annotation, *get_args(annotation)) if hasattr(a, "model_fields")), Config)
    return list(section.model_fields)
