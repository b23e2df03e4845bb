"""What a party declares as its state is enough to go on after a crash, and little of it can be left
out: each field has a training that goes another way without it, or is listed with the reason."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

import mtcd
from mtcd.privacy.masked.masked import with_masks
from mtcd.privacy.sealed.bfv import clear
from mtcd.privacy.sealed.settings import SealedTours
from mtcd.protocol.state import Stateful
from problems import make_data
from recorded import MTCD, RIDGE, STCD, SVFL, TRAININGS, linear
from state_fields import Trail, differ, makers, trail, without

SEALED_MODEL = mtcd.Glm("logistic", l2=0.5)
SEALED_DATA = make_data(SEALED_MODEL, 40, [12, 13, 14], seed=3)


def sealed(server: bool) -> mtcd.Run:
    """Sealed tours with a cipher in the clear."""
    method = SealedTours(scheme="clear", depth=2, server=server)
    return mtcd.train(SEALED_DATA, SEALED_MODEL, "path", method, mtcd.Stop(iterations=5))


def twin_without_solved_blocks() -> mtcd.Run:
    """More columns than samples and a weak penalty: twin tours go on with short steps alone."""
    model = mtcd.Glm("ridge", l2=0.01)
    data = make_data(model, 12, [12, 13, 14], seed=3)
    method = mtcd.STCD(walk="tour", acceleration="twin")
    return mtcd.train(data, model, "path", method, mtcd.Stop(iterations=60))


def masked(method: Any, kind: str = "masked") -> Any:
    """A training whose server sees masked sums."""
    return linear(RIDGE, "complete", with_masks(method, kind))


PLAIN: dict[str, Callable[[], Any]] = {
    name: made
    for name, made in TRAININGS.items()
    if made.func is linear  # type: ignore[attr-defined]
}
CHANGES: dict[str, Callable[[], Any]] = {
    "changes of conjugate tours": partial(
        linear,
        RIDGE,
        "path",
        STCD(2, 0.01, walk="tour", acceleration="conjugate", depth=3, transport="delta32"),
    ),
    "twin, short steps alone": twin_without_solved_blocks,
}
MASKED: dict[str, Callable[[], Any]] = {
    "masked, svfl": partial(masked, SVFL(2, 0.005)),
    "masked, svfl, batches": partial(masked, SVFL(2, 0.005, batch=6)),
    "masked, mtcd": partial(masked, MTCD(3, 4, 2, 0.01)),
    "masked, mtcd, batches": partial(masked, MTCD(3, 4, 2, 0.01, batch=7)),
    "double-masked, svfl": partial(masked, SVFL(2, 0.005), "double-masked"),
    "double-masked, mtcd": partial(masked, MTCD(3, 4, 2, 0.01, batch=7), "double-masked"),
}
SEALED: dict[str, Callable[[], Any]] = {
    "sealed, server": partial(sealed, True),
    "sealed, label holder": partial(sealed, False),
}
CASES = PLAIN | CHANGES | MASKED | SEALED
LENGTH = 300  # several tours of accelerations, which need some to begin
ORDERS = (None, 7)

FILLED_AND_USED_WITHIN_ONE_MESSAGE: dict[str, set[str]] = {
    "ClientB": {"y"},
    "Conjugate": {"_plain"},  # used again only if a tour gains nothing, which none of these does
    "Delta32": {"heard", "told"},  # tokens go from hand to hand here: test_delta32.py has both
    "LoneHolder": {"asked", "check", "mask", "public", "token"},  # it asks nobody
    "OptimalClient": {"combined"},
    "OptimalServer": {"gathering"},
    "SVFLServer": {"aggregate", "penalty"},
    "TouringClient": {"t", "theta"},
    "TouringServer": {"gathering", "instruction", "products"},
    "TwinClient": {"combined", "t", "theta"},
}
# journals that were set back, clients that are down: tests/simulated/test_*_faults.py have them
FOR_FAULTS: dict[str, set[str]] = {
    "DoubleMaskingClient": {
        *("answered", "change", "early", "previous", "replaced", "summed", "uploads_of"),
    },
    "DoubleMaskingServer": {
        *("following", "gone", "included", "opening", "participants"),
        *("renewed", "repeated", "summed", "sync"),
    },
    "KeyHolding": {"completed", "seen"},
    "MaskingClient": {"answered", "early", "previous", "replaced"},
    "MaskingServer": {"opening"},
}


@pytest.fixture(autouse=True)
def _one_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """The key of a sealed training is in a file, which a crash leaves as it is."""
    made: dict[Any, Any] = {}
    generate = clear._ClearScheme.generate
    monkeypatch.setattr(
        clear._ClearScheme,
        "generate",
        lambda self, parameters: made.setdefault(parameters, generate(self, parameters)),
    )


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("order", ORDERS)
def test_a_restart_before_every_message_changes_nothing(name: str, order: int | None) -> None:
    make = makers(CASES[name])
    replay = name not in PLAIN
    whole, again = (trail(make, 100, restart, order, replay) for restart in (False, True))
    assert len(whole.messages) >= 10
    assert not differ(whole, again, random=replay)


@pytest.mark.long
def test_no_field_of_the_state_can_be_left_out() -> None:
    needed: set[tuple[type[Stateful], str]] = set()
    all_fields: set[tuple[type[Stateful], str]] = set()
    for name, train in CASES.items():
        make = makers(train)
        length = LENGTH if name in PLAIN else 100
        for order in ORDERS:
            went = partial(trail, make, length, order=order, replay=name not in PLAIN)
            whole, again = went(restart=False), went(restart=True)
            fields = {(part, field) for part in again.parts for field in part.state_fields}
            all_fields |= fields
            for part, field in sorted(fields - needed, key=str):
                if _is_missed(part, field, whole, partial(went, restart=True), name):
                    needed.add((part, field))

    found: dict[str, set[str]] = {}
    for part, field in all_fields - needed:
        found.setdefault(part.__name__, set()).add(field)
    assert found == FILLED_AND_USED_WITHIN_ONE_MESSAGE | FOR_FAULTS


def _is_missed(
    part: type[Stateful], field: str, whole: Trail, again: Callable[[], Trail], name: str
) -> bool:
    with without(part, field):
        try:
            return differ(whole, again(), random=name not in PLAIN)
        except Exception:  # a party that refuses a message, or fails, has missed it
            return True
