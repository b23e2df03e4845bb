"""The schema of party.yaml, the settings in a kit (credentials bundle)."""

from __future__ import annotations

from typing import Annotated, Any

import yaml
from pydantic import AfterValidator

from mtcd.config.keys import Whole, has_depth, keys_of
from mtcd.config.schema import (
    AnyMethodSection,
    ComputeSection,
    CostsSection,
    Fraction,
    ModelSection,
    PrivacySection,
    Section,
    Seed,
    StopSection,
)
from mtcd.federation.names import OPERATOR, SERVER, usable_name
from mtcd.federation.schema import (
    AddressText,
    Alignment,
    Federation,
    LabelsSection,
    LimitsSection,
    ListenText,
    Name,
    PartyData,
    PredictionsSection,
)
from mtcd.network.edges import network_from_edges
from mtcd.network.topology import Network
from mtcd.privacy import SEALED
from mtcd.version import PROTOCOL


def _certificate(name: str) -> str:
    party, mark, generation = name.partition("~")
    if mark and not (generation.isdecimal() and generation.isascii()):
        raise ValueError(f"{name!r} is not the name of a certificate")
    usable_name(party)
    return name


CertificateName = Annotated[str, AfterValidator(_certificate)]


class PeerSection(Section):
    """A peer of this party: a neighbour or the server. Without a certificate it is revoked, and not connected to.

    Without an address it dials out only: it connects to this party.
    """

    address: AddressText | None = None
    certificate: CertificateName | None = None


class KitConfig(Section):
    """A whole party.yaml: the party's own part of the federation, and what all parties must agree on."""

    protocol: Whole
    federation: Name
    name: Name
    certificate: CertificateName
    address: AddressText | None = None  # the operator has none, nor has a party that dials out only
    listen: ListenText | None = None
    operator: CertificateName | None = None  # the name of the operator's certificate; None if revoked
    parties: list[Name]  # client k is the k-th
    links: list[tuple[Name, Name]]
    peers: dict[Name, PeerSection]
    data: PartyData = PartyData()
    labels: LabelsSection
    predictions: PredictionsSection
    alignment: Alignment
    standardise: bool
    holdout: Fraction | None = None  # kits of before it have none
    model: ModelSection
    method: AnyMethodSection
    stop: StopSection
    costs: CostsSection
    privacy: PrivacySection | None = None  # kits of before it have none
    compute: ComputeSection | None = None
    limits: LimitsSection
    seed: Seed

    @property
    def network(self) -> Network:
        """The network of all parties."""
        return network_from_edges(self.links, self.parties)

    @property
    def is_server(self) -> bool:
        """Whether this is the server's kit."""
        return self.name == SERVER

    @property
    def is_operator(self) -> bool:
        """Whether this is the operator's kit."""
        return self.name == OPERATOR

    @property
    def sealed(self) -> bool:
        """Whether tokens are encrypted, and labels stay with their holder."""
        return self.privacy is not None and self.privacy.mode == SEALED

    @property
    def seen_by(self) -> str:
        """The party that learns the predictions."""
        return self.predictions.seen_by or self.labels.held_by

    @property
    def rank(self) -> dict[str, int]:
        """Of two peers with addresses, the one of higher rank connects to the other; the server has the lowest rank."""
        return {SERVER: -1, **{name: k for k, name in enumerate(self.parties)}, OPERATOR: len(self.parties)}


def kit_config(federation: Federation, name: str, network: Network, certificates: dict[str, str | None]) -> KitConfig:
    """The settings of a party, of the server or of the operator, without those on the data of others."""
    place, names, party = federation.places.get(name), list(federation.parties), federation.parties.get(name)
    if party is not None:
        near = [names[j] for j in network.neighbours[names.index(name)]]
        near += [SERVER] if federation.server is not None else []
    else:
        near = [other for other in federation.places if other != name]
    holder = name == federation.labels.held_by
    settings = ("model", "method", "stop", "costs", "privacy", "compute", "limits", "seed")
    shared = ("alignment", "standardise", "holdout", *settings)
    return KitConfig(
        protocol=PROTOCOL,
        federation=federation.name,
        name=name,
        certificate=certificates[name] or name,
        address=None if place is None else place.address,
        listen=None if place is None else place.listen,
        operator=certificates.get(OPERATOR),
        parties=names,
        links=[(names[k], names[j]) for k, j in sorted(network.graph.edges)],
        peers={
            peer: PeerSection(address=federation.places[peer].address, certificate=certificates[peer]) for peer in near
        },
        data=PartyData() if party is None else party.data,
        labels=federation.labels if holder else federation.labels.model_copy(update={"column": None, "weights": None}),
        predictions=PredictionsSection(seen_by=federation.predictions.seen_by or federation.labels.held_by),
        **{key: getattr(federation, key) for key in shared},
    )


def settings_yaml(config: KitConfig) -> str:
    """The settings of the training as YAML, without names and addresses: keys of a federation file."""
    content = yaml.safe_load(as_yaml(config))
    keys = ("alignment", "standardise", "holdout", "model", "method", "stop", "costs", "seed")
    return yaml.safe_dump({key: content[key] for key in keys if key in content}, sort_keys=False)


def as_yaml(section: Federation | KitConfig) -> bytes:
    """Encode as YAML, with all defaults filled in."""
    content: dict[str, Any] = section.model_dump(mode="json", exclude_none=True)
    content["method"] = section.method.model_dump(
        mode="json", exclude_none=True, include=keys_of(section.method.kind) | {"kind"}
    )
    if not has_depth(section.method.acceleration):
        content["method"].pop("depth", None)
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True).encode()
