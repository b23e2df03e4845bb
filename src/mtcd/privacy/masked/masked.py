"""Masks for the parties of any method whose server needs sums only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from mtcd.privacy.masked.double_client import DoubleMaskingClient
from mtcd.privacy.masked.double_server import DoubleMaskingServer
from mtcd.privacy.masked.parties import Masking, MaskingClient, MaskingServer
from mtcd.protocol.party import SERVER, Begin, Checkpointed, Message, OnDemand, Parties
from mtcd.protocol.state import Snapshot


@dataclass(frozen=True)
class MaskedCheckpoints:
    """Checkpoints of parties that are kept without their keys: a training that resumes begins with
    new ones."""

    parties: Checkpointed
    reset: Callable[[Sequence[Message]], Sequence[Message]]

    def snapshot(self) -> Snapshot:
        """That of the parties."""
        return self.parties.snapshot()

    def resume(self, snapshot: Snapshot) -> Sequence[Message]:
        """Exchange keys, then continue."""
        return self.reset(self.parties.resume(snapshot))


def masked(parties: Parties, masking: Masking) -> Parties:
    """The same parties, with masks on what the server sums."""
    assert parties.server is not None
    server, size = parties.server, masking.clients
    of = {k: [one for one in parties.opening if one.sender == k] for k in (*range(size), SERVER)}
    requests = [Message(SERVER, k, Begin()) for k in range(size)]
    double = masking.upload_batches is not None
    role, host = (
        (DoubleMaskingClient, DoubleMaskingServer) if double else (MaskingClient, MaskingServer)
    )
    clients = OnDemand(size, lambda k: role(k, parties.clients[k], masking, of[k]))
    masking_server = host(server, masking, of[SERVER])

    def reset(opening: Sequence[Message]) -> Sequence[Message]:
        masking_server.begin(opening)
        return requests

    gather = parties.gather
    return replace(
        parties,
        clients=clients,
        server=masking_server,
        opening=requests,
        gather=None
        if gather is None
        else lambda clients, masked_server: gather(parties.clients, server),
        checkpointed=None
        if parties.checkpointed is None
        else MaskedCheckpoints(parties.checkpointed, reset),
    )
