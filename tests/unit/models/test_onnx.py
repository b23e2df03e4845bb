"""Models as ONNX: a runtime computes from the files what the run predicts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import polars as pl
import pytest

torch = pytest.importorskip("torch")
from torch import Tensor, nn  # noqa: E402

import mtcd  # noqa: E402
from commands import run as command  # noqa: E402
from mtcd.models.glm.model import Glm  # noqa: E402
from mtcd.models.glm.onnx_file import finished  # noqa: E402
from mtcd.models.splitnet.aggregation import make_aggregation  # noqa: E402
from mtcd.models.splitnet.labels import class_probabilities  # noqa: E402
from mtcd.models.splitnet.onnx_files import _file_names, _Fused  # noqa: E402
from mtcd.models.splitnet.trained import TrainedSplit  # noqa: E402
from patients import CLIENTS, patients  # noqa: E402
from problems import MODELS, make_data  # noqa: E402

RNG = np.random.default_rng(2)


def opened(path: Path) -> tuple[onnxruntime.InferenceSession, dict[str, Any]]:
    session = onnxruntime.InferenceSession(path)
    return session, json.loads(session.get_modelmeta().custom_metadata_map["mtcd"])


def computed(path: Path, **inputs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    session, about = opened(path)
    declared = {output.name: output.shape for output in session.get_outputs()}
    given = {name: np.asarray(value, dtype=np.float32) for name, value in inputs.items()}
    found = dict(zip(declared, session.run(None, given), strict=True))
    assert {name: len(shape) for name, shape in declared.items()} == {
        name: out.ndim for name, out in found.items()
    }
    return found, about


# --- linear models -------------------------------------------------------------------------------


@pytest.mark.parametrize("standardise", [False, True])
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_a_linear_model(model: Glm, standardise: bool, tmp_path: Path) -> None:
    data = make_data(model, 30, [2, 3, 1], seed=4)
    how = {
        "method": mtcd.MTCD(tokens=2, hops=4),
        "stop": mtcd.Stop(iterations=100),
        "standardise": standardise,
    }
    run = mtcd.train(data, model, "path", **how)
    assert run.export_onnx(tmp_path / "model.onnx") == [tmp_path / "model.onnx"]
    X = RNG.standard_normal((40, 6)).astype(np.float32)
    found, about = computed(tmp_path / "model.onnx", X=X)
    np.testing.assert_allclose(found["decision"], run.decision(X), rtol=1e-5, atol=1e-5)
    assert about["columns"] == list(run.column_names)
    assert about["classes"] == list(run.classes)
    assert ("label" in found) == bool(run.classes)
    if run.classes:
        assert np.array(about["classes"])[found["label"]].tolist() == run.predict(X).tolist()
    assert ("probabilities" in found) == model.loss.gives_probabilities
    if model.loss.gives_probabilities:
        np.testing.assert_allclose(found["probabilities"], run.predict_proba(X), atol=1e-6)


def test_the_file_is_of_the_oldest_format_that_has_its_operators(tmp_path: Path) -> None:
    """So that older runtimes read it."""
    model = mtcd.Glm("ridge", l2=1.0)
    run = mtcd.train(
        make_data(model, 10, [2, 1], seed=4), model, "path", mtcd.STCD(), mtcd.Stop(iterations=3)
    )
    run.export_onnx(tmp_path / "model.onnx")
    file = onnx.load(tmp_path / "model.onnx")
    assert file.ir_version == onnx.helper.find_min_ir_version_for(file.opset_import)


def test_a_graph_that_no_runtime_could_read_is_an_error_here() -> None:
    node = onnx.helper.make_node("NoSuchOperator", ["X"], ["z"])
    ends = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1]) for name in "Xz"]
    graph = onnx.helper.make_graph([node], "mtcd", ends[:1], ends[1:])
    with pytest.raises(onnx.checker.ValidationError, match="NoSuchOperator"):
        finished(onnx.helper.make_model(graph), {})


def test_columns_of_several_clients_in_their_given_order_with_large_means(tmp_path: Path) -> None:
    """Scaling folded into single-precision coefficients would lose all digits of these."""
    X = (RNG.standard_normal((60, 4)) + np.array([4e6, 0, 2e6, 0])).astype(np.float32)
    y = np.array(["no", "yes"])[(X[:, 0] - 4e6 > X[:, 1]).astype(int)]
    data = mtcd.split(X, y, clients={"a": [3, 0], "b": [1, 2]})
    model = Glm("logistic", l2=0.1, intercept=True)
    run = mtcd.train(data, model, "path", mtcd.STCD(), mtcd.Stop(iterations=300), standardise=True)
    run.export_onnx(tmp_path / "model.onnx")
    found, about = computed(tmp_path / "model.onnx", X=X)
    np.testing.assert_allclose(found["decision"], run.decision(X), rtol=1e-5, atol=1e-5)
    assert np.array(about["classes"])[found["label"]].tolist() == run.predict(X).tolist()


def test_extreme_decisions_have_no_probability_that_is_not_a_number(tmp_path: Path) -> None:
    data = mtcd.synthetic("logistic", samples=30, features=2, clients=2)
    run = mtcd.train(data, Glm("logistic", l2=0.1), "path", mtcd.STCD(), mtcd.Stop(iterations=50))
    run.export_onnx(tmp_path / "model.onnx")
    X = np.array([[1e30, 1e30], [-1e30, -1e30]])
    found, _ = computed(tmp_path / "model.onnx", X=X)
    np.testing.assert_allclose(found["probabilities"].sum(axis=1), 1)


def test_prepared_columns_are_exported_only_when_asked_to(tmp_path: Path) -> None:
    table = patients(60)
    data = mtcd.split(table, table["outcome"], clients=CLIENTS, prepare="auto")
    run = mtcd.train(data, Glm("logistic", l2=1.0), "path", mtcd.STCD(), mtcd.Stop(iterations=60))
    with pytest.raises(mtcd.MtcdError, match="after_preparation=True, or --after-preparation"):
        run.export_onnx(tmp_path / "model.onnx")
    assert not (tmp_path / "model.onnx").exists()
    run.export_onnx(tmp_path / "model.onnx", after_preparation=True)
    width = opened(tmp_path / "model.onnx")[0].get_inputs()[0].shape[1]
    prepared = np.hstack(data.blocks)
    assert width == prepared.shape[1] == len(run.column_names)
    places = np.argsort(np.concatenate(data.positions))
    found, _ = computed(tmp_path / "model.onnx", X=prepared[:, places])
    np.testing.assert_allclose(found["decision"], run.decision(table), rtol=1e-5, atol=1e-5)


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    data = mtcd.synthetic("ridge", samples=20, features=2, clients=2)
    run = mtcd.train(data, Glm("ridge"), "path", mtcd.STCD(), mtcd.Stop(iterations=5))
    with pytest.raises(mtcd.MtcdError, match="cannot be written"):
        run.export_onnx(tmp_path / "no" / "such" / "model.onnx")


def test_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame = pl.DataFrame(RNG.standard_normal((40, 3)), schema=["a", "b", "y"], orient="row")
    frame.write_csv(tmp_path / "t.csv")
    (tmp_path / "c.yaml").write_text(
        f"data: {{table: {tmp_path}/t.csv, label: y, clients: 2}}\nmodel: {{kind: ridge}}\nstop: "
        f"{{iterations: 20}}\n"
    )
    assert command("train", str(tmp_path / "c.yaml"), "--out", str(tmp_path / "out"), "-q") == 0
    assert command("export", str(tmp_path / "out"), "--onnx", str(tmp_path / "m.onnx")) == 0
    assert str(tmp_path / "m.onnx") in capsys.readouterr().out
    found, about = computed(tmp_path / "m.onnx", X=frame.select("a", "b").to_numpy())
    np.testing.assert_allclose(
        found["decision"], mtcd.load_run(tmp_path / "out").predict(frame), rtol=1e-5, atol=1e-5
    )
    assert about["columns"] == ["a", "b"]
    assert command("export", str(tmp_path), "--onnx", str(tmp_path / "m.onnx")) == 2
    assert "not a run folder" in " ".join(capsys.readouterr().err.split())


# --- split networks ------------------------------------------------------------------------------


@pytest.mark.long
def test_the_networks_of_all_parties_and_the_fusion(tmp_path: Path) -> None:
    X, y = (
        RNG.standard_normal((60, 5)).astype(np.float32),
        np.array(["no", "yes"])[RNG.integers(2, size=60)],
    )
    data = mtcd.VerticalDataset({"a": X[:, :2], "b": X[:, 2:]}, y)
    nets = {
        "a": nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Dropout(0.5)),
        "b": nn.Linear(3, 2),
    }
    method, stop = mtcd.SVFL(2, stepsize=0.1, batch=20), mtcd.Stop(epochs=2)
    run = mtcd.train(data, mtcd.SplitModel(nets, nn.Linear(5, 2)), method=method, stop=stop)
    files = run.export_onnx(tmp_path / "nets")
    assert [path.name for path in files] == ["a.onnx", "b.onnx", "fusion.onnx"]
    new = {"a": RNG.standard_normal((9, 2)), "b": RNG.standard_normal((9, 3))}
    h = [computed(tmp_path / "nets" / f"{name}.onnx", X=new[name])[0]["h"] for name in new]
    found, about = computed(tmp_path / "nets" / "fusion.onnx", h_0=h[0], h_1=h[1])
    np.testing.assert_allclose(found["decision"], run.decision(new), atol=1e-5)
    np.testing.assert_allclose(found["probabilities"], run.predict_proba(new), atol=1e-5)
    assert np.array(about["classes"])[found["label"]].tolist() == run.predict(new).tolist()
    assert about["clients"] == ["a", "b"]


@pytest.mark.parametrize(
    ("clients", "names"),
    [
        (["a", "b-2"], ["a", "b-2"]),
        (["a/b", "c"], ["client_0", "client_1"]),
        (["a", "A"], ["client_0", "client_1"]),
        (["b", "Fusion"], ["client_0", "client_1"]),
        (["a" * 82], ["client_0"]),
    ],
)
def test_files_are_called_like_the_clients_if_all_names_are_good_for_files(
    clients: list[str], names: list[str]
) -> None:
    assert _file_names(clients) == {
        client: f"{name}.onnx" for client, name in zip(clients, names, strict=True)
    }


@pytest.mark.parametrize("samples", [1, 3])
@pytest.mark.parametrize("outputs", [1, 2, 3])
def test_the_fusion_gives_decision_probabilities_and_label(outputs: int, samples: int) -> None:
    classes = ("no", "yes", "maybe")[: max(outputs, 2)]
    nets, shapes = {"a": nn.Linear(1, 2), "b": nn.Linear(1, 2)}, {"a": (1,), "b": (1,)}
    trained = TrainedSplit(nets, nn.Linear(2, outputs), "sum", (2, 2), classes, shapes)
    h = [torch.randn(samples, 2) for _ in nets]
    with torch.no_grad():
        decision, probabilities, label = _Fused(
            trained, make_aggregation("sum", ["a", "b"], (2, 2))
        )(*h)
        np.testing.assert_allclose(decision, trained.fusion(h[0] + h[1]), rtol=1e-6)
    np.testing.assert_allclose(probabilities, class_probabilities(decision.numpy()), rtol=1e-5)
    assert np.array(classes)[label.numpy()].tolist() == trained.decided(decision).tolist()


class Odd(nn.Module):
    """Its path depends on the values, which no graph can express."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x) if float(x.sum()) > 0 else -self.inner(x)


def test_a_network_that_cannot_be_exported_is_told_and_values_have_no_classes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    X = RNG.standard_normal((40, 4)).astype(np.float32)
    data = mtcd.VerticalDataset({"a/b": X[:, :2], "c": X[:, 2:]}, X[:, 0] + 0.5)
    method, stop = mtcd.SVFL(2, stepsize=0.01, batch=20), mtcd.Stop(epochs=1)
    odd = mtcd.SplitModel({"a/b": Odd(), "c": nn.Linear(2, 2)}, nn.Linear(2, 1), aggregation="sum")
    with pytest.raises(mtcd.MtcdError, match="network of client 'a/b' cannot be exported"):
        mtcd.train(data, odd, method=method, stop=stop).export_onnx(tmp_path / "odd")
    assert not (tmp_path / "odd").exists()
    model = mtcd.SplitModel(
        {"a/b": nn.Linear(2, 2), "c": nn.Linear(2, 2)}, nn.Linear(2, 1), aggregation="mean"
    )
    run = mtcd.train(data, model, method=method, stop=stop)
    capsys.readouterr()
    files = run.export_onnx(tmp_path / "nets")
    assert capsys.readouterr() == ("", "")
    assert [path.name for path in files] == ["client_0.onnx", "client_1.onnx", "fusion.onnx"]
    h = [computed(path, X=X[:, 2 * k : 2 * k + 2])[0]["h"] for k, path in enumerate(files[:2])]
    found, _ = computed(files[2], h_0=h[0], h_1=h[1])
    np.testing.assert_allclose(found["decision"][:, 0], run.predict(data), atol=1e-5)
    assert list(found) == ["decision"]
