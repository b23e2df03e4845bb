"""``combine: memory`` with solved blocks against its plain version, and the syncs that it saves."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mtcd
from mtcd.engines.local import LocalEngine
from mtcd.methods.cluster_memory import reference
from mtcd.methods.cluster_memory.reference import PlainObjective
from mtcd.methods.mtcd.mtcd import MTCD
from mtcd.network.clusters import find_clusters
from mtcd.network.tours import closed_walk
from mtcd.protocol.ledger.ledger import Ledger

GAP = 1e-4


def table(kind: str, samples: int, columns: int, clients: int) -> mtcd.VerticalData:
    """Neighbouring columns have a correlation of 0.95."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((samples, columns))
    for j in range(1, columns):
        X[:, j] = 0.95 * X[:, j - 1] + np.sqrt(1 - 0.95**2) * X[:, j]
    score = X @ rng.standard_normal(columns)
    score = 2 * (score - score.mean()) / score.std()
    if kind == "logistic":
        y = (rng.random(samples) < 1 / (1 + np.exp(-score))).astype(float)
    else:
        y = score + 0.3 * rng.standard_normal(samples)
    return mtcd.split(X, y, clients=clients)


class Setting:
    """A problem, a network, and tokens that tour clusters found in it."""

    def __init__(
        self, kind: str, samples: int, columns: int, clients: int, tokens: int, l2: float
    ) -> None:
        self.data = table(kind, samples, columns, clients)
        self.network = mtcd.make_network("grid", self.data.clients)
        self.model = mtcd.Glm("linear" if kind == "ridge" else kind, l2=l2)
        self.problem = self.model.problem(self.data)
        clusters = find_clusters(self.network, tokens)
        self.longest = max(len(closed_walk(self.network, cluster)) for cluster in clusters)
        self.method = MTCD(
            tokens=tokens,
            hops=self.longest,
            clusters="auto",
            walk="tour",
            combine="memory",
            local_solver="newton",
            stepsize=1.0,
        )
        self.f = PlainObjective(
            [np.asarray(block) for block in self.data.blocks],
            np.asarray(self.problem.labels),
            l2,
            kind == "logistic",
        )

    def visits(self, t: int) -> Sequence[Sequence[int]]:
        """Whom the tokens of the package visit in sync t."""
        roaming = self.method.plan(self.problem.samples, 1, self.network, 0).roaming
        found = []
        for token in range(self.method.tokens or 1):
            client, previous = roaming.first(token, t), -1
            clients = [client]
            for hop in range(1, self.longest):
                following = roaming.next(token, t, hop, client, previous)
                client, previous = following, client
                clients.append(client)
            found.append(clients)
        return found

    def values(self, count: int) -> list[float]:
        """f of the models that the parties hold at the first moments."""
        parties = self.method.parties(self.problem, self.network, 0)
        moments = itertools.islice(LocalEngine(parties, Ledger()).run(), count)
        return [self.problem.evaluate(parties.parameters()) for _ in moments]

    def syncs(self, method: mtcd.MTCD, most: int) -> int:
        """The syncs of the package to the gap."""
        stop = mtcd.Stop(gap=GAP, iterations=most * self.longest)
        run = mtcd.train(self.data, self.model, self.network, method, stop)
        assert run.status == "converged"
        assert run.final.syncs is not None
        return run.final.syncs


@pytest.mark.parametrize("kind", ["ridge", "logistic"])
def test_every_sync_has_the_f_of_the_plain_version(kind: str) -> None:
    setting = Setting(kind, 60, 36, 12, 4, l2=1.0)
    plain = reference.syncs(setting.f, setting.visits, 6)
    expected = [setting.f.value(setting.f.X @ theta, theta) for theta in plain]
    np.testing.assert_allclose(setting.values(7), expected, rtol=1e-7)


def test_the_plain_version_keeps_no_more_than_its_memory() -> None:
    setting = Setting("ridge", 60, 36, 12, 4, l2=1.0)
    with_two, with_all = (
        reference.syncs(setting.f, setting.visits, 6, memory=memory) for memory in (2, 6)
    )
    f = setting.f
    assert f.value(f.X @ with_two[-1], with_two[-1]) > f.value(f.X @ with_all[-1], with_all[-1])
    np.testing.assert_allclose(with_two[2], with_all[2])


@pytest.mark.long
@pytest.mark.parametrize(
    ("clients", "columns", "tokens", "most"), [(40, 200, 20, 8), (200, 400, 20, 15)]
)
def test_it_halves_the_syncs_and_more(clients: int, columns: int, tokens: int, most: int) -> None:
    """``most`` are those of a prototype on problems like these."""
    setting = Setting("logistic", 1000, columns, clients, tokens, l2=10.0)
    found = setting.syncs(setting.method, 40)
    plain = reference.syncs_to(setting.f, setting.visits, GAP, 40)
    assert plain is not None
    assert found <= min(most, plain + 1)

    one = MTCD(
        tokens=tokens,
        hops=setting.longest,
        clusters="auto",
        walk="tour",
        acceleration="conjugate",
    )
    assert 2 * found <= setting.syncs(one, 100)


def test_an_interrupted_training_resumes_to_the_same_model(tmp_path: Path) -> None:
    """Bit for bit, also after changes of early syncs were dropped."""
    setting = Setting("logistic", 60, 36, 12, 4, l2=0.1)

    def trained(moment: int | None, **how: Any) -> mtcd.Run:
        left = moment

        def watch(row: Any, fraction: float) -> None:
            nonlocal left
            if left == 0:
                raise KeyboardInterrupt
            if left is not None:
                left -= 1

        stop = mtcd.Stop(iterations=26 * setting.longest)
        return mtcd.train(
            setting.data, setting.model, setting.network, setting.method, stop, watch=watch, **how
        )

    whole = trained(None)
    for moment in (3, 23):
        place = tmp_path / str(moment)
        with contextlib.suppress(KeyboardInterrupt):
            trained(moment, checkpoint=place)
        assert any(place.iterdir())
        resumed = trained(None, checkpoint=place, resume=True)
        assert resumed.coefficients.tobytes() == whole.coefficients.tobytes()
        assert resumed.ledger == whole.ledger
