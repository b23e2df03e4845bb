"""YAML as people write it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from mtcd.core.errors import ConfigError


class _Loader(yaml.SafeLoader):
    """YAML as people write it: 1e-5 is a number, the keys on and yes are texts, and a key given
    twice is an error."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag == "tag:yaml.org,2002:merge":
                continue
            if key.value in seen:  # of which YAML would take the last, in silence
                problem = f"the key {key.value!r} is given twice"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
            seen.add(key.value)
            if key.tag == "tag:yaml.org,2002:bool":
                key.tag = "tag:yaml.org,2002:str"
        return super().construct_mapping(node, deep)


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    # YAML 1.1 asks for a point and a sign: 1e-5 would be a text
    re.compile(r"^[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$"),
    list("-+.0123456789"),
)


def read_yaml(path: Path, what: str, keys: str) -> dict[str, Any]:
    """The keys of a YAML file; errors say ``what`` it should be, and name some ``keys`` that it
    should hold."""
    content = parse_value(_text(path, what), str(path))
    if not isinstance(content, dict):
        article = "a"
        if what.startswith("e"):
            article = "an"
        raise ConfigError(f"{path} is not {article} {what}: it must hold keys such as {keys}.")
    return content


def _text(path: Path, what: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError(f"There is no {what} file {path}.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"The {what} {path} cannot be read: {error}.") from None


def parse_value(text: str, where: str) -> Any:
    """A value, or a whole file, as a config writes it."""
    try:
        # a subclass of SafeLoader: no tag makes an object
        return yaml.load(text, Loader=_Loader)
    except RecursionError:
        raise ConfigError(f"{where} is nested too deeply to be read.") from None
    except yaml.YAMLError as error:
        mark, line = getattr(error, "problem_mark", None), ""
        if mark is not None:
            line = f", line {mark.line + 1}"
        problem = getattr(error, "problem", None) or str(error)
        raise ConfigError(f"{where}{line} is not valid YAML: {problem}.") from None
