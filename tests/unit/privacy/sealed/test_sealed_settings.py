"""What sealed tours refuse of networks, step sizes, files and agreements."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from clear_parties import CLEAR, NETWORK, problem_of
from federations import changed
from mtcd.core.errors import ConfigError, WireError
from mtcd.federation.file import check_federation, check_keys
from mtcd.federation.node.opening import Agreed
from mtcd.federation.participant.table import PartyTable
from mtcd.network.changes import Change, with_changes
from mtcd.privacy.sealed.conditions import SealedConditions
from mtcd.privacy.sealed.participant import SealedParticipant
from own_parts import bundles

SEALED: dict[str, Any] = {
    "privacy": {"mode": "sealed"},
    "labels__shared_with": None,
    "method": {"kind": "mtcd", "walk": "tour"},
    "network": {"kind": "complete"},
}


def test_sealed_tours_have_no_step_size() -> None:
    smoothness: Any = None
    with pytest.raises(ConfigError, match="Sealed tours have no step size"):
        CLEAR.stepsize_rules(smoothness)


def test_a_network_that_changes_is_refused() -> None:
    """Whoever joins has neither the keys nor a share of the tokens."""
    CLEAR.check(NETWORK)
    changing = with_changes(NETWORK, [Change(5, leave=["c"])])
    with pytest.raises(ConfigError, match=r"not for networks that change \(network\.changes\)"):
        CLEAR.check(changing)


def test_the_cap_needs_the_columns_of_all_clients() -> None:
    """Where the tables are read elsewhere, blocks here have no columns."""
    problem = problem_of()
    conditions = SealedConditions(CLEAR)
    assert conditions.most_iterations(problem) is not None
    first, *others = problem.blocks
    without = replace(problem, blocks=(np.zeros((first.shape[0], 0)), *others))
    with pytest.raises(ConfigError, match=r"columns of all clients.*data\.read\(\)"):
        conditions.most_iterations(without)


def test_weights_of_samples_are_refused_in_a_federation() -> None:
    check_federation(check_keys(changed(**SEALED), "the file"))
    weighted = changed(**SEALED, labels__weights="w")
    with pytest.raises(ConfigError, match=r"labels\.weights: .*takes no weights of samples"):
        check_federation(check_keys(weighted, "the file"))


@pytest.mark.parametrize("name", ["b", "server"])
def test_labels_that_are_sent_to_others_are_refused(name: str) -> None:
    """The mode promises that labels stay with their holder, whatever that sends."""
    sealed = {key: value for key, value in SEALED.items() if key != "network"}
    config = bundles(("a", "b"), **sealed)[name]
    table = PartyTable(Path("own.csv"), ("x", "y"), ("one",), np.ones((2, 1)))
    bundle: Any = SimpleNamespace(config=config, folder=Path("bundle"))
    party = SealedParticipant(bundle, None if name == "server" else table)
    settings = {"samples": 2, "stepsize": 1.0, "notes": [], "columns": [1, 1], "start": 1.0}
    agreed = Agreed("run1", {**settings, "classes": []}, b"labels", b"")
    log: Any = None
    with pytest.raises(WireError, match="are not for other parties in a sealed training"):
        party.role(agreed, log)
