"""Reading of a bundle, as a party or the server does when it starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from mtcd.core.errors import ConfigError
from mtcd.federation.credentials.bundle_schema import BundleConfig
from mtcd.federation.credentials.credentials import (
    WHAT,
    Credentials,
    check_files,
    read_party_file,
    refuse_strangers,
)
from mtcd.federation.credentials.private_files import read_file
from mtcd.federation.own_code import NO_CODE, OwnCode, read_code
from mtcd.federation.transport import PARTIES_FILE

SECRET_BYTES = 32
WARN_BEFORE_DAYS = 30  # the certificate expires


@dataclass(frozen=True)
class Bundle(Credentials):
    """A whole bundle: credentials, the settings of the training, and code."""

    config: BundleConfig
    code: OwnCode = NO_CODE
    """The network code that this party may run."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the user of the bundle."""
        left = (self.until - datetime.now(UTC)).days
        cut_off = [name for name, peer in self.config.peers.items() if peer.certificate is None]
        notes = [f"{name!r} was revoked: this party does not connect to it." for name in cut_off]
        notes += [
            f"Network code: {s.path.name}, sha256 {s.sha256}." for s in self.code.sources.values()
        ]
        if left < WARN_BEFORE_DAYS:
            notes.append(
                f"The certificate expires on {self.until:%Y-%m-%d}: ask the administrator to renew "
                "it."
            )
        return tuple(notes)

    def alignment_secret(self) -> bytes:
        """The secret of hashed alignment, which is the same at all parties."""
        return self.secret("alignment")

    def secret(self, purpose: str) -> bytes:
        """Derive the key for a purpose, which all parties have, but neither the server nor the
        operator."""
        path = self.folder / PARTIES_FILE
        try:
            shared = bytes.fromhex(read_file(path, WHAT).decode())
        except ValueError:
            shared = b""
        if len(shared) != SECRET_BYTES:
            raise ConfigError(f"{path} is damaged: ask the administrator for this bundle again.")
        # A key of its own for each purpose: what is encrypted for relays and what hashes ids must
        # not share one, or a weakness of one use would reach the other.
        return HKDF(
            hashes.SHA256(), SECRET_BYTES, salt=None, info=f"mtcd {purpose}".encode()
        ).derive(shared)


def read_bundle(folder: Path, code: Sequence[Path] = (), agreed: Sequence[str] = ()) -> Bundle:
    """Read the bundle in a folder; refused if a file is missing, readable by others, expired,
    revoked or of another party.

    ``code`` are the party's files with networks; ``agreed`` the sha256 of files in the bundle that
    may run.
    """
    return with_code(read_bundle_without_code(folder), code, agreed)


def read_bundle_without_code(folder: Path) -> Bundle:
    """Read the bundle in a folder, but for network code: enough to speak to the other members.

    Raises:
        ConfigError: A file is missing, readable by others, expired, revoked or of another party.
    """
    folder = folder.absolute()
    config = read_party_file(folder, BundleConfig)
    # The check of `Membership` knows peers and links only. The label holder is in no such list at a
    # party that has no link to it.
    refuse_strangers(config, {config.labels.held_by, config.seen_by}, folder / "party.yaml")
    bundle = Bundle(folder, config, *check_files(folder, config))
    # Derived and thrown away: a damaged secret is found now, and not in the middle of a run.
    if config.name in config.parties:
        bundle.secret("check")
    return bundle


def with_code(bundle: Bundle, code: Sequence[Path] = (), agreed: Sequence[str] = ()) -> Bundle:
    """The same bundle with the network code that its owner may run: see ``read_bundle``.

    Raises:
        ConfigError: The code cannot be read, is not the agreed one, or is not needed.
    """
    return replace(bundle, code=read_code(bundle.config, bundle.folder, code, agreed))
