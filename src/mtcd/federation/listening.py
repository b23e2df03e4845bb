"""Whether a party can listen at its address, and what keeps it from doing so."""

from __future__ import annotations

import os
import socket
import ssl

from cryptography import x509

from mtcd.core.errors import system_reason
from mtcd.federation.credentials.certificates import common_name
from mtcd.federation.credentials.credentials import Credentials
from mtcd.federation.names import Address, parse_address
from mtcd.federation.transport import CA_FILE, CERTIFICATE_FILE, KEY_FILE

CONNECTION_SECONDS = 2.0


def why_not_listening(place: Address) -> str | None:
    """Why a host cannot listen at an address; None if it can, at one of the numbers that the name
    stands for."""
    # A name may stand for several addresses (IPv4 and IPv6); one that works is enough.
    try:
        found = socket.getaddrinfo(
            place.host, place.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except OSError as error:
        return system_reason(error)

    why = "no address"
    for family, _, _, _, where in found:
        # Opening the port and closing it at once is the only test that also sees other programs.
        try:
            socket.create_server((str(where[0]), place.port), family=family).close()
        except OSError as error:
            why = os.strerror(error.errno) if error.errno else str(error)
        else:
            return None
    return why


def runs_already(bundle: Credentials) -> bool:
    """Whether a process that has the certificate of this party listens at its address."""
    where = bundle.config.listen or bundle.config.address
    if where is None:
        return False
    place = _to_call(parse_address(where, listening=True))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # a certificate is bound to the public address, not to the one to listen at
    context.check_hostname = False
    try:
        context.load_verify_locations(bundle.folder / CA_FILE)
        context.load_cert_chain(bundle.folder / CERTIFICATE_FILE, bundle.folder / KEY_FILE)
        with (
            socket.create_connection((place.host, place.port), CONNECTION_SECONDS) as plain,
            context.wrap_socket(plain) as secured,
        ):
            found = secured.getpeercert(binary_form=True)
    except OSError:  # nobody listens, or a program that is no party of this federation
        return False
    return (
        found is not None
        and common_name(x509.load_der_x509_certificate(found)) == bundle.config.certificate
    )


def _to_call(place: Address) -> Address:
    """The address at which this host reaches itself, also where it listens on all interfaces."""
    ip = place.ip
    # '0.0.0.0' and '::' stand for all interfaces when listening, and can be called on some systems
    # only.
    if ip is None or not ip.is_unspecified:
        return place
    return Address("::1" if ip.version == 6 else "127.0.0.1", place.port)
