"""The Zenoh key space: every key names its receiver and its sender, on which access rules are
based.

mtcd/FEDERATION/to/RECEIVER/from/SENDER/...    messages, as queries or puts; the rest names their
kind mtcd/FEDERATION/to/RECEIVER/from/operator/control/...    requests of the operator, as queries
mtcd/FEDERATION/alive/NAME                     the liveliness token of a party
"""

from __future__ import annotations

from mtcd.federation.names import OPERATOR

ROOT, CONTROL = "mtcd", "control"


def message_key(federation: str, receiver: str, sender: str, *rest: str) -> str:
    """The key under which ``sender`` writes to ``receiver``.

    >>> message_key("clinics", "b", "a", "run1", "token")
    'mtcd/clinics/to/b/from/a/run1/token'
    """
    return "/".join([ROOT, federation, "to", receiver, "from", sender, *rest])


def channel(federation: str, receiver: str, sender: str) -> str:
    """The expression for all keys from one party to another: subscribed by the receiver, allowed by
    a rule."""
    return message_key(federation, receiver, sender, "**")


def control_key(federation: str, receiver: str, kind: str) -> str:
    """The key of the operator's requests of a kind to ``receiver``.

    >>> control_key("clinics", "b", "status")
    'mtcd/clinics/to/b/from/operator/control/status'
    """
    return message_key(federation, receiver, OPERATOR, CONTROL, kind)


def control_channel(federation: str, receiver: str) -> str:
    """The expression for all requests of the operator to a party: declared by the party, allowed by
    a rule."""
    return control_key(federation, receiver, "**")


def alive_key(federation: str, name: str) -> str:
    """The key of a party's liveliness token."""
    return f"{ROOT}/{federation}/alive/{name}"
