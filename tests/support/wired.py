"""Trainings in which every message travels as bytes, for the tests of the wire format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import islice
from typing import Any

import numpy as np

from mtcd.engines.local import LocalEngine
from mtcd.federation.delivery.frames import Header, decode, encode
from mtcd.methods.dcpa.dcpa import DCPA
from mtcd.methods.method import Method
from mtcd.methods.mtcd.mtcd import MTCD, STCD
from mtcd.methods.svfl.svfl import SVFL
from mtcd.methods.tree_cg.tree_cg import TreeCG
from mtcd.models.glm.model import Glm
from mtcd.models.trees.gains import ComparedGains
from mtcd.network.changes import Change, with_changes
from mtcd.network.topology import Network, make_network
from mtcd.privacy.masked.masked import with_masks
from mtcd.privacy.sealed.settings import SealedTours
from mtcd.protocol.codec.limits import Bounds, TensorShapes
from mtcd.protocol.codec.payloads import SCHEMAS
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.protocol.party import Message, Parties, Party, Progress
from problems import make_data

RUN = "run-7"
OF_METHODS = ("mtcd.methods", "mtcd.protocol", "mtcd.privacy", "mtcd.models")
OF_DELIVERY = "mtcd.protocol.codec.envelopes"
RIDGE, LASSO, MULTINOMIAL = (
    Glm("ridge", alpha=0.7),
    Glm("linear", l1=0.3),
    Glm("multinomial", l2=0.3),
)
TOURS = {"walk": "tour", "stepsize": 2e-2, "local_updates": 2}
ADAPTING = {"walk": "tour", "stepsize": 1e-4}

LINEAR: dict[str, tuple[Glm, Method]] = {
    "clusters": (RIDGE, MTCD(tokens=2, hops=3, stepsize=1e-2, combine="cluster")),
    "overlapping": (RIDGE, MTCD(tokens=3, hops=4, stepsize=1e-2, combine="average")),
    "visitors": (LASSO, MTCD(tokens=3, hops=4, stepsize=1e-2, combine="visitors")),
    "optimal": (RIDGE, MTCD(tokens=3, hops=2, stepsize=1e-2, combine="optimal")),
    "optimal, multinomial": (MULTINOMIAL, MTCD(tokens=2, hops=2, stepsize=1e-2, combine="optimal")),
    "visitors, multinomial": (
        MULTINOMIAL,
        MTCD(tokens=2, hops=3, stepsize=1e-2, combine="visitors"),
    ),
    "gains": (
        RIDGE,
        MTCD(tokens=3, hops=2, stepsize=1e-2, combine="optimal", features=(ComparedGains(6),)),
    ),
    "mtcd conjugate": (
        RIDGE,
        MTCD(2, 8, combine="cluster", acceleration="conjugate", depth=2, **TOURS),
    ),
    "mtcd adaptive": (
        RIDGE,
        MTCD(2, 8, combine="cluster", acceleration="conjugate", adaptive=True, **ADAPTING),
    ),
    "stcd adaptive": (RIDGE, replace(STCD(acceleration="conjugate", **ADAPTING), adaptive=True)),
    "stcd twin": (
        RIDGE,
        STCD(acceleration="twin", depth=4, walk="tour").with_stepsize(1e-3),
    ),
    "mtcd momentum": (LASSO, MTCD(2, 8, combine="cluster", acceleration="momentum", **TOURS)),
    "stcd": (MULTINOMIAL, STCD(stepsize=1e-2)),
    **{
        f"stcd {a}": (RIDGE, STCD(acceleration=a, depth=3, **TOURS))
        for a in ("conjugate", "momentum", "anderson")
    },
    "svfl": (RIDGE, SVFL(stepsize=1e-2)),
    "svfl, batches": (MULTINOMIAL, SVFL(stepsize=1e-2, batch=4)),
    "tree-cg": (MULTINOMIAL, TreeCG()),
    "dcpa": (RIDGE, DCPA(stepsize=1e-2)),
    "dcpa (A)": (RIDGE, DCPA(stepsize=1e-2, variant="A")),
    **{
        f"{rule}, batches": (RIDGE, MTCD(tokens=2, hops=3, stepsize=1e-2, combine=rule, batch=4))
        for rule in ("cluster", "average", "visitors")
    },
}
PRIVATE: dict[str, tuple[Glm, Method]] = {
    "sealed": (RIDGE, SealedTours(depth=2, scheme="clear")),
    "sealed, alone": (
        RIDGE,
        SealedTours(server=False, depth=2, scheme="clear", accept_revealed_columns=True),
    ),
    "masked tokens": (RIDGE, with_masks(MTCD(tokens=2, hops=3, stepsize=1e-2, combine="cluster"))),
    "masked uploads": (RIDGE, with_masks(SVFL(stepsize=1e-2, batch=4))),
    "double-masked uploads": (
        RIDGE,
        with_masks(MTCD(2, 3, stepsize=1e-2, batch=4), "double-masked"),
    ),
}
SPLIT: dict[str, tuple[str, Method]] = {
    "clusters": ("concat", MTCD(tokens=2, hops=3, stepsize=0.03, combine="cluster")),
    "clusters, batches": ("sum", MTCD(tokens=2, hops=3, stepsize=0.03, combine="cluster", batch=5)),
    "overlapping": ("concat", MTCD(tokens=2, hops=3, stepsize=0.03, combine="average")),
    "visitors, batches": (
        "mean",
        MTCD(tokens=2, hops=3, stepsize=0.03, combine="visitors", batch=5),
    ),
    "stcd": ("concat", STCD(stepsize=0.03, fusion_client="each")),
    "svfl": ("concat", SVFL(stepsize=0.03)),
    "svfl, batches": ("sum", SVFL(stepsize=0.03, batch=5)),
}


def payload_names() -> dict[int, str]:
    """The number and name of every payload that parties of a method send each other.

    Read when it is asked for: a kind of model registers its payloads when it is first imported.
    """
    return {
        schema.number: kind.__name__
        for kind, schema in SCHEMAS.items()
        if kind.__module__.startswith(OF_METHODS) and kind.__module__ != OF_DELIVERY
    }


@dataclass
class Wire:
    """Turns messages into bytes and back."""

    bounds: Bounds
    frames: list[bytes] = field(default_factory=list)

    def carry(self, message: Message) -> Message:
        header = Header(RUN, message.sender, message.to, 2, len(self.frames))
        data = encode(message, header)
        self.frames.append(data)
        exact = replace(self.bounds, sender=message.sender, receiver=message.to)
        arrived, its_header = decode(bytearray(data) if len(self.frames) % 2 else data, exact)
        assert its_header == header
        assert (arrived.floats, arrived.hop_floats) == (message.floats, message.hop_floats)
        assert type(arrived.payload) is type(message.payload)
        assert encode(arrived, header) == data
        return arrived


class Wired(Party):
    """A party whose messages all travel by wire."""

    def __init__(self, party: Party, wire: Wire) -> None:
        self.party, self.wire = party, wire

    def receive(self, message: Message) -> Sequence[Message]:
        return [self.wire.carry(sent) for sent in self.party.receive(message)]


def wired(parties: Parties, wire: Wire) -> Parties:
    """The same parties, by wire."""
    clients: Any = [Wired(client, wire) for client in parties.clients]
    server = None if parties.server is None else Wired(parties.server, wire)
    return Parties(
        clients,
        server,
        [wire.carry(message) for message in parties.opening],
        gather=lambda *_: parties.parameters(),
    )


def told(progress: Progress) -> tuple[Any, ...]:
    """What progress says, bit for bit, as of now."""
    parts = getattr(progress, "parameters", None) or ()
    tell = [np.asarray(part).tobytes() for part in parts]
    z = progress.aggregate
    return (
        progress.hop,
        progress.t,
        None if z is None else np.asarray(z).tobytes(),
        progress.penalty,
        tell,
    )


def followed(parties: Parties, moments: int) -> Iterator[Any]:
    """What is told at so many moments, and the ledger after it."""
    ledger = Ledger()
    for progress in islice(LocalEngine(parties, ledger).run(), moments):
        yield told(progress), ledger.to_dict()


def linear(name: str) -> tuple[Parties, Parties, Wire]:
    """The parties twice, and what to expect of the messages of the second."""
    model, method = (LINEAR | PRIVATE)[name]
    data = make_data(model, 12, [2, 1, 3, 2, 2, 1], seed=3)
    problem, network = model.problem(data), make_network("cycle", data.clients)
    plain, ours, wire = _pair(problem, network, method)
    for k in range(len(data.clients) if name == "masked tokens" else 0):
        ours.clients[k].identity = Signs()  # type: ignore[attr-defined]
    return plain, ours, wire


class Signs:
    """Signatures that anybody can make."""

    def sign(self, key: bytes) -> bytes:
        return sha256(key).digest()

    def verify(self, client: int, key: bytes, signature: bytes) -> None:
        assert signature == self.sign(key)


def changing() -> tuple[Parties, Parties, Wire]:
    """STCD through changes of the network."""
    data = make_data(RIDGE, 12, [2, 1, 3, 2], seed=3)
    network = with_changes(
        make_network("cycle", data.clients),
        [Change(5, leave=["c1", "c2"]), Change(20, join=["c2"])],
    )
    return _pair(RIDGE.problem(data), network, STCD(stepsize=1e-2))


def _pair(problem: Any, network: Network, method: Method) -> tuple[Parties, Parties, Wire]:
    bounds = replace(
        method.messages(network, 0, problem.samples, problem.outputs).bounds(RUN), parameters=20
    )
    plain, ours = (method.parties(problem, network, 0) for _ in range(2))
    return plain, ours, Wire(bounds)


def split(name: str) -> tuple[Parties, Parties, Wire, Any, Any]:
    """The same of split networks; and the two problems, which hold the networks."""
    from mtcd.models.splitnet.setup import split_bounds, split_parties
    from split_problems import case

    aggregation, method = SPLIT[name]
    widths = [1, 2, 3, 2] if aggregation == "concat" else [2] * 4
    one = case("cycle", count=13, aggregation=aggregation, widths=widths)
    plain, ours = one.problem(), one.problem()
    shapes = TensorShapes.of(widths, plain.fusion.values())
    bounds = split_bounds(method, RUN, one.network, 0, plain.samples, plain.outputs, shapes)
    all_parties = [
        split_parties(method, problem, one.network, 0).parties() for problem in (plain, ours)
    ]
    return all_parties[0], all_parties[1], Wire(bounds), plain, ours
