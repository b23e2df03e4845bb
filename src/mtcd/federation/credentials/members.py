"""Whose a certificate is: the member of the federation, checked as of today."""

from __future__ import annotations

from collections.abc import Collection

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from mtcd.core.errors import WireError
from mtcd.federation.credentials.certificates import (
    UNREADABLE,
    common_name,
    is_signed_by,
    load_certificate,
    out_of_time,
    party_of,
)
from mtcd.federation.credentials.credentials import WHAT, Credentials
from mtcd.federation.credentials.private_files import read_file
from mtcd.federation.transport import CA_FILE


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
        owner = party_of(called)
        if owner not in among or not isinstance(public, ec.EllipticCurvePublicKey):
            raise WireError(f"the certificate of {what}", "is of no party of this federation")
        whose = f"the certificate of {owner!r} at {what}"
        if not is_signed_by(certificate, self._authority):
            raise WireError(whose, "is not of this federation: its authority did not sign it")
        if problem := out_of_time(certificate):
            raise WireError(whose, problem)
        peer = self.config.peers.get(owner)
        if certificate.serial_number in self.revoked or (
            peer is not None and peer.certificate != called
        ):
            raise WireError(whose, "was revoked")
        return owner, public
