"""The objective that the holder of the labels evaluates from the parts of all is the one that one
process measures."""

from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from mtcd.engines.local import LocalEngine
from mtcd.models.splitnet.party.objective import (
    fits_into_message,
    objective,
    part_of,
    represented,
    represented_at_start,
)
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.protocol.party import SERVER
from split_parties import CASES, Clinics, one_thread

assert one_thread  # a fixture for all tests here
MOMENTS = 7


@pytest.mark.parametrize("name", CASES)
def test_the_objective_from_parts_is_that_of_one_process(name: str, tmp_path: Path) -> None:
    clinics = Clinics(tmp_path, name)
    (whole, problem), (ours, own) = clinics.whole(), clinics.put_together()
    measured = []
    for _ in islice(LocalEngine(whole, Ledger()).run(), MOMENTS):
        measured.append(problem.score(whole.parameters()).objective)
    numbers = range(len(ours.clients))
    at_start = [represented_at_start(own[k], ours.clients[k].network, True) for k in numbers]
    fusion = own[0].fusion.finished()
    start = sum(part_of(own[k], at_start[k]) for k in numbers)
    list(islice(LocalEngine(ours, Ledger()).run(), MOMENTS))  # the parties are as they were
    for client in ours.clients:
        client.apply_sync(client.t)
    end = sum(part_of(own[k], represented(own[k])) for k in numbers)
    assert objective(own[0], fusion, start) == pytest.approx(measured[0], rel=1e-6)
    head = own[SERVER].fusion if SERVER in own else own[0].fusion
    if SERVER not in own:
        head.put(ours.opening[-1].payload.slots["theta_0"])  # the token's own
    assert objective(own[0], head.finished(), end) == pytest.approx(measured[-1], rel=1e-6)
    assert measured[-1] != pytest.approx(measured[0], rel=1e-4)


def test_without_a_first_pass_batch_norm_has_seen_nothing_at_the_start(tmp_path: Path) -> None:
    parties, own = Clinics(tmp_path, "clusters, batches").put_together()
    fresh = represented(own[0]).numpy()
    network = parties.clients[0].network
    np.testing.assert_array_equal(represented_at_start(own[0], network, False).numpy(), fresh)
    assert not np.allclose(represented_at_start(own[0], network, True).numpy(), fresh)
    np.testing.assert_array_equal(represented(own[0]).numpy(), fresh)
    assert network.contribution is None


def test_what_does_not_fit_into_a_message() -> None:
    assert fits_into_message(samples=60_000, width=1, parties=4, message_mb=1)
    assert not fits_into_message(samples=65_536, width=1, parties=4, message_mb=1)
    assert not fits_into_message(samples=60_000, width=2, parties=4, message_mb=1)
    # two numbers of 8 bytes for each sample, and 4 KB for each party: just a megabyte
    assert fits_into_message(samples=2**16 - 4 * 2**8, width=1, parties=4, message_mb=1)
    assert not fits_into_message(samples=2**16 - 4 * 2**8 + 1, width=1, parties=4, message_mb=1)


@pytest.mark.parametrize(("name", "number"), [("clusters, batches", 0), ("clusters", SERVER)])
def test_statistics_that_are_not_finite_are_noticed(name: str, number: int, tmp_path: Path) -> None:
    problem = Clinics(tmp_path, name).problem(number)
    assert problem.is_finite
    (problem.net or problem.head).norms[0].running_mean[0] = np.inf
    assert not problem.is_finite
