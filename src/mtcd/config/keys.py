"""The keys of a method, which are the parameters of what makes it."""

from __future__ import annotations

import dataclasses
import inspect
import types
from collections.abc import Callable
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, PydanticUserError, create_model

from mtcd.config.instances import default_of
from mtcd.config.numbers import Number, Whole
from mtcd.core.errors import ConfigError
from mtcd.methods.method import METHODS, Method
from mtcd.methods.mtcd.features import ACCELERATIONS


def keys_of(kind: str) -> set[str]:
    """The keys of the section that the method reads, besides its kind."""
    return set(_parameters(METHODS[kind]))


def section_of(kind: str, general: type[BaseModel]) -> type[BaseModel]:
    """The section of a method: ``general``, and those of its keys that are not there or have
    another default."""
    return _section(METHODS[kind], kind, general)


def has_depth(acceleration: str | None) -> bool:
    """Whether ``depth`` means something beside this acceleration."""
    return acceleration is not None and ACCELERATIONS[acceleration].uses_depth


@cache
def _section(maker: Callable[..., Method], kind: str, general: type[BaseModel]) -> type[BaseModel]:
    fields = general.model_fields
    own = {}
    for name, parameter in _parameters(maker).items():
        # a default of its own, too, has to be in the section: it is shown, and kept with the run
        if name not in fields or fields[name].default != parameter.default:
            own[name] = parameter

    if not own:
        return general

    hinted: Any = maker
    if isinstance(maker, type):
        hinted = maker.__init__  # type: ignore[misc]
    try:
        hints = get_type_hints(hinted)
        made: Any = {}
        for name, parameter in own.items():
            made[name] = (_checked(hints.get(name, Any)), default_of(parameter))

        return create_model(general.__name__, __base__=general, __module__=__name__, **made)
    except (NameError, TypeError, PydanticUserError) as error:
        raise ConfigError(
            f"method.kind: {kind} has settings that a config cannot give: {error}. Their types "
            "must be numbers, texts, true or false, lists, dicts, or None beside one of these."
        ) from None


@cache
def _parameters(maker: Callable[..., Method]) -> dict[str, inspect.Parameter]:
    """The parameters that a config may give, with their defaults."""
    found = dict(inspect.signature(maker).parameters)
    fields: tuple[dataclasses.Field[Any], ...] = ()
    if dataclasses.is_dataclass(maker):
        fields = dataclasses.fields(maker)

    for field in fields:
        # a setting for Python alone
        if not field.metadata.get("config", True):
            found.pop(field.name)
        elif field.init and field.default_factory is not dataclasses.MISSING:
            # the signature shows a placeholder where the default is made anew for each instance
            found[field.name] = found[field.name].replace(default=field.default_factory())

    return {name: p for name, p in found.items() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}


def _checked(annotation: Any) -> Any:
    """The type with numbers that may not be true or false."""
    # to Python, true is the number 1: 'tokens: yes' would train one token
    if annotation is int:
        return Whole
    if annotation is float:
        return Number
    if get_origin(annotation) in (Union, types.UnionType):
        return Union[tuple(_checked(one) for one in get_args(annotation))]  # noqa: UP007 - made from a tuple
    return annotation
