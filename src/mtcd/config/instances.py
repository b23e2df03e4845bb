"""Instances of registered classes from the keys of a config: each key is a parameter of the
class."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, get_type_hints

from pydantic import ConfigDict, ValidationError, create_model

from mtcd.core.errors import ConfigError, did_you_mean


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
        if name not in parameters:
            raise ConfigError(
                f"{where}: {kind} has no key {name!r}; {did_you_mean(name, parameters)}"
            )
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
    return made(**{name: getattr(settings, name) for name in given})
