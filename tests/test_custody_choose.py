"""Every method gets the custody that it needs."""

from collections.abc import Sequence

import pytest

from mtcd.federation.custody.absent import BatchServerPostman, RoundsPostman, UploaderPostman
from mtcd.federation.custody.choose import make_postman
from mtcd.federation.custody.in_step import InStepPostman
from mtcd.federation.custody.journal import MemoryJournal
from mtcd.federation.custody.lone_token import LonePostman
from mtcd.federation.custody.postman import Postman
from mtcd.federation.custody.syncs import ServerPostman
from mtcd.federation.custody.visits import ClientPostman
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
        (MTCD(tokens=2, stepsize=0.01), [ClientPostman, ServerPostman]),
        (MTCD(tokens=2, stepsize=0.01, batch=4), [ClientPostman, BatchServerPostman]),
        (STCD(stepsize=0.01), [LonePostman]),
        (SVFL(stepsize=0.01), [UploaderPostman, RoundsPostman]),
        (MTCD(tokens=2, stepsize=0.01, combine="optimal"), [Postman, Postman]),
        (STCD(stepsize=0.01, walk="tour", acceleration="momentum"), [Postman]),
        (DCPA(stepsize=0.01), [InStepPostman]),
    ],
)
def test_the_postman_of_each_party(method: Method, classes: Sequence[type[Postman]]) -> None:
    network = make_network("cycle", DATA.clients)
    for number, expected in zip((0, SERVER), classes, strict=False):
        cast = method.cast(MODEL.problem(DATA), network, 0)
        postman = make_postman(number, cast, MemoryJournal(), network)
        assert type(postman) is expected
        assert postman.number == number
        sent = sum(message.sender == number and message.to >= SERVER for message in cast.opening)
        assert len(postman.waiting()) == sent
