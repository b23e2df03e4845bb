"""What parties do while tokens roam, and who is absent when."""

from itertools import islice

import pytest

from mtcd.engines.local import LocalEngine
from mtcd.ledger.ledger import Ledger
from mtcd.methods import reference
from mtcd.methods.svfl import SVFL
from mtcd.model.linear import Glm
from mtcd.network.changes import Change, absences, with_changes
from mtcd.network.topology import make_network
from mtcd.protocol.party import Message
from problems import Case, make_data
from test_methods import assert_same, iterates


def test_svfl_follows_its_plain_version_through_several_changes() -> None:
    model = Glm("ridge", l2=0.5)
    data = make_data(model, 12, [2, 1, 3, 2], seed=5)
    changes = [Change(2, leave=["c1"]), Change(4, join=["c1"], leave=["c2", "c3"]), Change(6, join=["c3"])]
    network = with_changes(make_network("complete", data.clients), changes)
    case, method, rounds = Case(data, model, network, 0), SVFL(2, 2e-3), 9
    away = list(absences(network))
    assert len(away) == 4
    plain = reference.svfl(model.problem(data), method, 0, rounds, away)
    assert_same(iterates(case, method, rounds + 1), plain)


def test_theta_0_is_updated_while_the_tokens_roam() -> None:
    pytest.importorskip("torch")
    from mtcd.methods.split_parties import SplitServer, UpdateFusion
    from wired import split

    parties = split("clusters, batches")[0]
    server, updated = parties.server, []
    assert isinstance(server, SplitServer)
    receive = server.receive

    def noted(message: Message):
        sent = receive(message)
        if isinstance(message.payload, UpdateFusion):
            updated.append((message.payload.t, server.fused))
        return sent

    server.receive = noted  # type: ignore[method-assign]
    list(islice(LocalEngine(parties, Ledger()).run(), 4))
    assert updated[:3] == [(0, 0), (1, 1), (2, 2)]
