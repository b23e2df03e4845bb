"""The slots that features declare."""

import subprocess
import sys

import numpy as np
import pytest

from mtcd.core.errors import WireError
from mtcd.methods.mtcd.combine.rule import SYNC_CHANGE
from mtcd.methods.tours.instruction import Instruction
from mtcd.models.trees.gains import GAINS
from mtcd.protocol.codec.extensions import (
    EXTENSIONS,
    Extension,
    Slots,
    declare,
    extrapolates,
    numbers_in,
)
from mtcd.protocol.codec.fields import Real
from mtcd.protocol.codec.limits import Bounds
from mtcd.protocol.codec.reading import Reader
from mtcd.training.plateau import Windows

SLOTS = Slots().named("slots")


def test_every_slot_has_a_number_and_a_name_of_its_own() -> None:
    numbers = [extension.number for extension in EXTENSIONS.values()]
    assert len(set(numbers)) == len(numbers)
    assert all(
        name == extension.name == extension.field.name for name, extension in EXTENSIONS.items()
    )


@pytest.mark.parametrize(
    ("number", "name", "words"),
    [
        (2, "another", "number 2, is taken by 'tour'"),
        (60, "tour", "'tour', number 60, is taken by 'tour', number 2"),
        (62, "another", "needs a number below 62"),
        (-1, "another", "needs a number below 62"),
    ],
)
def test_a_number_or_a_name_that_is_taken_is_refused(number: int, name: str, words: str) -> None:
    before = dict(EXTENSIONS)
    with pytest.raises(TypeError, match=words):
        declare(Extension(number, name, Real()))
    assert before == EXTENSIONS


def test_slots_are_written_in_the_order_of_their_numbers_whatever_the_order_of_the_mapping() -> (
    None
):
    slots = {"windows": Windows(1, 0.5), "gains": np.array([0.5, -1.0])}
    written = []
    for names in (("windows", "gains"), ("gains", "windows")):
        chunks: list[object] = []
        SLOTS.write({name: slots[name] for name in names}, chunks)
        written.append(b"".join(map(bytes, chunks)))  # type: ignore[arg-type]
    assert written[0] == written[1]
    bounds = Bounds("run", 2, frozenset(), (1,), tokens=1).with_slots("windows", "gains", gains=2)
    found = SLOTS.read(Reader(memoryview(written[0]), 0, bounds, 0))
    assert list(found) == ["gains", "windows"]
    assert len(written[0]) <= SLOTS.most(bounds)


def test_a_slot_that_nobody_has_declared_cannot_be_sent() -> None:
    with pytest.raises(WireError, match="that nobody has declared: 'temperature'"):
        SLOTS.write({"temperature": 0.5}, [])


def test_what_a_token_with_slots_is_charged_for() -> None:
    slots = {
        GAINS.name: np.zeros(3),
        SYNC_CHANGE.name: np.zeros(7),
        "tour": Instruction(4, (0.5, 0.5)),
    }
    assert numbers_in(slots) == 3 + 7 + 2
    assert numbers_in(slots, wide=True) == 3 + 2
    assert numbers_in({}) == 0


def test_only_an_instruction_with_weights_makes_an_aggregate_that_nobody_has() -> None:
    assert not extrapolates({})
    assert not extrapolates({"gains": np.zeros(3), "tour": Instruction(1, keep=2)})
    assert extrapolates({"gains": np.zeros(3), "tour": Instruction(2, (0.5, 0.5), keep=2)})


def test_the_token_imports_no_feature() -> None:
    """Nothing declares a slot until its feature is imported."""
    script = (
        "import mtcd.protocol.token as t, mtcd.protocol.codec.extensions as e; print(*e.EXTENSIONS)"
    )
    shown = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert shown.stdout.strip() == ""
