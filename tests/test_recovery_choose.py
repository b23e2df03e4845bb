"""Every method gets the custody that it needs."""

from collections.abc import Sequence

import pytest

from mtcd.federation.delivery.journal import MemoryJournal
from mtcd.federation.delivery.reliable_party import ReliableParty
from mtcd.federation.recovery.choose import make_reliable_party
from mtcd.federation.recovery.gathering import BatchIterationServer, RoundClientParty, RoundServer
from mtcd.federation.recovery.in_step import InStepClient
from mtcd.federation.recovery.iteration_client import IterationClient
from mtcd.federation.recovery.iteration_server import IterationServer
from mtcd.federation.recovery.lone_token import LoneTokenClient
from mtcd.methods.dcpa import DCPA
from mtcd.methods.method import Method
from mtcd.methods.mtcd import MTCD, STCD
from mtcd.methods.svfl import SVFL
from mtcd.model.linear import Glm
from mtcd.network.topology import make_network
from mtcd.protocol.party import SERVER
from problems import make_data

MODEL = Glm("ridge")
DATA = make_data(MODEL, 8, [2, 2, 1, 1], seed=1)


@pytest.mark.parametrize(
    ("method", "classes"),
    [
        (MTCD(tokens=2, stepsize=0.01), [IterationClient, IterationServer]),
        (MTCD(tokens=2, stepsize=0.01, batch=4), [IterationClient, BatchIterationServer]),
        (STCD(stepsize=0.01), [LoneTokenClient]),
        (SVFL(stepsize=0.01), [RoundClientParty, RoundServer]),
        (MTCD(tokens=2, stepsize=0.01, combine="optimal"), [ReliableParty, ReliableParty]),
        (STCD(stepsize=0.01, walk="tour", acceleration="momentum"), [ReliableParty]),
        (DCPA(stepsize=0.01), [InStepClient]),
    ],
)
def test_the_policy_of_each_party(method: Method, classes: Sequence[type[ReliableParty]]) -> None:
    network = make_network("cycle", DATA.clients)
    for number, expected in zip((0, SERVER), classes, strict=False):
        cast = method.cast(MODEL.problem(DATA), network, 0)
        reliable = make_reliable_party(number, cast, MemoryJournal(), network)
        assert type(reliable) is expected
        assert reliable.number == number
        sent = sum(message.sender == number and message.to >= SERVER for message in cast.opening)
        assert len(reliable.unacknowledged()) == sent
