"""The base of all sections of a config, and the types of their keys."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from mtcd.config.numbers import Number, Whole

Count = Annotated[Whole, Field(ge=1)]
FromZero = Annotated[Whole, Field(ge=0)]
Fraction = Annotated[Number, Field(gt=0, lt=1)]
Positive = Annotated[Number, Field(gt=0)]
Seed = FromZero


class Section(BaseModel):
    """A section of the config: unknown keys are rejected."""

    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True)
