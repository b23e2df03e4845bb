"""Certificates of a federation: its authority, one certificate per party, and the list of those
revoked.

A party's certificate is named after it. Its peers admit that name, and may not have the newest list
of those revoked; so a party that is readmitted after a revocation gets a new certificate name,
party~2, and the old certificate is not admitted. A plain renewal keeps the name.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from mtcd.core.errors import ConfigError
from mtcd.federation.names import Address

AUTHORITY_DAYS = 3650
LONGEST_DAYS = 1825
SKEW = timedelta(hours=1)  # clocks of hosts differ
Key = ec.EllipticCurvePrivateKey
# what bad certificates raise
UNREADABLE = (ValueError, TypeError, x509.InvalidVersion, UnsupportedAlgorithm)


def certificate_name(party: str, generation: int) -> str:
    """The name of a party's certificate.

    >>> certificate_name("clinic", 1), certificate_name("clinic", 2)
    ('clinic', 'clinic~2')
    """
    if generation == 1:
        return party
    return f"{party}~{generation}"


def party_of(certificate: str) -> str:
    """The party of a certificate name.

    >>> party_of("clinic~2")
    'clinic'
    """
    return certificate.partition("~")[0]


@dataclass(frozen=True)
class Issued:
    """A certificate with its key; ``repr`` does not show the key."""

    certificate: x509.Certificate
    key: Key

    def __repr__(self) -> str:
        return f"Issued({common_name(self.certificate)!r})"

    @property
    def certificate_pem(self) -> bytes:
        """The certificate as text in PEM, the form in which bundles and TLS take it."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        """The private key, PEM-encoded and not encrypted: the mode of its file protects it."""
        return self.key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )


def make_authority(federation: str, now: datetime | None = None) -> Issued:
    """Create an authority, which signs the certificates of one federation."""
    key, now = ec.generate_private_key(ec.SECP256R1()), now or datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"mtcd {federation}")])
    builder = (
        _builder(name, name, key.public_key(), now, AUTHORITY_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(sign=False, authority=True), critical=True)
    )
    return Issued(builder.sign(key, hashes.SHA256()), key)


def issue(
    authority: Issued, name: str, address: Address | None, days: int, now: datetime | None = None
) -> Issued:
    """Issue a key and certificate for a member at this address; without one, for a member that only
    connects."""
    if not 1 <= days <= LONGEST_DAYS:
        raise ConfigError(
            f"A certificate lasts 1 to {LONGEST_DAYS} days, but {days} were asked for."
        )
    key, now = ec.generate_private_key(ec.SECP256R1()), now or datetime.now(UTC)
    # Such a certificate would be refused at once, with an error about the wrong file.
    if now >= authority.certificate.not_valid_after_utc:
        ended = authority.certificate.not_valid_after_utc
        raise ConfigError(
            f"The authority expired on {ended:%Y-%m-%d}: create a new one (mtcd federation init)."
        )
    issuer = authority.certificate
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = (
        _builder(subject, issuer.subject, key.public_key(), now, days, issuer.not_valid_after_utc)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(sign=True, authority=False), critical=True)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key()),
            critical=False,
        )
    )
    # All members connect to somebody; only those with an address accept connections. A stolen key
    # of one that dials out only cannot be used to pose as a host.
    uses = [ExtendedKeyUsageOID.CLIENT_AUTH]
    if address is not None:
        uses.append(ExtendedKeyUsageOID.SERVER_AUTH)
        # A connection is checked against the host that was called: number or name, whichever the
        # others use.
        host = x509.DNSName(address.host) if address.ip is None else x509.IPAddress(address.ip)
        builder = builder.add_extension(x509.SubjectAlternativeName([host]), critical=False)
    builder = builder.add_extension(x509.ExtendedKeyUsage(uses), critical=False)
    return Issued(builder.sign(authority.key, hashes.SHA256()), key)


def revocation_list(
    authority: Issued, revoked: Iterable[tuple[int, datetime]], now: datetime | None = None
) -> bytes:
    """The signed list of revoked serial numbers, PEM-encoded."""
    now = now or datetime.now(UTC)
    certificate = authority.certificate
    builder = x509.CertificateRevocationListBuilder(
        issuer_name=certificate.subject,
        last_update=now,
        # Peers get new lists by hand, so a list must not expire before its authority does.
        next_update=certificate.not_valid_after_utc,
    )
    for serial, when in revoked:
        entry = x509.RevokedCertificateBuilder(serial_number=serial, revocation_date=when)
        builder = builder.add_revoked_certificate(entry.build())
    return builder.sign(authority.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def load_certificate(content: bytes, where: str) -> x509.Certificate:
    """Decode a PEM-encoded certificate."""
    try:
        return x509.load_pem_x509_certificate(content)
    except UNREADABLE:
        raise ConfigError(
            f"{where} is not a certificate: get this file again from the administrator."
        ) from None


def load_key(content: bytes, where: str) -> Key:
    """Decode a PEM-encoded private key. Errors give no details, which could disclose parts of
    it."""
    try:
        key = serialization.load_pem_private_key(content, password=None)
    except (ValueError, TypeError):
        key = None
    if not isinstance(key, Key):
        raise ConfigError(
            f"{where} is not a private key of a federation: ask the administrator for a new bundle."
        )
    return key


def revoked_serials(content: bytes, authority: x509.Certificate, where: str) -> frozenset[int]:
    """The serial numbers of a revocation list that the authority has signed."""
    try:
        revoked = x509.load_pem_x509_crl(content)
    except ValueError:
        raise ConfigError(
            f"{where} is not a list of revoked certificates: get it again from the administrator."
        ) from None
    key = authority.public_key()
    if not isinstance(key, ec.EllipticCurvePublicKey) or not revoked.is_signature_valid(key):
        raise ConfigError(
            f"{where} is not signed by this federation's authority: get it again from the "
            "administrator."
        )
    return frozenset(entry.serial_number for entry in revoked)


def check_certificate(
    certificate: x509.Certificate, authority: x509.Certificate, name: str, where: str
) -> None:
    """Refuse a certificate of another authority, of another name, or outside its validity
    period."""
    # The signature first: the name and the dates of a forged certificate mean nothing.
    if not is_signed_by(certificate, authority):
        raise ConfigError(
            f"{where} is not of this federation: its authority (ca.pem) did not sign it."
        )
    if common_name(certificate) != name:
        raise ConfigError(
            f"{where} is for {common_name(certificate)!r}, but this bundle is for {name!r}."
        )
    # An expired authority makes all its certificates worthless, though they may look valid.
    for one, what in ((certificate, where), (authority, f"{where}: the authority's certificate")):
        if problem := out_of_time(one):
            raise ConfigError(
                f"{what} {problem}. Check the clock of this host; if it is right, ask the "
                "administrator for a new certificate (mtcd federation renew)."
            )


def is_signed_by(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    """Whether the authority signed this certificate."""
    try:
        certificate.verify_directly_issued_by(authority)
    except (*UNREADABLE, InvalidSignature):
        return False
    return True


def out_of_time(certificate: x509.Certificate) -> str | None:
    """The end of a sentence on a certificate that is expired or not yet valid; None if it is
    valid."""
    now = datetime.now(UTC)
    if now > certificate.not_valid_after_utc:
        return f"expired on {certificate.not_valid_after_utc:%Y-%m-%d}"
    if now < certificate.not_valid_before_utc:
        return f"is valid only from {certificate.not_valid_before_utc:%Y-%m-%d %H:%M} UTC"
    return None


def common_name(certificate: x509.Certificate) -> str:
    """The common name of a certificate."""
    names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    # With two names it would not be clear which one peers admit.
    return str(names[0].value) if len(names) == 1 else ""


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    now: datetime,
    days: int,
    latest: datetime | None = None,
) -> x509.CertificateBuilder:
    """The fields common to all certificates; none outlives its authority."""
    until = now + timedelta(days=days)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        # A host whose clock is slow must accept a certificate that was issued a moment ago.
        .not_valid_before(now - SKEW)
        .not_valid_after(until if latest is None else min(until, latest))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _usage(sign: bool, authority: bool) -> x509.KeyUsage:
    # Keys of parties sign (TLS, sealed messages) and agree on keys by ephemeral exchange. The
    # authority's key signs certificates and lists, and nothing else.
    return x509.KeyUsage(
        digital_signature=sign,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=authority,
        crl_sign=authority,
        encipher_only=False,
        decipher_only=False,
    )
