"""Signatures of clients: a server that forwards what they say, such as public keys, cannot put
something of its own in its place."""

from __future__ import annotations

from dataclasses import dataclass

from mtcd.federation.credentials.bundle_schema import BundleConfig
from mtcd.federation.relay_encryption import Seal
from mtcd.protocol.party import SERVER, Parties

KIND = "public key of masks"


@dataclass(frozen=True)
class CertifiedIdentity:
    """A party by its certificate. Signatures are for one run: a key of another is refused."""

    seal: Seal
    config: BundleConfig
    run: str

    def sign(self, content: bytes) -> bytes:
        """The signature with the certificate of this party."""
        return self.seal.sign(KIND, self._body(content))

    def verify(self, client: int, content: bytes, signature: bytes) -> None:
        """Raise a WireError unless this client has signed the content for this run."""
        self.seal.verify(self.config.parties[client], KIND, self._body(content), signature)

    def _body(self, content: bytes) -> bytes:
        return self.run.encode() + b"\n" + content


def certify(
    parties: Parties, number: int, seal: Seal | None, config: BundleConfig, run: str
) -> None:
    """Let a client sign what others must know to be its own, and check what they sign."""
    if number == SERVER:
        return
    assert seal is not None  # parties have one
    parties.clients[number].identify(CertifiedIdentity(seal, config, run))
