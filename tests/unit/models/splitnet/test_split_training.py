"""Split networks as a user trains them: they learn, predict, are saved; data of all kinds; what
they send."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from torch import nn

import mtcd
from mtcd.core.errors import MtcdError
from mtcd.methods.mtcd.mtcd import MTCD, STCD
from mtcd.methods.svfl.svfl import SVFL
from split_problems import SplitCase, case, normed, rows_but_seconds, same_weights, weights_of


def xor(samples: int, seed: int, names: bool = False) -> mtcd.VerticalDataset:
    """Each of two clients sees one sign; the label tells whether they agree: no sum of what each
    can tell does."""
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=(samples, 2)).astype(np.float32)
    agree = signs[:, 0] == signs[:, 1]
    return mtcd.VerticalDataset(
        {"left": signs[:, :1], "right": signs[:, 1:]},
        np.where(agree, "same", "other") if names else agree.astype(int),
    )


@pytest.mark.parametrize(
    "method", [MTCD(2, 2, 2, 0.1, batch=20, combine="cluster"), SVFL(2, 0.1, 20), STCD(2, 0.1)]
)
def test_it_learns_what_no_linear_model_can(method: Any) -> None:
    data = replace(xor(100, 0, names=True), test=xor(60, 1, names=True))
    torch.manual_seed(1)
    head = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 2))
    nets = {client: nn.Linear(1, 4) for client in data.clients}
    model = mtcd.SplitModel(nets, head, optimiser=torch.optim.Adam)
    run = mtcd.train(
        data, model, "complete", replace(method, stepsize=0.02), mtcd.Stop(iterations=200)
    )
    assert run.final.accuracy == run.final.test_accuracy == 1.0
    assert (run.predict(data.test.features) == data.test.labels).all()
    linear = mtcd.SplitModel(nets, nn.Linear(8, 2), optimiser=torch.optim.Adam)
    flat = mtcd.train(
        data, linear, "complete", replace(method, stepsize=0.02), mtcd.Stop(iterations=100)
    )
    assert flat.final.accuracy < 0.8


def test_values_are_learnt_too_and_one_output_tells_two_classes_apart() -> None:
    X = np.random.default_rng(0).standard_normal((60, 2)).astype(np.float32)
    nets = {"a": nn.Linear(1, 2), "b": nn.Linear(1, 2)}
    features = {"a": X[:, :1], "b": X[:, 1:]}
    values = mtcd.VerticalDataset(features, X @ np.array([1.5, -2.0]) + 0.25)
    run = mtcd.train(
        values,
        mtcd.SplitModel(nets, nn.Linear(4, 1)),
        method=SVFL(2, 0.05, 10),
        stop=mtcd.Stop(epochs=60),
    )
    np.testing.assert_allclose(run.predict(features), values.labels, atol=0.05)
    assert run.final.accuracy is None
    told = mtcd.VerticalDataset(features, np.where(values.labels > 0, "up", "down"))

    def logistic(outputs: Any, labels: Any) -> Any:
        return nn.functional.binary_cross_entropy_with_logits(outputs[:, 0], labels.float())

    model = mtcd.SplitModel(nets, nn.Linear(4, 1), loss=logistic)
    run = mtcd.train(told, model, method=SVFL(2, 0.2, 10), stop=mtcd.Stop(epochs=60))
    assert run.final.accuracy == pytest.approx((run.predict(features) == told.labels).mean())
    assert run.final.accuracy > 0.9


def test_a_run_is_saved_and_loaded(tmp_path: Path) -> None:
    one = case(count=10, made=normed, test=4)
    run = one.train(MTCD(2, 3, 2, 0.05, batch=5, combine="cluster"), mtcd.Stop(epochs=3))
    run.save(tmp_path / "run")
    loaded = mtcd.Run.load(tmp_path / "run", one.model)
    assert same_weights(weights_of(loaded), weights_of(run))
    assert rows_but_seconds(loaded) == rows_but_seconds(run)
    assert (loaded.ledger, loaded.status, loaded.notes) == (run.ledger, run.status, run.notes)
    assert (loaded.decision(one.data) == run.decision(one.data)).all()
    for client, module in one.model.representations.items():  # without this library
        weights = load_file(tmp_path / "run" / "model.safetensors")
        prefix = f"client/{client}/"
        part = {
            name.removeprefix(prefix): torch.tensor(w)
            for name, w in weights.items()
            if name.startswith(prefix)
        }
        module.load_state_dict(part)
        assert same_weights(module.state_dict(), run.modules[client].state_dict())
    with pytest.raises(MtcdError, match="give load_run\\(folder, model\\) the SplitModel"):
        mtcd.Run.load(tmp_path / "run")
    with pytest.raises(MtcdError, match="do not fit"):
        mtcd.Run.load(tmp_path / "run", case(widths=[2] * 4).model)
    with pytest.raises(MtcdError, match="c3"):
        mtcd.Run.load(tmp_path / "run", case(clients=3).model)
    (tmp_path / "run" / "model.safetensors").write_bytes(b"broken")
    with pytest.raises(MtcdError):
        mtcd.Run.load(tmp_path / "run", one.model)
    assert json.loads((tmp_path / "run" / "run.json").read_text())["split"]["classes"] == [0, 1, 2]


def test_whatever_the_clients_are_called(tmp_path: Path) -> None:
    data = xor(20, 0)
    features = dict(zip(("a", "a/b"), data.features.values(), strict=True))
    model = mtcd.SplitModel({"a": nn.Linear(1, 2), "a/b": nn.Linear(1, 2)}, nn.Linear(4, 2))
    run = mtcd.train(
        mtcd.VerticalDataset(features, data.labels),
        model,
        method=SVFL(1, 0.1, 5),
        stop=mtcd.Stop(epochs=1),
    )
    run.save(tmp_path / "run")
    assert same_weights(weights_of(mtcd.Run.load(tmp_path / "run", model)), weights_of(run))


def test_what_cannot_be_asked_of_a_split_network() -> None:
    one = case(count=10)
    run = one.train(SVFL(1, 0.1, 5), mtcd.Stop(epochs=1))
    with pytest.raises(MtcdError, match="modules and fusion"):
        _ = run.coefficients
    for given, words in (
        ({"c0": one.data.features["c0"]}, "'c1'"),
        (np.zeros((3, 9)), "by its name"),
        ({**one.data.features, "c0": one.data.features["c0"][:3]}, "different numbers"),
    ):
        with pytest.raises(MtcdError, match=words):
            run.predict(given)


class Listed:
    """A map-style dataset."""

    def __init__(self, values: Any) -> None:
        self.values, self.asked = values, 0

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, i: int) -> Any:
        self.asked += 1
        return self.values[i]


@pytest.mark.parametrize(
    "method", [MTCD(2, 3, 2, 0.1, batch=5, combine="cluster"), MTCD(2, 3, 1, 0.1), STCD(1, 0.1)]
)
def test_datasets_arrays_and_tensors_train_alike(method: Any) -> None:
    one = case(count=12, test=5)
    runs = []
    for kind in (
        np.asarray,
        torch.as_tensor,
        Listed,
        lambda x: Listed(torch.as_tensor(x)),
        np.float64,
    ):
        features = {client: kind(x) for client, x in one.data.features.items()}
        test = {client: kind(x) for client, x in one.data.test.features.items()}
        data = mtcd.VerticalDataset(
            features, one.data.labels, test=mtcd.VerticalDataset(test, one.data.test.labels)
        )
        runs.append(replace(one, data=data).train(method, mtcd.Stop(iterations=6)))
    for run in runs[1:]:
        assert same_weights(weights_of(run), weights_of(runs[0]))
        assert rows_but_seconds(run) == rows_but_seconds(runs[0])


def test_transforms_draw_alike_at_all_clients_once_an_iteration_and_never_in_evaluation() -> None:
    one = case(count=10, test=4)
    drawn: dict[str, list[Any]] = {client: [] for client in one.data.clients}

    def transform(client: str) -> Any:
        def flip(x: Any, generator: Any) -> Any:
            draws = torch.rand(len(x), generator=generator)
            drawn[client].append(draws.tolist())
            return torch.where(draws[:, None] < 0.5, x, -x)

        return flip

    turned = replace(
        one.data, transforms={client: transform(client) for client in one.data.clients}
    )
    T = 6
    run = replace(one, data=turned).train(
        MTCD(2, 3, 2, 0.1, batch=5, combine="cluster"), mtcd.Stop(iterations=T * 3)
    )
    first, *others = drawn.values()
    assert all(draws == first for draws in others)
    assert len(first) == T + 1  # one for each batch, however many visits and measurements there are
    assert len({tuple(draws) for draws in first}) == T + 1
    assert {len(draws) for draws in first} == {5}
    told = [run.modules[c](torch.as_tensor(one.data.features[c])) for c in one.data.clients]
    outputs = run.fusion(torch.cat(told, dim=1))
    assert run.objective == pytest.approx(
        nn.functional.cross_entropy(outputs, torch.as_tensor(one.data.labels)).item()
    )
    plain = one.train(MTCD(2, 3, 2, 0.1, batch=5, combine="cluster"), mtcd.Stop(iterations=T * 3))
    assert not same_weights(weights_of(run), weights_of(plain))
    still = replace(one.data, transforms={"c1": lambda x, generator: x})
    same = replace(one, data=still).train(
        MTCD(2, 3, 2, 0.1, batch=5, combine="cluster"), mtcd.Stop(iterations=T * 3)
    )
    assert same_weights(weights_of(same), weights_of(plain))


def test_transforms_that_fail_are_told_of_and_none_reaches_the_owners_data() -> None:
    one = case(count=10)
    for broken in (
        lambda x, g: x[:, :1],
        lambda x, g: x[:2],
        lambda x, g: None,
        lambda x, g: x[0, 99],
    ):
        data = replace(one.data, transforms={"c1": broken})
        with pytest.raises(MtcdError, match="transform of client 'c1'"):
            replace(one, data=data).train(SVFL(1, 0.1, 5), mtcd.Stop(iterations=2))
    before = {client: x.copy() for client, x in one.data.features.items()}
    data = replace(one.data, transforms={"c1": lambda x, g: x.neg_()})
    replace(one, data=data).train(SVFL(1, 0.1, 5), mtcd.Stop(iterations=3))
    assert all((one.data.features[client] == x).all() for client, x in before.items())
    # others would still hold an earlier draw
    with pytest.raises(MtcdError, match=r"set method\.batch"):
        replace(one, data=data).train(SVFL(1, 0.1), mtcd.Stop(iterations=3))


def test_arrays_that_cannot_be_written_to() -> None:
    one = case(count=10)
    for x in one.data.features.values():
        x.setflags(write=False)
    assert one.train(SVFL(1, 0.1, 5), mtcd.Stop(epochs=1)).status == "epochs"


def test_an_interrupt_leaves_the_model_that_the_clients_held() -> None:
    """Of the token that is alone too: theta_0 is with it."""
    one = case(count=10, test=4)
    for method in (STCD(2, 0.05, fusion_client="each"), MTCD(3, 4, 1, 0.05, batch=5)):
        left = [1 + 2 * 43 + 1]  # the loss is tried out once

        def interrupt(outputs: Any, labels: Any, left: list[int] = left) -> Any:
            if outputs.requires_grad:
                left[0] -= 1
                if left[0] == 0:
                    raise KeyboardInterrupt
            return nn.functional.cross_entropy(outputs, labels)

        model = replace(one.model, loss=interrupt)
        run = SplitCase(one.data, model, one.network, 0).train(method, mtcd.Stop(iterations=1000))
        assert run.status == "interrupted"
        told = [run.modules[c](torch.as_tensor(one.data.features[c])) for c in one.data.clients]
        outputs = run.fusion(torch.cat(told, dim=1))
        assert run.objective == pytest.approx(
            nn.functional.cross_entropy(outputs, torch.as_tensor(one.data.labels)).item()
        )
        if method.hops is None:  # 43 whole visits of 2 updates
            whole = one.train(method, mtcd.Stop(iterations=43))
            assert torch.equal(run.fusion.weight, whole.fusion.weight)
