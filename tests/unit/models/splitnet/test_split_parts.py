"""Parts of split networks, each by itself: aggregations, batches, modules and the plain combination
of copies."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from mtcd.core.errors import ConfigError, DataError, MtcdError
from mtcd.models.splitnet.aggregation import AGGREGATIONS, make_aggregation
from mtcd.models.splitnet.feed import BatchRows, Feed, Stored, as_tensor, draw_seed, make_source
from mtcd.models.splitnet.modules import Trainable, draws_numbers
from mtcd.models.splitnet.optimiser import plain_sgd
from mtcd.protocol.batches import Batches
from mtcd.protocol.codec.records import TENSOR_DTYPES, tensor_bytes, tensor_of
from mtcd.testing.references.splitnet import PartyWeights, combine

CPU = torch.device("cpu")


def blocks(*values: float) -> list[PartyWeights]:
    return [
        PartyWeights({"w": torch.tensor([value])}, {"w": torch.tensor([10 * value])})
        for value in values
    ]


@pytest.mark.parametrize(
    ("rule", "came", "expected"),
    [
        ("average", [True, False, False], 4.0),
        ("visitors", [True, False, False], 1.0),
        ("visitors", [True, False, True], 4.5),
        ("visitors", [False, False, False], 4.0),
        ("cluster", [False, True, False], 3.0),
    ],
)
def test_copies_count_alike_on_average_and_those_of_the_visitors_otherwise(
    rule: str, came: list[bool], expected: float
) -> None:
    found = combine(rule, blocks(1.0, 3.0, 8.0), came)
    assert found.weights["w"].item() == pytest.approx(expected)
    assert found.velocity["w"].item() == pytest.approx(10 * expected)


@pytest.mark.parametrize(
    ("module", "draws"),
    [
        (nn.Linear(3, 2), False),
        (nn.Sequential(nn.Linear(3, 2), nn.Dropout(0.5)), True),
        (nn.BatchNorm1d(3), False),
    ],
    ids=["linear", "dropout", "batch norm"],
)
def test_modules_that_draw_random_numbers_are_found_and_left_as_they_are(
    module: nn.Module, draws: bool
) -> None:
    module.eval()
    before, state = torch.get_rng_state(), [value.clone() for value in module.state_dict().values()]
    assert draws_numbers(module, torch.ones(4, 3)) == draws
    assert torch.equal(before, torch.get_rng_state())
    assert all(
        torch.equal(one, other)
        for one, other in zip(module.state_dict().values(), state, strict=True)
    )
    assert not module.training


# --- aggregations --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "parts", "H"),
    [
        ("sum", [[1, 2], [10, 20], [100, 200]], [111, 222]),
        ("mean", [[1, 2], [10, 20], [100, 200]], [37, 74]),
        ("concat", [[1], [10, 20, 30], [100, 200]], [1, 10, 20, 30, 100, 200]),
        ("sum", [[1, 2]], [1, 2]),
    ],
)
def test_a_representation_is_taken_out_of_the_aggregate_and_another_put_in(
    name: str, parts: Any, H: Any
) -> None:
    held = [torch.tensor([part, [-2.0 * x for x in part]]) for part in parts]
    expected = torch.tensor([H, [-2.0 * x for x in H]])
    aggregation = make_aggregation(
        name, [f"c{k}" for k in range(len(parts))], [len(part) for part in parts]
    )
    assert aggregation.width == len(H)
    np.testing.assert_allclose(aggregation.of(held), expected)
    for k, h in enumerate(held):
        others = [part if i != k else torch.zeros_like(part) for i, part in enumerate(held)]
        rest = aggregation.rest(expected, k, h)
        if aggregation.sums:
            np.testing.assert_allclose(rest, aggregation.of(others), rtol=1e-5)
        changed = [part if i != k else part + 7 for i, part in enumerate(held)]
        np.testing.assert_allclose(
            aggregation.put(rest, k, h + 7), aggregation.of(changed), rtol=1e-5
        )


def test_sums_need_one_width_and_are_known_as_such() -> None:
    assert {name: kind.sums for name, kind in AGGREGATIONS.items()} == {
        "sum": True,
        "mean": True,
        "concat": False,
    }
    for name in ("sum", "mean"):
        with pytest.raises(ConfigError, match="a: 2, b: 3"):
            make_aggregation(name, ["a", "b"], [2, 3])


# --- samples in batches --------------------------------------------------------------------------


class Counted(Stored):
    """Counts how often it is read."""

    reads = 0

    def rows(self, rows: Any) -> Any:
        self.reads += 1
        return super().rows(rows)


def feed(size: int | None, transform: Any = None, seed: int = 3) -> tuple[Feed, Counted]:
    source = Counted(torch.arange(14.0).reshape(7, 2))
    return Feed(source, BatchRows(Batches(7, size, seed), CPU), transform, "ann"), source


def test_the_rows_of_a_batch_are_those_of_all_parties_in_any_order_of_iterations() -> None:
    batches = Batches(7, 2, seed=3)
    rows = BatchRows(batches, CPU)
    for t in (4, 5, 0, 2, 1, 3, 8, 4):
        assert rows.at(t).tolist() == batches.rows(t).tolist()
    assert BatchRows(Batches(7, None, 3), CPU).at(2) is None


def test_a_batch_is_read_once_in_an_iteration_and_all_samples_once_for_all() -> None:
    mini, source = feed(3)
    for t, reads in ((1, 1), (1, 1), (2, 2), (2, 2), (0, 3)):
        assert torch.equal(mini.batch(t), source.values[Batches(7, 3, 3).rows(t)])
        assert source.reads == reads
    full, source = feed(None)
    for t in (1, 1, 2, 0):
        assert full.batch(t) is source.values
    assert source.reads == 1


@pytest.mark.parametrize("size", [None, 3])
def test_transforms_draw_by_seed_and_iteration_and_leave_the_samples_alone(
    size: int | None,
) -> None:
    def shift(x: Any, generator: Any) -> Any:
        return x.add_(torch.rand((), generator=generator))

    first, source = feed(size, shift)
    found = {t: first.batch(t).clone() for t in (0, 1, 1)}
    assert source.reads == 2
    assert torch.equal(source.values, torch.arange(14.0).reshape(7, 2))
    assert torch.equal(feed(size, shift)[0].batch(1), found[1])
    rows = slice(None) if size is None else Batches(7, 3, 3).rows(1)
    draws = torch.rand((), generator=torch.Generator().manual_seed(draw_seed(3, "transform", 1)))
    np.testing.assert_allclose(found[1], source.values[rows] + draws)


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (lambda x, g: x[:, :1], r"made \(3, 1\) of \(3, 2\)"),
        (lambda x, g: x.tolist(), r"made list of \(3, 2\)"),
        (lambda x, g: 1 / 0, "failed: ZeroDivisionError: division by zero"),
    ],
)
def test_a_transform_that_does_not_keep_the_shape_is_told(broken: Any, says: str) -> None:
    with pytest.raises(DataError, match=f"transform of client 'ann' .*{says}"):
        feed(3, broken)[0].batch(0)


def test_seeds_of_draws_stay_the_same_from_version_to_version() -> None:
    assert draw_seed(0, "network", 1) == 1681278953693721942
    assert draw_seed(0, "network", 2) != draw_seed(0, "network", 1) != draw_seed(1, "network", 1)


def test_samples_become_tensors_of_single_precision() -> None:
    for dtype in (torch.float64, torch.float16, torch.bfloat16, torch.float32):
        assert as_tensor(torch.ones(2, dtype=dtype)).dtype == torch.float32
    for dtype in (torch.int64, torch.uint8, torch.bool):
        assert as_tensor(torch.ones(2, dtype=dtype)).dtype == dtype
    fixed = np.arange(4.0)[::-1]
    fixed.setflags(write=False)
    assert as_tensor(fixed).tolist() == [3.0, 2.0, 1.0, 0.0]
    assert (as_tensor(0.5).dtype, as_tensor(2).dtype) == (torch.float32, torch.int64)
    with pytest.raises(TypeError, match="got list"):
        as_tensor([1.0])


def test_a_dataset_is_read_by_its_rows_and_an_array_is_held() -> None:
    values = [np.array([float(i), 2.0 * i]) for i in range(4)]
    source = make_source(values, "ann", CPU)
    assert source.rows(torch.tensor([3, 1])).tolist() == [[3.0, 6.0], [1.0, 2.0]]
    assert source.rows(None).tolist() == [[float(i), 2.0 * i] for i in range(4)]
    for held in (np.stack(values), torch.as_tensor(np.stack(values))):
        stored = make_source(held, "ann", CPU)
        assert isinstance(stored, Stored)
        assert stored.rows(torch.tensor([3, 1])).tolist() == [[3.0, 6.0], [1.0, 2.0]]
        assert stored.rows(None).dtype == torch.float32
    with pytest.raises(DataError, match="dataset of client 'ann' .* of the same shape"):
        make_source([np.ones(2), np.ones(3)], "ann", CPU).rows(None)


# --- modules with their optimisers ---------------------------------------------------------------


def normed() -> nn.Module:
    return nn.Sequential(nn.BatchNorm1d(2, momentum=0.3), nn.Linear(2, 1))


def trainable(module: nn.Module, optimiser: Any = plain_sgd) -> Trainable:
    return Trainable(module, CPU, optimiser)


def test_statistics_are_updated_within_tracking_alone() -> None:
    one, x = trainable(normed()), torch.tensor([[1.0, 2.0], [3.0, 6.0]])
    norm = one.norms[0]
    one.module(x)
    with one.tracking(False):
        one.module(x)
    assert (int(norm.num_batches_tracked), norm.running_mean.tolist()) == (0, [0.0, 0.0])
    with one.tracking(True):
        one.module(x)
    one.module(x)
    assert int(norm.num_batches_tracked) == 1
    np.testing.assert_allclose(norm.running_mean, 0.3 * x.mean(dim=0))
    done = one.finished()
    assert done[0].track_running_stats
    assert not done.training
    assert one.module.training
    assert not norm.track_running_stats


def test_instance_norm_keeps_its_statistics_likewise() -> None:
    one, x = (
        trainable(nn.InstanceNorm1d(2, momentum=0.3, track_running_stats=True)),
        torch.arange(12.0).reshape(2, 2, 3),
    )
    norm = one.norms[0]
    for track, mean in ((False, 0.0), (True, 0.3 * x[:, 0].mean()), (False, 0.3 * x[:, 0].mean())):
        with one.tracking(track):
            one.module(x)
        assert norm.running_mean[0].item() == pytest.approx(float(mean))
    assert one.finished().momentum == 0.3


def test_evaluation_has_no_gradients_and_ends_in_training() -> None:
    one = trainable(normed())
    with one.evaluating():
        assert not one.module.training
        assert not one.module(torch.ones(1, 2)).requires_grad
    assert one.module.training


def test_frozen_parameters_are_left_out_and_unused_ones_have_gradient_0() -> None:
    module = nn.Linear(2, 3)
    module.register_parameter("unused", nn.Parameter(torch.ones(4)))
    module.bias.requires_grad_(False)
    one = trainable(module)
    assert one.size == 2 * 3 + 4
    gradients = one.gradients(one.module(torch.ones(1, 2)).sum())
    assert [g.tolist() for g in gradients] == [[[1.0, 1.0]] * 3, [0.0] * 4]


def test_steps_have_the_size_that_was_set_last_and_0_before() -> None:
    one = trainable(nn.Linear(1, 1, bias=False))
    one.put([torch.tensor([[1.0]])])
    for eta, expected in ((None, 1.0), (0.5, 0.0), (None, -1.0)):
        one.move([torch.tensor([[2.0]])], eta)
        assert one.values()[0].item() == expected
    nothing = trainable(nn.Identity())
    nothing.move([], 0.1)
    nothing.put([])
    nothing.set_rate(0.1)
    assert (nothing.optimiser, nothing.size, nothing.values()) == (None, 0, [])


def test_a_complete_state_comes_back_and_copies_are_no_views() -> None:
    first = trainable(
        normed(), lambda parameters, lr: torch.optim.SGD(parameters, lr=lr, momentum=0.9)
    )
    with first.tracking(True):
        first.module(torch.tensor([[1.0, 2.0], [3.0, 6.0]]))
    first.move([torch.full_like(p, float(i + 1)) for i, p in enumerate(first.parameters)], 0.5)
    kept = first.full_state()
    assert {
        "parameter.0",
        "parameter.3",
        "optimiser.3.momentum_buffer",
        "buffer.0.running_var",
    } <= kept.keys()
    before = {name: value.clone() for name, value in kept.items()}
    first.move([torch.ones_like(p) for p in first.parameters], 0.5)
    first.norms[0].running_mean.zero_()
    assert all(torch.equal(kept[name], value) for name, value in before.items())
    first.restore(kept)
    assert all(torch.equal(first.full_state()[name], value) for name, value in before.items())


def test_weights_are_the_modules_own_and_are_copied_into_others() -> None:
    one, other = trainable(normed()), trainable(normed())
    own = one.weights()
    assert own["parameter.0"].data_ptr() == one.parameters[0].data_ptr()
    other.load_weights(own)
    assert all(torch.equal(value, own[name]) for name, value in other.weights().items())
    one.load_weights(own)
    assert one.weights().keys() == {*own}
    with torch.no_grad():
        one.parameters[0].add_(1.0)
    assert not torch.equal(other.weights()["parameter.0"], own["parameter.0"])


def test_pictures_have_their_channels_last_and_rows_stay_as_they_are() -> None:
    one, pictures, rows = (
        trainable(nn.Conv2d(3, 2, 3)),
        torch.ones(2, 3, 4, 5),
        torch.ones(2, 3)[:, ::2],
    )
    one.choose_layout(pictures)
    assert one.laid_out(pictures).is_contiguous(memory_format=torch.channels_last)
    assert one.laid_out(rows) is rows
    assert one.parameters[0].is_contiguous(memory_format=torch.channels_last)
    assert one.finished().weight.is_contiguous()
    flat = trainable(nn.Linear(3, 2))
    flat.choose_layout(pictures)  # a linear layer fails on them
    assert flat.laid_out(pictures).is_contiguous()


@pytest.mark.parametrize("dtype", TENSOR_DTYPES)
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
