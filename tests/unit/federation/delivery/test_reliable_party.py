"""A party whose messages survive crashes: what a new process does first."""

import pytest

from mtcd.federation.delivery.journal import MemoryJournal
from mtcd.federation.recovery.choose import make_reliable_party
from mtcd.methods.dcpa.dcpa import DCPA
from mtcd.models.glm.model import Glm
from mtcd.network.topology import make_network
from mtcd.protocol.codec.envelopes import End
from mtcd.protocol.party import Parties
from problems import make_data

MODEL = Glm("ridge")
DATA = make_data(MODEL, 8, [2, 2, 1], seed=1)
PATH = make_network("path", DATA.clients)


def parties() -> Parties:
    return DCPA(stepsize=0.05).parties(MODEL.problem(DATA), PATH, 0)


def test_only_a_party_that_has_run_before_is_told_that_it_was_restarted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    journal = MemoryJournal()
    told: list[str] = []
    for name in ("first process", "second process"):
        party = make_reliable_party(1, parties(), journal, PATH)
        monkeypatch.setattr(party.party, "restarted", lambda name=name: told.append(name))
        party.started()
    assert told == ["second process"]


def test_a_party_that_has_ended_is_not_told_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    journal = MemoryJournal()
    first = make_reliable_party(1, parties(), journal, PATH)
    first.conclude(End("stopped", 0, 3))
    first.commit()
    again = make_reliable_party(1, parties(), journal, PATH)
    assert again.ended == first.ended
    told: list[bool] = []
    monkeypatch.setattr(again.party, "restarted", lambda: told.append(True))
    again.started()
    assert told == []
