"""Changes in single precision: both ends agree, half the bytes, and accelerations lose nothing."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mtcd
from mtcd.core.errors import ConfigError
from mtcd.methods.mtcd.mtcd import MTCD, STCD
from mtcd.protocol.codec.records import pack, unpack
from mtcd.protocol.token import Token
from mtcd.protocol.transports.delta32 import Delta32
from mtcd.protocol.transports.transport import TRANSPORTS
from problems import MODELS, make_data

RIDGE = MODELS[0]
SMOOTH = [model for model in MODELS if model.l2_weight and not model.l1]
STCD_SETTINGS: dict[str, Any] = {"walk": "tour", "transport": "delta32"}


def token(values: list[float], index: int = 0) -> Token:
    return Token(index, 0, 0, np.array(values), 0.0)


def test_both_ends_keep_the_same_and_errors_are_those_of_the_change() -> None:
    rng = np.random.default_rng(0)
    sender, receiver = Delta32(), Delta32()
    Z = 1e3 * rng.standard_normal(50)
    for size in (1.0, 1e-3, 1e-6):
        Z = Z + size * rng.standard_normal(50)
        before = sender.told.get(7, {}).get(0, np.zeros(50))
        sent = sender.sent(token(list(Z)), 7)
        assert sent.aggregate.dtype == np.float32
        got = receiver.received(sent, 3).aggregate
        np.testing.assert_array_equal(got, sender.told[7][0])
        assert (np.abs(got - Z) <= 2.0**-24 * np.abs(Z - before)).all()
        got += 1.0  # the party goes on with it in place
        np.testing.assert_array_equal(receiver.heard[3][0], sender.told[7][0])
    # rounded as a whole it would be wrong by more than a thousand times as much
    assert np.abs(np.float32(Z) - Z).max() > 1e3 * np.abs(got - 1.0 - Z).max()


def test_links_and_tokens_are_kept_apart() -> None:
    sender = Delta32()
    sender.sent(token([1.0]), 1)
    sender.sent(token([10.0]), 2)
    sender.sent(token([100.0], index=1), 1)
    assert sender.sent(token([1.5]), 1).aggregate == pytest.approx([0.5])
    assert sender.sent(token([10.5]), 2).aggregate == pytest.approx([0.5])
    assert sender.sent(token([100.5], index=1), 1).aggregate == pytest.approx([0.5])


def test_what_is_sent_again_is_the_same_and_an_engine_may_do_both_ends() -> None:
    sender = Delta32()
    first = sender.sent(token([1.0, 2.0]), 1)
    again = sender.sent(first, 1)
    np.testing.assert_array_equal(again.aggregate, np.float32([1.0, 2.0]))
    both = Delta32()
    np.testing.assert_array_equal(both.passed(token([1.0, 2.0]), 0, 1).aggregate, [1.0, 2.0])
    assert not both.heard, "the engine needs one end only"


@pytest.mark.parametrize("acceleration", ["conjugate", "momentum", "anderson"])
@pytest.mark.parametrize("model", SMOOTH, ids=str)
@pytest.mark.parametrize("network", ["path", "star", "complete"])
def test_accelerations_take_the_same_hops_to_small_gaps(
    model: mtcd.Glm, network: str, acceleration: str
) -> None:
    """Of Anderson's, one extrapolation that is refused or not makes a difference of some tours."""
    data = make_data(model, 60, [3, 4, 2, 5, 3], seed=7)
    stop = mtcd.Stop(gap=1e-7, iterations=20_000)
    hops = {}
    for transport in ("float64", "delta32"):
        settings = {**STCD_SETTINGS, "transport": transport}
        method = STCD(5, acceleration=acceleration, **settings)
        run = mtcd.train(data, model, network, method, stop)
        assert run.status == "converged"
        # the last measurement is of the models: the gap that the token showed was right
        assert run.final.gap is not None
        assert abs(run.final.gap) < 1.5e-7
        hops[transport] = run.final.iteration
    tour = 8
    assert abs(hops["delta32"] - hops["float64"]) <= max(4 * tour, 0.05 * hops["float64"])


def test_it_takes_half_the_bytes() -> None:
    data = make_data(RIDGE, 60, [3, 4, 2, 5, 3], seed=7)
    stop = mtcd.Stop(iterations=80)
    settings = {"stepsize": 0.001, "acceleration": "momentum"}
    plain, half = (
        mtcd.train(data, RIDGE, "path", STCD(5, walk="tour", transport=name, **settings), stop)
        for name in ("float64", "delta32")
    )
    assert plain.ledger.floats("sent") == half.ledger.floats("sent")
    sent = [run.ledger.bytes("sent")["client_client"] for run in (plain, half)]
    assert 0.5 <= sent[1] / sent[0] < 0.52  # weights keep eight bytes


def test_a_token_per_cluster_has_it_too() -> None:
    data = make_data(RIDGE, 60, [3, 4, 2, 5, 3, 2], seed=7)
    stop = mtcd.Stop(gap=1e-7, iterations=20_000)
    settings = {"combine": "cluster", "clusters": [[0, 1, 2], [3, 4, 5]], "hops": 6}
    runs = [
        mtcd.train(
            data,
            RIDGE,
            "path",
            MTCD(
                local_updates=5,
                walk="tour",
                acceleration="conjugate",
                transport=transport,
                **settings,
            ),
            stop,
        )
        for transport in ("float64", "delta32")
    ]
    assert [run.status for run in runs] == ["converged"] * 2
    assert abs(runs[1].final.iteration - runs[0].final.iteration) <= 12


def test_a_training_resumes_as_if_it_had_not_stopped(tmp_path: Any) -> None:
    data = make_data(RIDGE, 60, [3, 4, 2, 5, 3], seed=7)
    method = STCD(5, 0.001, acceleration="conjugate", **STCD_SETTINGS)

    def train(iterations: int, **how: Any) -> mtcd.Run:
        stop = mtcd.Stop(iterations=iterations)
        return mtcd.train(data, RIDGE, "path", method, stop, checkpoint=tmp_path, **how)

    whole = mtcd.train(data, RIDGE, "path", method, mtcd.Stop(iterations=96))
    train(48)
    resumed = train(96, resume=True)
    np.testing.assert_array_equal(resumed.coefficients, whole.coefficients)


@pytest.mark.parametrize("kind", ["stcd", "mtcd"])
def test_a_federation_does_as_one_process_does(kind: str, tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    from live import federate, in_process
    from own_parts import model_section

    data = make_data(RIDGE, 20, [2, 1, 3, 2], seed=3)
    method = {
        "kind": kind,
        "walk": "tour",
        "acceleration": "conjugate",
        "stepsize": 0.005,
        "transport": "delta32",
    }
    if kind == "mtcd":
        method |= {"combine": "cluster", "clusters": [["c0", "c1"], ["c2", "c3"]], "hops": 4}
    left = federate(
        tmp_path,
        data,
        network={"kind": "path"},
        model=model_section(RIDGE),
        method=method,
        stop={"iterations": 48},
        seed=5,
        labels__shared_with=["parties", "server"] if kind == "mtcd" else ["parties"],
        **({"server": None} if kind == "stcd" else {}),
    )
    same = in_process(data, left.bundles[data.clients[0]])
    for client, theta in same.parameters.items():
        np.testing.assert_array_equal(left.blocks[client].theta, theta)
    assert left.ledger.floats("sent") == same.ledger.floats("sent")
    assert left.ledger.float_bytes == same.ledger.float_bytes == 4


def test_both_ends_of_a_link_survive_a_restart() -> None:
    """As a journal keeps them; the receiver's end is used in federations alone."""
    sender, receiver = Delta32(), Delta32()
    receiver.received(sender.sent(token([1.0, -2.0]), 4), 3)
    again = Delta32(), Delta32()
    for new, old in zip(again, (sender, receiver), strict=True):
        new.restore(unpack(pack(old.state())))
    got = again[1].received(again[0].sent(token([1.5, -2.0]), 4), 3)
    np.testing.assert_array_equal(got.aggregate, [1.5, -2.0])


def test_it_is_for_accelerations_alone() -> None:
    with pytest.raises(ConfigError, match="delta32 is for methods with acceleration"):
        STCD(transport="delta32")
    with pytest.raises(ConfigError, match="delta32 is for methods with acceleration"):
        mtcd.SVFL(transport="delta32")
    with pytest.raises(ConfigError, match="transport: delta32"):
        STCD(walk="tour", acceleration="conjugate", transport="float32")
    with pytest.raises(ConfigError, match="delta32 is for methods with acceleration"):
        MTCD(combine="optimal", transport="delta32")
    assert TRANSPORTS["delta32"] is Delta32
