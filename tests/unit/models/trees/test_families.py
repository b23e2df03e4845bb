"""The families of parties, one at a time: what they are made of, and what a visit of one does."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from boosting import SETTINGS, samples
from mtcd.core.errors import ConfigError, MtcdError, WireError
from mtcd.models.glm.fit import LabelFit
from mtcd.models.losses.squared import Squared
from mtcd.models.trees.ensemble import Ensemble, Tree
from mtcd.models.trees.families import trees as growing
from mtcd.models.trees.families.family import FAMILIES, Family, Inputs
from mtcd.models.trees.families.linear import LinearFamily
from mtcd.models.trees.families.net import NetFamily
from mtcd.models.trees.families.trees import KEPT, GrowingMargins, TreeFamily, TreeParty
from mtcd.models.trees.gains import AWAITED, GAINS, UNKNOWN, known_gains
from mtcd.protocol.codec.limits import Bounds
from mtcd.protocol.model import LocalUpdates
from mtcd.protocol.token import Token

MADE: dict[str, Family] = {
    "trees": TreeFamily(**SETTINGS, adaptive=False),
    "linear": LinearFamily(l1=0.1),
    "net": NetFamily(hidden=(3,)),
}
ONCE = LocalUpdates(1, 0.1, visit=(0, 0, 0))


def party_of(family: Family, n: int = 60, seed: int = 0) -> Any:
    if family.kind == "net":
        pytest.importorskip("torch")
    X, y = samples("values", n)
    return family.client(Inputs(1, X[:, :3], (), LabelFit(Squared(), y), seed))


def after_a_visit(party: Any) -> tuple[Any, Any]:
    """The parameters after one visit, and the token."""
    z = np.zeros(party.inputs.samples if hasattr(party, "inputs") else len(party.y))
    return party.local_update(party.initial(), z, ONCE), z


@pytest.mark.parametrize(
    ("kind", "settings", "said"),
    [
        ("trees", {"l2": -1.0}, "model.l2 must be 0 or more"),
        ("trees", {"bins": 1}, "model.bins must be 2 or more"),
        ("trees", {"threads": 0}, "model.threads must be 1 or more"),
        ("trees", {"rows": 1.0001}, "model.rows is a share"),
        ("trees", {"rows": 0.0}, "model.rows must be above 0"),
        ("trees", {"learning_rate": 0.0}, "model.learning_rate must be above 0"),
        ("trees", {"adaptive": "yes"}, "model.adaptive is true or false"),
        ("linear", {"l1": -1.0}, "model.l1 must be 0 or more"),
        ("linear", {"l2": -1.0}, "model.l2 must be 0 or more"),
        ("net", {"l2": -1.0}, "model.l2 must be 0 or more"),
        ("net", {"hidden": "16"}, "hidden must be a list"),
    ],
)
def test_settings_of_a_family_that_cannot_be_are_refused(
    kind: str, settings: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        FAMILIES[kind](**settings)


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("trees", {"l2": 0.0, "rows": 1.0, "columns": 1.0, "depth": 0, "leaves": 2, "bins": 2}),
        ("linear", {"l1": 0.0, "l2": 0.0}),
        ("net", {"hidden": (), "l2": 0.0}),
    ],
)
def test_settings_on_the_edge_of_what_can_be_are_taken(kind: str, settings: Any) -> None:
    made = FAMILIES[kind](**settings)
    assert {name: getattr(made, name) for name in settings} == settings


def test_only_a_linear_family_with_l1_has_a_penalty_with_kinks() -> None:
    assert [LinearFamily(l1=l1).nonsmooth for l1 in (0.0, 0.1)] == [False, True]
    assert not MADE["trees"].nonsmooth
    assert not MADE["net"].nonsmooth


def test_the_learner_is_told_the_settings_under_its_own_names() -> None:
    given = {"learning_rate": 0.3, "depth": 4, "leaves": 9, "l2": 0.5, "min_samples": 7}
    told = TreeFamily(**given, columns=0.5, rows=0.25, bins=63).settings
    assert told == {
        "learning_rate": 0.3,
        "max_depth": 4,
        "num_leaves": 9,
        "lambda_l2": 0.5,
        "min_data_in_leaf": 7,
        "feature_fraction": 0.5,
        "bagging_fraction": 0.25,
        "bagging_freq": 1,
        "max_bin": 63,
    }
    unlimited = TreeFamily(depth=0).settings
    assert (unlimited["max_depth"], unlimited["bagging_freq"]) == (-1, 0)


@pytest.mark.parametrize("family", MADE.values(), ids=list(MADE))
def test_a_representation_of_some_rows_is_that_of_all_at_these_rows(family: Family) -> None:
    party = party_of(family)
    theta, z = after_a_visit(party)
    rows = np.array([5, 0, 17])
    assert len(np.unique(z)) > 3
    np.testing.assert_allclose(party.represent(theta), z, atol=1e-12)
    np.testing.assert_allclose(party.represent(theta, rows), z[rows], atol=1e-12)


@pytest.mark.parametrize("family", MADE.values(), ids=list(MADE))
def test_what_a_party_starts_from_stays_when_it_is_written_to(family: Family) -> None:
    party = party_of(family)
    first = party.initial()
    if isinstance(first, np.ndarray):
        first += 1.0
        assert party.penalty(party.initial()) == 0.0

    assert (party.represent(party.initial()) == 0.0).all()


@pytest.mark.parametrize("family", MADE.values(), ids=list(MADE))
def test_a_trained_part_is_read_from_its_arrays(family: Family) -> None:
    party = party_of(family)
    theta, z = after_a_visit(party)
    arrays = party.finish(theta).arrays()
    assert all(isinstance(array, np.ndarray) for array in arrays.values())
    X = samples("values", 60)[0][:, :3]
    np.testing.assert_allclose(family.part(arrays).margins(X), z, atol=1e-12)
    with pytest.raises((MtcdError, ValueError)):
        family.part(arrays).margins(X[:, :2])


def test_a_net_with_parameters_of_another_one_is_refused() -> None:
    arrays = party_of(MADE["net"]).finish(np.zeros(7)).arrays()
    with pytest.raises(MtcdError, match="This net has 16 parameters, but 7 are given"):
        MADE["net"].part(arrays).margins(np.zeros((2, 3)))


def test_the_network_of_a_party_follows_from_the_seed_and_its_number() -> None:
    starts = [party_of(MADE["net"], seed=seed).initial().tolist() for seed in (0, 0, 1)]
    assert starts[0] == starts[1] != starts[2]


def test_a_net_that_cannot_lower_the_loss_returns_what_it_was_given() -> None:
    pytest.importorskip("torch")
    X, _ = samples("values", 20)
    party = MADE["net"].client(Inputs(0, X, (), LabelFit(Squared(), np.zeros(20)), 0))
    theta, z = party.initial(), np.zeros(20)
    assert party.local_update(theta, z, ONCE) is theta
    assert (z == 0.0).all()


def grows(party: TreeParty, monkeypatch: pytest.MonkeyPatch, margins: Any) -> None:
    """Every tree of the party has these margins."""
    grown = SimpleNamespace(text="Tree=0\n")
    monkeypatch.setattr(party, "_grown", lambda *_: grown)
    monkeypatch.setattr(party, "_margins_of", lambda *_: margins)


@pytest.mark.parametrize(
    ("step", "trees"), [(0.0, 0), (-0.1, 0), (0.1, 3)], ids=["same", "higher", "lower"]
)
def test_a_tree_that_does_not_lower_the_loss_is_not_kept(
    monkeypatch: pytest.MonkeyPatch, step: float, trees: int
) -> None:
    """All labels are 1, and every tree adds the same to all samples."""
    fit = LabelFit(Squared(), np.ones(10))
    party = TreeParty(TreeFamily(adaptive=False), Inputs(0, np.zeros((10, 1)), (), fit, 0))
    grows(party, monkeypatch, np.full(10, step))
    theta, z = Ensemble(), np.zeros(10)
    found = party.local_update(theta, z, LocalUpdates(3, 0.1, visit=(0, 0, 0)))
    assert len(found) == trees
    assert (found is theta) == (trees == 0)
    np.testing.assert_allclose(z, trees * step)


@pytest.mark.parametrize(
    ("before", "after", "gain"),
    [
        (3.0, 1.0, 10.0),  # 30 samples, of which 6 are held out
        (1.0, 1.0, 0.0),
        (1.0, 3.0, 0.0),
        (np.inf, 1.0, 0.0),
        (np.inf, np.inf, 0.0),
        (1.0, np.nan, 0.0),
    ],
)
def test_a_gain_is_a_number_of_0_or_more(
    monkeypatch: pytest.MonkeyPatch, before: float, after: float, gain: float
) -> None:
    """Whatever the loss of the held-out samples is before the tree and after it."""
    values = iter([before, after])
    loss = SimpleNamespace(at=lambda rows: SimpleNamespace(value=lambda z, y: next(values)))
    fit: Any = SimpleNamespace(loss=loss, labels=np.zeros(30))
    party = TreeParty(TreeFamily(), Inputs(0, np.zeros((30, 1)), (), fit, 0))
    grows(party, monkeypatch, np.zeros(30))
    assert party._held_out_gain(np.zeros(30), (0, 0, 0, 0)) == gain


def test_margins_of_the_latest_ensembles_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them is evaluated once; the one that was not asked for longest goes first."""
    evaluated: list[int] = []

    class Counted:
        def __init__(self, ensemble: Ensemble) -> None:
            evaluated.append(len(ensemble))
            self.ensemble = ensemble

        @staticmethod
        def of(ensemble: Ensemble, *_: int) -> Counted:
            return Counted(ensemble)

        def margins(self, X: Any) -> Any:
            return np.full(len(X), float(sum(self.ensemble.weights)))

    monkeypatch.setattr(growing, "Forest", Counted)
    margins, theta, grown = GrowingMargins(np.zeros((2, 1)), 1), Ensemble(), []
    for hop in range(KEPT + 1):
        theta = theta.extended(Tree.of((0, 0, hop, 0), "Tree=0\n"))
        grown.append(theta)
        assert margins.of(theta).tolist() == [hop + 1.0] * 2

    assert evaluated == [1] * (KEPT + 1)
    for latest in grown[1:]:
        margins.of(latest)
    assert len(evaluated) == KEPT + 1
    assert margins.of(grown[0]).tolist() == [1.0, 1.0]
    assert len(evaluated) == KEPT + 2


BOUNDS = Bounds("run", 2, frozenset(), (1,), tokens=1).with_slots("gains", gains=3)


@pytest.mark.parametrize("gains", [[0.0, 0.5, 9.0], [UNKNOWN, AWAITED, 0.0]])
def test_gains_that_tokens_may_carry(gains: list[float]) -> None:
    assert GAINS.check is not None
    GAINS.check(None, np.array(gains), BOUNDS)


@pytest.mark.parametrize("gains", [[0.0, 0.5], [0.0] * 4, [0.0, -0.5, 1.0], [-3.0, 0.0, 0.0]])
def test_gains_that_tokens_may_not_carry(gains: list[float]) -> None:
    assert GAINS.check is not None
    with pytest.raises(WireError, match="gains"):
        GAINS.check(None, np.array(gains), BOUNDS)


def test_a_gain_of_0_is_known() -> None:
    token = Token(0, 0, 0, np.zeros(2), 0.0, slots={"gains": np.array([UNKNOWN, 0.0, UNKNOWN])})
    assert known_gains(token, 0).others == 0.0
