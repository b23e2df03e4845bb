"""Split networks whose parties know only their own part, for tests: each makes all and uses its
own."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import mtcd
from federations import changed
from mtcd.federation.credentials.bundle_schema import BundleConfig, bundle_config
from mtcd.federation.delivery.journal import Journal
from mtcd.federation.delivery.reliable_party import ReliableParty
from mtcd.federation.file import check_keys, method_of, network_of
from mtcd.federation.own_code import OwnCode, read_code
from mtcd.federation.recovery.wait import Wait
from mtcd.methods.method import Method
from mtcd.methods.mtcd.client import Share
from mtcd.models.splitnet.configured import split_model
from mtcd.models.splitnet.own import OwnProblem
from mtcd.models.splitnet.parties import SplitServer
from mtcd.models.splitnet.party.networks import OwnNetwork, network_for, section_of, server_network
from mtcd.models.splitnet.problem import NetProblem
from mtcd.models.splitnet.setup import split_parties
from mtcd.network.topology import Network
from mtcd.protocol.codec.envelopes import Envelope
from mtcd.protocol.codec.records import pack
from mtcd.protocol.party import MONITOR, SERVER, Message, Parties, Party
from mtcd.training.compute import Compute
from split_problems import samples

NETS = """
from torch import nn
def plain(shape, width=3): return nn.Sequential(nn.Linear(shape[0], 4), nn.Tanh(), nn.Linear(4, width))
def several(shape, index): return plain(shape, 1 + index)
def normed(shape): return nn.Sequential(nn.Linear(*shape, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 3))
def dropping(shape): return nn.Sequential(nn.Linear(*shape, 6), nn.Tanh(), nn.Dropout(0.4), nn.Linear(6, 3))
def lazy(shape): return nn.Sequential(nn.LazyLinear(4), nn.Tanh(), nn.LazyLinear(2))
def flat(): return nn.Flatten()
def conv(): return nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten(), nn.Linear(27, 2))
def head(width, outputs): return nn.Sequential(nn.Linear(width, 5), nn.BatchNorm1d(5), nn.Tanh(), nn.Linear(5, outputs))
"""
MOMENTUM = {"kind": "SGD", "momentum": 0.9}
MTCD = {"kind": "mtcd", "stepsize": 0.05, "local_updates": 2, "hops": 3}
CLUSTERS = {"clusters": [["a", "b"], ["c", "d"]]}
CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "clusters": ({"client": "nets:several", "fusion": "nets:head"}, {**MTCD, **CLUSTERS}),
    "clusters, batches": (
        {"client": "nets:normed", "optimiser": MOMENTUM},
        {**MTCD, **CLUSTERS, "batch": 5},
    ),
    "overlapping": ({"client": "nets:plain", "optimiser": {"kind": "Adam"}}, {**MTCD, "tokens": 2}),
    "visitors": (
        {"client": "nets:dropping", "aggregation": "mean"},
        {**MTCD, "tokens": 2, "combine": "visitors"},
    ),
    "svfl": ({"client": "nets:lazy", "aggregation": "sum"}, {"kind": "svfl", "stepsize": 0.05}),
    "svfl, batches": ({"client": "nets:normed"}, {"kind": "svfl", "stepsize": 0.05, "batch": 5}),
    "pictures": ({"client": "nets:conv", "optimiser": MOMENTUM}, {**MTCD, **CLUSTERS, "batch": 6}),
    "stcd": (
        {"client": "nets:dropping", "optimiser": MOMENTUM},
        {"kind": "stcd", "stepsize": 0.05, "fusion_client": "each"},
    ),
}


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Networks as small as these are slower with more."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@dataclass(frozen=True, eq=False)
class Clinics:
    """Four clinics on a cycle, with a server unless the method has none; ``folder`` holds
    somebody's own networks."""

    folder: Path
    name: str

    @property
    def standardise(self) -> bool:
        return self.name != "pictures"

    @cached_property
    def data(self) -> mtcd.VerticalDataset:
        made = samples(4, 13)
        features = {
            name: 3 * values + 1
            for name, values in zip("abcd", made.features.values(), strict=True)
        }
        if self.name == "pictures":
            shape = np.linspace(-1, 1, 50).reshape(2, 5, 5)
            features = {
                name: np.sin(shape * values[:, :1, None, None]) for name, values in features.items()
            }
        return mtcd.VerticalDataset(features, np.array(["low", "mid", "top"])[made.labels])

    @cached_property
    def _bundles(self) -> tuple[dict[str, BundleConfig], Method, Network]:
        (self.folder / "nets.py").write_text(NETS)
        model, method = CASES[self.name]
        section = {"kind": "split", **model}
        federation = check_keys(
            changed(
                parties={name: f"127.0.0.1:{7001 + k}" for k, name in enumerate(self.data.clients)},
                server=None if method["kind"] == "stcd" else "127.0.0.1:7000",
                labels={"held_by": "b", "shared_with": ["parties", "server"]},
                network={"kind": "cycle"},
                model=section,
                method=method,
                standardise=self.standardise,
                seed=5,
            ),
            "here",
        )
        network, everybody = network_of(federation), [*federation.places]
        bundles = {
            name: bundle_config(federation, name, network, dict.fromkeys(everybody))
            for name in everybody
        }
        return bundles, method_of(federation)[0], network

    @cached_property
    def code(self) -> OwnCode:
        """As of a party that has read nets.py."""
        return read_code(self.bundle(0), self.folder, [self.folder / "nets.py"])

    @property
    def method(self) -> Method:
        return self._bundles[1]

    @property
    def network(self) -> Network:
        return self._bundles[2]

    def bundle(self, number: int) -> BundleConfig:
        return self._bundles[0]["server" if number == SERVER else self.data.clients[number]]

    def network_of(self, k: int) -> OwnNetwork:
        return network_for(
            self.bundle(k), self.code, self.data.features[self.data.clients[k]].astype(float)
        )

    @cached_property
    def widths(self) -> list[int]:
        return [self.network_of(k).width for k in range(len(self.data.clients))]

    def problem(self, number: int) -> OwnProblem:
        if number == SERVER:
            return server_network(self.bundle(number), self.code, self.data.labels, self.widths)
        return self.network_of(number).problem(self.data.labels, self.widths)

    def own_cast(self, number: int) -> tuple[Parties, OwnProblem]:
        problem = self.problem(number)
        return split_parties(self.method, problem, self.network, 5).parties(), problem

    def whole(self) -> tuple[Parties, NetProblem]:
        """The parties of a training in one process, from the config."""
        section = section_of(self.bundle(0)).model_copy(update={"code": self.folder})
        model = split_model(section, self.data, 5, self.standardise)
        problem = model.problem(self.data, Compute(device="cpu"), 5)
        return split_parties(self.method, problem, self.network, 5).parties(), problem

    @property
    def numbers(self) -> list[int]:
        return [*range(len(self.data.clients)), *([] if self.name == "stcd" else [SERVER])]

    def put_together(self) -> tuple[Parties, dict[int, OwnProblem]]:
        """Parties, each from its own part."""
        all_parties = {number: self.own_cast(number) for number in self.numbers}
        clients = [all_parties[k][0].clients[k] for k in range(len(self.data.clients))]
        server = all_parties[SERVER][0].server if SERVER in all_parties else None
        opening = [
            m
            for number, (parties, _) in all_parties.items()
            for m in parties.opening
            if m.sender == number
        ]
        return Parties(clients, server, opening), {
            number: problem for number, (_, problem) in all_parties.items()
        }


def party_of(parties: Parties, number: int) -> Party:
    party = parties.server if number == SERVER else parties.clients[number]
    assert party is not None
    return party


def known(party: Party, message: Message, told: bool) -> bytes | None:
    """What a party knows after a message, at moments at which that does not depend on the order of
    messages.

    That is a sync at the server. A client whose tokens cross then settles; others can be compared
    after any message.
    """
    state = party.state()
    if isinstance(party, SplitServer):
        return (
            pack({name: state[name] for name in ("t", "aggregate", "fused", "fusion")})
            if told
            else None
        )
    return (
        pack(state)
        if party.plan.combine.one_visitor or isinstance(message.payload, Share)
        else None
    )


def everything(parties: Parties, moments: int) -> Iterator[tuple[bytes, bytes | None]]:
    """All messages of a training in one process, up to so many moments, and what their receivers
    know after them."""
    waiting = deque(parties.opening)
    while moments:
        message = waiting.popleft()
        if message.to == MONITOR:
            moments -= 1
            continue
        sent, party = pack(message), party_of(parties, message.to)
        answer = party.receive(message)
        yield sent, known(party, message, any(one.to == MONITOR for one in answer))
        waiting += answer


class Watched(Wait):
    """Notes all that arrives, and what its party then knows."""

    def __init__(self, noted: list[tuple[bytes, bytes | None]]) -> None:
        super().__init__()
        self.noted = noted

    def process(self, envelope: Envelope) -> list[Message]:
        sent = pack(envelope.message)
        reports = super().process(envelope)
        self.noted.append((sent, known(self.delivery.party, envelope.message, bool(reports))))
        return reports


def watched(
    clinics: Clinics, noted: list[tuple[bytes, bytes | None]], number: int, journal: Journal
) -> ReliableParty:
    parties = clinics.own_cast(number)[0]
    party = party_of(parties, number)
    return ReliableParty(
        number, party, Watched(noted), journal, parties.opening, len(parties.clients)
    ).resume()
