"""The transports by name."""

from __future__ import annotations

from mtcd.core.registry import Registry
from mtcd.protocol.transports.transport import Transport

DEFAULT = "float64"
TRANSPORTS: Registry[type[Transport]] = Registry(
    Transport,
    "mtcd.transports",
    "mtcd.protocol.transports",
    "method.transport: nothing is called {!r};",
)


def make_transport(name: str) -> Transport | None:
    """The transport of this name; None for the default, under which arrays travel as they are."""
    made = TRANSPORTS[name]()  # which refuses an unknown name
    if name == DEFAULT:
        return None
    return made
