"""Masked aggregation: the same training as plain, and a server that sees uniform words and their
sums only."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mtcd
from masked_trainings import DATA, METHODS, MODEL, delivered, doubly, p_value, train_with
from mtcd.core.errors import ConfigError, DataError, WireError
from mtcd.core.fixed_point import NARROW, WIDE
from mtcd.federation.delivery.frames import Header, encode
from mtcd.methods.method import Method
from mtcd.methods.mtcd.mtcd import MTCD, STCD
from mtcd.methods.privacy_modes import with_privacy
from mtcd.methods.svfl.svfl import SVFL
from mtcd.models.splitnet.setup import split_plan
from mtcd.privacy.masked.masked import with_masks
from mtcd.privacy.masked.pair_masks import PairMasks, new_private_key, public_key, shared_keys
from mtcd.privacy.masked.payloads import MaskedToken, MaskedUpload, PublicKey, PublicKeys
from mtcd.protocol.gathering import Fresh
from mtcd.protocol.party import MONITOR, SERVER, Message
from mtcd.protocol.token import Token


def masked_words(messages: Sequence[Message]) -> list[np.ndarray]:
    return [
        one.payload.words for one in messages if isinstance(one.payload, MaskedUpload | MaskedToken)
    ]


@pytest.mark.parametrize("name", METHODS)
def test_the_training_is_the_plain_one(name: str) -> None:
    method = METHODS[name]
    plain, masked = (
        mtcd.train(DATA, MODEL, "cycle", one, mtcd.Stop(iterations=80))
        for one in (method, with_masks(method))
    )
    np.testing.assert_allclose(masked.coefficients, plain.coefficients, atol=1e-8)
    assert np.abs(plain.coefficients).max() > 0.01
    assert masked.final.objective == pytest.approx(plain.final.objective, abs=1e-6)
    assert masked.ledger == plain.ledger


def test_a_warm_start_is_the_plain_one() -> None:
    first = mtcd.train(DATA, MODEL, "cycle", METHODS["svfl"], mtcd.Stop(iterations=5))
    for name in ("mini-batches", "svfl", "average"):
        method = METHODS[name]
        plain, masked = (
            mtcd.train(DATA, MODEL, "cycle", one, mtcd.Stop(iterations=20), start=first)
            for one in (method, with_masks(method))
        )
        np.testing.assert_allclose(masked.coefficients, plain.coefficients, atol=1e-8)


@pytest.mark.parametrize(
    ("masks", "name"),
    [
        (with_masks, "mini-batches"),
        (with_masks, "average"),
        (doubly, "mini-batches"),
        (doubly, "svfl"),
        (doubly, "svfl, mini-batches"),
    ],
)
def test_a_resumed_training_is_the_same(masks: Any, name: str, tmp_path: Any) -> None:
    def train(iterations: int, folder: str, **rest: Any) -> mtcd.Run:
        method, stop = masks(METHODS[name]), mtcd.Stop(iterations=iterations)
        return mtcd.train(DATA, MODEL, "cycle", method, stop, checkpoint=tmp_path / folder, **rest)

    whole = train(80, "whole")
    assert train(40, "half").final.iteration == 40
    np.testing.assert_array_equal(train(80, "half", resume=True).coefficients, whole.coefficients)


@pytest.mark.parametrize("name", METHODS)
def test_the_server_receives_uniform_words_and_nothing_else(name: str) -> None:
    """Every byte of what it receives is as likely as any other, though the plain numbers are
    small."""
    messages, _ = delivered(with_masks(METHODS[name]), 250)
    words = masked_words(messages)
    others = {type(one.payload) for one in messages} - {MaskedUpload, MaskedToken}
    assert {kind.__name__ for kind in others} <= {"PublicKey", "Done"}
    assert p_value(np.concatenate(words)) > 1e-6
    assert p_value(np.array([one[-1] for one in words])) > 1e-6  # the penalties
    plain = [one.payload for one in delivered(METHODS[name], 100)[0]]
    numbers = [
        getattr(one, "representation", getattr(one, "aggregate", None))
        for one in plain
        if one.floats
    ]
    assert p_value(WIDE.encode(np.concatenate(numbers), 5)) < 1e-100


def test_sums_of_all_but_one_upload_are_uniform_and_of_all_are_small() -> None:
    messages, _ = delivered(with_masks(METHODS["mini-batches"]), 300)
    words = masked_words(messages)
    syncs = [words[i : i + 5] for i in range(0, len(words) - 4, 5)]
    for left_out in range(5):
        assert p_value(np.concatenate([sum(one) - one[left_out] for one in syncs])) > 1e-6
    assert np.abs(WIDE.decode(np.concatenate([sum(one) for one in syncs]))).max() < 100


def test_masks_of_two_syncs_differ_and_words_do_not_depend_on_the_table() -> None:
    """What two tables send under one mask would differ by a small number; new keys are made for
    each training."""
    one, two = (
        np.concatenate(masked_words(delivered(with_masks(METHODS["svfl"]), 100)[0]))
        for _ in range(2)
    )
    assert p_value(one - two) > 1e-6
    words = masked_words(delivered(with_masks(METHODS["svfl"]), 400)[0])
    of_client = np.stack(words[::5])
    assert p_value(np.diff(of_client, axis=0).ravel()) > 1e-6


def test_a_warm_start_does_not_use_a_mask_twice() -> None:
    """The uploads before the first token and the tokens of iteration 0 have different masks."""
    first = mtcd.train(DATA, MODEL, "cycle", METHODS["svfl"], mtcd.Stop(iterations=5))
    from mtcd.models.glm.starts import starting_at

    method = with_masks(MTCD(tokens=5, hops=1, stepsize=1e-9, start=[0, 1, 2, 3, 4]))
    problem = starting_at(first.trained(), MODEL, DATA, MODEL.problem(DATA), None)
    parties = method.parties(problem, mtcd.make_network("complete", DATA.clients), 3)
    by_number = {**dict(enumerate(parties.clients)), SERVER: parties.server}
    words, waiting = [], deque(parties.opening)
    while len(words) < 10:
        message = waiting.popleft()
        words += masked_words([message])
        if message.to != MONITOR:
            waiting.extend(by_number[message.to].receive(message))
    assert (
        p_value(np.concatenate([a - b for a, b in zip(words[:5], words[5:], strict=True)])) > 1e-6
    )


@pytest.mark.parametrize("name", METHODS)
def test_messages_are_larger_than_plain_ones_by_two_numbers_at_most(name: str) -> None:
    def sizes(method: Method, kinds: tuple[type, ...]) -> list[int]:
        messages = [one for one in delivered(method, 40)[0] if isinstance(one.payload, kinds)]
        return [len(encode(one, Header("run", one.sender, SERVER, 0, 0))) for one in messages[:10]]

    plain, masked = (
        sizes(METHODS[name], (Fresh, Token)),
        sizes(with_masks(METHODS[name]), (MaskedUpload, MaskedToken)),
    )
    assert all(b <= a + 16 for a, b in zip(plain, masked, strict=True))


def test_no_message_holds_a_private_key() -> None:
    messages, parties = delivered(with_masks(METHODS["average"]), 60)
    sent = b"".join(encode(one, Header("run", one.sender, SERVER, 0, 0)) for one in messages)
    public = [one.payload.key.tobytes() for one in messages if isinstance(one.payload, PublicKey)]
    assert len(public) == 5
    assert all(key in sent for key in public)
    assert not any(client.private.tobytes() in sent for client in parties.clients)


# Fixed point


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 9), st.sampled_from([WIDE, NARROW]), st.integers(0, 2**32))
def test_sums_of_fixed_point_are_exact_up_to_one_rounding_each(
    summands: int, numbers: Any, seed: int
) -> None:
    draw = np.random.default_rng(seed)
    limit = numbers.largest / summands
    values = draw.uniform(-limit, limit, (summands, 20)) * draw.choice(
        [1.0, 1e-3, 1e-6], (summands, 20)
    )
    total = sum(numbers.encode(one, summands) for one in values)
    np.testing.assert_allclose(
        numbers.decode(total), values.sum(axis=0), atol=summands / numbers.steps_per_unit
    )


@pytest.mark.parametrize("numbers", [WIDE, NARROW])
def test_what_could_overflow_is_refused(numbers: Any) -> None:
    limit = numbers.largest / 4
    numbers.encode(np.array([np.nextafter(limit, 0), -np.nextafter(limit, 0)]), 4)
    for value in (limit, -limit, np.inf, -np.inf, np.nan):
        with pytest.raises(DataError, match="sums of 4 numbers"):
            numbers.encode(np.array([0.0, value]), 4)


@pytest.mark.parametrize(
    "method",
    [
        with_masks(SVFL(stepsize=50.0, batch=20)),
        with_masks(MTCD(tokens=2, hops=3, stepsize=50.0)),
        doubly(SVFL(stepsize=50.0, batch=20)),
    ],
)
def test_a_training_that_leaves_the_range_has_diverged(method: Method) -> None:
    data = mtcd.synthetic("ridge", samples=60, features=15, clients=5)
    run = mtcd.train(data, mtcd.Glm("ridge", alpha=1.0), "cycle", method, mtcd.Stop(iterations=500))
    assert run.status == "diverged"
    assert any("2.1e+08 per client" in note for note in run.notes)
    words = np.zeros(0, "<i8")
    with pytest.raises(WireError, match="not finite"):  # as a party of a federation notices it
        encode(Message(0, SERVER, MaskedUpload(0, 0, words)), Header("run", 0, SERVER, 0, 0))


# Masks


def test_both_of_a_pair_have_the_same_key_and_nobody_else() -> None:
    private = [new_private_key() for _ in range(4)]
    public = np.stack([public_key(one) for one in private])
    keys = [shared_keys(k, private[k], public) for k in range(4)]
    assert all(keys[i][j] == keys[j][i] for i in range(4) for j in range(i))
    assert len({key for row in keys for key in row}) == 4 + 6  # each its own, and one for each pair


def test_masks_cancel_for_any_holders_of_the_places() -> None:
    private = [new_private_key() for _ in range(3)]
    public = np.stack([public_key(one) for one in private])
    masks = [PairMasks(k, private[k], public) for k in range(3)]
    words = np.arange(40, dtype="<i8").reshape(8, 5)
    for holders in ([0, 1, 2, 0, 1, 2, 0, 0], [1] * 8):
        sent = [masks[holder].masked(words[i], 7, i, holders) for i, holder in enumerate(holders)]
        np.testing.assert_array_equal(sum(sent), words.sum(axis=0))
        assert not any(np.array_equal(one, row) for one, row in zip(sent, words, strict=True))


def test_an_invalid_key_is_refused_with_its_owner() -> None:
    public = np.stack(
        [public_key(new_private_key()), np.zeros(4, "<i8"), public_key(new_private_key())]
    )
    with pytest.raises(WireError, match="client 1"):
        PairMasks(0, new_private_key(), public)


def test_what_arrives_before_the_keys_waits_for_them() -> None:
    method = with_masks(METHODS["mini-batches"])
    parties = method.parties(MODEL.problem(DATA), mtcd.make_network("complete", DATA.clients), 3)
    keys = [
        out for message in parties.opening for out in parties.clients[message.to].receive(message)
    ]
    answers = [out for message in keys for out in parties.server.receive(message)]
    told = [one for one in answers if isinstance(one.payload, PublicKeys)]
    token = next(one for one in answers if isinstance(one.payload, Token))
    client = parties.clients[token.to]
    assert client.receive(token) == []
    [sent] = client.receive(next(one for one in told if one.to == token.to))
    assert isinstance(sent.payload, Token)


def test_a_second_upload_in_a_sync_is_refused() -> None:
    messages, parties = delivered(with_masks(METHODS["svfl"]), 6)
    with pytest.raises(AssertionError):
        parties.server.receive(messages[-1])


# Settings


def test_privacy_in_train_and_in_configs() -> None:
    assert with_privacy(SVFL(), mtcd.Privacy(aggregation="masked"), split=False) == with_masks(
        SVFL()
    )
    assert with_privacy(SVFL(), mtcd.Privacy(), split=False) == SVFL()
    with pytest.raises(ConfigError, match="did you mean 'masked'"):
        mtcd.Privacy(aggregation="maskd")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="leave aggregation out"):
        mtcd.Privacy(mode="sealed", aggregation="masked")


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: with_masks(STCD()), "stcd has no sums"),
        (lambda: with_masks(mtcd.DCPA()), "dcpa has no sums"),
        (lambda: with_masks(MTCD(tokens=2, combine="visitors")), "average or cluster"),
        (lambda: with_masks(MTCD(tokens=2, combine="optimal")), "average or cluster"),
        (
            lambda: with_masks(MTCD(clusters="auto", walk="tour", acceleration="conjugate")),
            "without acceleration",
        ),
        (lambda: with_masks(SVFL(transport="float32")), "leave method.transport"),
        (lambda: train_with(with_masks(MTCD(tokens=1, stepsize=0.1))), "two tokens"),
        (lambda: train_with(with_masks(SVFL(stepsize=0.1)), clients=2), "at least 3 clients"),
        (
            lambda: train_with(
                with_masks(SVFL(stepsize=0.1)), changes=[mtcd.Change(2, leave=(1,))]
            ),
            "leave network.changes",
        ),
        (lambda: doubly(STCD()), "stcd has no sums"),
        (
            lambda: doubly(MTCD(tokens=2, stepsize=0.1)),
            "svfl without acceleration, or mtcd with batch",
        ),
        (lambda: doubly(SVFL(transport="float32")), "double-masked sends integers"),
        (lambda: train_with(doubly(SVFL(stepsize=0.1)), clients=3), "at least 4 clients"),
        (
            lambda: train_with(doubly(SVFL(stepsize=0.1)), changes=[mtcd.Change(2, leave=(1,))]),
            "leave network.changes",
        ),
        (
            lambda: split_plan(
                doubly(SVFL(stepsize=0.1)), 4, 1, mtcd.make_network("complete", list("abcde")), 0
            ),
            "for linear models",
        ),
    ],
)
def test_what_cannot_be_masked_is_refused(make: Any, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        make()
