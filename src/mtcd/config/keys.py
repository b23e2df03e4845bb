"""Keys of a config that are the parameters of what they make: of methods, and of other registered
classes."""

from __future__ import annotations

import dataclasses
import inspect
import types
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, PydanticUserError, ValidationError, create_model

from mtcd.config.section import Number, Whole
from mtcd.core.errors import ConfigError, check_known
from mtcd.core.mappings import attributes
from mtcd.methods.method import METHODS, Method
from mtcd.methods.mtcd.features import ACCELERATIONS


def default_of(parameter: inspect.Parameter) -> Any:
    """The default of a field for a parameter; an ellipsis, as pydantic has it, where it is
    required."""
    if parameter.default is parameter.empty:
        return ...
    return parameter.default


def instance(where: str, kind: str, made: Callable[..., Any], given: Mapping[str, Any]) -> Any:
    """The class of this kind with these settings, checked by its type hints.

    Parameters
    ----------
    where
        The key of the config, with which errors begin.
    kind
        The name of the class in the config.
    made
        The class, or a function that makes it.
    given
        The other keys.

    Raises
    ------
    ConfigError
        A key is no parameter, or its value is of another type.
    """
    parameters = inspect.signature(made).parameters
    for name in given:
        check_known(name, parameters, f"{where}: {kind} has no key {name!r};")
    maker: Any = made
    if isinstance(made, type):
        maker = vars(made)["__init__"]
    hints = get_type_hints(maker)

    fields: dict[str, Any] = {}
    for name, parameter in parameters.items():
        fields[name] = (hints.get(name, Any), default_of(parameter))

    try:
        # pydantic checks by type hints, as for the sections of the config
        settings = create_model(kind, __config__=ConfigDict(extra="forbid"), **fields)(**given)
    except ValidationError as error:
        first = error.errors()[0]
        raise ConfigError(
            f"{where}.{'.'.join(map(str, first['loc'][:1]))}: {first['msg']}."
        ) from None
    # only what was given: defaults of a factory are made by the class itself
    return made(**attributes(settings, given))


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
