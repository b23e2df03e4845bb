"""Checkpoints of the version before token slots (protocol 8) continue to the same iterates.

The files in ``tests/support/former_checkpoints`` were written by that version, after 60 iterations
of trainings of ``tests/support/recorded.py`` (trees: after 14).
"""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("cryptography")

import mtcd
from mtcd.core.errors import MtcdError
from mtcd.core.files import LINEAR_CHECKPOINT
from mtcd.models.glm.checkpoints import ArrayFile
from mtcd.protocol.former import ATTRIBUTES
from mtcd.protocol.snapshots import restored
from mtcd.protocol.state import Snapshot
from mtcd.protocol.token import Token
from recorded import RIDGE, TRAININGS, recorded, table

RECORDS = recorded()
FORMER = Path(__file__).parents[2] / "support" / "former_checkpoints"
SLOTS = {
    "stcd, ridge, cycle": set(),
    "stcd, conjugate": {"tour", "products"},
    "stcd, momentum": {"tour"},
    "mtcd, visitors": set(),  # tokens that set out have no change yet
    "mtcd, optimal": {"past", "tally"},
    "mtcd, conjugate": {"tour", "products"},
}


def copied(name: str, folder: Path) -> Path:
    source = FORMER / name.replace(", ", "-") / LINEAR_CHECKPOINT
    shutil.copy(source, folder / LINEAR_CHECKPOINT)
    return folder


def tokens_in(path: Path) -> list[Token]:
    """The tokens that were under way."""
    facts, tensors = ArrayFile().read(path / LINEAR_CHECKPOINT)
    content = restored(Snapshot(facts["parties"], tensors))
    under_way = [*content["waiting"], *content["outgoing"]]
    payloads = [message.payload for message in under_way]
    return [payload for payload in payloads if isinstance(payload, Token)]


@pytest.mark.parametrize("name", SLOTS)
def test_a_training_of_the_former_version_goes_on(name: str, tmp_path: Path) -> None:
    model, network, method, *_ = TRAININGS[name].args  # type: ignore[attr-defined]
    tokens = tokens_in(copied(name, tmp_path))
    assert tokens
    assert all(set(token.slots) == SLOTS[name] for token in tokens)

    def trained(**how: Any) -> mtcd.Run:
        stop = mtcd.Stop(iterations=120)
        return mtcd.train(table(model), model, network, method, stop, seed=5, **how)

    whole, resumed = trained(), trained(checkpoint=tmp_path, resume=True)
    # the first 60 iterations are those of the NumPy that wrote the file: another one rounds the
    # last bits otherwise
    tolerance = RECORDS[name]["tolerance"]
    for client, theta in whole.parameters.items():
        np.testing.assert_allclose(
            resumed.parameters[client], theta, rtol=tolerance, atol=tolerance
        )
    assert resumed.ledger == whole.ledger
    assert resumed.final.objective == pytest.approx(whole.final.objective, rel=tolerance)


def test_so_does_one_of_trees_whose_tokens_had_a_class_of_their_own(tmp_path: Path) -> None:
    def trained(**how: Any) -> mtcd.Run:
        method = mtcd.STCD(1, walk="tour")
        stop = mtcd.Stop(iterations=40)
        return mtcd.train(table(RIDGE), mtcd.Trees(depth=2), "cycle", method, stop, seed=5, **how)

    whole = trained()  # which imports the classes that the checkpoint names
    (token,) = tokens_in(copied("trees", tmp_path))
    assert set(token.slots) == {"gains"}
    assert token.floats == 30 + 6
    resumed = trained(checkpoint=tmp_path, resume=True)
    assert resumed.ledger == whole.ledger
    assert resumed.final.objective == pytest.approx(whole.final.objective, rel=1e-9)


def test_other_counts_of_attributes_are_refused() -> None:
    attributes: list[Any] = [None] * (len(ATTRIBUTES) - 1)
    with pytest.raises(MtcdError, match="not of this training"):
        restored(Snapshot({"content": {"Token": attributes}}, {}))
