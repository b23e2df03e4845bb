"""The transports by name."""

from __future__ import annotations

from mtcd.protocol.transport import Transport
from mtcd.registry import Registry

DEFAULT = "float64"
TRANSPORTS: Registry[type[Transport]] = Registry(
    Transport, "mtcd.transports", "mtcd.transports", "method.transport: nothing is called {!r};"
)


def make_transport(name: str) -> Transport | None:
    """The transport of this name; None for the default, under which arrays travel as they are."""
    made = TRANSPORTS[name]()
    return None if name == DEFAULT else made
