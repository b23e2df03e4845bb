"""Reading of credentials: the files of a bundle that identify its owner and the other members.

One of them, ``expiry.json``, has the dates when the certificates of peers expire, as the
administrator knew them when the bundle was written. A party whose own certificate has expired
cannot open a link, and so cannot tell anybody why it does not come. Its peers can: they have the
dates. A renewal changes nothing at the peers, whose bundles keep the old date: therefore this is
advice about peers that are missing, and nobody is refused by it. It is a file of its own, which
versions without it do not miss.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from pydantic import ValidationError

from mtcd.config.yaml_file import read_yaml
from mtcd.core.errors import ConfigError, WireError
from mtcd.core.version import PROTOCOL, VERSION
from mtcd.federation.credentials.certificates import (
    UNREADABLE,
    check_certificate,
    common_name,
    is_signed_by,
    load_certificate,
    load_key,
    out_of_time,
    party_of,
    revoked_serials,
)
from mtcd.federation.credentials.membership import Membership
from mtcd.federation.credentials.private_files import read_file
from mtcd.federation.names import OPERATOR, SERVER
from mtcd.federation.transport import CA_FILE, CERTIFICATE_FILE, KEY_FILE

EXPIRY_FILE = "expiry.json"


def expiry_file(until: Mapping[str, datetime]) -> bytes:
    """The content of the file, given when the certificate of each peer expires."""
    dates = {name: when.isoformat() for name, when in until.items()}
    return json.dumps(dates, indent=1).encode()


def expired_peers(bundle: Path, among: Iterable[str]) -> str:
    """A sentence for each of these peers whose certificate has expired; "" if there is none.

    Parameters
    ----------
    bundle
        The folder of the credentials bundle. One without the file tells nothing.
    among
        The peers without a connection.

    Returns
    -------
    str
        The sentences, separated by spaces.
    """
    try:
        dates = json.loads((bundle / EXPIRY_FILE).read_text())
        until = {name: datetime.fromisoformat(dates[name]) for name in among if name in dates}
    # Advice only: a file that is missing or damaged must not keep a party from starting.
    except (OSError, ValueError, TypeError, RecursionError):
        return ""

    now = datetime.now(UTC)
    sentences = []
    for name, when in until.items():
        # A date without a zone cannot be compared with one that has it; all dates are written in
        # UTC.
        if when.replace(tzinfo=when.tzinfo or UTC) < now:
            sentences.append(
                f"The certificate of {name} expired on {when:%Y-%m-%d}, unless it has a newer one: "
                f"the administrator renews it with 'mtcd federation renew BUNDLES {name}'."
            )
    return " ".join(sentences)


WHAT = "a whole bundle"
M = TypeVar("M", bound=Membership)


@dataclass(frozen=True)
class Credentials:
    """Files that belong together, with a valid certificate. Keys stay in their files."""

    folder: Path
    config: Membership
    until: datetime
    revoked: frozenset[int]  # serial numbers


def read_credentials(folder: Path) -> Credentials:
    """Read the credentials in the folder of a bundle, without the settings of the training: see
    check_files."""
    folder = folder.absolute()
    config = read_party_file(folder, Membership, partial=True)
    return Credentials(folder, config, *check_files(folder, config))


def check_files(folder: Path, config: Membership) -> tuple[datetime, frozenset[int]]:
    """The expiry time of the certificate, and the revoked serial numbers.

    Refused if a file is missing, readable by others, expired, revoked or of another party.
    """
    # The order decides which error a user sees first: files that are missing, then a certificate
    # that is not valid, and last a key that belongs to another certificate.
    key = load_key(read_file(folder / KEY_FILE, WHAT), str(folder / KEY_FILE))
    where = str(folder / CERTIFICATE_FILE)
    certificate = load_certificate(read_file(folder / CERTIFICATE_FILE, WHAT), where)
    authority = load_certificate(read_file(folder / CA_FILE, WHAT), str(folder / CA_FILE))
    listed = read_file(folder / "revoked.pem", WHAT)
    revoked = revoked_serials(listed, authority, str(folder / "revoked.pem"))
    check_certificate(certificate, authority, config.certificate, where)
    if certificate.serial_number in revoked:
        raise ConfigError(
            f"{where} was revoked: ask the administrator for a new bundle (mtcd federation renew)."
        )
    if key.public_key() != certificate.public_key():
        raise ConfigError(
            f"{folder}: {KEY_FILE} is not the key of {CERTIFICATE_FILE}: ask the administrator for "
            "a new bundle."
        )
    return certificate.not_valid_after_utc, revoked


def read_party_file(folder: Path, schema: type[M], partial: bool = False) -> M:
    """The settings in party.yaml; with ``partial``, only the keys of this schema."""
    if not folder.is_dir():
        raise ConfigError(
            f"There is no folder {folder}: give the folder of a bundle, such as bundles/hospital_a."
        )
    path = folder / "party.yaml"
    content = read_yaml(path, "party", "name, address, peers")
    protocol = content.get("protocol")
    # Before all other keys: a file of another protocol has other keys, and errors about these would
    # not help.
    if protocol != PROTOCOL:
        newer = isinstance(protocol, int) and protocol > PROTOCOL
        todo = (
            "upgrade mtcd here"
            if newer
            else "ask the administrator, who has an older version, for a new bundle"
        )
        raise ConfigError(
            f"{path} is for protocol {protocol!r}, but this version of mtcd ({VERSION}) speaks "
            f"{PROTOCOL}: {todo}, or install the version that the administrator uses. A run ends "
            "with the protocol that it began with."
        )
    if partial:
        content = {key: value for key, value in content.items() if key in schema.model_fields}
    try:
        config = schema.model_validate(content)
    except ValidationError as error:
        from mtcd.config.explain import explain  # knows all sections, and with them all methods

        raise ConfigError(f"{path}: {explain(error, content, schema)}") from None
    refuse_strangers(
        config,
        {config.name, *config.peers, *(name for pair in config.links for name in pair)},
        path,
    )
    return config


def refuse_strangers(config: Membership, named: Iterable[str], path: Path) -> None:
    """Reject a file that names somebody who is not in the federation."""
    if strangers := sorted({*named} - {*config.parties, SERVER, OPERATOR}):
        raise ConfigError(
            f"{path}: {strangers[0]!r} is not a party of the federation: ask the administrator for "
            "this file again."
        )


class Members:
    """The certificates that a bundle lets its owner check."""

    def __init__(self, bundle: Credentials) -> None:
        self.config, self.revoked = bundle.config, bundle.revoked
        path = bundle.folder / CA_FILE
        self._authority = load_certificate(read_file(path, WHAT), str(path))

    def owner(
        self, content: bytes, among: Collection[str], what: str
    ) -> tuple[str, ec.EllipticCurvePublicKey]:
        """The name and the public key of a certificate, at ``what``, which must be valid today and
        of one of these."""
        try:
            certificate = x509.load_der_x509_certificate(content)
            called = common_name(certificate)
            public = certificate.public_key()
        except UNREADABLE:
            raise WireError(f"the certificate of {what}", "is not readable") from None
        # The generation is no part of the name: sealed messages name parties.
        owner = party_of(called)
        if owner not in among or not isinstance(public, ec.EllipticCurvePublicKey):
            raise WireError(f"the certificate of {what}", "is of no party of this federation")
        whose = f"the certificate of {owner!r} at {what}"
        if not is_signed_by(certificate, self._authority):
            raise WireError(whose, "is not of this federation: its authority did not sign it")
        if problem := out_of_time(certificate):
            raise WireError(whose, problem)
        # Parties that are no neighbours have no entry here. For them the revocation list is all
        # there is to check by.
        peer = self.config.peers.get(owner)
        # A peer under an older name was revoked, though the list here may not say so yet
        # (`certificates.py`).
        if certificate.serial_number in self.revoked or (
            peer is not None and peer.certificate != called
        ):
            raise WireError(whose, "was revoked")
        return owner, public
