"""What is wrong with a config, in words that name the keys as the user wrote them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from mtcd.config.schema import Config, OwnTable, SyntheticData, TableData
from mtcd.errors import did_you_mean


def explain(error: ValidationError, content: dict[str, Any]) -> str:
    """All problems, one sentence each; alternatives for the same key are told together."""
    told: dict[str, list[str]] = {}
    for problem in error.errors():
        keys = _keys(problem["loc"], content)
        key = ".".join(keys)
        if problem["type"] == "extra_forbidden":
            told.setdefault(f"unknown key {key!r}, {did_you_mean(keys[-1], _known(keys, problem['loc']))}", [])
        elif problem["type"] == "missing":
            told.setdefault(f"the key {key!r} is missing", [])
        else:
            said = problem["msg"].removeprefix("Value error, ").removeprefix("Input ").split(" or instance of")[0]
            got = f" (got {problem['input']!r})" if isinstance(problem["input"], str | int | float | None) else ""
            told.setdefault(key, []).append(said[:1].lower() + said[1:] + got)
    text = "; ".join(f"{key}: {' or '.join(dict.fromkeys(said))}" if said else key for key, said in told.items())
    return text if text.endswith("?") else f"{text}."


def _keys(place: Sequence[str | int], content: Any) -> list[str]:
    """The keys of the user's on the way to a problem; pydantic also names the types that it tried."""
    keys = []
    for i, part in enumerate(place):
        if (isinstance(content, dict) and part in content) or (isinstance(content, list) and isinstance(part, int)):
            content = content[part]  # type: ignore[index]
        elif i < len(place) - 1 or not isinstance(content, dict) or str(part).endswith("]"):
            continue  # the name of a type
        keys.append(str(part))
    return keys


def _known(keys: Sequence[str], place: Sequence[str | int]) -> list[str]:
    """The keys that the section around the last of these knows."""
    section: type[BaseModel] = Config
    if len(keys) > 1 and keys[0] == "data":
        section = OwnTable if len(keys) > 2 else SyntheticData if "<synthetic>" in place else TableData
    elif len(keys) > 1:
        section = Config.model_fields[keys[0]].annotation  # type: ignore[assignment]
    return list(section.model_fields)
