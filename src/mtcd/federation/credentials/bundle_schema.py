"""The schema of party.yaml, the settings in a bundle."""

from __future__ import annotations

from typing import Any

import yaml

from mtcd.config.keys import has_depth, keys_of
from mtcd.config.schema import (
    AnyMethodSection,
    AnyModelSection,
    ComputeSection,
    Fraction,
    PrivacySection,
    Seed,
    StopSection,
)
from mtcd.core.mappings import attributes
from mtcd.core.version import PROTOCOL
from mtcd.federation.credentials.membership import Membership, PeerSection
from mtcd.federation.names import OPERATOR, SERVER
from mtcd.federation.schema import (
    Alignment,
    Federation,
    LabelsSection,
    PartyData,
    PredictionsSection,
)
from mtcd.network.edges import network_from_edges
from mtcd.network.topology import Network
from mtcd.privacy.settings import LabelPrivacy


class BundleConfig(Membership):
    """A whole party.yaml: the membership, the party's own data, and the training that all parties
    must agree on."""

    data: PartyData = PartyData()
    labels: LabelsSection
    predictions: PredictionsSection
    alignment: Alignment
    standardise: bool
    holdout: Fraction | None = None  # bundles of before it have none
    model: AnyModelSection
    method: AnyMethodSection
    stop: StopSection
    privacy: PrivacySection | None = None  # bundles of before it have none
    compute: ComputeSection | None = None
    seed: Seed

    @property
    def network(self) -> Network:
        """The network of all parties."""
        return network_from_edges(self.links, self.parties)

    @property
    def label_privacy(self) -> LabelPrivacy | None:
        """What the label holder does to its labels before anything leaves it."""
        return None if self.privacy is None else self.privacy.label_privacy

    @property
    def seen_by(self) -> str:
        """The party that learns the predictions."""
        return self.predictions.seen_by or self.labels.held_by


def bundle_config(
    federation: Federation, name: str, network: Network, certificates: dict[str, str | None]
) -> BundleConfig:
    """The settings of a party, of the server or of the operator, without those on the data of
    others."""
    place = federation.places.get(name)
    party = federation.parties.get(name)
    names = list(federation.parties)
    if party is not None:
        near = [names[j] for j in network.neighbours[names.index(name)]]
        if federation.server is not None:
            near.append(SERVER)
    else:
        # The server syncs with all parties, and the operator asks all and the server.
        near = [other for other in federation.places if other != name]
    peers = {}
    for peer in near:
        address = federation.places[peer].address
        peers[peer] = PeerSection(address=address, certificate=certificates[peer])

    # The names of these columns are of no concern to others, and may tell what is being predicted.
    labels = federation.labels
    if name != labels.held_by:
        labels = labels.model_copy(update={"column": None, "weights": None})
    settings = ("model", "method", "stop", "costs", "privacy", "compute", "limits", "seed")
    shared = ("alignment", "standardise", "holdout", *settings)
    return BundleConfig(
        protocol=PROTOCOL,
        federation=federation.name,
        name=name,
        certificate=certificates[name] or name,
        address=None if place is None else place.address,
        listen=None if place is None else place.listen,
        operator=certificates.get(OPERATOR),
        parties=names,
        links=[(names[k], names[j]) for k, j in network.graph.edges],
        peers=peers,
        data=PartyData() if party is None else party.data,
        labels=labels,
        predictions=PredictionsSection(
            seen_by=federation.predictions.seen_by or federation.labels.held_by
        ),
        **attributes(federation, shared),
    )


def settings_yaml(config: BundleConfig) -> str:
    """The settings of the training as YAML, without names and addresses: keys of a federation
    file."""
    content = yaml.safe_load(as_yaml(config))
    keys = ("alignment", "standardise", "holdout", "model", "method", "stop", "costs", "seed")
    return yaml.safe_dump({key: content[key] for key in keys if key in content}, sort_keys=False)


def as_yaml(section: Federation | BundleConfig) -> bytes:
    """Encode as YAML, with all defaults filled in."""
    content: dict[str, Any] = section.model_dump(mode="json", exclude_none=True)
    # A method section has the keys of all methods. Written in full, a file would refuse itself when
    # it is read: most keys are not those of its method.
    content["method"] = section.method.model_dump(
        mode="json", exclude_none=True, include=keys_of(section.method.kind) | {"kind"}
    )
    if not has_depth(section.method.acceleration):
        content["method"].pop("depth", None)
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True).encode()
