"""The federation file, key by key. Every key is checked; an unknown one is an error."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from mtcd.config.keys import Number, Whole
from mtcd.config.schema import (
    AnyMethodSection,
    ComputeSection,
    CostsSection,
    GlmSection,
    MethodSection,
    ModelSection,
    Section,
    Seed,
    StopSection,
)
from mtcd.federation.names import OPERATOR, SERVER, parse_address, usable_name


def _address(text: str) -> str:
    return str(parse_address(text))


def _listening(text: str) -> str:
    return str(parse_address(text, listening=True))


def _just_address(value: Any) -> Any:
    """An address alone stands for a section with nothing else in it."""
    return {"address": value} if isinstance(value, str) else value


def _words(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _inside(path: Path) -> Path:
    """A kit comes from somebody else: it may name a table in its own folder, never another file of the host."""
    if path.is_absolute() or ".." in path.parts:
        raise ValueError(f"'{path}' is not a path inside the kit: leave it out, the party names its table with --data")
    return path


Name = Annotated[str, AfterValidator(usable_name)]
AddressText = Annotated[str, AfterValidator(_address)]
ListenText = Annotated[str, AfterValidator(_listening)]
Learner = Literal["parties", "server"]
Alignment = Literal["psi", "hashed", "given order"]


class PartyData(Section):
    """The party's own table; all of it can also be given when the party starts."""

    table: Annotated[Path, AfterValidator(_inside)] | None = None
    columns: list[str] | None = None
    id: str | None = None


class PlaceSection(Section):
    """Where somebody is: at which address others find it, and where it listens if that is not the same."""

    address: AddressText
    listen: ListenText | None = None


class PartySection(PlaceSection):
    """A party: where it is, and what it participant."""

    data: PartyData = PartyData()


class LabelsSection(Section):
    """Who has the labels, in which column, and who is told them."""

    held_by: Name
    column: str | None = None
    shared_with: Annotated[tuple[Learner, ...], BeforeValidator(_words)] = ()


class PredictionsSection(Section):
    """Who sees predictions of new samples: a party, or the server; the holder of the labels unless another is named."""

    seen_by: Name | None = None


class LinksSection(Section):
    """A kind of network, or the pairs of parties that can talk."""

    kind: str | None = None
    p: Number | None = None
    rows: Whole | None = None
    seed: Seed | None = None  # the federation's own, unless given
    links: list[Annotated[list[str], Field(min_length=2, max_length=2)]] | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> LinksSection:
        if (self.kind is None) == (self.links is None):
            raise ValueError("give either a kind (path, cycle, complete, ...) or links, a list of pairs of parties")
        if self.links is not None and (self.p is not None or self.rows is not None):
            raise ValueError("p and rows belong to a kind of network, not to links")
        if self.seed is not None and self.kind != "erdos-renyi":
            raise ValueError("seed is for the kind 'erdos-renyi' only, as nothing else is drawn: leave it out")
        return self


class LimitsSection(Section):
    """What a party accepts of another."""

    message_mb: Annotated[Whole, Field(ge=1, le=1024)] = 256
    lease_ms: Annotated[Whole, Field(ge=500, le=60_000)] = 2000  # silence after which a neighbour counts as gone
    sync: bool = False  # whether every commit waits for the disk, so that a loss of power loses nothing


class Federation(Section):
    """A whole federation file."""

    name: Name
    parties: dict[Name, Annotated[PartySection, BeforeValidator(_just_address)]]
    server: Annotated[PlaceSection | None, BeforeValidator(_just_address)] = None
    labels: LabelsSection
    predictions: PredictionsSection = PredictionsSection()
    alignment: Alignment = "psi"
    standardise: bool = False  # every party its own columns
    network: LinksSection = LinksSection(kind="complete")
    model: ModelSection = GlmSection()
    method: AnyMethodSection = MethodSection()
    stop: StopSection = StopSection()
    costs: CostsSection = CostsSection()
    compute: ComputeSection | None = None
    limits: LimitsSection = LimitsSection()
    seed: Seed = 0

    @model_validator(mode="before")
    @classmethod
    def _without_server(cls, given: Any) -> Any:
        """Without a server the method is stcd, unless another is named."""
        if isinstance(given, dict) and given.get("server") is None and isinstance(given.get("method", {}), dict):
            return {**given, "method": {"kind": "stcd", **given.get("method", {})}}
        return given

    @model_validator(mode="after")
    def _all_different(self) -> Federation:
        folded = [name.lower() for name in self.parties]
        if len(folded) < 2:
            raise ValueError("parties: a federation has two parties or more")
        for name in (SERVER, OPERATOR):
            if name in folded:
                raise ValueError(f"parties: {name!r} is a reserved name: choose another")
        for i, name in enumerate(self.parties):
            if folded[i] in folded[:i]:
                raise ValueError(f"parties: {name!r} differs from another name in capitals only: choose another")
        taken: dict[str, str] = {}
        for name, place in self.places.items():
            other = taken.setdefault(place.address, name)
            if other != name:
                raise ValueError(f"{other!r} and {name!r} have the same address {place.address}: give each its own")
        return self

    @property
    def places(self) -> dict[str, PlaceSection]:
        """Where everybody is who can be called, the server last."""
        return {**self.parties, **({SERVER: self.server} if self.server is not None else {})}

    @property
    def members(self) -> list[str]:
        """Everybody who has a kit."""
        return [*self.places, OPERATOR]
