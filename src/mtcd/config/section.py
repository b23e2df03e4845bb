"""The base of all sections of a config, and the types of their keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Self, cast

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    model_validator,
)

from mtcd.core import features


def no_bool(value: Any) -> Any:
    """YAML's true is no number, though Python's is."""
    if isinstance(value, bool):
        raise ValueError("should be a number")
    return value


Number = Annotated[float, BeforeValidator(no_bool)]
Whole = Annotated[int, BeforeValidator(no_bool)]


Count = Annotated[Whole, Field(ge=1)]
FromZero = Annotated[Whole, Field(ge=0)]
Fraction = Annotated[Number, Field(gt=0, lt=1)]
Positive = Annotated[Number, Field(gt=0)]
Seed = FromZero


class Section(BaseModel):
    """A section of the config: unknown keys are rejected."""

    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True)


class Alternatives(Section):
    """A section whose keys depend on what is in it.

    A direct subclass stands in the schema and chooses; its own subclasses have the keys. So a class
    is imported only when a config needs it.
    """

    @classmethod
    def chosen(cls, given: Mapping[str, Any]) -> type[Section]:
        """The class that has the keys of a section, by its plain content.

        Parameters
        ----------
        given
            What the config holds below this key.
        """
        raise NotImplementedError

    @model_validator(mode="wrap")
    @classmethod
    def _of_the_chosen_class(cls, given: Any, handler: ModelWrapValidatorHandler[Self]) -> Any:
        # only the class that stands in the schema chooses: its subclasses are what is chosen
        if Alternatives not in cls.__bases__ or not isinstance(given, dict):
            return handler(given)

        section = cls.chosen(given)
        if section is cls:  # the general section of all methods is also that of some
            return handler(given)
        return section.model_validate(given)


def registered(key: str, given: Mapping[str, Any]) -> type[Section] | None:
    """The section that a feature has for a key of a config; None where no feature has one.

    A kind that is spelt as registered comes first. A key that only one section has tells it too,
    whatever its kind is misspelt as.

    Parameters
    ----------
    key
        The key, such as ``model``.
    given
        What the config holds below it.
    """
    homes = features.config_sections(key)
    signs = [f"kind: {given.get('kind')}", *given, ""]
    for sign in signs:
        if sign in homes:
            return cast(type[Section], features.load(homes[sign]))

    return None
