"""What was sent and what is charged, against the formulas of the paper."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from mtcd.core.errors import ConfigError
from mtcd.engines.local import LocalEngine
from mtcd.methods.method import Method
from mtcd.methods.mtcd.client import Done
from mtcd.methods.mtcd.mtcd import MTCD, STCD
from mtcd.methods.svfl.svfl import SVFL
from mtcd.models.glm.model import Glm
from mtcd.models.trees.gains import ComparedGains
from mtcd.network.topology import make_network
from mtcd.protocol.ledger.costs import Costs, Sizes
from mtcd.protocol.ledger.ledger import CLIENT_CLIENT, DOWNLINK, UPLINK, Ledger
from mtcd.protocol.ledger.record import record
from mtcd.protocol.party import SERVER, Begin, Message
from mtcd.protocol.token import Token
from problems import MODELS, make_data

N, K, R = 20, 8, 50.0


def after(
    method: Method, iterations: int, model: Glm = MODELS[0], network: str = "cycle"
) -> Ledger:
    """The ledger when the parties first hold the model of this iteration."""
    data = make_data(model, N, [2] * K, seed=2)
    ledger = Ledger()
    parties = method.parties(model.problem(data), make_network(network, data.clients), 3)
    next(itertools.islice(LocalEngine(parties, ledger).run(), iterations, None))
    return ledger


@pytest.mark.parametrize("T", [0, 1, 7])
@pytest.mark.parametrize(("tokens", "S"), [(1, 5), (3, 1), (4, 6)])
@pytest.mark.parametrize("combine", ["average", "cluster"])
def test_mtcd_full_batch_is_charged_two_gamma_and_a_hop_per_visit(T, tokens, S, combine) -> None:
    ledger = after(MTCD(tokens=tokens, hops=S, stepsize=1e-4, combine=combine), T)
    assert ledger.messages() == {
        "client_client": T * S * tokens,
        "uplink": T * tokens,
        "downlink": T * tokens,
    }
    assert ledger.floats() == {link: N * count for link, count in ledger.messages().items()}
    assert Costs(R).total(ledger) == pytest.approx(T * (2 * tokens + S * tokens / R))
    assert ledger.hops == T * S * tokens


@pytest.mark.parametrize("T", [0, 1, 7])
@pytest.mark.parametrize(("tokens", "S", "B"), [(1, 5, 4), (3, 2, 20)])
def test_mtcd_mini_batch_is_charged_an_uplink_from_everybody(T, tokens, S, B) -> None:
    ledger = after(MTCD(tokens=tokens, hops=S, stepsize=1e-4, batch=B), T)
    assert ledger.messages() == {
        "client_client": T * S * tokens,
        "uplink": T * K,
        "downlink": T * tokens,
    }
    assert ledger.floats() == {link: B * count for link, count in ledger.messages().items()}
    assert Costs(R).total(ledger) == pytest.approx(T * (K + tokens + S * tokens / R))


@pytest.mark.parametrize(("T", "batch"), [(0, None), (1, None), (6, None), (6, 5)])
def test_svfl_is_charged_two_k_per_round(T, batch) -> None:
    ledger = after(SVFL(stepsize=1e-4, batch=batch), T)
    assert ledger.messages("charged") == ledger.messages("sent")
    assert ledger.messages() == {"client_client": 0, "uplink": T * K, "downlink": T * K}
    assert ledger.floats()["uplink"] == T * K * (batch or N)
    assert Costs(R).total(ledger) == T * 2 * K


@pytest.mark.parametrize("hops", [0, 1, 500])
def test_stcd_is_charged_a_hop_per_visit_and_sends_none_when_it_stays(hops) -> None:
    ledger = after(STCD(stepsize=1e-4), hops)
    assert ledger.messages() == {"client_client": hops, "uplink": 0, "downlink": 0}
    assert Costs(R).total(ledger) == pytest.approx(hops / R)
    sent = ledger.messages("sent")["client_client"]
    assert sent + ledger.unsent_hops == hops
    if hops == 500:  # a lazy walk on a cycle stays put one time in three
        assert 280 < sent < 390


def test_on_a_network_without_edges_nothing_is_sent_between_clients() -> None:
    ledger = after(MTCD(tokens=2, hops=9, stepsize=1e-4), 3, network="empty")
    assert ledger.messages("sent")["client_client"] == 0
    assert ledger.messages("charged")["client_client"] == 3 * 2 * 9


def test_the_last_hop_before_a_sync_is_charged_but_not_sent() -> None:
    ledger = after(MTCD(tokens=2, hops=1, stepsize=1e-4), 5)
    assert ledger.messages("sent") == {"client_client": 0, "uplink": 10, "downlink": 10}
    assert ledger.messages("charged")["client_client"] == 10


def test_a_visitors_token_is_twice_as_long_and_a_multinomial_one_has_a_number_per_class() -> None:
    visitors = after(MTCD(tokens=2, hops=3, stepsize=1e-4, combine="visitors"), 1)
    assert visitors.floats() == {
        "client_client": 2 * 3 * 2 * N,
        "uplink": 2 * 2 * N,
        "downlink": 2 * N,
    }
    batch = after(MTCD(tokens=2, hops=3, stepsize=1e-4, combine="visitors", batch=5), 1)
    assert batch.floats() == {"client_client": 2 * 3 * 5, "uplink": K * 5, "downlink": 2 * 5}, (
        "there it need not be"
    )
    classes = after(MTCD(tokens=2, hops=3, stepsize=1e-4), 1, model=Glm("multinomial", l2=0.1))
    assert classes.floats() == {
        "client_client": 2 * 3 * 3 * N,
        "uplink": 2 * 3 * N,
        "downlink": 2 * 3 * N,
    }


def test_signals_without_numbers_are_not_counted() -> None:
    ledger = Ledger()
    record(Message(SERVER, 0, "a question"), ledger)
    assert ledger == Ledger()


def test_messages_are_of_one_size_and_numbers_of_eight_bytes_unless_said_otherwise() -> None:
    assert Sizes() == Sizes.same(1.0)
    assert Ledger().float_bytes == 8


def test_hops_cost_a_hundredth_unless_said_otherwise() -> None:
    assert Costs().total(Ledger([200, 3, 4], [0, 0, 0])) == 2 + 3 + 4


def test_a_message_or_a_number_in_it_is_priced_by_its_link() -> None:
    costs = Costs(ratio=0.5)
    assert (costs.with_server(7.0), costs.between_clients(7.0)) == (1.0, 2.0)
    assert (costs.by("float").with_server(7.0), costs.by("float").between_clients(7.0)) == (
        7.0,
        14.0,
    )


def test_a_new_ledger_has_nothing_on_it() -> None:
    nothing = [0, 0, 0]
    assert Ledger() == Ledger(nothing, nothing, 0, 0, 0, 8, nothing, 0)
    assert Ledger().bytes("charged") == {"client_client": 0, "uplink": 0, "downlink": 0}
    assert (CLIENT_CLIENT, UPLINK, DOWNLINK) == (0, 1, 2)  # in checkpoints


def test_several_messages_are_recorded_at_once_and_some_numbers_are_wide() -> None:
    ledger = Ledger(float_bytes=4)
    ledger.record(DOWNLINK, 5)
    ledger.record(UPLINK, 7, messages=3, wide=2)
    assert (ledger.message_counts, ledger.float_counts, ledger.wide_counts) == (
        [0, 3, 1],
        [0, 21, 5],
        [0, 6, 0],
    )
    assert ledger.bytes("sent") == {"client_client": 0, "uplink": 15 * 4 + 6 * 8, "downlink": 5 * 4}


def test_ledgers_of_parties_are_summed_in_each_of_their_counts() -> None:
    one = Ledger([1, 2, 3], [4, 5, 6], 7, 8, 9, 4, [10, 11, 12], 13)
    two = Ledger([20, 30, 40], [50, 60, 70], 80, 90, 100, 4, [110, 120, 130], 140)
    whole = Ledger([21, 32, 43], [54, 65, 76], 87, 98, 109, 4, [120, 131, 142], 153)
    assert Ledger.total([one, two]) == whole
    assert Ledger.total([]) == Ledger()
    assert Ledger(**whole.to_dict()) == whole  # type: ignore[arg-type]


def test_a_ledger_adds_up() -> None:
    ledger = Ledger()
    for link, floats in ((CLIENT_CLIENT, 10), (CLIENT_CLIENT, 5), (UPLINK, 7), (DOWNLINK, 1)):
        ledger.record(link, floats)
    ledger.record_unsent_hop(100)
    assert ledger.messages("sent") == {"client_client": 2, "uplink": 1, "downlink": 1}
    assert ledger.floats("sent") == {"client_client": 15, "uplink": 7, "downlink": 1}
    assert ledger.messages("charged")["client_client"] == 3
    assert ledger.floats("charged")["client_client"] == 115
    assert Costs(ratio=4, account="sent").total(ledger) == 2 + 2 / 4
    assert Costs(ratio=4).total(ledger) == 2 + 3 / 4
    assert Costs(ratio=4).total(ledger, "sent") == 2 + 2 / 4
    assert Costs(ratio=4, per="float").total(ledger) == 7 + 1 + 115 / 4
    assert Costs(ratio=4, account="sent", per="float").total(ledger) == 7 + 1 + 15 / 4
    assert Costs(ratio=4).both(ledger) == {"message": 2 + 3 / 4, "float": 8 + 115 / 4}


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"ratio": 0}, "costs.ratio"),
        ({"ratio": -1}, "costs.ratio"),
        ({"ratio": float("inf")}, "costs.ratio"),
        ({"account": "both"}, "costs.account is 'charged' or 'sent', but is 'both'"),
        ({"per": "byte"}, "costs.per is 'message' or 'float', but is 'byte'"),
    ],
)
def test_costs_that_make_no_sense_are_refused(settings, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        Costs(**settings)


@pytest.mark.parametrize(
    "method",
    [
        MTCD(tokens=3, hops=4, stepsize=1e-4),
        MTCD(tokens=3, hops=4, stepsize=1e-4, batch=5),
        MTCD(tokens=3, hops=4, stepsize=1e-4, combine="visitors"),
        SVFL(stepsize=1e-4),
        SVFL(stepsize=1e-4, batch=5),
        STCD(stepsize=1e-4),
    ],
    ids=lambda method: method.describe(),
)
@pytest.mark.parametrize("model", [MODELS[0], Glm("multinomial")], ids=lambda model: model.kind)
@pytest.mark.parametrize("per", ["message", "float"])
def test_the_expected_cost_of_an_iteration_is_what_is_then_charged(
    method: Method, model: Glm, per: str
) -> None:
    tokens, costs, ledger = (
        3 if method.kind == "mtcd" else 0,
        Costs(R, per=per),
        after(method, 5, model),
    )
    network = make_network("cycle", [f"c{k}" for k in range(K)])
    outputs = model.problem(make_data(model, N, [2] * K, seed=2)).outputs
    sizes = method.messages(network, 3, N, outputs).sizes
    assert costs.total(ledger) == pytest.approx(
        5 * method.prices(network, tokens).iteration(costs, sizes)
    )


@pytest.mark.parametrize("hops", [3, None])
def test_tokens_with_gains_have_one_more_number_for_each_client(hops: int | None) -> None:
    """Trees that are grown where they gain most: with a server, the change of the combined model
    comes on top."""
    network = make_network("cycle", [f"c{k}" for k in range(K)])
    gains = (ComparedGains(K),)
    method = MTCD(
        1 if hops is None else 2, hops, stepsize=1e-4, combine=hops and "visitors", features=gains
    )
    aggregate = 2 * N
    uplink = aggregate if hops is None else 2 * aggregate
    assert method.messages(network, 3, N, 2).sizes == Sizes(uplink + K, aggregate + K, uplink + K)


def token(extra: int = 0) -> Token:
    return Token(0, 0, 0, np.zeros(2), 0.0, slots={"gains": np.zeros(extra)} if extra else {})


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (
            Message(0, 1, token(extra=3), 5, 5),
            Ledger([1, 0, 0], [5, 0, 0], hops=1, wide_counts=[3, 0, 0]),
        ),
        (Message(0, 1, token(extra=3), 5), Ledger([1, 0, 0], [5, 0, 0], wide_counts=[3, 0, 0])),
        (Message(0, 0, token(extra=3), 5, 5), Ledger(hops=1, unsent_hops=1, unsent_floats=5)),
        (Message(0, 0, token(extra=3), 5), Ledger()),
        (
            Message(0, SERVER, token(), 2, 3, unchanged=True),
            Ledger([0, 1, 0], [0, 2, 0], 1, 1, 3, unchanged=1),
        ),
        (Message(0, SERVER, Done(0), 0, 3), Ledger(hops=1, unsent_hops=1, unsent_floats=3)),
        (
            Message(SERVER, 2, token(extra=1), 3),
            Ledger([0, 0, 1], [0, 0, 3], wide_counts=[0, 0, 1]),
        ),
        (Message(0, SERVER, Begin()), Ledger()),
    ],
)
def test_a_message_is_recorded_by_its_link_its_numbers_and_its_hop(
    message: Message, expected: Ledger
) -> None:
    single = Ledger(float_bytes=4)
    record(message, single)
    assert single == replace(expected, float_bytes=4)
    double = Ledger()
    record(message, double)
    assert double == replace(expected, wide_counts=[0, 0, 0])  # all are as wide
