"""Limits of sealed trainings: caps on tours, numbers of columns, and columns that rounding would
spoil."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import mtcd
from mtcd.config.schema import PrivacySection
from mtcd.core.errors import ConfigError, DataError, WireError
from mtcd.methods.privacy_modes import with_privacy
from mtcd.privacy.sealed.conditions import (
    SealedSizes,
    _spacings,
    cap_note,
    estimated_gap,
    largest_gap,
)
from mtcd.privacy.sealed.payloads import SealedRequest, as_block
from mtcd.privacy.sealed.settings import SealedTours
from mtcd.protocol.party import SERVER, Message

MODEL = mtcd.Glm("logistic", l2=1.0)
SEALED = mtcd.Privacy(mode="sealed")
WITH_SERVER, ALONE = mtcd.MTCD(walk="tour"), mtcd.STCD(walk="tour")
CLEAR = SealedTours(scheme="clear")


def table(*widths: int, samples: int = 60) -> mtcd.VerticalData:
    X = np.random.default_rng(0).standard_normal((samples, sum(widths)))
    bounds = np.cumsum([0, *widths])
    columns = {f"p{k}": list(range(bounds[k], bounds[k + 1])) for k in range(len(widths))}
    return mtcd.split(X, (X.sum(axis=1) > 0).astype(int), columns)


@pytest.mark.parametrize("server", [True, False])
@pytest.mark.parametrize(("width", "refused"), [(29, False), (30, True), (45, True)])
def test_a_party_with_half_as_many_columns_as_samples_is_refused_unless_asked(
    width: int, refused: bool, server: bool
) -> None:
    data, method = table(5, width), replace(CLEAR, server=server)
    if not refused:
        mtcd.train(data, MODEL, "path", method, mtcd.Stop(iterations=1))
        return
    with pytest.raises(
        ConfigError, match=rf"client 1 has {width} columns .*accept_revealed_labels: true"
    ):
        mtcd.train(data, MODEL, "path", method, mtcd.Stop(iterations=1))
    accepted = with_privacy(
        method, mtcd.Privacy("sealed", accept_revealed_labels=True), split=False
    )
    assert mtcd.train(data, MODEL, "path", accepted, mtcd.Stop(iterations=1)).final.iteration == 1


def test_a_party_with_one_column_needs_a_server_or_consent() -> None:
    stop, alone = mtcd.Stop(iterations=9), replace(CLEAR, server=False)
    mtcd.train(table(1, 4), MODEL, "path", alone, stop)  # the label holder itself may have one
    with pytest.raises(
        ConfigError, match=r"client 1 has one column.*mtcd.*accept_revealed_columns: true"
    ):
        mtcd.train(table(4, 1), MODEL, "path", alone, stop)
    assert mtcd.train(table(4, 1), MODEL, "path", CLEAR, stop).final.iteration == 2
    accepted = with_privacy(
        alone, mtcd.Privacy("sealed", accept_revealed_columns=True), split=False
    )
    assert mtcd.train(table(4, 1), MODEL, "path", accepted, stop).final.iteration == 1


def test_the_settings_reach_the_method_from_python_and_from_a_config() -> None:
    section = PrivacySection(mode="sealed", accept_revealed_columns=True)
    assert section.privacy() == mtcd.Privacy("sealed", accept_revealed_columns=True)
    with pytest.raises(
        ConfigError, match=r"privacy\.accept_revealed_labels is for privacy\.mode: sealed"
    ):
        mtcd.Privacy(accept_revealed_labels=True)
    with pytest.raises(ConfigError, match=r"privacy\.accept_revealed_labels must be true or false"):
        mtcd.Privacy("sealed", accept_revealed_labels=1)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="accept_revealed_labels"):
        mtcd.train(table(5, 30), MODEL, "path", WITH_SERVER, privacy=SEALED)
    with pytest.raises(ConfigError, match="accept_revealed_columns"):
        mtcd.train(table(5, 1), MODEL, "path", ALONE, privacy=SEALED)


@pytest.mark.parametrize(("server", "cap"), [(True, 7), (False, 3)])
def test_a_training_that_ends_at_the_cap_says_so_with_its_estimated_gap(
    server: bool, cap: int
) -> None:
    data, method = table(8, 6, samples=400), replace(CLEAR, server=server)
    hard = tuple(X + 2 * data.blocks[0][:, :1] for X in data.blocks)
    run = mtcd.train(
        replace(data, blocks=hard), MODEL, "path", method, mtcd.Stop(gap=1e-14, iterations=50)
    )
    assert run.final.iteration == cap
    [note] = [one for one in run.notes if "the cap of" in one]
    assert f"the cap of {cap} tours" in note
    if server:
        estimate = float(note.split("estimated gap is ")[1].split()[0])
        assert run.final.gap / 20 < estimate < run.final.gap * 20
    else:  # three tours are few
        assert "The estimated gap is of the order of" in note

    earlier = mtcd.train(
        replace(data, blocks=hard), MODEL, "path", method, mtcd.Stop(iterations=cap - 1)
    )
    assert not any("the cap of" in one for one in earlier.notes)


@pytest.mark.parametrize("ratio", [0.2, 0.8, 0.99])
@pytest.mark.parametrize("every", [1, 2])
def test_the_gap_is_that_of_a_geometric_approach(ratio: float, every: int) -> None:
    known = [(t, 5.0 + 3.0 * ratio**t) for t in range(0, 41, every)]
    assert estimated_gap(known) == pytest.approx(3.0 * ratio**40 / 5.0, rel=1e-3, abs=1e-12)


CORRELATED = (
    (8.44, 0.458, 5.11e-2, 2.31e-2, 1.75e-2, 1.49e-2, 1.28e-2, 8.99e-3, 7.91e-3),
    (112.0, 4.92, 0.781, 0.27, 9.22e-2, 4.19e-2, 2.44e-2, 1.76e-2, 1.47e-2),
    (5.55, 0.165, 3.53e-2, 1.75e-2, 9.32e-3, 6.37e-3, 5.42e-3),
    (5.55, 0.273, 4.77e-2, 2.5e-2, 1.15e-2),
    (44.8, 2.14, 0.252, 0.164, 6.6e-2),
)
"""f - f* of sealed ridge regressions on correlated columns, after each tour; f* is 1."""


@pytest.mark.parametrize("above", CORRELATED)
def test_the_estimate_is_not_better_than_the_truth(above: tuple[float, ...]) -> None:
    """The first tours gain hundreds of times what the last ones do."""
    known = [(tour, 1.0 + one) for tour, one in enumerate(above)]
    gap, largest = estimated_gap(known), largest_gap(known)
    assert above[-1] / 2 < largest < above[-1] * 20
    if gap is not None:
        assert above[-1] / 20 < gap < above[-1] * 20

    note = cap_note(len(above) - 1, known, server=True)
    assert f"{largest:.1e}" in note


@pytest.mark.parametrize(
    ("values", "gap"),
    [
        ([], None),
        ([1.0], None),
        ([3.0, 2.0], None),
        ([3.0, 2.0, 1.0], None),
        ([3.0, 2.0, 2.0], 0.0),
    ],
)
def test_a_gap_that_cannot_be_estimated(values: list[float], gap: float | None) -> None:
    assert estimated_gap(list(enumerate(values))) == gap


def test_a_party_without_the_key_says_where_the_estimate_is() -> None:
    assert "The summary at the server, which has the key, says the estimated gap." in cap_note(
        5, [], server=True
    )
    assert "The summary at the label holder" in cap_note(5, [], server=False)
    assert "gap is of the order of 3.3e-01 (relative)" in cap_note(
        1, [(0, 5.0), (1, 4.0)], server=True
    )


@pytest.mark.parametrize("server", [True, False])
@pytest.mark.parametrize("more", [1, 15])
def test_a_party_that_asks_for_more_products_than_it_has_declared_is_refused(
    server: bool, more: int
) -> None:
    """The party has as many columns as it likes in its own process; the key holder goes by what it
    declared."""
    problem = MODEL.problem(table(20, 5))
    network = mtcd.make_network("path", ["a", "b"])
    method = replace(CLEAR, server=server)
    parties = method.parties(problem, network, 0, SealedSizes((20, 5), 64.0))
    liar: Any = parties.clients[1]
    extra = np.random.default_rng(1).standard_normal((60, more))
    liar.block = liar.plan.block(np.hstack([problem.blocks[1], extra]), problem.penalties[1])
    waiting = list(parties.opening)

    def go_on() -> None:
        while waiting:
            message = waiting.pop(0)
            if message.to in (SERVER, 0, 1):
                party: Any = parties.server if message.to == SERVER else parties.clients[message.to]
                waiting.extend(party.receive(message))

    with pytest.raises(
        WireError, match=f"products with {6 + more} columns, but 6 are agreed for this client"
    ):
        go_on()


def test_the_label_holder_gets_one_sum_over_labels_in_a_tour() -> None:
    problem = MODEL.problem(table(6, 5, samples=200))
    parties = CLEAR.parties(problem, mtcd.make_network("path", ["a", "b"]), 0)
    server, holder, waiting = parties.server, parties.clients[0], list(parties.opening)
    request: Message | None = None
    while request is None:
        message = waiting.pop(0)
        if message.to in (SERVER, 0, 1):
            at_end = isinstance(message.payload, SealedRequest) and message.payload.place == 2
            request = message if at_end else None
            party: Any = server if message.to == SERVER else parties.clients[message.to]
            waiting += [] if at_end else party.receive(message)
    payload: Any = request.payload
    curious: Any = holder
    sealer, columns = curious._prepare()
    product = sealer.product(sealer.vector_from_bytes(curious.begun.tobytes()), columns)
    of_columns = replace(payload, data=as_block(sealer.to_bytes(sealer.mask(product)[0])))
    with pytest.raises(
        WireError, match="products with 7 columns, but 1 are agreed for this client"
    ):
        server.receive(Message(0, SERVER, of_columns))
    server.receive(request)
    with pytest.raises(WireError, match="second of this client"):
        server.receive(request)


def with_values(*values: float, samples: int = 5000) -> mtcd.VerticalData:
    data = table(3, 3, samples=samples)
    X = np.array(data.blocks[1])
    X[: len(values), 1] = values
    return replace(data, blocks=(data.blocks[0], X))


@pytest.mark.parametrize("values", [(1e4,), (-2e3,), (3e5,), (1e4, -1e4, 2e4)])
def test_a_column_whose_extreme_values_take_the_room_is_refused(values: tuple[float, ...]) -> None:
    with pytest.raises(
        DataError, match=r"Column 2 of p1 would be rounded too coarsely.*Cap its extreme values"
    ):
        mtcd.train(with_values(*values), MODEL, "path", CLEAR, mtcd.Stop(iterations=1))


def test_a_column_far_from_0_is_refused_unless_it_is_centred() -> None:
    data = table(3, 3, samples=5000)
    shifted = replace(data, blocks=(data.blocks[0] + 2000.0, data.blocks[1]))
    with pytest.raises(
        DataError, match=r"Column 1 of p0 .*subtract their mean \(standardise: true\)"
    ):
        mtcd.train(shifted, MODEL, "path", CLEAR, mtcd.Stop(iterations=1))
    mtcd.train(shifted, MODEL, "path", CLEAR, mtcd.Stop(iterations=1), standardise=True)


def test_skewed_rare_and_constant_columns_and_an_outlier_that_leaves_room_are_fine() -> None:
    rng = np.random.default_rng(3)
    data = with_values(200.0)
    skewed = np.exp(1.5 * rng.standard_normal(5000))
    rare = (np.arange(5000) < 20).astype(float)
    first = np.stack([skewed, 1e7 * rare, np.ones(5000)], axis=1)
    data = replace(data, blocks=(first, data.blocks[1]))
    run = mtcd.train(
        data, mtcd.Glm("logistic", l2=1.0, intercept=True), "path", CLEAR, mtcd.Stop(iterations=1)
    )
    assert run.final.iteration == 1


@pytest.mark.parametrize(
    ("tours", "spacings"),
    [
        ([], []),
        ([3], []),
        ([0, 1, 2], [1]),  # none in the second half: the shortest
        (range(9), [1, 2]),
        (range(8), [1]),
        (range(50), [1, 2, 3, 4, 5]),
        ([0, 10, 20, 40, 60, 80], [20]),
        ([0, 30, 60], [30]),
    ],
)
def test_gains_of_tours_are_compared_over_the_second_half(
    tours: list[int], spacings: list[int]
) -> None:
    assert _spacings(dict.fromkeys(tours, 1.0)) == spacings
