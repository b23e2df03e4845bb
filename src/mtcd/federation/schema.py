"""The schema of the federation file. Every key is checked; an unknown key is an error."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from mtcd.config.method_schema import default_section
from mtcd.config.schema import (
    AnyMethodSection,
    AnyModelSection,
    Class,
    ComputeSection,
    CostsSection,
    Fraction,
    MethodSection,
    Prepare,
    PrivacySection,
    Section,
    Seed,
    StopSection,
    default_model_section,
)
from mtcd.config.section import Number, Whole
from mtcd.federation.credentials.membership import AddressText, LimitsSection, ListenText, Name
from mtcd.federation.names import OPERATOR, SERVER
from mtcd.network.topology import DRAWN


def _just_address(value: Any) -> Any:
    """Expand a bare address to a section."""
    return {"address": value} if isinstance(value, str) else value


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _inside(path: Path) -> Path:
    """Refuse a path outside the bundle: a bundle comes from the administrator, and must not name
    other files of the host."""
    if path.is_absolute() or ".." in path.parts:
        raise ValueError(
            f"'{path}' is not a path inside the bundle: leave it out, the party names its table "
            "with --data"
        )
    return path


Learner = Literal["parties", "server"]
Alignment = Literal["psi", "hashed", "given order"]


class PartyData(Section):
    """A party's table; all keys can also be given when the party starts."""

    table: Annotated[Path, AfterValidator(_inside)] | None = None
    columns: list[str] | None = None
    id: str | None = None
    prepare: Prepare | None = None  # of its own columns: see mtcd.data.prepare


class PlaceSection(Section):
    """The address of a party or of the server, and its listening address if that differs."""

    address: AddressText
    listen: ListenText | None = None


class PartySection(Section):
    """A party: its address and its table. One that dials out only accepts no connections, and has
    no address."""

    address: AddressText | None = None
    listen: ListenText | None = None
    dial_out_only: bool = False
    data: PartyData = PartyData()

    @model_validator(mode="after")
    def _reached_or_not(self) -> PartySection:
        # `address` and `dial_out_only` say opposite things, so neither may win silently.
        if self.dial_out_only and (self.address is not None or self.listen is not None):
            raise ValueError(
                "a party that dials out only accepts no connections: leave address and listen out"
            )
        if not self.dial_out_only and self.address is None:
            raise ValueError(
                "its address is missing; if it cannot accept connections, write dial_out_only: true"
            )
        return self


class LabelsSection(Section):
    """The label holder, the columns of labels and weights, and the receivers of both."""

    held_by: Name
    column: str | None = None
    weights: str | None = None  # the column with the weights of the samples
    positive: Class | None = None  # of two classes
    shared_with: Annotated[tuple[Learner, ...], BeforeValidator(_as_list)] = ()


class PredictionsSection(Section):
    """The party, or the server, that learns the predictions of new samples; by default the label
    holder."""

    seen_by: Name | None = None


class LinksSection(Section):
    """A kind of network, or the links between parties."""

    kind: str | None = None
    p: Number | None = None
    rows: Whole | None = None
    radius: Number | None = None
    seed: Seed | None = None  # the federation's own, unless given
    links: list[Annotated[list[str], Field(min_length=2, max_length=2)]] | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> LinksSection:
        if (self.kind is None) == (self.links is None):
            raise ValueError(
                "give either a kind (path, cycle, complete, ...) or links, a list of pairs of "
                "parties"
            )
        if self.links is not None and any(
            value is not None for value in (self.p, self.rows, self.radius)
        ):
            raise ValueError("p, rows and radius belong to a kind of network, not to links")
        # A seed that does nothing would make people think that they had drawn another network.
        if self.seed is not None and self.kind not in DRAWN:
            kinds = " and ".join(f"'{kind}'" for kind in DRAWN)
            raise ValueError(
                f"seed is for the kinds {kinds} only, as no other kind is random: leave it out"
            )
        return self


class Federation(Section):
    """A whole federation file."""

    name: Name
    parties: dict[Name, Annotated[PartySection, BeforeValidator(_just_address)]]
    server: Annotated[PlaceSection | None, BeforeValidator(_just_address)] = None
    labels: LabelsSection
    predictions: PredictionsSection = PredictionsSection()
    alignment: Alignment = "psi"
    standardise: bool = False  # every party scales its own columns
    holdout: Fraction | None = None  # of the common samples, for the metrics of the end
    network: LinksSection = LinksSection(kind="complete")
    model: AnyModelSection = Field(default_factory=default_model_section)
    method: AnyMethodSection = MethodSection()
    stop: StopSection = StopSection()
    costs: CostsSection = CostsSection()
    privacy: PrivacySection | None = None
    compute: ComputeSection | None = None
    limits: LimitsSection = LimitsSection()
    seed: Seed = 0

    @model_validator(mode="before")
    @classmethod
    def _without_server(cls, given: Any) -> Any:
        """Set the kind of a method that has none, in a federation without a server: stcd."""
        # Before validation, as afterwards a given kind and the default are the same. A file that
        # leaves out the server has said which method it means.
        if (
            isinstance(given, dict)
            and given.get("server") is None
            and isinstance(given.get("method"), dict)
        ):
            return {**given, "method": {"kind": "stcd", **given["method"]}}
        return given

    @model_validator(mode="after")
    def _default_method(self) -> Federation:
        """Take the default method of a federation, where none is given."""
        # Only now are model, privacy and server known together. Through `__dict__`: an assignment
        # would count the method as given by the user.
        if "method" not in self.model_fields_set:
            privacy = None if self.privacy is None else self.privacy.settled()
            self.__dict__["method"] = default_section(
                self.model, privacy, server=self.server is not None
            )
        return self

    @model_validator(mode="after")
    def _all_different(self) -> Federation:
        # Names that differ in capitals only are one folder on some systems.
        folded = [name.lower() for name in self.parties]
        if len(folded) < 2:
            raise ValueError("parties: a federation has two parties or more")
        for name in (SERVER, OPERATOR):
            if name in folded:
                raise ValueError(f"parties: {name!r} is a reserved name: choose another")
        for i, name in enumerate(self.parties):
            if folded[i] in folded[:i]:
                raise ValueError(
                    f"parties: {name!r} differs from another name in capitals only: choose another"
                )
        taken: dict[str, str] = {}
        for name, place in self.places.items():
            # A party without an address is called by nobody, so it cannot collide.
            other = name if place.address is None else taken.setdefault(place.address, name)
            if other != name:
                raise ValueError(
                    f"{other!r} and {name!r} have the same address {place.address}: give each its "
                    "own"
                )
        return self

    @property
    def places(self) -> dict[str, PartySection | PlaceSection]:
        """The addresses of all parties and, last, of the server."""
        found: dict[str, PartySection | PlaceSection] = {**self.parties}
        if self.server is not None:
            found[SERVER] = self.server
        return found

    @property
    def members(self) -> list[str]:
        """All members that have a bundle: parties, server, operator."""
        return [*self.places, OPERATOR]
