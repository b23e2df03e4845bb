"""Trees, linear blocks and networks on one token."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import mtcd
from boosting import SETTINGS, samples, trained
from mtcd.core.errors import ConfigError, DataError, MtcdError
from mtcd.core.files import PARTS
from mtcd.models.trees.families.margin_net import MarginNet
from mtcd.models.trees.problem import AdditiveProblem

FAMILIES = {
    "bank": {"kind": "trees", **SETTINGS},
    "insurer": "linear",
    "lab": {"kind": "net", "hidden": [4]},
}


def three(kind: str = "values", n: int = 120) -> tuple[Any, mtcd.VerticalData]:
    X, y = samples(kind, n)
    return X, mtcd.split(X, y, {"bank": [0, 1], "insurer": [2, 3], "lab": [4, 5]})


METHODS = [mtcd.STCD(), mtcd.MTCD(clusters=[["bank"], ["insurer", "lab"]], hops=2)]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("loss", "kind"), [("squared", "values"), ("multinomial", "classes3")])
def test_the_token_is_the_sum_of_what_all_families_say(method: Any, loss: str, kind: str) -> None:
    X, data = three(kind)
    seen = []

    class Seen(mtcd.Callback):
        def on_measure(self, moment: mtcd.Moment) -> None:
            seen.append((moment.measurement.objective, moment.parameters, moment.model))

    model = mtcd.Mixed(loss, FAMILIES)
    run = mtcd.train(
        data, model, "complete", method, mtcd.Stop(iterations=9), metrics=(), callbacks=[Seen()]
    )
    problem = AdditiveProblem.of(model, data, 0)
    for objective, parameters, model_so_far in seen:
        assert problem.evaluate(parameters) == pytest.approx(objective, rel=1e-9)
        penalty = sum(problem.client(k).penalty(theta) for k, theta in enumerate(parameters))
        z = model_so_far.decision(X) - problem.shift
        assert problem.read_off(z, penalty) == pytest.approx(objective, rel=1e-9)
    if method.hops is None:
        objectives = [objective for objective, _, _ in seen]
        assert objectives == sorted(objectives, reverse=True)
    assert run.objective < 0.9 * seen[0][0]


def test_a_linear_family_alone_reaches_the_optimum_of_ridge() -> None:
    """Against the closed form, with the constant that the model starts from."""
    X, y = samples("values", 80, 4)
    run = mtcd.train(
        mtcd.split(X, y, 2),
        mtcd.Mixed("squared", {"client_0": "linear"}, default={"kind": "linear", "l2": 1.0}),
        "path",
        mtcd.STCD(local_updates=30),
        mtcd.Stop(iterations=200),
        metrics=(),
    )
    S = (X - X.mean(0)) / X.std(0)
    theta = np.linalg.solve(S.T @ S + np.eye(4), S.T @ (y - y.mean()))
    np.testing.assert_allclose(run.predict(X), S @ theta + y.mean(), atol=1e-6)


def test_a_saved_mixed_run_predicts_the_same_and_resumes(tmp_path: Path) -> None:
    X, data = three("classes")

    def train(hops: int, **more: Any) -> mtcd.Run:
        return mtcd.train(
            data,
            mtcd.Mixed("logistic", FAMILIES),
            "path",
            mtcd.STCD(),
            mtcd.Stop(iterations=hops),
            **more,
        )

    train(4, checkpoint=tmp_path / "run")
    resumed = train(9, checkpoint=tmp_path / "run", resume=True)
    whole = train(9)
    np.testing.assert_array_equal(resumed.decision(X), whole.decision(X))
    whole.save(tmp_path / "saved")
    np.testing.assert_array_equal(mtcd.load_run(tmp_path / "saved").decision(X), whole.decision(X))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"loss": "poisson", "parties": FAMILIES}, "poisson is for trees alone.*insurer"),
        (
            {"loss": "squared", "parties": {**FAMILIES, "lab": "forest"}},
            "no family is called 'forest'",
        ),
        (
            {"loss": "squared", "parties": {"bank": {"kind": "trees", "dept": 3}}},
            "no setting 'dept'.*'depth'",
        ),
        ({"loss": "squared", "parties": {"bank": 3}}, "the family of 'bank' must be a name"),
        ({"loss": "squared", "parties": {}}, "name at least one party"),
        (
            {"loss": "squared", "parties": {"lab": {"kind": "net", "hidden": 3}}},
            "hidden must be a list",
        ),
        (
            {"loss": "squared", "parties": {"lab": {"kind": "net", "hidden": [0]}}},
            "hidden must be 1 or more",
        ),
    ],
)
def test_families_that_cannot_be_are_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        mtcd.Mixed(**given)


def test_parties_and_methods_that_do_not_fit_are_refused() -> None:
    _, data = three()
    stop = mtcd.Stop(iterations=3)
    with pytest.raises(ConfigError, match="no family for 'lab'"):
        mtcd.train(
            data,
            mtcd.Mixed("squared", {"bank": "trees", "insurer": "linear"}),
            method=mtcd.STCD(),
            stop=stop,
        )
    with pytest.raises(ConfigError, match="names 'bnak', which is no party; did you mean 'bank'"):
        mtcd.train(
            data, mtcd.Mixed("squared", {"bnak": "trees"}, "linear"), method=mtcd.STCD(), stop=stop
        )
    with pytest.raises(ConfigError, match="copies cannot be averaged"):
        mtcd.train(data, mtcd.Mixed("squared", FAMILIES), method=mtcd.MTCD(tokens=2), stop=stop)
    X, y = samples("values", 40)
    X[0, 5] = np.nan
    held = mtcd.split(X, y, {"bank": [0, 1], "insurer": [2, 3], "lab": [4, 5]}, prepare="trees")
    with pytest.raises(DataError, match="'insurer' are prepared for trees"):
        mtcd.train(held, mtcd.Mixed("squared", FAMILIES), method=mtcd.STCD(), stop=stop)


@pytest.mark.parametrize("family", ["linear", {"kind": "net", "hidden": [3]}])
def test_a_sample_of_weight_two_is_two_samples_also_when_columns_are_scaled(family: Any) -> None:
    X, y = samples("values", n=60)
    weights = np.random.default_rng(3).integers(0, 4, 60)
    model = mtcd.Mixed("squared", {"client_0": family}, default="linear")
    weighted = trained(mtcd.split(X, y, 2, weights=weights.astype(float)), model, 8)
    copied = trained(mtcd.split(np.repeat(X, weights, axis=0), np.repeat(y, weights), 2), model, 8)
    np.testing.assert_allclose(
        weighted.parts["client_1"].scale.means, np.repeat(X, weights, axis=0).mean(axis=0)[3:]
    )
    np.testing.assert_allclose(weighted.decision(X), copied.decision(X), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("outputs", [1, 3])
def test_the_margins_of_a_small_network_and_their_derivative(outputs: int) -> None:
    net, rng = MarginNet(2, [4, 3], outputs), np.random.default_rng(0)
    assert net.size == 2 * 4 + 4 + 4 * 3 + 3 + 3 * outputs + outputs
    before = torch.get_rng_state()
    theta, X = net.initial(7), rng.standard_normal((5, 2))
    assert torch.equal(before, torch.get_rng_state())
    last = 3 * outputs + outputs
    assert (theta[:-last] != 0).all()
    assert (theta[-last:] == 0).all()
    assert (net.initial(7) == theta).all()
    assert (net.initial(8) != theta)[:-last].all()
    shape = (5,) if outputs == 1 else (5, outputs)
    assert (net.outputs(theta, X) == np.zeros(shape)).all()
    theta, slope = rng.standard_normal(net.size), rng.standard_normal(shape)
    W, b, V, c, U, d = np.split(theta, np.cumsum([8, 4, 12, 3, 3 * outputs]))
    inner = np.maximum(np.maximum(X @ W.reshape(4, 2).T + b, 0) @ V.reshape(3, 4).T + c, 0)
    by_hand = inner @ U.reshape(outputs, 3).T + d
    margins, back = net.pullback(theta, X)
    np.testing.assert_allclose(margins, by_hand.reshape(shape))
    steps = 1e-6 * np.eye(net.size)
    numeric = [
        ((net.outputs(theta + d, X) - net.outputs(theta - d, X)) * slope).sum() / 2e-6
        for d in steps
    ]
    np.testing.assert_allclose(back(slope), numeric, atol=1e-6)


class Opened:
    """An object that runs code where it is read."""

    def __reduce__(self) -> Any:
        return (exec, ("raise SystemExit('read')",))


def test_a_folder_with_objects_in_place_of_arrays_is_refused_and_not_run(tmp_path: Path) -> None:
    _, data = three()
    run = trained(data, mtcd.Mixed("squared", FAMILIES), 3)
    run.save(tmp_path)
    with np.load(tmp_path / PARTS, allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
    arrays["constant"] = np.array([Opened()], dtype=object)
    np.savez(tmp_path / PARTS, **arrays)
    with pytest.raises(MtcdError, match="allow_pickle"):
        mtcd.load_run(tmp_path)
