"""The method that is taken where none is given: one function for Python, the command line and the
estimators."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import mtcd
from commands import outcome
from commands import run as command
from mtcd.config.build import build
from mtcd.config.read import check_config
from mtcd.core.errors import ConfigError, NetworkError
from mtcd.federation.file import check_keys, method_of
from mtcd.methods.method import Method
from mtcd.privacy.masked.masked import with_masks
from mtcd.privacy.sealed.mode import sealed_tours

CONJUGATE = mtcd.STCD(walk="tour", acceleration="conjugate", local_solver="majorise")
MOMENTUM = mtcd.STCD(local_updates=10, walk="tour", acceleration="momentum")
TOUR = mtcd.STCD(walk="tour")

DATA: dict[str, Any] = {"synthetic": "logistic", "samples": 60, "features": 8, "clients": 4}
TREES = mtcd.Trees("logistic", min_samples=5)
MIXED = mtcd.Mixed(
    "logistic",
    {"client_0": "linear", "client_1": "trees", "client_2": "trees", "client_3": "linear"},
)


def made(**changes: Any) -> Any:
    return mtcd.synthetic("logistic", 60, 8, changes.pop("clients", 4), **changes)


def trained(model: Any, network: Any = "complete", **more: Any) -> mtcd.Run:
    return mtcd.train(made(), model, network, stop=mtcd.Stop(iterations=12), **more)


@pytest.mark.parametrize(
    ("model", "method"),
    [
        (mtcd.Glm("logistic", l2=1.0), CONJUGATE),
        (mtcd.Glm("squared-hinge", l2=1.0, intercept=True, class_weight="balanced"), CONJUGATE),
        (mtcd.Glm("logistic", l1=0.3), MOMENTUM),
        (TREES, TOUR),
        (MIXED, TOUR),
    ],
    ids=["smooth", "weighted", "l1", "trees", "mixed"],
)
def test_train_takes_the_method_of_the_model_and_says_which(
    model: Any, method: Method, tmp_path: Path
) -> None:
    run, asked = trained(model), trained(model, method=method)
    assert run.history["objective"].tolist() == asked.history["objective"].tolist()
    assert run.method == method.describe()
    assert run.notes == (f"No method was given: {method.describe()} was taken.", *asked.notes)
    run.save(tmp_path / "run")
    assert mtcd.load_run(tmp_path / "run").notes == run.notes


def test_without_a_model_it_is_that_of_ridge() -> None:
    run = mtcd.train(mtcd.synthetic("ridge", 60, 8, 4), stop=mtcd.Stop(gap=1e-8, iterations=500))
    assert run.status == "converged"
    assert run.method == CONJUGATE.describe()


@pytest.mark.parametrize("clients", [1, 2, 5])
@pytest.mark.parametrize("network", ["path", "complete", "empty"])
@pytest.mark.parametrize("l1", [0.0, 0.2])
@pytest.mark.parametrize("kind", ["logistic", "multinomial"])
def test_the_default_reaches_the_optimum_on_any_network(
    kind: str, l1: float, network: str, clients: int
) -> None:
    data = mtcd.synthetic(kind, 60, 8, clients, seed=3)
    model = mtcd.Glm(kind, l1=l1, l2=1.0, intercept=True)
    run = mtcd.train(data, model, network, stop=mtcd.Stop(gap=1e-5, iterations=50_000))
    assert run.status == "converged"
    pieces = network == "empty" and clients > 1
    assert ("the network is in pieces, which a server joins" in run.notes[0]) == pieces
    assert run.method.startswith("MTCD" if pieces else "STCD")


def test_the_default_goes_with_clients_that_leave_and_with_a_start() -> None:
    data, model = made(), mtcd.Glm("logistic", l2=1.0)
    changes = [mtcd.Change(8, leave=["client_2"]), mtcd.Change(20, join=["client_2"])]
    network = mtcd.with_changes(mtcd.make_network("complete", data.clients), changes)
    run = mtcd.train(data, model, network, stop=mtcd.Stop(gap=1e-6, iterations=2000))
    assert run.status == "converged"
    again = mtcd.train(data, model, start=run, stop=mtcd.Stop(gap=1e-6, iterations=2000))
    assert again.status == "converged"
    assert again.method == run.method


@pytest.mark.parametrize(
    ("privacy", "model", "method"),
    [
        (
            mtcd.Privacy(mode="sealed"),
            mtcd.Glm("logistic", l2=1.0),
            "Sealed tours, M=20, key at the label holder",
        ),
        (
            mtcd.Privacy(mode="sealed", dp=mtcd.DP(epsilon=3.0, tours=3)),
            mtcd.Glm("logistic", l2=1.0),
            "Private tours, T=3, key at the server",
        ),
        (mtcd.Privacy(aggregation="masked"), mtcd.Glm("logistic", l1=0.1), "SVFL, Q=1"),
        (mtcd.Privacy(aggregation="double-masked"), mtcd.Glm("logistic", l2=1.0), "SVFL, Q=1"),
        (mtcd.Privacy(aggregation="masked"), TREES, "MTCD, Γ=2, S=16, Q=1, average"),
    ],
    ids=["sealed", "dp", "masked", "double-masked", "masked trees"],
)
def test_privacy_takes_a_method_that_can_keep_it(
    privacy: mtcd.Privacy, model: Any, method: str
) -> None:
    run = mtcd.train(made(), model, privacy=privacy, stop=mtcd.Stop(iterations=2))
    assert run.method == method
    assert run.notes[0] == f"No method was given: {method} was taken."


def test_a_split_network_needs_a_step_size() -> None:
    nn = pytest.importorskip("torch").nn
    nets = mtcd.SplitModel({f"client_{k}": nn.Linear(2, 2) for k in range(4)}, nn.Linear(8, 2))
    with pytest.raises(
        ConfigError, match=r"give a number for split networks, such as method=mtcd\.MTCD\(stepsize="
    ):
        mtcd.train(made(), nets)


@pytest.mark.parametrize(
    ("model", "more", "method"),
    [
        ({"kind": "logistic", "l2": 1}, {}, CONJUGATE),
        ({"kind": "logistic", "l1": 0.3}, {}, MOMENTUM),
        ({"kind": "trees", "loss": "logistic"}, {}, TOUR),
        (
            {
                "kind": "mixed",
                "loss": "logistic",
                "parties": {"client_0": "linear"},
                "default": "trees",
            },
            {},
            TOUR,
        ),
        ({"kind": "split", "client": "mlp"}, {}, mtcd.MTCD()),
        ({"kind": "logistic", "l2": 1}, {"network": {"kind": "empty"}}, mtcd.MTCD()),
        ({"kind": "logistic", "l2": 1}, {"method": {}}, mtcd.MTCD()),
        (
            {"kind": "logistic", "l2": 1},
            {"method": {"local_updates": 3}},
            mtcd.MTCD(local_updates=3),
        ),
        ({"kind": "logistic", "l2": 1}, {"method": {"kind": "stcd"}}, mtcd.STCD()),
    ],
)
def test_a_config_takes_the_same_and_one_with_a_method_is_unchanged(
    model: dict[str, Any], more: dict[str, Any], method: Method
) -> None:
    if model["kind"] == "split":
        pytest.importorskip("torch")
    setup = build(check_config({"data": DATA, "model": model, **more}))
    assert setup.method == method
    assert setup.notes == ()


@pytest.mark.parametrize("network", ["path", "empty"])
def test_the_command_line_says_which_and_writes_it_into_the_folder(
    network: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = {"data": DATA, "model": {"kind": "logistic", "l2": 1}, "network": {"kind": network}}
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(content | {"stop": {"iterations": 32}}))
    assert command("train", str(tmp_path / "c.yaml"), "--out", str(tmp_path / "run")) == 0
    shown = " ".join(capsys.readouterr().err.split())
    taken = CONJUGATE if network == "path" else mtcd.MTCD()
    assert f"No method was given: {taken.describe()} was taken" in shown
    assert (
        mtcd.load_run(tmp_path / "run")
        .notes[0]
        .startswith(f"No method was given: {taken.describe()}")
    )

    # the folder has the method in full: training with its config repeats the run
    assert (
        command(
            "train",
            str(tmp_path / "run" / "config.yaml"),
            "--out",
            str(tmp_path / "again"),
            "--json",
        )
        == 0
    )
    summary = outcome(capsys)
    assert summary["method"] == taken.describe()
    assert not any("No method" in note for note in summary["notes"])
    first = mtcd.load_run(tmp_path / "run")
    assert first.objective == summary["objective"]


def test_a_path_takes_one_method_that_suits_its_penalty(tmp_path: Path) -> None:
    found = mtcd.path(made(), mtcd.Glm("logistic"), l1=[0.5, 0.0], stop=mtcd.Stop(iterations=12))
    assert {run.method for run in found.runs} == {MOMENTUM.describe()}
    assert all(run.notes[0].startswith("No method was given") for run in found.runs)
    smooth = mtcd.path(made(), mtcd.Glm("logistic"), l2=[0.5, 0.1], stop=mtcd.Stop(iterations=12))
    assert {run.method for run in smooth.runs} == {CONJUGATE.describe()}

    content = {"data": DATA, "model": {"kind": "logistic"}, "stop": {"iterations": 12}}
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(content))
    out = tmp_path / "path"
    assert (
        command("path", str(tmp_path / "c.yaml"), "--over", "model.l1=0.5,0.1", "--out", str(out))
        == 0
    )
    assert yaml.safe_load((out / "config.yaml").read_text())["method"]["acceleration"] == "momentum"


def test_estimators_take_the_same() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 6))
    y = X[:, 0] + 0.3 * rng.standard_normal(60) > 0
    for estimator, method in (
        (mtcd.MTCDClassifier(), CONJUGATE),
        (mtcd.MTCDClassifier(l1=0.5), MOMENTUM),
        (mtcd.TreesClassifier(max_iter=5, min_samples=5), TOUR),
    ):
        run = estimator.fit(X, y).run_
        assert run.method == method.describe()
        assert run.notes[0] == f"No method was given: {method.describe()} was taken."
    assert "No method" not in "".join(mtcd.MTCDClassifier(method=CONJUGATE).fit(X, y).run_.notes)  # type: ignore[union-attr]


FEDERATION: dict[str, Any] = {
    "name": "f",
    "parties": {"a": "127.0.0.1:7001", "b": "127.0.0.1:7002", "c": "127.0.0.1:7003"},
    "labels": {"held_by": "a"},
    "model": {"kind": "logistic", "l2": 1},
}


@pytest.mark.parametrize(
    ("more", "method"),
    [
        ({}, mtcd.STCD()),  # tokens without acceleration go round a party that is down
        ({"server": "127.0.0.1:7000"}, mtcd.MTCD()),
        ({"method": {"local_updates": 5}}, mtcd.STCD(local_updates=5)),
        ({"privacy": {"mode": "sealed"}}, sealed_tours(mtcd.STCD(walk="tour"))),
        (
            {"privacy": {"mode": "sealed"}, "server": "127.0.0.1:7000"},
            sealed_tours(mtcd.MTCD(walk="tour")),
        ),
        (
            {"privacy": {"aggregation": "masked"}, "server": "127.0.0.1:7000"},
            with_masks(mtcd.SVFL()),
        ),
    ],
)
def test_federations_have_methods_that_go_on_without_a_party(
    more: dict[str, Any], method: Method
) -> None:
    assert method_of(check_keys(FEDERATION | more, "f.yaml"))[0] == method


def test_a_network_in_pieces_cannot_be_sealed() -> None:
    with pytest.raises(NetworkError, match="connected"):
        mtcd.train(made(), mtcd.Glm("logistic"), "empty", privacy=mtcd.Privacy(mode="sealed"))
