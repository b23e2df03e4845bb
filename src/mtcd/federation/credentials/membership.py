"""The membership part of party.yaml: who is in the federation, where each is reached, and by which
certificate.

It is all that the operator needs, who trains nothing: no method, model or plugin is imported to
read it.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from mtcd.config.costs_schema import CostsSection
from mtcd.config.section import Section, Whole
from mtcd.core.mappings import positions
from mtcd.federation.names import OPERATOR, SERVER, parse_address, usable_name


def _address(text: str) -> str:
    """An address that others connect to."""
    return str(parse_address(text))


def _listening(text: str) -> str:
    return str(parse_address(text, listening=True))


def _certificate(name: str) -> str:
    # Of 'clinic~2' both parts are checked: the name of a certificate must be the name of a party.
    party, mark, generation = name.partition("~")
    if mark and not (generation.isdecimal() and generation.isascii()):
        raise ValueError(f"{name!r} is not the name of a certificate")
    usable_name(party)
    return name


Name = Annotated[str, AfterValidator(usable_name)]
AddressText = Annotated[str, AfterValidator(_address)]
ListenText = Annotated[str, AfterValidator(_listening)]
CertificateName = Annotated[str, AfterValidator(_certificate)]


class PeerSection(Section):
    """A peer of this party: a neighbour or the server. Without a certificate it is revoked, and not
    connected to.

    Without an address it dials out only: it connects to this party.
    """

    address: AddressText | None = None
    certificate: CertificateName | None = None


class LimitsSection(Section):
    """Limits on messages, leases and commits."""

    # A limit on what is allocated for one message: the sender's word must not decide that.
    message_mb: Annotated[Whole, Field(ge=1, le=1024)] = 256
    # silence after which a neighbour counts as unreachable
    lease_ms: Annotated[Whole, Field(ge=500, le=60_000)] = 2000
    # whether every commit waits for the disk, so that a loss of power loses nothing
    sync: bool = False


class Membership(Section):
    """The members of the federation as one of them sees them."""

    protocol: Whole
    federation: Name
    name: Name
    certificate: CertificateName
    address: AddressText | None = None  # the operator has none, nor has a party that dials out only
    listen: ListenText | None = None
    # the name of the operator's certificate; None if revoked
    operator: CertificateName | None = None
    parties: list[Name]  # client k is the k-th
    links: list[tuple[Name, Name]]
    peers: dict[Name, PeerSection]
    costs: CostsSection
    limits: LimitsSection

    @property
    def is_server(self) -> bool:
        """Whether this is the server's bundle."""
        return self.name == SERVER

    @property
    def is_operator(self) -> bool:
        """Whether this is the operator's bundle."""
        return self.name == OPERATOR

    @property
    def rank(self) -> dict[str, int]:
        """Of two peers with addresses, the one of higher rank connects to the other; the server has
        the lowest rank."""
        # The server has the lowest rank, so parties connect to it: it is the one most likely to
        # have a public address.
        return {
            SERVER: -1,
            **positions(self.parties),
            OPERATOR: len(self.parties),
        }
