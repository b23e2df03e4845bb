"""mtcd inspect, for sealed tours: the size of an encrypted token."""

from __future__ import annotations

from mtcd.inspection.facts import MethodFacts, Setting
from mtcd.privacy.sealed.settings import SealedTours


def inspect_sealed(method: SealedTours, setting: Setting) -> MethodFacts:
    """A token is an encrypted message from client to client."""
    asked = setting.asked
    sizes = method.messages(asked.network, asked.seed, setting.samples, setting.outputs).sizes
    return MethodFacts(sizes, int(sizes.hop))
