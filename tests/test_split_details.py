"""Single decisions of split networks: names of optimisers, and what checkpoints and journals may hold."""

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from mtcd.errors import ConfigError, MtcdError, NetworkError  # noqa: E402
from mtcd.federation.delivery.tensors import DTYPES, tensor_bytes, tensor_of  # noqa: E402
from mtcd.methods.mtcd import STCD  # noqa: E402
from mtcd.network.topology import make_network  # noqa: E402
from mtcd.splitnet.checkpoint import Checkpoint  # noqa: E402
from mtcd.splitnet.optimiser import named_optimiser  # noqa: E402
from mtcd.splitnet.outputs import class_probabilities  # noqa: E402


@pytest.mark.parametrize(("kind", "meant"), [("adam", "'Adam'"), ("sgd", "'SGD'"), ("Adan", "'Adam'")])
def test_an_optimiser_by_a_wrong_name(kind: str, meant: str) -> None:
    with pytest.raises(ConfigError, match=f"torch.optim has no '{kind}'; did you mean {meant}"):
        named_optimiser(kind)


def test_a_checkpoint_holds_finite_facts_and_comes_back_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    with pytest.raises(ValueError, match="JSON"):
        Checkpoint({}, {"objective": float("nan")}).write(path)
    assert not path.exists()
    Checkpoint({"a": torch.arange(6.0).reshape(2, 3).T}, {"iteration": 3}).write(path)
    again = Checkpoint.read(path)
    assert again.facts == {"iteration": 3}
    assert again.tensors["a"].tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]


def test_outputs_as_probabilities_of_classes() -> None:
    two, three = np.array([0.3, -2.0]), np.array([[0.0, 1.0, -1.0], [5.0, 5.0, 2.0]])
    sigmoid = 1 / (1 + np.exp(-two))
    for one_output in (two, two[:, None]):
        np.testing.assert_allclose(class_probabilities(one_output), np.column_stack([1 - sigmoid, sigmoid]))
    np.testing.assert_allclose(class_probabilities(three), np.exp(three) / np.exp(three).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(class_probabilities(three[:, :2]).sum(axis=1), 1.0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_tensors_of_any_layout_are_kept_whole(dtype: str) -> None:
    value = torch.arange(6).reshape(2, 3).T.to(getattr(torch, dtype))
    for one in (value, value[:0], value[0, 0]):
        kind, shape, data = tensor_bytes(one)
        again = tensor_of(kind, shape, data.tobytes())
        assert (kind, tuple(shape)) == (dtype, tuple(one.shape))
        assert again.dtype == one.dtype
        assert torch.equal(again, one)


def test_other_tensors_are_refused() -> None:
    with pytest.raises(MtcdError, match="complex64 cannot be kept"):
        tensor_bytes(torch.zeros(2, dtype=torch.complex64))
    with pytest.raises(MtcdError, match="of another version"):
        tensor_of("complex64", [2], bytes(16))


def test_theta_0_is_updated_at_one_client_or_at_each() -> None:
    cycle = make_network("cycle", [f"c{k}" for k in range(5)])
    assert STCD()._fusing(cycle) == {0}
    assert STCD(fusion_client="c3")._fusing(cycle) == STCD(fusion_client=3)._fusing(cycle) == {3}
    assert STCD(fusion_client="each")._fusing(cycle) == {0, 1, 2, 3, 4}
    assert STCD(fusion_client="each")._fusing(make_network("path", ["a", "each", "b"])) == {1}
    with pytest.raises(NetworkError, match="fusion_client: no client is called 'c9'"):
        STCD(fusion_client="c9")._fusing(cycle)
