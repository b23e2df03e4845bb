"""Every method gets the recovery policy that it needs."""

from collections.abc import Sequence

import pytest

from mtcd.federation.delivery.journal import MemoryJournal
from mtcd.federation.delivery.policy import RecoveryPolicy
from mtcd.federation.recovery.choose import make_reliable_party
from mtcd.federation.recovery.iteration_client import IterationClient
from mtcd.federation.recovery.iteration_server import IterationServer
from mtcd.federation.recovery.lone_token import LoneToken
from mtcd.federation.recovery.wait import InStep, Wait
from mtcd.methods.dcpa.dcpa import DCPA
from mtcd.methods.method import Method
from mtcd.methods.mtcd.mtcd import MTCD, STCD
from mtcd.methods.svfl.recovery import RoundServer
from mtcd.methods.svfl.svfl import SVFL
from mtcd.methods.tree_cg.tree_cg import TreeCG
from mtcd.models.glm.model import Glm
from mtcd.network.changes import with_changes
from mtcd.network.topology import Change, make_network
from mtcd.protocol.party import SERVER
from problems import make_data

MODEL = Glm("ridge")
DATA = make_data(MODEL, 8, [2, 2, 1, 1], seed=1)


@pytest.mark.parametrize(
    ("method", "classes"),
    [
        (MTCD(tokens=2, stepsize=0.01), [IterationClient, IterationServer]),
        (MTCD(tokens=2, stepsize=0.01, batch=4), [IterationClient, IterationServer]),
        (STCD(stepsize=0.01), [LoneToken]),
        (SVFL(stepsize=0.01), [Wait, RoundServer]),
        (MTCD(tokens=2, stepsize=0.01, combine="optimal"), [Wait, Wait]),
        (STCD(stepsize=0.01, walk="tour", acceleration="momentum"), [Wait]),
        (
            MTCD(2, 4, stepsize=0.01, clusters="auto", walk="tour", combine="memory"),
            [Wait, Wait],
        ),
        (DCPA(stepsize=0.01), [InStep]),
        (DCPA(stepsize=0.01, variant="A"), [InStep]),
        (TreeCG(), [InStep]),
        (SVFL(stepsize=0.01, acceleration="momentum"), [Wait, Wait]),
    ],
)
def test_the_policy_of_each_party(method: Method, classes: Sequence[type[RecoveryPolicy]]) -> None:
    network = make_network("cycle", DATA.clients)
    for number, expected in zip((0, SERVER), classes, strict=False):
        parties = method.parties(MODEL.problem(DATA), network, 0)
        reliable = make_reliable_party(number, parties, MemoryJournal(), network)
        assert type(reliable.policy) is expected
        assert reliable.number == number
        sent = sum(message.sender == number and message.to >= SERVER for message in parties.opening)
        assert len(reliable.unacknowledged()) == sent


@pytest.mark.parametrize(
    ("method", "classes"),
    [
        (MTCD(tokens=2, stepsize=0.01), [Wait, Wait]),
        (STCD(stepsize=0.01), [Wait]),
        (SVFL(stepsize=0.01), [Wait, RoundServer]),  # which undoes no visits
    ],
)
def test_where_the_members_change_nothing_is_undone(
    method: Method, classes: Sequence[type[RecoveryPolicy]]
) -> None:
    network = with_changes(make_network("cycle", DATA.clients), [Change(5, leave=["c3"])])
    for number, expected in zip((0, SERVER), classes, strict=False):
        parties = method.parties(MODEL.problem(DATA), network, 0)
        assert (
            type(make_reliable_party(number, parties, MemoryJournal(), network).policy) is expected
        )
