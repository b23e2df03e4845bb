"""Parts of split networks, each by itself: the plain combination of copies, and modules that draw random numbers."""

import pytest
import torch
from torch import nn

from mtcd.splitnet.modules import draws_numbers
from mtcd.splitnet.reference import Block, combine


def blocks(*values: float) -> list[Block]:
    return [Block({"w": torch.tensor([value])}, {"w": torch.tensor([10 * value])}) for value in values]


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


@pytest.mark.parametrize(
    ("module", "draws"),
    [(nn.Linear(3, 2), False), (nn.Sequential(nn.Linear(3, 2), nn.Dropout(0.5)), True), (nn.BatchNorm1d(3), False)],
    ids=["linear", "dropout", "batch norm"],
)
def test_modules_that_draw_random_numbers_are_found_and_left_as_they_are(module: nn.Module, draws: bool) -> None:
    module.eval()
    before, state = torch.get_rng_state(), [value.clone() for value in module.state_dict().values()]
    assert draws_numbers(module, torch.ones(4, 3)) == draws
    assert torch.equal(before, torch.get_rng_state())
    assert all(torch.equal(one, other) for one, other in zip(module.state_dict().values(), state, strict=True))
    assert not module.training
