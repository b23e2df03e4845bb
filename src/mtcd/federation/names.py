"""Names and addresses of parties. Names are valid as folders and as certificate
names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address

SERVER = "server"
OPERATOR = "operator"
AUTHORITY = "authority"
LONGEST_CHARACTERS = 40  # of a name; a certificate's common name has room for 64
# the administrator's folder; no folders on some systems
RESERVED = frozenset({AUTHORITY, "con", "prn", "aux", "nul"})

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*", re.ASCII)
_LABEL = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?", re.ASCII)


def usable_name(name: str) -> str:
    """Check that a name is valid as a folder, as a certificate name and as a part of a key; returns
    it.

    >>> usable_name("hospital_a")
    'hospital_a'
    """
    if not _NAME.fullmatch(name) or len(name) > LONGEST_CHARACTERS:
        raise ValueError(
            f"{name!r} cannot be a name: use letters a to z, digits, '_' and '-', a letter or "
            f"digit first, {LONGEST_CHARACTERS} at most"
        )
    if name.lower() in RESERVED:
        raise ValueError(f"{name!r} is a reserved name: choose another")
    # Some file systems do not tell capitals apart, and a bundle is a folder.
    return name


@dataclass(frozen=True)
class Address:
    """The host and port of a party."""

    host: str  # without brackets
    port: int

    @property
    def ip(self) -> IPv4Address | IPv6Address | None:
        """The host as a number, if it is one."""
        try:
            return ip_address(self.host)
        except ValueError:
            return None

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str, listening: bool = False) -> Address:
    """An address from host:port; one to listen at may stand for all interfaces.

    >>> str(parse_address("[::1]:7447")), parse_address("Clinic.example.org:80").host
    ('[::1]:7447', 'clinic.example.org')
    """
    if "/" in text:
        # A URL would otherwise pass as a host with a strange name, and fail much later.
        raise ValueError(
            f"{text!r}: write host:port, such as clinic.example.org:7447, without https:// or a "
            "path"
        )
    host, colon, port = text.rpartition(":")
    if not colon or not host or not re.fullmatch("[0-9]{1,5}", port) or not 1 <= int(port) <= 65535:
        raise ValueError(f"{text!r} is not of the form host:port, such as clinic.example.org:7447")
    bracketed = host.startswith("[") and host.endswith("]")
    if ":" in host and not bracketed:
        raise ValueError(f"{text!r}: write an IPv6 address in brackets, such as [2001:db8::1]:7447")
    # Host names do not tell capitals apart; two spellings of one address must be one address (see
    # `Federation`, which refuses an address that two parties have).
    address = Address(host[1:-1] if bracketed else host.lower(), int(port))
    ip = address.ip
    # A scope such as %eth0 means something on one host only.
    if bracketed and (not isinstance(ip, IPv6Address) or ip.scope_id):
        raise ValueError(f"{text!r}: what is in brackets is not an IPv6 address")
    if ip is None and not _host_name(address.host):
        raise ValueError(f"{text!r}: {host!r} is neither an IP address nor the name of a host")
    if ip is not None and (ip.is_multicast or (ip.is_unspecified and not listening)):
        raise ValueError(
            f"{text!r} cannot be reached by others: give the address at which they find this host"
        )
    # A numeric address has many spellings; the normal one is kept, for the same reason.
    return Address(str(ip), address.port) if ip is not None else address


def _host_name(host: str) -> bool:
    labels = host.split(".")
    number = labels[-1].isdigit()  # 10.0.0.300 is a mistaken IP address, not a name
    return (
        len(host) <= 253
        and not number
        and all(len(x) <= 63 and _LABEL.fullmatch(x) for x in labels)
    )
