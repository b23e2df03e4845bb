"""Tables of the keys of a config: types and defaults are those of the schema, meanings the texts
below the keys."""

from __future__ import annotations

import ast
import inspect
import textwrap
import types
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from documentation.tables import table
from mtcd.config import data_schema, schema
from mtcd.config.keys import keys_of
from mtcd.core import features

METHODS = ("mtcd", "stcd", "svfl", "dcpa", "tree-cg")
WORDS = {
    int: "whole number",
    float: "number",
    str: "text",
    bool: "`true` or `false`",
    Path: "path",
    Any: "text, or mapping",
}


def key_table(name: str, *only: str) -> str:
    """The keys of the section of that name in the schema of a config, all or only some, with their
    meanings."""
    section = section_called(name)
    meanings = attribute_docs(section)
    fields = {key: section.model_fields[key] for key in only} or section.model_fields
    if missing := [key for key in fields if key not in meanings]:
        raise ValueError(f"{name}: no text in the schema says what {', '.join(missing)} means.")
    method = section is schema.MethodSection
    rows = [
        [
            f"`{key}`",
            *([_readers(key)] if method else []),
            type_in_words(field),
            _default(field),
            meanings[key],
        ]
        for key, field in fields.items()
    ]
    return "\n".join(
        table(["key", *(["for"] if method else []), "type", "default", "meaning"], rows)
    )


def section_called(name: str) -> type[BaseModel]:
    """A section of the schema, or of a feature that adds some to ``model`` or ``data``, by its
    name."""
    homes = [
        *features.config_sections("model").values(),
        *features.config_sections("data").values(),
    ]
    modules = [import_module(home.partition(":")[0]) for home in homes]
    for module in (schema, data_schema, *modules):
        if hasattr(module, name):
            found: type[BaseModel] = getattr(module, name)
            return found

    raise ValueError(f"No section is called {name}.")


def attribute_docs(section: type[BaseModel]) -> dict[str, str]:
    """The texts below the keys of a section, also those that it has from its base classes."""
    found: dict[str, str] = {}
    for owner in reversed(
        [one for one in section.__mro__ if issubclass(one, BaseModel) and one is not BaseModel]
    ):
        found |= texts_below(owner)
    return found


def texts_below(owner: type) -> dict[str, str]:
    """The texts below the attributes that a class declares itself."""
    found: dict[str, str] = {}
    body = ast.parse(textwrap.dedent(inspect.getsource(owner))).body[0]
    assert isinstance(body, ast.ClassDef)
    for before, after in zip(body.body, body.body[1:], strict=False):
        text = after.value if isinstance(after, ast.Expr) else None
        named = isinstance(before, ast.AnnAssign) and isinstance(before.target, ast.Name)
        if named and isinstance(text, ast.Constant) and isinstance(text.value, str):
            found[before.target.id] = " ".join(text.value.split())
    return found


def type_in_words(field: FieldInfo) -> str:
    """The type of a key as a user would say it, with its bounds."""
    return _words(field.annotation, *field.metadata)


def _words(annotation: Any, *metadata: Any) -> str:
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _words(parts[0], *parts[1:], *metadata)
    if origin in (Union, types.UnionType):
        return ", or ".join(
            dict.fromkeys(_words(one) for one in parts if one is not types.NoneType)
        )
    if origin is Literal:
        return ", ".join(f"`{one}`" for one in parts)
    if origin is list:
        return f"list ({_words(parts[0])})"
    if origin is dict or (isinstance(annotation, type) and issubclass(annotation, BaseModel)):
        return "mapping"
    return " ".join([WORDS[annotation], *_bounds(metadata)])


def _bounds(metadata: tuple[Any, ...]) -> list[str]:
    signs = {"gt": "above", "ge": "from", "lt": "below", "le": "up to"}
    inner = [
        one
        for part in metadata
        for one in (part.metadata if isinstance(part, FieldInfo) else [part])
    ]
    return [
        f"{word} {getattr(one, sign)}"
        for sign, word in signs.items()
        for one in inner
        if hasattr(one, sign)
    ]


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if value is None or isinstance(value, BaseModel):
        return ""
    return f"`{yaml.safe_dump(value, default_flow_style=True).strip().removesuffix('...').strip()}`"


def _readers(key: str) -> str:
    """The methods that read a key; nothing where all do."""
    readers = [kind for kind in METHODS if key in keys_of(kind)]
    return ", ".join(readers) if len(readers) < len(METHODS) else ""
