"""The Zenoh configuration of a bundle: endpoints, TLS certificates and access rules.

Each party enforces the rules on its own links. Zenoh silently drops messages that they do not
allow.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mtcd.federation.credentials.membership import Membership
from mtcd.federation.keys import alive_key, channel, control_channel
from mtcd.federation.names import OPERATOR

CA_FILE, CERTIFICATE_FILE, KEY_FILE, PARTIES_FILE = "ca.pem", "cert.pem", "key.pem", "parties.key"
MEGABYTE = 1024 * 1024
HEAD_BYTES = 4096  # of a masked sum, per party, at most: its name and certificate
BATCHES = 16  # of 64 KB, Zenoh's maximum on a link, so that a large token is queued at once
SESSIONS = 10_000  # Zenoh's default limit of 1000 is too low for a large server
WRITE = ["put", "query"]
ANSWER = ["reply", "declare_subscriber", "declare_queryable"]
ALIVE = ["liveliness_token"]
WATCH = ["liveliness_query", "declare_liveliness_subscriber"]


def zenoh_config(bundle: Membership, folder: Path) -> dict[str, Any]:
    """The Zenoh configuration of a party's session, as in JSON5 files; ``folder`` is that of the
    bundle."""
    key, certificate = str(folder / KEY_FILE), str(folder / CERTIFICATE_FILE)
    retry = {"period_init_ms": 100, "period_max_ms": 1000, "period_increase_factor": 2.0}
    return {
        "mode": "peer",
        "listen": {"endpoints": listens(bundle), "timeout_ms": 0, "exit_on_failure": True},
        "connect": {
            "endpoints": calls(bundle),
            "timeout_ms": -1,
            "exit_on_failure": False,
            "retry": retry,
        },
        # do not wait for peers
        "open": {"return_conditions": {"connect_scouted": False, "declares": False}},
        "scouting": {"multicast": {"enabled": False}, "gossip": {"enabled": False}},
        "adminspace": {"enabled": False},
        "transport": {
            "unicast": {"max_sessions": SESSIONS},
            "link": {
                "protocols": ["tls"],
                "tx": {"lease": bundle.limits.lease_ms, "queue": {"size": {"data": BATCHES}}},
                "rx": {"max_message_size": bundle.limits.message_mb * MEGABYTE},
                "tls": {
                    "root_ca_certificate": str(folder / CA_FILE),
                    "listen_private_key": key,
                    "listen_certificate": certificate,
                    "connect_private_key": key,
                    "connect_certificate": certificate,
                    "enable_mtls": True,
                    "verify_name_on_connect": True,
                    "close_link_on_expiration": True,
                },
            },
            "shared_memory": {"enabled": False},
        },
        "access_control": access_control(bundle),
    }


def listens(bundle: Membership) -> list[str]:
    """The endpoints at which this party listens; the operator and a party that dials out only
    accept no connections."""
    return [] if bundle.address is None else [f"tls/{bundle.listen or bundle.address}"]


def calls(bundle: Membership) -> list[str]:
    """The endpoints to which this party connects: one of two peers connects, so that there is one
    connection."""
    return [
        f"tls/{peer.address}"
        for name, peer in bundle.peers.items()
        if peer.certificate is not None and connects_to(bundle, name)
    ]


def connects_to(bundle: Membership, peer: str) -> bool:
    """Whether this party opens the connection to a peer: the one without an address, else the one
    of higher rank."""
    if bundle.peers[peer].address is None:
        return False
    return bundle.address is None or bundle.rank[peer] < bundle.rank[bundle.name]


def access_control(bundle: Membership) -> dict[str, Any]:
    """Allow only the messages from and to each peer under their own names, and the answers to them.

    Between the operator and a party, only requests of the operator and their answers are allowed.
    """
    certificates = {peer: section.certificate for peer, section in bundle.peers.items()}
    if not bundle.is_operator:
        certificates[OPERATOR] = bundle.operator
    rules, subjects, policies = [], [], []
    for peer, certificate in certificates.items():
        if certificate is None:
            continue
        watched = bundle.is_operator or peer == OPERATOR
        own = (_control_rules if watched else _rules)(bundle.federation, bundle.name, peer)
        rules += own
        subjects.append({"id": peer, "cert_common_names": [certificate]})
        policies.append({"rules": [rule["id"] for rule in own], "subjects": [peer]})
    return {
        "enabled": True,
        "default_permission": "deny",
        "rules": rules,
        "subjects": subjects,
        "policies": policies,
    }


def _rules(federation: str, me: str, peer: str) -> list[dict[str, Any]]:
    inbox, outbox = channel(federation, me, peer), channel(federation, peer, me)
    here, there = alive_key(federation, me), alive_key(federation, peer)
    return _allowed(
        {
            f"{peer} writes to us": ("ingress", WRITE, inbox),
            f"we answer {peer}": ("egress", ANSWER, inbox),
            f"we write to {peer}": ("egress", WRITE, outbox),
            f"{peer} answers us": ("ingress", ANSWER, outbox),
            f"{peer} is alive": ("ingress", ALIVE, there),
            f"we watch {peer}": ("egress", WATCH, there),
            f"{peer} learns that we are alive": ("egress", ALIVE, here),
            f"{peer} watches us": ("ingress", WATCH, here),
        }
    )


def _control_rules(federation: str, me: str, peer: str) -> list[dict[str, Any]]:
    control = control_channel(federation, peer if me == OPERATOR else me)
    question, answer = ("egress", "ingress") if me == OPERATOR else ("ingress", "egress")
    return _allowed(
        {
            f"questions between {me} and {peer}": (question, ["query"], control),
            f"answers between {me} and {peer}": (answer, ["reply", "declare_queryable"], control),
        }
    )


def _allowed(allowed: dict[str, tuple[str, list[str], str]]) -> list[dict[str, Any]]:
    return [
        {
            "id": name,
            "permission": "allow",
            "flows": [flow],
            "messages": messages,
            "key_exprs": [key],
        }
        for name, (flow, messages, key) in allowed.items()
    ]
