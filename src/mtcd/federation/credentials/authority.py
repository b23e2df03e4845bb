"""The administrator's folder: the key of the authority, the federation, and a record of every
issued certificate."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mtcd.config.yaml_file import read_yaml
from mtcd.core.errors import ConfigError, check_known
from mtcd.federation.credentials.bundle_schema import as_yaml
from mtcd.federation.credentials.certificates import (
    Issued,
    certificate_name,
    issue,
    load_certificate,
    load_key,
    make_authority,
    revocation_list,
)
from mtcd.federation.credentials.private_files import read_file, write_files
from mtcd.federation.file import check_federation, check_keys
from mtcd.federation.names import AUTHORITY, parse_address
from mtcd.federation.schema import Federation


@dataclass(frozen=True)
class Record:
    """A certificate that was issued, with what is needed to revoke it: the administrator's folder
    keeps one for each, and never deletes any."""

    party: str
    generation: int
    serial: int
    until: datetime
    revoked: datetime | None = None

    def as_json(self) -> dict[str, Any]:
        """The record as plain values."""
        return {
            "party": self.party,
            "generation": self.generation,
            "serial": f"{self.serial:x}",
            "until": self.until.isoformat(),
            "revoked": self.revoked and self.revoked.isoformat(),
        }


@dataclass
class Authority:
    """The state of the authority. ``save`` writes changes to disk."""

    federation: Federation
    issued: Issued
    secret: bytes  # shared by the parties
    records: list[Record]

    @classmethod
    def found(cls, federation: Federation, secret: bytes) -> Authority:
        """Create a new authority."""
        return cls(federation, make_authority(federation.name), secret, [])

    @classmethod
    def load(cls, bundles: Path) -> Authority:
        """Read the authority of a folder of bundles."""
        folder = bundles / AUTHORITY
        what = "the authority of a federation (mtcd federation init makes one)"
        key = load_key(read_file(folder / "ca.key", what), str(folder / "ca.key"))
        certificate = load_certificate(read_file(folder / "ca.pem", what), str(folder / "ca.pem"))
        # Of two copies of the folder one may be older. Certificates signed with such a key would be
        # refused by all parties.
        if key.public_key() != certificate.public_key():
            raise ConfigError(
                f"{folder}: ca.key is not the key of ca.pem: restore both from a copy."
            )
        path = folder / "federation.yaml"
        federation = check_keys(read_yaml(path, "federation", "name, parties, labels"), str(path))
        # The file may have been edited by hand since: bundles are written from it.
        check_federation(federation)
        secret = read_file(folder / "parties.key", what)
        return cls(
            federation, Issued(certificate, key), secret, _records(folder / "issued.json", what)
        )

    def save(self, bundles: Path, creation: bool = False) -> None:
        # The records first exist in memory: all files are replaced together, or none is
        # (`write_files`).
        """Write the records; at creation also the keys."""
        listed = json.dumps([record.as_json() for record in self.records], indent=1)
        files = {"revoked.pem": self.revocations, "issued.json": listed.encode()}
        files["federation.yaml"] = as_yaml(self.federation)
        if creation:
            files["ca.key"], files["ca.pem"] = self.issued.key_pem, self.issued.certificate_pem
            files["parties.key"] = self.secret
        write_files(bundles / AUTHORITY, files)

    @property
    def revocations(self) -> bytes:
        """The signed list of revoked certificates."""
        return revocation_list(
            self.issued, [(r.serial, r.revoked) for r in self.records if r.revoked is not None]
        )

    def last(self, party: str) -> Record:
        """The newest certificate of a party, of the server or of the operator."""
        check_known(party, self.federation.members, f"No party is called {party!r};")
        return next(record for record in reversed(self.records) if record.party == party)

    def certificates(self) -> dict[str, str | None]:
        """The certificate names of all members; None if revoked."""
        # A new name after a revocation counts from the last generation, so the newest record
        # decides.
        names: dict[str, str | None] = {}
        for party in self.federation.members:
            last = self.last(party)
            names[party] = None
            if last.revoked is None:
                names[party] = certificate_name(party, last.generation)
        return names

    def sign(self, party: str, generation: int, days: int) -> Issued:
        """Issue a new key and certificate for a party."""
        # The operator has no place in the file, and a party that only dials out no address.
        place = self.federation.places.get(party)
        address = None
        if place is not None and place.address is not None:
            address = parse_address(place.address)
        made = issue(self.issued, certificate_name(party, generation), address, days)
        until = made.certificate.not_valid_after_utc
        self.records.append(Record(party, generation, made.certificate.serial_number, until))
        return made

    def revoke(self, party: str) -> bool:
        """Revoke all certificates of a party; returns False if they were revoked before."""
        if self.last(party).revoked is not None:
            return False
        # Without microseconds, as a revocation list stores whole seconds.
        now = datetime.now(UTC).replace(microsecond=0)
        # All of its certificates: an older one of a plain renewal has the same name and may still
        # be valid. A date that is there stays, as it was published.
        for i, record in enumerate(self.records):
            if record.party == party:
                self.records[i] = replace(record, revoked=record.revoked or now)
        return True


def _records(path: Path, what: str) -> list[Record]:
    content = read_file(path, what)
    try:
        records = []
        for given in json.loads(content):
            revoked = given["revoked"]
            records.append(
                Record(
                    str(given["party"]),
                    int(given["generation"]),
                    int(given["serial"], 16),
                    datetime.fromisoformat(given["until"]),
                    None if revoked is None else datetime.fromisoformat(revoked),
                )
            )
        return records
    except (ValueError, TypeError, KeyError):
        raise ConfigError(f"{path} is damaged: restore it from a copy.") from None
