"""Sealed tours with a cipher that hides nothing, but computes the same integers: optimum, refusals,
parties."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import mtcd
from mtcd.core.errors import ConfigError
from mtcd.engines.local import LocalEngine
from mtcd.privacy.sealed.settings import SealedTours
from mtcd.protocol.ledger.ledger import Ledger

CLEAR = SealedTours(scheme="clear")
LOGISTIC, RIDGE = mtcd.Glm("logistic", l2=1.0), mtcd.Glm("ridge", alpha=1.0)


def table(
    kind: str, clients: int, samples: int = 300, features: int = 48, seed: int = 3
) -> mtcd.VerticalData:
    return mtcd.synthetic(kind, samples=samples, features=features, clients=clients, seed=seed)


@pytest.mark.parametrize("network", ["cycle", "path", "star"])
@pytest.mark.parametrize("server", [True, False])
@pytest.mark.parametrize("model", [LOGISTIC, RIDGE, replace(LOGISTIC, intercept=True)], ids=str)
def test_the_optimum_is_that_of_the_open_objective(
    model: mtcd.Glm, server: bool, network: str
) -> None:
    method = replace(CLEAR, server=server)
    run = mtcd.train(
        table(model.kind, 4), model, network, method, mtcd.Stop(gap=1e-5, iterations=30)
    )
    gaps = [row.gap for row in run.history]
    assert min(gaps) <= 1e-4
    assert all(after <= before + 1e-5 for before, after in pairwise(gaps))  # f never rises
    if not server:
        assert run.final.iteration <= 6  # half of the twelve columns of a client


def test_walks_that_are_tours_and_a_label_holder_anywhere() -> None:
    for method in (replace(CLEAR, walk="random-tour"), replace(CLEAR, holder=2)):
        run = mtcd.train(
            table("logistic", 5), LOGISTIC, "star", method, mtcd.Stop(gap=1e-4, iterations=40)
        )
        assert run.status == "converged"


class WithoutCap(SealedTours):
    """Sealed tours that go on: what they tell is no matter here."""

    def most_tours(self, columns: Sequence[int]) -> int:
        return 1_000_000


def test_many_tours_do_not_drift_apart() -> None:
    """After the optimum is reached, token and models stay together, whatever rounding does."""
    method = WithoutCap(scheme="clear")
    run = mtcd.train(
        table("ridge", 3), RIDGE, "cycle", method, mtcd.Stop(gap=1e-12, iterations=150)
    )
    assert run.final.iteration == 150
    assert max(row.gap for row in list(run.history)[20:]) <= 2e-5


@pytest.mark.parametrize("model", [replace(LOGISTIC, l2=0.01), RIDGE], ids=str)
def test_every_twentieth_tour_takes_the_rounding_errors_off(model: mtcd.Glm) -> None:
    """Its scores are then those of the rounded columns, but for one rounding of each client;
    before, many."""
    problem = model.problem(table(model.kind, 3, 600, 120))
    parties = CLEAR.parties(problem, mtcd.make_network("cycle", ["a", "b", "c"]), 0)
    engine, off = LocalEngine(parties, Ledger()), {}
    for told in engine.run():
        server = parties.server
        holding = server.holding
        if told.hop:
            blocks = [client.block for client in parties.clients]
            scores = sum(
                block.rounded @ theta
                for block, theta in zip(blocks, engine.parameters(), strict=True)
            )
            off[told.hop] = (
                np.abs(holding.steering.scores - scores).max()
                * holding.scales.curvature
                * holding.scale
            )
        if told.hop == 60:
            break
    assert max(off[20], off[40], off[60]) < 3
    assert min(off[19], off[39], off[59]) > 6


def test_columns_of_any_size_need_no_scaling() -> None:
    data = table("logistic", 3)
    blocks = tuple(X * 10.0 ** np.arange(-6, 10)[None, : X.shape[1]] for X in data.blocks)
    run = mtcd.train(
        replace(data, blocks=blocks), LOGISTIC, "cycle", CLEAR, mtcd.Stop(gap=1e-3, iterations=60)
    )
    assert run.status == "converged"


def test_a_resumed_training_has_new_keys_and_the_same_iterates(tmp_path: Path) -> None:
    data = table("logistic", 3)

    def train(iterations: int, folder: Path, resume: bool = False) -> mtcd.Run:
        stop = mtcd.Stop(iterations=iterations)
        return mtcd.train(data, LOGISTIC, "path", CLEAR, stop, checkpoint=folder, resume=resume)

    train(3, tmp_path / "a")
    resumed, straight = train(6, tmp_path / "a", resume=True), train(6, tmp_path / "b")
    assert (resumed.coefficients == straight.coefficients).all()
    keys = [row.floats["downlink"] for row in (resumed.final, straight.final)]
    assert keys[0] > keys[1]  # they were sent again, and counted


@pytest.mark.parametrize("server", [True, False])
def test_messages_of_a_tour(server: bool) -> None:
    run = mtcd.train(
        table("ridge", 4), RIDGE, "cycle", replace(CLEAR, server=server), mtcd.Stop(iterations=5)
    )
    sent = run.ledger.messages("sent")
    # in each tour: K requests, K answers, the token down and up, L hops; once K keys; some sums
    # over labels
    if server:
        sums = sent["uplink"] - 25
        assert sent == {"client_client": 20, "uplink": 25 + sums, "downlink": 25 + sums + 4}
        assert 1 <= sums <= 5
    else:  # the client opposite the holder needs a relay for its request, its answer and its keys
        assert sent == {"client_client": 5 * (4 + 2 * 4) + 4, "uplink": 0, "downlink": 0}


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (mtcd.MTCD(walk="tour", tokens=2), "leave method.tokens out"),
        (mtcd.STCD(walk="tour", stepsize=0.1), "leave method.stepsize out"),
        (mtcd.STCD(walk="tour", acceleration="momentum"), "leave method.acceleration out"),
        (mtcd.MTCD(walk="tour", tokens=2, batch=3), "leave method.tokens out"),
        (mtcd.MTCD(walk="tour", clusters="auto"), "method.clusters"),
        (mtcd.MTCD(walk="tour", batch=3), "method.batch"),
        (mtcd.MTCD(walk="tour", start="client_0"), "method.start"),
        (mtcd.MTCD(walk="tour", schedule=mtcd.Schedule()), "method.schedule"),
        (mtcd.MTCD(walk="tour", transport="float32"), "method.transport"),
        (mtcd.STCD(), "set method.walk: tour"),
        (mtcd.STCD(walk="metropolis"), "set method.walk: tour"),
        (mtcd.SVFL(), "svfl cannot train with sealed tokens"),
    ],
)
def test_methods_that_cannot_be_sealed(changed: mtcd.MTCD, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        mtcd.train(table("ridge", 3), RIDGE, "cycle", changed, privacy=mtcd.Privacy(mode="sealed"))


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (mtcd.Glm("huber"), "a loss of the form"),
        (mtcd.Glm("ridge", l1=0.1), "model.l1"),
        (mtcd.Glm("logistic", class_weight="balanced"), "no weights"),
        (mtcd.Glm("multinomial"), "one number per sample"),
    ],
    ids=str,
)
def test_models_that_cannot_be_sealed(model: mtcd.Glm, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        mtcd.train(table(model.loss.example, 3), model, "cycle", CLEAR)


@pytest.mark.parametrize("server", [True, False])
def test_encryption_changes_no_iterate(server: bool) -> None:
    pytest.importorskip("tenseal")
    data, stop = table("logistic", 2, samples=200, features=16), mtcd.Stop(iterations=3)
    clear, sealed = (
        mtcd.train(data, LOGISTIC, "path", SealedTours(server=server, scheme=scheme), stop)
        for scheme in ("clear", "bfv")
    )
    assert (clear.coefficients == sealed.coefficients).all()
    assert sum(sealed.ledger.bytes("sent").values()) > 10 * sum(clear.ledger.bytes("sent").values())
