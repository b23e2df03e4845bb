"""The built-in networks: shapes, sizes, that all of them learns, and what they must not depend
on."""

import inspect
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from mtcd.core.errors import ConfigError
from mtcd.models.splitnet.nets import FUSIONS, NETS, linear, mlp, mlp_head, mvcnn, resnet18
from mtcd.models.splitnet.nets.resnet import ResidualBlock

SHAPES = {"resnet18": (3, 16, 16), "mvcnn": (1, 32, 32), "mlp": (7,)}


@pytest.fixture(autouse=True)
def _seeded_and_on_one_core() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    yield
    torch.set_num_threads(threads)


def parameters(net: Any) -> int:
    return sum(weights.numel() for weights in net.parameters())


def test_resnet18_has_the_well_known_number_of_parameters() -> None:
    assert parameters(resnet18(width=10)) == 11_173_962
    assert parameters(resnet18(width=10, channels=1)) == 11_173_962 - 2 * 64 * 9
    assert parameters(resnet18(width=10, shape=(1, 16, 32))) == 11_173_962 - 2 * 64 * 9


def test_resnet18_halves_the_picture_three_times() -> None:
    net = resnet18().eval()
    sizes = []
    for layer in net:
        layer.register_forward_hook(lambda _, given, out: sizes.append(tuple(out.shape[1:])))
    with torch.no_grad():
        net(torch.randn(1, 3, 32, 32))
    blocks = sizes[3:-3]
    assert blocks == [
        (c, s, s) for c, s in ((64, 32), (128, 16), (256, 8), (512, 4)) for _ in range(2)
    ]


@pytest.mark.parametrize("size", [(16, 16), (32, 16), (16, 32), (32, 32)])
def test_resnet18_takes_pictures_of_these_sizes(size: tuple[int, int]) -> None:
    net = resnet18(width=5).eval()
    with torch.no_grad():
        assert net(torch.randn(2, 3, *size)).shape == (2, 5)


@pytest.mark.parametrize("shape", [(1, 64, 64), (3, 64, 64), (2, 16, 40)])
def test_mvcnn_takes_views(shape: tuple[int, ...]) -> None:
    net = mvcnn(shape, width=9)
    assert net(torch.randn(4, *shape)).shape == (4, 9)


def test_mvcnn_has_four_convolutions_and_is_no_larger_for_more_views() -> None:
    convolutions = 9 * (1 * 16 + 16 * 32 + 32 * 64 + 64 * 128)
    norms, last = 2 * (16 + 32 + 64 + 128), 128 * 4 * 4 * 64 + 64
    for shape in ((1, 16, 16), (12, 64, 16)):
        assert parameters(mvcnn(shape)) == convolutions + norms + last


def test_mvcnn_halves_the_picture_four_times_and_ends_in_a_grid() -> None:
    net, sizes = mvcnn((2, 48, 32), width=5), []
    for layer in net.one_view:
        layer.register_forward_hook(
            lambda layer, given, out: sizes.append((type(layer).__name__, *out.shape))
        )
    net(torch.randn(3, 2, 48, 32))
    assert [size for name, *size in sizes if name == "Conv2d"] == [
        [6, 16, 48, 32],
        [6, 32, 24, 16],
        [6, 64, 12, 8],
        [6, 128, 6, 4],
    ]
    assert sizes[-3:] == [
        ("MaxPool2d", 6, 128, 3, 2),
        ("AdaptiveAvgPool2d", 6, 128, 4, 4),
        ("Flatten", 6, 2048),
    ]


def test_widths_unless_given() -> None:
    assert mvcnn((1, 16, 16)).last.out_features == 64
    net = resnet18()
    assert (net[0].in_channels, net[-1].in_features, net[-1].out_features) == (3, 512, 16)
    assert [
        (layer.in_features, layer.out_features)
        for layer in mlp((7,))
        if hasattr(layer, "in_features")
    ] == [
        (7, 64),
        (64, 16),
    ]
    assert [type(layer).__name__ for layer in mlp_head(4, 2)] == ["Linear", "ReLU", "Linear"]
    assert mlp_head(4, 2)[0].out_features == 64


def test_a_block_of_resnet_adds_what_came_in_fitted_where_the_shape_changes() -> None:
    pictures = torch.randn(2, 3, 6, 4)
    same, wider, smaller = ResidualBlock(3, 3, 1), ResidualBlock(3, 5, 1), ResidualBlock(3, 3, 2)
    assert isinstance(same.short, torch.nn.Identity)
    assert [tuple(block(pictures).shape) for block in (same, wider, smaller)] == [
        (2, 3, 6, 4),
        (2, 5, 6, 4),
        (2, 3, 3, 2),
    ]
    assert parameters(same) == 2 * (9 * 3 * 3 + 2 * 3)
    assert parameters(wider) == 9 * 3 * 5 + 9 * 5 * 5 + 3 * 5 + 3 * 2 * 5
    assert parameters(smaller) == parameters(same) + 3 * 3 + 2 * 3
    for norm in (same.first_norm, same.second_norm):
        torch.nn.init.zeros_(norm.weight)
    assert torch.equal(same(pictures), pictures.clamp(min=0))


@pytest.mark.parametrize("training", [True, False])
def test_mvcnn_does_not_depend_on_the_order_of_views(training: bool) -> None:
    net = mvcnn((4, 32, 32)).train(training)
    pictures = torch.randn(3, 4, 32, 32)
    with torch.no_grad():
        torch.testing.assert_close(
            net(pictures[:, [2, 0, 3, 1]]), net(pictures), rtol=1e-4, atol=1e-5
        )
        assert (net(pictures[:, [0, 0, 0, 0]]) - net(pictures)).abs().max() > 1e-3


@pytest.mark.parametrize("name", NETS)
def test_every_parameter_is_reached_by_the_gradient(name: str) -> None:
    net = NETS[name](shape=SHAPES[name])
    head = mlp_head(width=net(torch.randn(4, *SHAPES[name])).shape[1], outputs=3)
    loss = torch.nn.functional.cross_entropy(
        head(net(torch.randn(6, *SHAPES[name]))), torch.tensor([0, 1, 2, 0, 1, 2])
    )
    loss.backward()
    for part in (net, head):
        for where, weights in part.named_parameters():
            assert weights.grad is not None, where
            assert weights.grad.abs().max() > 0, where


@pytest.mark.parametrize("name", ["mvcnn", "mlp"])
def test_plain_sgd_learns(name: str) -> None:
    """Two classes that differ in one corner of noise."""
    samples = torch.randn(32, *SHAPES[name])
    labels = torch.arange(32) % 2
    samples.flatten(1)[labels == 1, : max(3, samples[0].numel() // 8)] += 1.0
    net = torch.nn.Sequential(
        NETS[name](shape=SHAPES[name]), linear(64 if name == "mvcnn" else 16, 2)
    )
    descent = torch.optim.SGD(net.parameters(), lr=1e-3 if name == "mvcnn" else 0.1)
    losses = []
    for _ in range(30):
        descent.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(samples), labels)
        loss.backward()
        descent.step()
        losses.append(loss.item())
    assert losses[-1] < 0.8 * losses[0]


def test_mlp_is_what_its_settings_say() -> None:
    net = mlp(shape=(2, 5), width=3, hidden=[8, 4], dropout=0.5)
    assert parameters(net) == (10 * 8 + 8) + (8 * 4 + 4) + (4 * 3 + 3)
    rows = torch.randn(6, 2, 5)
    assert net(rows).shape == (6, 3)
    assert not torch.equal(net(rows), net(rows))
    net.eval()
    torch.testing.assert_close(net(rows), net(rows.reshape(6, 10)))
    assert parameters(mlp(shape=(), width=3, hidden=[])) == 6
    assert mlp(shape=(), width=3)(torch.randn(4)).shape == (4, 3)


def test_the_linear_fusion_is_a_matrix_and_a_shift() -> None:
    head = linear(width=4, outputs=2)
    weights, shift = head.parameters()
    given = torch.randn(5, 4)
    torch.testing.assert_close(head(given), given @ weights.T + shift)


@pytest.mark.parametrize(
    ("makers", "known"),
    [(NETS, {"shape", "client", "index", "clients"}), (FUSIONS, {"width", "outputs"})],
)
def test_makers_need_only_what_they_are_given(makers: Any, known: set[str]) -> None:
    for make in makers.values():
        needed = {
            name for name, p in inspect.signature(make).parameters.items() if p.default is p.empty
        }
        assert needed <= known


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: resnet18(shape=(1, 3, 32, 32)), "resnet18 needs pictures"),
        (lambda: resnet18(width=0), "resnet18: width must be 1 or more"),
        (lambda: mvcnn((64, 64)), r"mvcnn needs samples of \(views, rows, columns\)"),
        (lambda: mvcnn((1, 64, 15)), "16 rows and columns or more"),
        (lambda: mvcnn((1, 15, 64)), "16 rows and columns or more"),
        (lambda: resnet18(channels=0), "resnet18: channels must be 1 or more"),
        (lambda: mlp((4,), hidden="64"), "mlp: hidden must be a list"),
        (lambda: mvcnn((1, 64, 64), width="wide"), "mvcnn: width must be a whole number"),
        (lambda: mlp((4,), hidden=8), r"mlp: hidden must be a list of widths, such as \[64\]"),
        (lambda: mlp((4,), hidden=[8, 0]), "mlp: each width must be 1 or more"),
        (lambda: mlp_head(4, 2, dropout=1.0), "dropout must be below 1"),
        (lambda: mlp_head(4, 2, dropout=-0.1), "dropout must be 0 or more"),
    ],
)
def test_settings_that_cannot_be(make: Any, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        make()
