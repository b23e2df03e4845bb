"""Reading of a kit (credentials bundle), as a party or the server does when it starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from pydantic import ValidationError

from mtcd.config.explain import explain
from mtcd.config.read import read_yaml
from mtcd.errors import ConfigError
from mtcd.federation.certificates import check_certificate, load_certificate, load_key, revoked_serials
from mtcd.federation.code import NO_CODE, OwnCode
from mtcd.federation.code_files import read_code
from mtcd.federation.kit_schema import KitConfig
from mtcd.federation.names import OPERATOR, SERVER
from mtcd.federation.private_files import read_file
from mtcd.federation.transport import CA_FILE, CERTIFICATE_FILE, KEY_FILE, PARTIES_FILE, zenoh_config
from mtcd.version import PROTOCOL, VERSION

WHAT = "a whole kit"
SECRET_BYTES = 32
WARN_BEFORE_DAYS = 30  # the certificate expires


@dataclass(frozen=True)
class Kit:
    """A kit whose files belong together and whose certificate is valid. Keys stay in their files."""

    folder: Path
    config: KitConfig
    until: datetime
    revoked: frozenset[int]  # serial numbers
    code: OwnCode = NO_CODE
    """The network code that this party may run."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the user of the kit."""
        left = (self.until - datetime.now(UTC)).days
        cut_off = [name for name, peer in self.config.peers.items() if peer.certificate is None]
        notes = [f"{name!r} was revoked: this party does not connect to it." for name in cut_off]
        notes += [f"Network code: {s.path.name}, sha256 {s.sha256}." for s in self.code.sources.values()]
        if left < WARN_BEFORE_DAYS:
            notes.append(f"The certificate expires on {self.until:%Y-%m-%d}: ask the administrator to renew it.")
        return tuple(notes)

    def zenoh(self) -> dict[str, Any]:
        """The Zenoh configuration of its session."""
        return zenoh_config(self.config, self.folder)

    def alignment_secret(self) -> bytes:
        """The secret of hashed alignment, which is the same at all parties."""
        return self.secret("alignment")

    def secret(self, purpose: str) -> bytes:
        """Derive the key for a purpose, which all parties have, but neither the server nor the operator."""
        path = self.folder / PARTIES_FILE
        try:
            shared = bytes.fromhex(read_file(path, WHAT).decode())
        except ValueError:
            shared = b""
        if len(shared) != SECRET_BYTES:
            raise ConfigError(f"{path} is damaged: ask the administrator for this kit again.")
        return HKDF(hashes.SHA256(), SECRET_BYTES, salt=None, info=f"mtcd {purpose}".encode()).derive(shared)


def read_kit(folder: Path, code: Sequence[Path] = (), agreed: Sequence[str] = ()) -> Kit:
    """Read the kit in a folder; refused if a file is missing, readable by others, expired, revoked or of another party.

    ``code`` are the party's files with networks; ``agreed`` the sha256 of files in the kit that may run.
    """
    folder = folder.absolute()
    if not folder.is_dir():
        raise ConfigError(f"There is no folder {folder}: give the folder of a kit, such as kits/hospital_a.")
    config = _config(folder / "party.yaml")
    key = load_key(read_file(folder / KEY_FILE, WHAT), str(folder / KEY_FILE))
    where = str(folder / CERTIFICATE_FILE)
    certificate = load_certificate(read_file(folder / CERTIFICATE_FILE, WHAT), where)
    authority = load_certificate(read_file(folder / CA_FILE, WHAT), str(folder / CA_FILE))
    listed = read_file(folder / "revoked.pem", WHAT)
    revoked = revoked_serials(listed, authority, str(folder / "revoked.pem"))
    check_certificate(certificate, authority, config.certificate, where)
    if certificate.serial_number in revoked:
        raise ConfigError(f"{where} was revoked: ask the administrator for a new kit (mtcd federation renew).")
    if key.public_key() != certificate.public_key():
        raise ConfigError(
            f"{folder}: {KEY_FILE} is not the key of {CERTIFICATE_FILE}: ask the administrator for a new kit."
        )
    own = read_code(config, folder, code, agreed)
    kit = Kit(folder, config, certificate.not_valid_after_utc, revoked, own)
    if config.name in config.parties:
        kit.secret("check")
    return kit


def _config(path: Path) -> KitConfig:
    content = read_yaml(path, "party", "name, address, peers")
    protocol = content.get("protocol")
    if protocol != PROTOCOL:
        newer = isinstance(protocol, int) and protocol > PROTOCOL
        todo = "upgrade mtcd here" if newer else "ask the administrator, who has an older version, for a new kit"
        raise ConfigError(
            f"{path} is for protocol {protocol!r}, but this version of mtcd ({VERSION}) speaks {PROTOCOL}: {todo}, or "
            "install the version that the administrator uses. A run ends with the protocol that it began with."
        )
    try:
        config = KitConfig.model_validate(content)
    except ValidationError as error:
        raise ConfigError(f"{path}: {explain(error, content, KitConfig)}") from None
    known = {*config.parties, SERVER, OPERATOR}
    named = {config.name, config.labels.held_by, config.seen_by, *config.peers}
    named |= {name for pair in config.links for name in pair}
    if strangers := sorted(named - known):
        raise ConfigError(
            f"{path}: {strangers[0]!r} is not a party of the federation: ask the administrator for this file again."
        )
    return config
