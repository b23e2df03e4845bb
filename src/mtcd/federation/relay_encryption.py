"""Sealed messages, which are relayed: only parties can read them, and no relay can change or forge
one.

A sealed message is encrypted under a key that all parties share, so that a server that relays it
learns only its size. The content is signed by its sender and carries the sender's certificate:
another party that relays it could read it, but cannot forge one. The receiver and the kind are
signed too, so that a message is not valid for another receiver or as another kind.

A relay can replay a message to the same receiver. Receivers must tolerate that: a request is
answered again, and messages that must count once carry a sequence number.

Clients also sign what a server forwards, such as public keys (``CertifiedIdentity``), so that it
cannot put something of its own in its place.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass, field

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from mtcd.core.errors import ConfigError, WireError
from mtcd.federation.credentials.bundle import Bundle
from mtcd.federation.credentials.bundle_schema import BundleConfig
from mtcd.federation.credentials.certificates import load_certificate, load_key
from mtcd.federation.credentials.credentials import WHAT, Members
from mtcd.federation.credentials.private_files import read_file
from mtcd.federation.transport import CERTIFICATE_FILE, KEY_FILE, MEGABYTE
from mtcd.protocol.party import SERVER, Parties

MARK = b"mtcd sealed 1"
NONCE_BYTES = 12  # random: a key is good for 2^32 messages
# of the certificate, the kind and the signature; the body is the rest
SIZES = struct.Struct(">HBB")
SIGNED = struct.Struct(">HHHH")
LONGEST_KIND_BYTES = 80
SIGNATURE = ec.ECDSA(hashes.SHA256())


@dataclass(frozen=True)
class OpenedMessage:
    """The content of a sealed message. ``repr`` does not show the body, which may be private."""

    origin: str
    kind: str
    body: bytes = field(repr=False)


class Seal:
    """The seal of a party. The server and the operator have none: their bundles lack the key."""

    def __init__(self, bundle: Bundle) -> None:
        self.config = bundle.config
        self._cipher = AESGCM(bundle.secret("sealed"))
        self._key = load_key(
            read_file(bundle.folder / KEY_FILE, WHAT), str(bundle.folder / KEY_FILE)
        )
        mine = bundle.folder / CERTIFICATE_FILE
        self._certificate = load_certificate(read_file(mine, WHAT), str(mine)).public_bytes(
            Encoding.DER
        )
        self._members = Members(bundle)
        self._most = bundle.config.limits.message_mb * MEGABYTE

    def seal(self, to: str, kind: str, body: bytes) -> bytes:
        """Encrypt and sign a message for a party."""
        if to not in self.config.parties:
            raise ConfigError(
                f"A message can be sealed for a party only, and {to!r} is not a party."
            )
        if not _usable(encoded := kind.encode()):
            raise ConfigError(f"A message cannot be of the kind {kind!r}.")
        signature = self._key.sign(self._signed(to, self._certificate, encoded, body), SIGNATURE)
        sizes = SIZES.pack(len(self._certificate), len(encoded), len(signature))
        nonce = os.urandom(NONCE_BYTES)
        content = b"".join((sizes, self._certificate, encoded, signature, body))
        # Encrypt after signing: a relay learns neither the sender nor the kind, only the size.
        data = nonce + self._cipher.encrypt(nonce, content, self._bound(to))
        if len(data) > self._most:
            raise ConfigError(
                f"A message to {to!r} ({kind}) has {len(data)} bytes, more than limits.message_mb "
                "of the federation allows: ask the administrator for a larger limit."
            )
        return data

    def open(self, data: bytes, expect_from: str | None = None) -> OpenedMessage:
        """Decrypt and verify a message to this party; raises a WireError if a check fails."""
        # Before decrypting: a message that is too large must not cost memory.
        if len(data) > self._most:
            raise WireError("a sealed message", "is larger than this federation allows")
        # The order of checks: the certificate must be valid before its key says anything, and
        # nothing of the content is used before the signature is known to fit.
        certificate, kind, signature, body = self._parts(data)
        origin, public = self._origin(certificate)
        try:
            public.verify(
                signature, self._signed(self.config.name, certificate, kind, body), SIGNATURE
            )
        except InvalidSignature:
            raise WireError(
                f"the signature of {origin!r}", "does not fit a sealed message"
            ) from None
        if not _usable(kind):
            raise WireError(f"the kind of a sealed message of {origin!r}", "is not readable")
        # Signed by another member, correctly, for another place in the protocol.
        if expect_from is not None and origin != expect_from:
            raise WireError(
                f"a sealed message of {origin!r}", f"came in the place of one of {expect_from!r}"
            )
        return OpenedMessage(origin, kind.decode(), body)

    # Encryption for a single party

    @property
    def certificate(self) -> bytes:
        """This party's certificate, with which others encrypt messages for it."""
        return self._certificate

    def lock(self, to: str, certificate: bytes, body: bytes) -> bytes:
        """Encrypt a body for ``to`` alone, whose certificate this is: the other parties cannot read
        it."""
        public = self.key_of(to, certificate)
        once = ec.generate_private_key(public.curve)
        shown = once.public_key().public_bytes(Encoding.X962, PublicFormat.CompressedPoint)
        # A nonce of zeros is safe here: the key comes from an ephemeral exchange, and encrypts one
        # message only.
        cipher = AESGCM(_derived(once.exchange(ec.ECDH(), public), shown))
        return (
            bytes([len(shown)]) + shown + cipher.encrypt(bytes(NONCE_BYTES), body, self._bound(to))
        )

    # Statements to all parties

    def sign(self, kind: str, body: bytes) -> bytes:
        """This party's certificate and its signature of a body that others forward."""
        signature = self._key.sign(
            # No party has an empty name: such a signature, which is for all, fits no message to
            # one.
            self._signed("", self._certificate, kind.encode(), body),
            SIGNATURE,
        )
        return len(self._certificate).to_bytes(2, "big") + self._certificate + signature

    def verify(self, name: str, kind: str, body: bytes, statement: bytes) -> None:
        """Raise a WireError unless ``name`` has made this statement of the body, with a certificate
        that is valid."""
        size = int.from_bytes(statement[:2], "big")
        certificate, signature = statement[2 : 2 + size], statement[2 + size :]
        public = self.key_of(name, certificate)
        try:
            public.verify(signature, self._signed("", certificate, kind.encode(), body), SIGNATURE)
        except InvalidSignature:
            raise WireError(f"the signature of {name!r}", f"does not fit its {kind}") from None

    def key_of(self, name: str, certificate: bytes) -> ec.EllipticCurvePublicKey:
        """The public key of a party; raises a WireError if the certificate is not its own."""
        owner, public = self._origin(certificate)
        if owner != name:
            raise WireError(
                f"the certificate of {owner!r}", f"came in the place of that of {name!r}"
            )
        return public

    def unlock(self, data: bytes) -> bytes:
        """Decrypt a body that was encrypted by ``lock`` for this party."""
        # An empty message has no length byte; both parts are then empty, and fail below.
        size = data[0] if data else 0
        shown, locked = data[1 : 1 + size], data[1 + size :]
        try:
            # A point that is not on the curve raises a ValueError: with one, the shared secret
            # would tell bits of the key.
            public = ec.EllipticCurvePublicKey.from_encoded_point(self._key.curve, shown)
            cipher = AESGCM(_derived(self._key.exchange(ec.ECDH(), public), shown))
            return cipher.decrypt(
                bytes(NONCE_BYTES), locked, self._bound(self.config.name)
            )  # each message has its own key
        except (InvalidTag, ValueError):
            raise WireError("a locked message", "is damaged, or for another party") from None

    def _parts(self, data: bytes) -> tuple[bytes, bytes, bytes, bytes]:
        """Decrypt certificate, kind, signature and body; a truncated content fails the signature
        check."""
        nonce = data[:NONCE_BYTES]
        try:
            content = self._cipher.decrypt(nonce, data[NONCE_BYTES:], self._bound(self.config.name))
        except (InvalidTag, ValueError):
            raise WireError(
                "a sealed message", "is damaged, or for another party or federation"
            ) from None
        if len(content) < SIZES.size:
            raise WireError("a sealed message", "is too short")
        # Sizes are the sender's word. A slice beyond the end is short and not an error: then the
        # signature does not fit.
        parts, start = [], SIZES.size
        for size in SIZES.unpack_from(content):
            parts.append(content[start : start + size])
            start += size
        return parts[0], parts[1], parts[2], content[start:]

    def _origin(self, certificate: bytes) -> tuple[str, ec.EllipticCurvePublicKey]:
        return self._members.owner(certificate, self.config.parties, "a sealed message")

    def _signed(self, to: str, certificate: bytes, kind: bytes, body: bytes) -> bytes:
        """The bytes to sign. Sizes come first, so that the encoding is unique."""
        parts = (self.config.federation.encode(), to.encode(), certificate, kind)
        # The mark and the federation come first: a signature of this key for another purpose, or in
        # another federation, is not valid here.
        return b"".join((MARK, SIGNED.pack(*map(len, parts)), *parts, body))

    def _bound(self, to: str) -> bytes:
        """The associated data of the encryption, which both sides know."""
        return b"/".join((MARK, self.config.federation.encode(), to.encode()))


def _derived(secret: bytes, shown: bytes) -> bytes:
    return HKDF(hashes.SHA256(), 32, salt=None, info=MARK + shown).derive(secret)


def _usable(kind: bytes) -> bool:
    return 0 < len(kind) <= LONGEST_KIND_BYTES and kind.isascii() and kind.decode().isprintable()


KIND = "public key of masks"


@dataclass(frozen=True)
# Without the run, a server could replay the public key of an earlier run, whose private key may be
# known by now.
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
        # The server makes no masks, so it has nothing to sign.
        return
    assert seal is not None  # parties have one
    parties.clients[number].identify(CertifiedIdentity(seal, config, run))
