"""The states of hosts as a snapshot of a training, which any engine resumes, and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mtcd.core.errors import MtcdError
from mtcd.protocol.engine import Monitor
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.protocol.party import SERVER, Message, Parties, Progress
from mtcd.protocol.snapshots import EngineState
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
            # of this process: they make the model of what was trained elsewhere
            party.restore(state)
        parties.adopt(host.waiting)
    return parties.parameters()


def as_snapshot(parties: Parties, hosts: Sequence[HostState], progress: Progress) -> Snapshot:
    """The parties and the messages under way, as the local engine has them."""
    states: dict[int, dict[str, Any]] = {}
    waiting: list[Message] = []
    outgoing: list[Message] = []
    for host in hosts:
        states |= host.parties
        waiting += host.waiting
        outgoing += host.outgoing

    observed = None
    if progress.parameters is not None:
        observed = list(progress.parameters)
    state = EngineState(
        [states[number] for number in _numbers(parties)],
        # hosts hold all clients at one iteration: nothing is half reported, and nobody ahead
        Monitor(len(parties.clients)).state(),
        waiting=waiting,
        outgoing=outgoing,
        observed=observed,
        reached=progress.hop,
    )
    return state.snapshot()


def as_host_states(
    parties: Parties, snapshot: Snapshot, routes: Mapping[int, int], float_bytes: int
) -> dict[int, bytes]:
    """The states with which the hosts resume a snapshot, pickled; ``routes`` has the host of each
    party."""
    if parties.checkpointed is not None:
        opening = parties.checkpointed.resume(snapshot)
        states = [party.state() for party in parties.clients]
        if parties.server is not None:
            states.append(parties.server.state())
        return _spread(parties, states, [], opening, routes, float_bytes)

    state = EngineState.of(snapshot)
    if state.ahead or state.monitor["reports"]:
        raise MtcdError(
            "The checkpoint is of clients that are ahead of each other: resume it without engine: "
            "ray."
        )
    return _spread(parties, state.parties, state.waiting, state.outgoing, routes, float_bytes)


def _spread(
    parties: Parties,
    states: Sequence[dict[str, Any]],
    waiting: Sequence[Message],
    outgoing: Sequence[Message],
    routes: Mapping[int, int],
    float_bytes: int,
) -> dict[int, bytes]:
    hosts: dict[int, HostState] = {}
    for host in set(routes.values()):
        hosts[host] = HostState({}, ledger=Ledger(float_bytes=float_bytes))

    # a message that waits is delivered by the host of its receiver, one to send by its sender's
    for number, own in zip(_numbers(parties), states, strict=True):
        hosts[routes[number]].parties[number] = own
    for message in waiting:
        hosts[routes[message.to]].waiting.append(message)
    for message in outgoing:
        hosts[routes[message.sender]].outgoing.append(message)
    return {number: portable.dumps(state) for number, state in hosts.items()}


def _numbers(parties: Parties) -> list[int]:
    """The numbers of all parties, in the order in which snapshots have their states."""
    clients = list(range(len(parties.clients)))
    if parties.server is None:
        return clients
    return [*clients, SERVER]
