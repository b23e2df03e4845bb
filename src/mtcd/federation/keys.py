"""The key space: every key names its receiver and its sender, so that access rules can tell who may write where.

mtcd/FEDERATION/to/RECEIVER/from/SENDER/...    messages, as queries or puts; the rest is the party process's
mtcd/FEDERATION/to/RECEIVER/from/operator/control/...    questions of the person who watches, as queries
mtcd/FEDERATION/alive/NAME                     the liveliness token of a party
"""

from __future__ import annotations

from mtcd.federation.names import OPERATOR

ROOT, CONTROL = "mtcd", "control"


def message_key(federation: str, receiver: str, sender: str, *rest: str) -> str:
    """Where ``sender`` writes to reach ``receiver``.

    >>> message_key("clinics", "b", "a", "run1", "token")
    'mtcd/clinics/to/b/from/a/run1/token'
    """
    return "/".join([ROOT, federation, "to", receiver, "from", sender, *rest])


def channel(federation: str, receiver: str, sender: str) -> str:
    """All keys from one to the other: what a receiver declares, once per peer, and what a rule allows."""
    return message_key(federation, receiver, sender, "**")


def control_key(federation: str, receiver: str, kind: str) -> str:
    """Where the operator asks ``receiver`` something.

    >>> control_key("clinics", "b", "status")
    'mtcd/clinics/to/b/from/operator/control/status'
    """
    return message_key(federation, receiver, OPERATOR, CONTROL, kind)


def control_channel(federation: str, receiver: str) -> str:
    """All that the operator may ask: what everybody declares, and what a rule allows."""
    return control_key(federation, receiver, "**")


def alive_key(federation: str, name: str) -> str:
    """The key under which a party shows that it is there."""
    return f"{ROOT}/{federation}/alive/{name}"
