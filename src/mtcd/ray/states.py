"""The states of hosts as a snapshot of a training, which any engine resumes, and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mtcd.core.errors import MtcdError
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.protocol.monitor import Monitor
from mtcd.protocol.party import SERVER, Message, Parties, Progress
from mtcd.protocol.snapshots import restored, take
from mtcd.protocol.state import Snapshot
from mtcd.ray import portable
from mtcd.ray.host import HostState


def unpickled(states: Mapping[int, bytes]) -> list[HostState]:
    """The states that actors of this training have sent."""
    return [portable.loads(state) for state in states.values()]


def adopt(parties: Parties, hosts: Iterable[HostState]) -> list[Any]:
    """The parties of this process take over the states of those in the hosts; returns the
    parameters."""
    for host in hosts:
        for number, state in host.parties.items():
            party = parties.server if number == SERVER else parties.clients[number]
            assert party is not None
            party.restore(state)
        parties.adopt(host.waiting)
    return parties.parameters()


def as_snapshot(parties: Parties, hosts: Sequence[HostState], progress: Progress) -> Snapshot:
    """The parties and the messages under way, as the local engine has them."""
    states = {number: state for host in hosts for number, state in host.parties.items()}
    return take(
        {
            "parties": [states[number] for number in _numbers(parties)],
            "monitor": Monitor(len(parties.clients)).state(),
            "waiting": [message for host in hosts for message in host.waiting],
            "outgoing": [message for host in hosts for message in host.outgoing],
            "ahead": {},
            "observed": None if progress.parameters is None else list(progress.parameters),
            "reached": progress.hop,
        }
    )


def as_host_states(
    parties: Parties, snapshot: Snapshot, routes: Mapping[int, int], float_bytes: int
) -> dict[int, bytes]:
    """The states with which the hosts resume a snapshot, pickled; ``routes`` has the host of each
    party."""
    if parties.checkpointed is not None:
        opening = parties.checkpointed.resume(snapshot)
        everybody = [*parties.clients, *([] if parties.server is None else [parties.server])]
        return _spread(
            parties, [party.state() for party in everybody], [], opening, routes, float_bytes
        )
    state = restored(snapshot)
    if state["ahead"] or state["monitor"]["reports"]:
        raise MtcdError(
            "The checkpoint is of clients that are ahead of each other: resume it without engine: "
            "ray."
        )
    return _spread(
        parties, state["parties"], state["waiting"], state["outgoing"], routes, float_bytes
    )


def _spread(
    parties: Parties,
    states: Sequence[dict[str, Any]],
    waiting: Sequence[Message],
    outgoing: Sequence[Message],
    routes: Mapping[int, int],
    float_bytes: int,
) -> dict[int, bytes]:
    hosts = {
        number: HostState({}, ledger=Ledger(float_bytes=float_bytes))
        for number in set(routes.values())
    }
    for number, own in zip(_numbers(parties), states, strict=True):
        hosts[routes[number]].parties[number] = own
    for message in waiting:
        hosts[routes[message.to]].waiting.append(message)
    for message in outgoing:
        hosts[routes[message.sender]].outgoing.append(message)
    return {number: portable.dumps(host) for number, host in hosts.items()}


def _numbers(parties: Parties) -> list[int]:
    return [*range(len(parties.clients)), *([] if parties.server is None else [SERVER])]
