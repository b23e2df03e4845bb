"""The section ``method`` of a config, whose keys depend on its kind."""

from __future__ import annotations

from typing import Annotated, Any, Literal, cast

from pydantic import AfterValidator, ModelWrapValidatorHandler, SerializeAsAny, model_validator

from mtcd.config.keys import Number, Whole, section_of
from mtcd.config.section import Section
from mtcd.errors import ConfigError
from mtcd.methods.method import METHODS


class ScheduleSection(Section):
    """How the step size changes from epoch to epoch: see mtcd.Schedule."""

    kind: str = "step"
    every: Whole = 20
    factor: Number = 0.5
    warmup: Whole = 0


def _method_kind(kind: str) -> str:
    try:
        METHODS[kind]
    except ConfigError as error:
        raise ValueError(str(error).removeprefix("method.kind: ")) from None
    return kind


class MethodSection(Section):
    """How it is trained: see mtcd.MTCD, mtcd.STCD, mtcd.SVFL, mtcd.DCPA and mtcd.TreeCG.

    A method with other settings has a section with these too: see ``section_of``.
    """

    kind: Annotated[str, AfterValidator(_method_kind)] = "mtcd"
    tokens: Whole | None = None
    hops: Whole = 16
    local_updates: Whole = 1
    stepsize: Number | Literal["auto"] = "auto"
    batch: Whole | None = None
    combine: str | None = None
    walk: str = "lazy"
    clusters: Literal["auto"] | list[list[str | int]] | None = None
    start: str | int | dict[str, Number] | list[str | int | dict[str, Number]] | None = None
    acceleration: str | None = None
    depth: Whole | None = None
    dual_stepsize: Number | None = None
    consensus_stepsize: Number | None = None
    variant: Literal["B", "A"] = "B"
    schedule: ScheduleSection | None = None
    fusion_updates: Whole | None = None
    fusion_client: str | int | None = None
    first_pass: bool = True
    transport: str = "float64"
    local_solver: str = "gradient"

    @model_validator(mode="wrap")
    @classmethod
    def _of_its_kind(cls, given: Any, handler: ModelWrapValidatorHandler[MethodSection]) -> MethodSection:
        section = section_for(given.get("kind")) if isinstance(given, dict) else cls
        return handler(given) if cls is not MethodSection or section is cls else section.model_validate(given)


AnyMethodSection = SerializeAsAny[MethodSection]


def section_for(kind: object) -> type[MethodSection]:
    """The section of a method by its name; the general one where no method has it."""
    if not isinstance(kind, str) or kind not in METHODS:
        return MethodSection
    try:
        return cast(type[MethodSection], section_of(kind, MethodSection))
    except ConfigError as error:
        raise ValueError(str(error)) from None
