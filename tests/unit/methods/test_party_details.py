"""Single decisions of parties, by hand: where a training starts, and what a client holds between
syncs."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import mtcd
from mtcd.core.errors import ConfigError, WireError
from mtcd.federation.recovery.token_history import live_terms
from mtcd.methods.method import Method
from mtcd.methods.optimal_weights import without_negative
from mtcd.methods.tree_cg.tree_cg import Direction, Summand
from mtcd.models.trees.gains import UNKNOWN
from mtcd.network.changes import with_changes
from mtcd.network.topology import Change, make_network
from mtcd.privacy.masked.masked import with_masks
from mtcd.protocol.codec.limits import Bounds
from mtcd.protocol.codec.status import LONGEST_STATUS, Status
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.protocol.party import MONITOR, SERVER, Message
from mtcd.protocol.token import Token
from mtcd.reporting.trace.tracer import MOST_WINDOWS, WINDOW, TraceLog, Tracer
from problems import MODELS, make_data

DATA = make_data(MODELS[0], 12, [2, 1, 3], seed=3)
NETWORK = make_network("path", DATA.clients)
METHODS: list[Method] = [
    mtcd.STCD(stepsize=0.01),
    mtcd.MTCD(2, 3, stepsize=0.01),
    mtcd.MTCD(2, 3, stepsize=0.01, combine="optimal"),
    mtcd.SVFL(stepsize=0.01),
]


@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.describe())
def test_a_training_starts_with_messages_of_its_server_or_of_parties_to_themselves(
    method: Method, warm: bool
) -> None:
    """Or to the server, or the monitor: no link between clients is used before the first visit."""
    problem = MODELS[0].problem(DATA)
    if warm:
        problem = replace(problem, start=tuple(np.ones(block.shape[1]) for block in DATA.blocks))
    opening = method.parties(problem, NETWORK, 0).opening
    assert opening
    for message in opening:
        assert message.sender == SERVER or message.to in (message.sender, SERVER, MONITOR)


def test_copies_whose_sync_is_not_known_do_not_count() -> None:
    """Of optimal sync: a client that has no weights for its copies keeps the parameters from before
    the visits."""
    parties: Any = METHODS[2].parties(MODELS[0].problem(DATA), NETWORK, 0)
    client = parties.clients[0]
    before = client.theta[0].copy()
    client.copies = {0: (before + 1.0, 0.0), 1: (before + 3.0, 0.0)}
    np.testing.assert_array_equal(client.after_sync({}), before)
    np.testing.assert_array_equal(client.after_sync({client.t + 1: np.ones(2)}), before)
    np.testing.assert_allclose(
        client.after_sync({client.t: np.array([0.5, 2.0])}), before + 0.5 + 6.0
    )
    client.copies = {}
    np.testing.assert_array_equal(client.after_sync({client.t: np.ones(2)}), before)


def test_logs_of_several_processes_are_replayed_in_the_order_of_iterations_hops_and_tokens() -> (
    None
):
    rng, messages = np.random.default_rng(0), []
    at = [0, 1]
    for t in range(5):
        for hop in range(1, 4):
            for index in range(2):
                to = int(rng.integers(3))
                messages.append(
                    Message(at[index], to, Token(index, t, hop, np.zeros(2), 0.0), 2, 2)
                )
                at[index] = to
    ledger = Ledger()
    direct = Tracer(3, 3, ledger)
    for message in messages:
        ledger.hops += 1
        direct.see(message)
    logs = [TraceLog() for _ in range(3)]
    for message in messages:
        logs[message.sender].see(message)
    total = Ledger()
    replayed = Tracer(3, 3, total)
    replayed.replay([log.take() for log in logs])
    assert replayed.state() == direct.state()
    assert replayed.total == len(messages)
    assert total.hops == 0, "the engine adds the hops to the ledger, not a listener"
    assert [log.take() for log in logs] == [[], [], []]


def test_masks_need_three_clients_and_no_more() -> None:
    method = with_masks(mtcd.SVFL(stepsize=0.01))
    method.check(NETWORK)
    with pytest.raises(ConfigError, match="at least 3 clients"):
        method.check(make_network("path", ["a", "b"]))


@pytest.mark.parametrize("cut", [1, WINDOW - 1, WINDOW, WINDOW + 1, 2 * WINDOW + 5])
def test_a_tracer_from_a_checkpoint_goes_on_as_the_old_one(cut: int) -> None:
    ledger = Ledger()
    whole, before, after = (Tracer(3, 2, ledger) for _ in range(3))
    for number in range(3 * WINDOW + 7):
        if number == cut:
            after.restore(json.loads(json.dumps(before.state())))
        message = Message(
            number % 3,
            (number + 1) % 3,
            Token(0, number // 2, 1 + number % 2, np.zeros(1), 0.0),
            1,
            1,
        )
        ledger.hops += 1
        for tracer in (whole, before if number < cut else after):
            tracer.see(message)
    again = json.loads(json.dumps(after.state()))
    assert again == json.loads(json.dumps(whole.state()))
    assert [len(window) for window in again["windows"]] == [WINDOW] * 3 + [7]


@pytest.mark.parametrize(
    ("method", "words"),
    [
        (mtcd.SVFL(3), "SVFL, Q=3"),
        (mtcd.SVFL(3, batch=5), "SVFL, Q=3, B=5"),
        (mtcd.DCPA(), "DCPA (B)"),
        (mtcd.DCPA(stepsize=0.5, dual_stepsize=0.25), "DCPA (B), μ_w=0.5, μ_y=0.25"),
        (mtcd.STCD(2), "STCD, Q=2"),
        (mtcd.STCD(2, walk="tour"), "STCD, Q=2, tour"),
        (mtcd.STCD(2, local_solver="majorise"), "STCD, Q=2, majorise"),
        (
            mtcd.STCD(2, stepsize=0.1, walk="tour", acceleration="anderson", depth=3),
            "STCD, Q=2, tour, anderson (M=3)",
        ),
        (
            mtcd.STCD(2, stepsize=0.1, walk="tour", acceleration="momentum"),
            "STCD, Q=2, tour, momentum",
        ),
        (mtcd.STCD(walk="tour", acceleration="conjugate"), "STCD, Q=auto, tour, conjugate"),
        (
            mtcd.STCD(walk="tour", acceleration="anderson", stepsize=0.1),
            "STCD, Q=1, tour, anderson (M=5)",
        ),
        (mtcd.MTCD(2, 3, 4), "MTCD, Γ=2, S=3, Q=4, average"),
        (mtcd.MTCD(3, 4, 2, batch=6), "MTCD, Γ=3, S=4, Q=2, B=6, average"),
        (mtcd.MTCD(clusters="auto", hops=4), "MTCD, Γ=auto, S=4, Q=1, cluster"),
        (mtcd.MTCD(hops=3), "MTCD, Γ=1, S=3, Q=1, average"),
        (
            mtcd.MTCD(hops=3, batch=7, clusters=[["a"], ["b"], ["c"]]),
            "MTCD, Γ=3, S=3, Q=1, B=7, cluster",
        ),
        (mtcd.MTCD(hops=3, combine="cluster"), "MTCD, Γ=auto, S=3, Q=1, cluster"),
    ],
)
def test_methods_in_a_few_words(method: Method, words: str) -> None:
    assert method.describe() == words


@pytest.mark.parametrize(
    ("method", "alone"),
    [
        (mtcd.MTCD(), True),
        (mtcd.MTCD(1), True),
        (mtcd.MTCD(2), False),
        (mtcd.MTCD(2, combine="cluster"), True),
        (mtcd.MTCD(clusters=[["a"], ["b"]]), True),
        (mtcd.MTCD(1, combine="optimal"), False),
    ],
)
def test_whether_a_client_has_one_copy_at_most(method: mtcd.MTCD, alone: bool) -> None:
    assert method.one_token_per_client == alone


def test_messages_of_a_tree_have_one_number_for_each_pair_and_each_direction() -> None:
    bounds = mtcd.TreeCG().messages(NETWORK, 0, 12).bounds("a run")
    assert not bounds.server
    assert not mtcd.DCPA().messages(NETWORK, 0, 12).bounds("a run").server
    assert mtcd.SVFL().messages(NETWORK, 0, 12).bounds("a run").server
    for length in (5, 6, 7):
        told = Summand(0, np.zeros(12), np.zeros(length))
        if length == 6:
            told.check(bounds)
            assert told.floats == 12 + 6
        else:
            with pytest.raises(WireError, match="each pair"):
                told.check(bounds)
    for length in (1, 2, 3):
        told_down = Direction(0, np.zeros(12), np.zeros(length))
        if length == 2:
            told_down.check(bounds)
        else:
            with pytest.raises(WireError, match="each direction"):
                told_down.check(bounds)


def test_a_note_says_where_a_lone_token_stays() -> None:
    changing = with_changes(NETWORK, [Change(3, leave=["c1"])])
    expected = (
        "From iteration 3 on the clients present are in 2 components: the token stays in its "
        "component until the "
        "others can be reached again."
    )
    assert expected in mtcd.STCD(stepsize=0.01).notes(changing)
    assert expected not in mtcd.MTCD(2, 3, stepsize=0.01).notes(changing)
    assert mtcd.STCD(stepsize=0.01).notes(NETWORK) == ()


def test_all_messages_are_told_while_somebody_watches() -> None:
    """Also between the windows of a long training that are kept."""
    tracer, told, total = Tracer(3, 2, Ledger()), [], 3 * MOST_WINDOWS * WINDOW
    for number in range(total):
        payload = Token(0, number // 2, 1 + number % 2, np.zeros(1), 0.0)
        tracer.see(Message(number % 3, (number + 1) % 3, payload, 1, 1))
        if number % 100 == 0:
            told += [place for place, _ in tracer.latest()]
    assert tracer.spacing > WINDOW
    assert told == list(range(1, told[-1] + 1))
    assert told[-1] > total - 101


def test_terms_of_truncated_histories_are_dropped() -> None:
    assert live_terms({}) == {}
    assert live_terms({1: 3, 2: 5, 3: 4}) == {3: 4, 1: 3}
    assert live_terms({1: 4, 2: 4}) == {2: 4}
    assert live_terms({1: 1, 2: 2, 3: 3}) == {1: 1, 2: 2, 3: 3}


def test_no_status_is_longer_than_its_bound() -> None:
    chunks: Any = []
    longest = "a" * LONGEST_STATUS
    field = Status()
    field.name = "status"
    field.write(longest, chunks)
    assert sum(map(len, chunks)) == field.most(Bounds("a run", 3, frozenset(), (12,)))
    with pytest.raises(WireError):
        field.write(longest + "a", chunks)


def test_the_penalty_s_curvature_has_no_negative_part() -> None:
    axes = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]
    bend, expected = (
        (axes * np.array(values)) @ axes.T for values in ([-1e-3, 1.0, 2.0], [0.0, 1.0, 2.0])
    )
    np.testing.assert_allclose(without_negative(bend), expected, atol=1e-12)
    assert np.isnan(without_negative(np.full((2, 2), np.nan))).all()  # of a token that diverged


def test_views_of_changes_within_one_tour_begin_together() -> None:
    """The tour that is under way ends first, also where those after it are shorter."""
    network = make_network("path", [f"c{k}" for k in range(6)])
    changing = with_changes(
        network, [Change(1, leave=["c2", "c3", "c4", "c5"]), Change(2, join=["c2"])]
    )
    method = mtcd.STCD(1, 0.01, walk="tour", acceleration="anderson", start="c0")
    roaming: Any = method.plan(12, 1, changing, 0).roaming
    begins = [view.begins for view in roaming.views]
    assert begins == sorted(begins)
    assert begins[-1] == roaming.views[0].walks[0].length == 10


def test_a_block_without_curvature_keeps_its_parameters() -> None:
    data = mtcd.split(
        np.column_stack([np.arange(5.0), np.zeros(5)]), np.arange(5.0) ** 2, {"a": [0], "b": [1]}
    )
    method = mtcd.STCD(walk="tour", acceleration="conjugate")
    run = mtcd.train(data, mtcd.Glm("linear"), "path", method, mtcd.Stop(iterations=12))
    np.testing.assert_allclose(run.coefficients, [100 / 30, 0.0], rtol=1e-6)


def test_gains_on_a_token_are_known_or_not_but_never_negative() -> None:
    bounds = Bounds("a run", 3, frozenset(), (2,), tokens=1).with_slots("gains", gains=3)

    def carrying(*gains: float) -> Token:
        return Token(0, 0, 0, np.zeros(2), 0.0, slots={"gains": np.array(gains)})

    carrying(0.5, UNKNOWN, 0.0).check(bounds)
    with pytest.raises(WireError, match="a negative number"):
        carrying(0.5, -0.5, 0.0).check(bounds)
