"""Reading of credentials: the files of a bundle that say who its owner is and who the others
are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from mtcd.config.yaml_file import read_yaml
from mtcd.core.errors import ConfigError
from mtcd.core.version import PROTOCOL, VERSION
from mtcd.federation.credentials.certificates import (
    check_certificate,
    load_certificate,
    load_key,
    revoked_serials,
)
from mtcd.federation.credentials.membership import Membership
from mtcd.federation.credentials.private_files import read_file
from mtcd.federation.names import OPERATOR, SERVER
from mtcd.federation.transport import CA_FILE, CERTIFICATE_FILE, KEY_FILE, zenoh_config

WHAT = "a whole bundle"
M = TypeVar("M", bound=Membership)


@dataclass(frozen=True)
class Credentials:
    """Files that belong together, with a valid certificate. Keys stay in their files."""

    folder: Path
    config: Membership
    until: datetime
    revoked: frozenset[int]  # serial numbers

    def zenoh(self) -> dict[str, Any]:
        """The Zenoh configuration of its session."""
        return zenoh_config(self.config, self.folder)


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
