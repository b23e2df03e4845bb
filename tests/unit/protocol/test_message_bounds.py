"""The bounds of messages, which parties compute beforehand, against the messages of whole
trainings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mtcd.methods.method import Method
from mtcd.methods.mtcd.client import Done, Share
from mtcd.methods.mtcd.mtcd import MTCD, STCD
from mtcd.methods.svfl.svfl import SVFL, Shared
from mtcd.methods.tours.instruction import Instruction
from mtcd.models.splitnet.parties import UpdateFusion
from mtcd.models.splitnet.setup import split_bounds
from mtcd.models.trees.gains import ComparedGains
from mtcd.network.topology import make_network
from mtcd.privacy.masked.masked import with_masks
from mtcd.privacy.masked.payloads import DOUBLE_MASKS, KEYS, MaskedToken, MaskedUpload
from mtcd.protocol.codec.arrays import ParametersField
from mtcd.protocol.codec.limits import MOST, TensorShapes
from mtcd.protocol.gathering import Fresh
from mtcd.protocol.party import Message, Progress
from mtcd.protocol.token import Token
from problems import make_data
from wired import LINEAR, RIDGE, Wire, _pair, followed, linear, split, wired


@dataclass
class Seen(Wire):
    """Also notes what travels, as it is at that time."""

    kinds: set[type] = field(default_factory=set)
    slots: set[str] = field(default_factory=set)
    tokens: list[dict[str, Any]] = field(default_factory=list)

    def carry(self, message: Message) -> Message:
        payload = message.payload
        self.kinds.add(type(payload))
        if isinstance(payload, Token):
            slots = payload.slots
            instruction = slots.get("tour", Instruction(0))
            products = slots["tally"].products if "tally" in slots else slots.get("products", ())
            self.slots |= slots.keys()
            self.tokens.append(
                {
                    "index": payload.index,
                    "hop": payload.hop,
                    "snapshots": max(len(instruction.weights), instruction.keep),
                    "products": len(products),
                    "past": len(slots.get("past", ())),
                }
            )
        return super().carry(message)

    def most(self, name: str) -> Any:
        return max((token[name] for token in self.tokens), default=0)


def check(ours: Any, bounds: Any, moments: int = 20, exactly: Sequence[str] = ()) -> Seen:
    seen = Seen(bounds)
    list(followed(wired(ours, seen), moments))
    assert seen.kinds == bounds.kinds
    assert sorted({token["index"] for token in seen.tokens}) == list(range(bounds.tokens))
    assert seen.slots <= bounds.slots
    assert min((token["hop"] for token in seen.tokens), default=0) == -bounds.first_pass
    for name in ("snapshots", "products", "past"):
        most = bounds.limits.get(name, 0)
        assert seen.most(name) == most if name in exactly else seen.most(name) <= most
    return seen


@pytest.mark.parametrize("name", LINEAR)
def test_of_linear_models(name: str) -> None:
    _, ours, wire = linear(name)
    bounds = wire.bounds
    exactly = ["snapshots"] if name in ("mtcd conjugate", "stcd conjugate", "stcd anderson") else []
    seen = check(ours, bounds, 20, exactly)
    assert bounds.server == (ours.server is not None)
    limits = bounds.limits
    if "tour" in bounds.slots:
        # with every snapshot, twice, and a survey
        assert limits["products"] == 2 * limits["snapshots"] + 1 + 6
    elif seen.tokens:
        assert limits.get("products", 0) == seen.most("products")
        assert seen.slots == bounds.slots
    # the number of clients
    assert limits.get("past", 0) == (6 if "optimal" in name or name == "gains" else 0)
    assert limits.get("gains", 0) == (6 if name == "gains" else 0)
    if seen.tokens:
        assert bounds.hops == (3 if name.endswith("batches") else MOST - 1)


@pytest.mark.parametrize("name", ["clusters", "clusters, batches", "stcd", "svfl"])
def test_of_split_networks(name: str) -> None:
    pytest.importorskip("torch")
    _, ours, wire, *_ = split(name)
    bounds = wire.bounds
    seen = check(ours, bounds, 4, ["snapshots", "products", "past"])
    lone = {"theta_0", "journey"}
    averaged = {"theta_0", "visited"}
    assert bounds.slots == (lone if name == "stcd" else averaged)
    assert "theta_0" in seen.slots
    assert bounds.first_pass == (3 if name == "stcd" else 0)  # along the cycle of four
    roams_on = name in ("clusters", "stcd")
    assert bounds.hops == (MOST - 1 if roams_on else 1 if name.startswith("svfl") else 3)


def test_of_a_lone_token_that_carries_gains() -> None:
    data = make_data(RIDGE, 12, [2, 1, 3], seed=3)
    method = replace(STCD(stepsize=1e-2), features=(ComparedGains(3),))
    _, ours, wire = _pair(RIDGE.problem(data), make_network("path", data.clients), method)
    check(ours, wire.bounds)
    assert wire.bounds.limits == {"gains": 3}
    assert wire.bounds.slots == {"gains"}


CYCLE = make_network("cycle", [f"c{k}" for k in range(5)])


@pytest.mark.parametrize(
    ("method", "kinds", "masks"),
    [
        (MTCD(2), {Token, Progress}, 0),
        (with_masks(MTCD(2)), {Token, Progress, MaskedToken} | KEYS, 0),
        (MTCD(2, batch=4), {Token, Done, Share, Fresh, Progress}, 0),
        (with_masks(MTCD(2, batch=4)), {Token, Done, Share, MaskedUpload, Progress} | KEYS, 0),
        (
            with_masks(MTCD(2, batch=4), "double-masked"),
            {Token, Done, Share, Progress} | DOUBLE_MASKS | KEYS,
            5,
        ),
        (SVFL(), {Shared, Fresh, Progress}, 0),
        (with_masks(SVFL()), {Shared, MaskedUpload, Progress} | KEYS, 0),
        (with_masks(SVFL(), "double-masked"), {Shared, Progress} | DOUBLE_MASKS | KEYS, 5),
        (STCD(), {Token}, 0),
    ],
    ids=lambda value: value.describe() if isinstance(value, Method) else None,
)
def test_the_payloads_of_a_run(method: Any, kinds: set[type], masks: int) -> None:
    bounds = method.with_stepsize(0.1).messages(CYCLE, 0, 12, 1).bounds("a run")
    assert bounds.kinds == kinds
    # of each client two seeds of two words
    assert bounds.limits.get("opened masks", 0) == masks * 2 * 2
    assert bounds.server == (method.kind != "stcd")


@pytest.mark.parametrize(
    ("method", "kinds", "tokens", "hops", "first_pass"),
    [
        (STCD(), {Token, Progress}, 1, MOST - 1, 4),
        (STCD(first_pass=False), {Token, Progress}, 1, MOST - 1, 0),
        (MTCD(2, 7), {Token, Done, Share, Fresh, UpdateFusion, Progress}, 2, 7, 0),
        (
            MTCD(2, 7, combine="cluster"),
            {Token, Share, Fresh, UpdateFusion, Progress},
            2,
            MOST - 1,
            0,
        ),
        (SVFL(), {Token, Done, Share, Fresh, UpdateFusion, Progress}, 5, 1, 0),
    ],
    ids=["stcd", "stcd, empty", "overlapping", "clusters", "svfl"],
)
def test_the_payloads_of_split_networks(
    method: Any, kinds: set[type], tokens: int, hops: int, first_pass: int
) -> None:
    split_shapes = TensorShapes((1,) * 5, ((2, 3), (3,)))
    bounds = split_bounds(method.with_stepsize(0.1), "a run", CYCLE, 0, 12, 1, split_shapes)
    assert (bounds.kinds, bounds.tokens, bounds.hops, bounds.first_pass) == (
        kinds,
        tokens,
        hops,
        first_pass,
    )
    assert (bounds.shape, bounds.tensors) == ((12, 1), split_shapes)
    token = Token(0, 0, 0, np.zeros((12, 1)), 0.0, slots={"theta_0": [np.ones((2, 3)), np.ones(3)]})
    assert (token.floats, token.wide_floats) == (21, 0)


def test_tokens_with_gains_travel_alone_or_to_a_server() -> None:
    for hops, kinds in ((None, {Token}), (3, {Token, Progress})):
        bounds = (
            MTCD(1, hops, stepsize=0.1, features=(ComparedGains(5),))
            .messages(CYCLE, 0, 12, 1)
            .bounds("a run")
        )
        assert (bounds.kinds, bounds.slots, bounds.limits) == (kinds, {"gains"}, {"gains": 5})


@pytest.mark.parametrize(
    ("method", "outputs", "shape"), [(SVFL(), 1, (12,)), (SVFL(batch=5), 3, (5, 3))]
)
def test_the_shape_and_the_numbers_of_aggregates(
    method: SVFL, outputs: int, shape: tuple[int, ...]
) -> None:
    bounds = method.messages(CYCLE, 0, 12, outputs).bounds("a run")
    assert (bounds.shape, bounds.numbers) == (shape, None)
    single = SVFL(transport="float32").messages(CYCLE, 0, 12, outputs).bounds("a run")
    assert single.numbers == np.dtype("float32")


@pytest.mark.parametrize("parameters", [1, 7, 8])
def test_parameters_take_eight_bytes_each_and_four_words_that_describe_them(
    parameters: int,
) -> None:
    bounds: Any = SimpleNamespace(parameters=parameters)
    chunks: list[Any] = []
    ParametersField().named("parameters").write(np.ones((1, parameters)), chunks)
    written = sum(memoryview(chunk).nbytes for chunk in chunks)
    assert written == ParametersField().most(bounds) == 8 * (4 + parameters)
