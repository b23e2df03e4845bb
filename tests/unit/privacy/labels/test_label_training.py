"""Trainings on randomised labels: open, masked and sealed; what is seen of labels; restarts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import mtcd
from mtcd.config.build import build
from mtcd.config.read import read_config
from mtcd.core.errors import ConfigError
from mtcd.privacy.labels.settings import LabelDP
from mtcd.privacy.settings import LabelSource

SEEDED = LabelDP(epsilon=2.0, insecure_seeded_draws=True)
STOP = mtcd.Stop(iterations=40)


def data(samples: int = 300, clients: int = 3, seed: int = 3) -> mtcd.VerticalData:
    return mtcd.synthetic("logistic", samples=samples, features=9, clients=clients, seed=seed)


def train(model: Any, privacy: mtcd.Privacy | None, **more: Any) -> mtcd.Run:
    return mtcd.train(
        more.pop("data", data()),
        model,
        "complete",
        stop=more.pop("stop", STOP),
        privacy=privacy,
        **more,
    )


LOGISTIC = mtcd.Glm("logistic", l2=1.0)


def corrected(labels: np.ndarray, epsilon: float) -> np.ndarray:
    """(y~ - q) / (p - q) of labels 0 and 1."""
    q = 1 / (1 + np.exp(epsilon))
    return (SEEDED.released(labels, LabelSource()) - q) / (1 - 2 * q)


def newton(X: np.ndarray, y: np.ndarray, l2: float = 1.0) -> np.ndarray:
    """The minimum of the logistic loss for labels that may be any number."""
    theta = np.zeros(X.shape[1])
    for _ in range(50):
        p = 1 / (1 + np.exp(-X @ theta))
        slope = X.T @ (p - y) + l2 * theta
        curvature = (X.T * (p * (1 - p))) @ X + l2 * np.eye(X.shape[1])
        theta -= np.linalg.solve(curvature, slope)
    return theta


@pytest.mark.parametrize(
    ("privacy", "method", "near"),
    [
        ({}, None, 1e-3),
        ({"aggregation": "masked"}, mtcd.MTCD(tokens=2, combine="average"), 1e-3),
        # a few tours: the caps of sealed trainings are low
        ({"mode": "sealed"}, mtcd.MTCD(walk="tour"), 0.15),
    ],
    ids=["open", "masked", "sealed"],
)
def test_the_model_is_the_optimum_of_the_corrected_labels(
    privacy: dict[str, Any], method: Any, near: float
) -> None:
    if privacy.get("mode") == "sealed":
        pytest.importorskip("tenseal")
    given = data()
    asked = mtcd.Privacy(**privacy, labels=SEEDED)
    run = train(LOGISTIC, asked, data=given, stop=mtcd.Stop(iterations=4000), method=method)
    X = np.hstack(given.blocks)
    expected = newton(X, corrected(given.labels, 2.0))
    found = np.concatenate([run.parameters[name] for name in given.clients])
    scale = np.linalg.norm(expected)
    assert np.linalg.norm(found - expected) < near * scale
    # and not that of the labels themselves
    assert np.linalg.norm(found - newton(X, given.labels)) > 1.5 * near * scale


def test_a_sealed_training_says_when_randomised_labels_leave_it_no_room() -> None:
    pytest.importorskip("tenseal")
    given = mtcd.synthetic("logistic", samples=400, features=60, clients=3, seed=5)
    weak = LabelDP(epsilon=0.3, insecure_seeded_draws=True)
    with pytest.raises(mtcd.MtcdError, match="set a larger model.l2"):
        train(
            mtcd.Glm("logistic", l2=1.0),
            mtcd.Privacy(mode="sealed", labels=weak),
            data=given,
            method=mtcd.STCD(walk="tour"),
        )
    # as it says
    run = train(
        mtcd.Glm("logistic", l2=100.0),
        mtcd.Privacy(mode="sealed", labels=weak),
        data=given,
        method=mtcd.STCD(walk="tour"),
    )
    assert run.status == "iterations"


def test_more_epsilon_gives_better_models_and_nothing_else_changes() -> None:
    given = data(3000)
    X, y = np.hstack(given.blocks), given.labels
    away = []
    for epsilon in (0.5, 2.0, 30.0):
        noise = LabelDP(epsilon=epsilon, insecure_seeded_draws=True)
        run = train(LOGISTIC, mtcd.Privacy(labels=noise), data=given, stop=mtcd.Stop(gap=1e-9))
        assert run.status == "converged"
        found = np.concatenate([run.parameters[name] for name in given.clients])
        away.append(np.linalg.norm(found - newton(X, y)))
    assert away[0] > 2 * away[1] > 4 * away[2]
    assert away[2] < 1e-3


@pytest.mark.parametrize(
    "model",
    [mtcd.Trees("logistic", min_samples=5), mtcd.Glm("multinomial", l2=1.0)],
    ids=["trees", "multinomial"],
)
def test_other_models_learn_from_randomised_labels(model: Any) -> None:
    given = data(3000)
    run = train(model, mtcd.Privacy(labels=SEEDED), data=given)
    assert (run.predict(given) == given.labels).mean() > 0.75


def test_values_are_learned_from_noise_on_their_range() -> None:
    given = mtcd.synthetic("ridge", samples=3000, features=6, clients=2, seed=1)
    low, high = float(given.labels.min()), float(given.labels.max())
    noise = LabelDP(epsilon=4.0, range=(low, high), insecure_seeded_draws=True)
    run = train(mtcd.Glm("ridge"), mtcd.Privacy(labels=noise), data=given)
    assert np.corrcoef(run.predict(given), given.labels)[0, 1] > 0.9


def test_networks_learn_from_randomised_labels() -> None:
    torch = pytest.importorskip("torch")
    given = data(1000, clients=2)
    widths = [block.shape[1] for block in given.blocks]
    torch.manual_seed(0)
    modules = {name: torch.nn.Linear(d, 4) for name, d in zip(given.clients, widths, strict=True)}
    model = mtcd.SplitModel(modules, torch.nn.Linear(8, 2))
    run = train(
        model,
        mtcd.Privacy(labels=SEEDED),
        data=given,
        method=mtcd.MTCD(tokens=1, hops=2, stepsize=0.5, batch=100),
        stop=mtcd.Stop(epochs=20),
    )
    dataset = mtcd.VerticalDataset.from_table(given)
    assert (run.predict(dataset) == given.labels).mean() > 0.75


def test_no_token_nor_any_number_of_the_training_depends_on_the_labels_themselves() -> None:
    """Another label, of which the draw is the same: all that is measured and sent is the same."""
    given = data()
    drawn = SEEDED.released(given.labels, LabelSource())

    class Fixed(LabelDP):
        def released(self, labels: Any, source: LabelSource) -> Any:
            return drawn

    privacy = mtcd.Privacy(labels=Fixed(epsilon=2.0))
    first = train(LOGISTIC, privacy, data=given)
    second = train(LOGISTIC, privacy, data=replace(given, labels=1 - given.labels))
    seen = [[(row.iteration, row.objective) for row in one.history.rows] for one in (first, second)]
    assert seen[0] == seen[1]
    assert first.history.rows[-1].metrics == second.history.rows[-1].metrics
    for name in given.clients:
        assert (first.parameters[name] == second.parameters[name]).all()


def test_metrics_and_early_stopping_see_randomised_labels_also_of_the_test_set() -> None:
    given = data(2000).holdout(0.5, 1)
    run = train(LOGISTIC, mtcd.Privacy(labels=SEEDED), data=given, metrics=["accuracy"])
    metrics = run.history.rows[-1].metrics
    true = (run.predict(given.test) == given.test.labels).mean()
    # of the labels, 12% are flipped
    assert true > 0.8
    assert metrics["test_accuracy"] < true - 0.05
    assert metrics["train_accuracy"] < (run.predict(given) == given.labels).mean() - 0.05


def table(folder: Path, given: mtcd.VerticalData) -> Path:
    path = folder / "table.csv"
    X = np.hstack(given.blocks)
    names = ",".join(f"x{j}" for j in range(X.shape[1]))
    rows = [
        f"{','.join(map(repr, row))},{y}" for row, y in zip(X.tolist(), given.labels, strict=True)
    ]
    path.write_text("\n".join([f"{names},y", *rows]) + "\n")
    return path


def config(folder: Path, **changes: Any) -> Any:
    content = {
        "data": {"table": str(folder / "table.csv"), "label": "y", "clients": 3},
        "model": {"kind": "logistic", "l2": 1.0},
        "stop": {"iterations": 30},
        "privacy": {"labels": {"epsilon": 2}},
    }
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(content | changes))
    return read_config(path)


def test_a_config_releases_the_table_once_for_all_its_trainings(tmp_path: Path) -> None:
    table(tmp_path, data())
    first = build(config(tmp_path))
    apart = build(
        config(
            tmp_path,
            data=config(tmp_path).data.model_dump(mode="json", exclude_none=True)
            | {"holdout": 0.3},
        )
    )
    # all rows of the table have one draw, wherever they are used
    kept = {
        tuple(row): label
        for row, label in zip(np.hstack(first.data.blocks), first.data.labels, strict=True)
    }
    for part in (apart.data, apart.data.test):
        for row, label in zip(np.hstack(part.blocks), part.labels, strict=True):
            assert kept[tuple(row)] == label
    assert (first.data.labels != data().labels).any()
    run = first.train()
    assert run.status == "iterations"
    again = build(config(tmp_path)).train()
    for name in first.data.clients:
        assert (run.parameters[name] == again.parameters[name]).all()
    assert any("have spent epsilon 2 in 1 release" in note for note in first.data.notes)
    # a method of one's own: the privacy is in the method, the labels are in the data
    given = config(tmp_path, method={"kind": "mtcd", "tokens": 1, "hops": 3})
    assert (build(given).data.labels == first.data.labels).all()
    assert build(given).train().status == "iterations"


def test_the_same_in_python(tmp_path: Path) -> None:
    path = table(tmp_path, data())
    first, second = (
        train(LOGISTIC, mtcd.Privacy(labels={"epsilon": 2}), data=mtcd.read_tables(path, "y", 3))
        for _ in range(2)
    )
    assert first.objective == second.objective
    assert any("have spent epsilon 2 in 1 release" in note for note in second.notes)


def test_a_training_that_is_resumed_has_the_same_draws(tmp_path: Path) -> None:
    path = table(tmp_path, data())
    given, privacy = mtcd.read_tables(path, "y", 3), mtcd.Privacy(labels={"epsilon": 2})
    whole = train(LOGISTIC, privacy, data=given, stop=mtcd.Stop(iterations=60))
    folder = tmp_path / "run"
    train(LOGISTIC, privacy, data=given, stop=mtcd.Stop(iterations=20), checkpoint=folder)
    resumed = train(
        LOGISTIC,
        privacy,
        data=given,
        stop=mtcd.Stop(iterations=60),
        checkpoint=folder,
        resume=True,
    )
    assert resumed.objective == whole.objective


def test_what_does_not_go_together_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"derivatives of at most 1"):
        mtcd.Privacy(mode="sealed", dp=mtcd.DP(epsilon=1.0), labels={"epsilon": 1})
    for given, words in (
        ({"epsilom": 1}, "no setting is called 'epsilom'.*epsilon"),
        ({}, "give the epsilon"),
        (3, "must be {epsilon: 2}"),
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": 101}, "promises nothing"),
        ({"epsilon": 1, "range": [1, 1]}, "the lowest and the highest"),
        ({"epsilon": 1, "range": "ab"}, "the lowest and the highest"),
        ({"epsilon": 1, "classes": [1]}, "two different classes"),
        ({"epsilon": 1, "classes": [1, "a"]}, "all be texts"),
        ({"epsilon": 1, "insecure_seeded_draws": 1}, "true or false"),
    ):
        with pytest.raises(ConfigError, match=words):
            mtcd.Privacy(labels=given)
    with pytest.raises(ConfigError, match=r"l2 must be above 0"):
        train(mtcd.Glm("logistic"), mtcd.Privacy(labels=SEEDED))
    with pytest.raises(ConfigError, match=r"not linear in the label"):
        train(mtcd.Glm("squared-hinge", l2=1.0), mtcd.Privacy(labels=SEEDED))


def test_a_config_is_refused_before_its_table_is_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"not linear in the label"):
        build(config(tmp_path, model={"kind": "huber"}))
    with pytest.raises(ConfigError, match=r"no setting is called"):
        build(config(tmp_path, privacy={"labels": {"epsilon": 2, "seed": 1}}))


def test_a_saved_model_predicts_the_same(tmp_path: Path) -> None:
    given = data()
    for model in (LOGISTIC, mtcd.Trees("logistic", min_samples=5)):
        run = train(model, mtcd.Privacy(labels=SEEDED), data=given)
        run.save(tmp_path / type(model).__name__)
        loaded = mtcd.load_run(tmp_path / type(model).__name__)
        assert (loaded.predict_proba(given) == run.predict_proba(given)).all()
