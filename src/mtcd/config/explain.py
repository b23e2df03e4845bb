"""Error messages for invalid configs, with the keys as the user wrote them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from mtcd.config.schema import Config, DataSection, TableData
from mtcd.config.section import Alternatives
from mtcd.core.errors import did_you_mean


def explain(
    error: ValidationError, content: dict[str, Any], schema: type[BaseModel] = Config
) -> str:
    """All problems, one sentence each; alternatives for the same key are joined."""
    problems: dict[str, list[str]] = {}
    for problem in error.errors():
        keys = _keys(problem["loc"], content)
        key = ".".join(keys)
        # a key that is misspelt: the nearest known one is the best advice
        if problem["type"] == "extra_forbidden":
            known = _known(schema, keys, content)
            problems.setdefault(f"unknown key {key!r}, {did_you_mean(keys[-1], known)}", [])
        elif problem["type"] == "missing":
            problems.setdefault(f"the key {key!r} is missing", [])
        else:
            problems.setdefault(key, []).append(
                _message(problem["type"], problem["msg"], problem["input"])
            )

    sentences = []
    for key, messages in problems.items():
        different = list(dict.fromkeys(messages))  # several alternatives may say the same
        if different:
            key = f"{key}: {' or '.join(different)}"
        sentences.append(key)

    text = "; ".join(sentences)
    if text.endswith("?"):  # of a suggestion: 'did you mean ...?'
        return text
    return f"{text}."


def _message(kind: str, said: str, value: Any) -> str:
    """What pydantic, or a check of ours, says of a value; with the value, unless it is in it."""
    # YAML's own trap, which its message would not explain
    if kind == "string_type" and isinstance(value, bool):
        return (
            "write it in quotes: without them, YAML reads no, off and false as false, yes, on and "
            "true as true"
        )
    # what pydantic puts around, and 'or instance of' a class, which is no matter of a config
    message = said.removeprefix("Value error, ").removeprefix("Input ")
    message = message.split(" or instance of")[0].removesuffix(".")
    message = message[:1].lower() + message[1:]
    if isinstance(value, str | int | float | None) and repr(value) not in message:
        return f"{message} (got {value!r})"
    return message


def _keys(place: Sequence[str | int], content: Any) -> list[str]:
    """The keys of the user's on the way to a problem; pydantic also names the types that it
    tried."""
    keys = []
    for i, part in enumerate(place):
        if _is_in(part, content):
            content = content[part]
            keys.append(str(part))
            continue

        # what is not there is a key that is missing, at the very end, or the name of a type
        missing = i == len(place) - 1 and isinstance(content, dict)
        if missing and not str(part).endswith("]"):
            keys.append(str(part))
    return keys


def _is_in(part: str | int, content: Any) -> bool:
    if isinstance(content, list):
        return isinstance(part, int)
    return isinstance(content, dict) and part in content


def _known(schema: type[BaseModel], keys: Sequence[str], content: Any) -> list[str]:
    """The valid keys of the section that contains the last of these."""
    section = schema
    for key in keys[:-1]:
        # names that people give, of cases or clients say, are no fields: the section stays
        field = section.model_fields.get(key)
        if field is not None:
            section = _section_in(field.annotation) or section

        if not isinstance(content, dict):
            continue
        content = content.get(key)
        if issubclass(section, Alternatives) and isinstance(content, dict):
            section = section.chosen(content)

    # misspelt, they look like keys of a table
    if section is TableData:
        return [*section.model_fields, *DataSection.signs()]
    return list(section.model_fields)


def _section_in(annotation: Any) -> type[BaseModel] | None:
    """The section that a field holds, alone or in a list, a dict or beside None."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_section_in, get_args(annotation))), None)
