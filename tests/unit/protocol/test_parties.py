"""Parties are made when they are used: a party of a federation makes itself only."""

from collections import Counter
from typing import Any

import pytest

from mtcd.methods.method import Method
from mtcd.methods.mtcd.mtcd import MTCD, STCD
from mtcd.methods.svfl.svfl import SVFL
from mtcd.network.changes import with_changes
from mtcd.network.topology import Change, make_network
from problems import MODELS, make_data

METHODS: list[Method] = [
    STCD(stepsize=0.01),
    MTCD(2, 3, stepsize=0.01, combine="cluster"),
    MTCD(2, 3, stepsize=0.01, combine="optimal"),
    MTCD(2, 3, stepsize=0.01, transport="float32"),
    SVFL(stepsize=0.01),
]


class Counting:
    """A problem that counts whose models are asked for."""

    def __init__(self, problem: Any) -> None:
        self.problem, self.made = problem, Counter[int]()

    def client(self, k: int) -> Any:
        self.made[k] += 1
        return self.problem.client(k)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.problem, name)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.describe())
@pytest.mark.parametrize("changing", [False, True])
def test_a_client_is_made_once_and_alone(method: Method, changing: bool) -> None:
    data = make_data(MODELS[0], 12, [2, 1, 3, 2], seed=3)
    problem: Any = Counting(MODELS[0].problem(data))
    network = make_network("cycle", data.clients)
    if changing:
        network = with_changes(network, [Change(3, leave=["c3"])])
    parties = method.parties(problem, network, 0)
    assert len(parties.clients) == 4
    assert parties.clients[2] is parties.clients[-2]
    assert problem.made == {2: 1}
    assert [client.number for client in _plain(parties.clients)] == [0, 1, 2, 3]
    assert problem.made == {0: 1, 1: 1, 2: 1, 3: 1}
    with pytest.raises(IndexError):
        parties.clients[4]


def _plain(clients: Any) -> list[Any]:
    return [getattr(client, "client", client) for client in clients[:]]
