"""The administrator's commands: create all bundles, renew, revoke or move one, list them."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import yaml

from mtcd.core.errors import ConfigError, MtcdError
from mtcd.federation.credentials.authority import Authority
from mtcd.federation.credentials.bundle import SECRET_BYTES
from mtcd.federation.credentials.bundle_schema import BundleConfig, as_yaml, bundle_config
from mtcd.federation.credentials.certificates import Issued
from mtcd.federation.credentials.expiry import EXPIRY_FILE, expiry_file
from mtcd.federation.credentials.private_files import write_files
from mtcd.federation.file import check_keys, network_of, read_federation
from mtcd.federation.names import AUTHORITY, OPERATOR, parse_address
from mtcd.federation.readme import readme
from mtcd.federation.schema import Federation, PartySection, PlaceSection
from mtcd.federation.transport import PARTIES_FILE


@dataclass(frozen=True)
class Standing:
    """The state of a party's certificate."""

    name: str
    address: str | None  # the operator has none
    until: datetime
    revoked: bool

    @property
    def days_left(self) -> int:
        """Whole days until the certificate expires; negative after that."""
        return (self.until - datetime.now(UTC)).days

    @property
    def state(self) -> str:
        """``valid``, ``expired`` or ``revoked``."""
        return "revoked" if self.revoked else "expired" if self.days_left < 0 else "valid"


def init_federation(path: Path, out: Path, days: int) -> tuple[Authority, tuple[str, ...]]:
    """Create the authority and all bundles in a new or empty folder, atomically."""
    federation, notes = read_federation(path)
    _check_empty(out)
    authority = Authority.found(federation, secrets.token_bytes(SECRET_BYTES).hex().encode())
    made = {name: authority.sign(name, 1, days) for name in federation.members}
    out, writing = out.absolute(), None
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        # readable by its owner only
        writing = Path(tempfile.mkdtemp(dir=out.parent, prefix=".mtcd-"))
        (writing / AUTHORITY).mkdir(mode=0o700)
        authority.save(writing, creation=True)
        _write_bundles(authority, writing, made)
        os.replace(writing, out)  # replaces an empty folder only
    except OSError as error:
        raise MtcdError(
            f"The bundles could not be written to {out}: {error.strerror or error}."
        ) from None
    finally:
        if writing is not None:
            shutil.rmtree(writing, ignore_errors=True)
    return authority, notes


def renew(bundles: Path, name: str, days: int) -> Standing:
    """Issue a new key and certificate for a party. A party that was revoked gets a new certificate
    name."""
    authority = Authority.load(bundles)
    last = authority.last(name)
    made = authority.sign(name, last.generation + (last.revoked is not None), days)
    authority.save(bundles)
    _write_bundles(authority, bundles, {name: made})
    return standing(authority, name)


def revoke(bundles: Path, name: str) -> bool:
    """Revoke the certificates of a party, and update all bundles; returns False if they were
    revoked before."""
    authority = Authority.load(bundles)
    new = authority.revoke(name)
    authority.save(bundles)
    _write_bundles(authority, bundles, {})
    return new


def move(
    bundles: Path, name: str, address: str, listen: str | None, days: int
) -> tuple[PartySection | PlaceSection, bool]:
    """Change the address of a party; returns its place, and whether it got a new key.

    A certificate is bound to a host, so another host needs a new one. A revoked party gets it when
    it is renewed.
    """
    authority = Authority.load(bundles)
    last = authority.last(name)
    if name == OPERATOR:
        raise ConfigError(
            "The operator accepts no connections and has no address: its bundle can be used on any "
            "host."
        )
    before = authority.federation.places[name]
    authority.federation = _moved(authority.federation, name, address, listen)
    after = authority.federation.places[name]
    if after == before:
        raise ConfigError(
            f"{name!r} is at {before.address} already. If a bundle is out of date, write all "
            f"bundles again: mtcd federation renew {bundles} {name}"
        )
    made = {}
    if last.revoked is None and _host(before) != _host(after):
        made[name] = authority.sign(name, last.generation, days)
    authority.save(bundles)
    _write_bundles(authority, bundles, made)
    return after, bool(made)


def standings(bundles: Path) -> list[Standing]:
    """The states of all certificates."""
    authority = Authority.load(bundles)
    return [standing(authority, name) for name in authority.federation.members]


def standing(authority: Authority, name: str) -> Standing:
    """The state of one certificate."""
    last, place = authority.last(name), authority.federation.places.get(name)
    address = None if place is None else place.address
    return Standing(name, address, last.until, last.revoked is not None)


def _moved(federation: Federation, name: str, address: str, listen: str | None) -> Federation:
    """The federation with another address of a party; its listening address stays, unless one is
    given."""
    content = yaml.safe_load(as_yaml(federation))
    place = content["parties"][name] if name in federation.parties else content[name]
    place |= {"address": address} | ({} if listen is None else {"listen": listen})
    if name in federation.parties:
        place["dial_out_only"] = False  # it has an address now
    return check_keys(content, "The new address")


def _host(place: PartySection | PlaceSection) -> str | None:
    return None if place.address is None else parse_address(place.address).host


def _check_empty(out: Path) -> None:
    try:
        if out.is_symlink() or (out.exists() and (not out.is_dir() or any(out.iterdir()))):
            raise ConfigError(
                f"{out} exists and is not an empty folder: choose another. New bundles would not "
                "work with those that the parties have; to replace one bundle, use: mtcd "
                "federation renew"
            )
    except OSError as error:
        raise ConfigError(
            f"{out} cannot be used ({error.strerror}): choose another folder."
        ) from None


def _write_bundles(authority: Authority, bundles: Path, made: dict[str, Issued]) -> None:
    """Update all bundles; those in ``made`` get a new key. Of bundles that were deleted here, the
    public part is written."""
    federation = authority.federation
    network, certificates, revoked = (
        network_of(federation),
        authority.certificates(),
        authority.revocations,
    )
    for name in federation.members:
        config = bundle_config(federation, name, network, certificates)
        files = {
            "party.yaml": as_yaml(config),
            "ca.pem": authority.issued.certificate_pem,
            "revoked.pem": revoked,
            "README.txt": readme(config, federation.server is not None),
            EXPIRY_FILE: expiry_file({peer: authority.last(peer).until for peer in config.peers}),
        }
        if name in made:
            files |= _private_part(config, made[name], authority.secret)
        (bundles / name).mkdir(mode=0o700, exist_ok=True)
        write_files(bundles / name, files)


def _private_part(config: BundleConfig, made: Issued, secret: bytes) -> dict[str, bytes]:
    files = {"key.pem": made.key_pem, "cert.pem": made.certificate_pem}
    if config.name in config.parties:
        files[PARTIES_FILE] = secret
    return files
