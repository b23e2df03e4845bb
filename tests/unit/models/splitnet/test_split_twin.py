"""The parties of split networks against ``testing/references/splitnet.py``, and against special
cases."""

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import mtcd
from mtcd.methods.mtcd.mtcd import MTCD, STCD
from mtcd.methods.mtcd.roaming import plan_roaming
from mtcd.methods.svfl.svfl import SVFL
from mtcd.testing.references import splitnet as reference
from split_problems import (
    SplitCase,
    case,
    same_weights,
    split_cases,
    split_settings,
    weights_of,
)
from split_references import check_equal, how, task, twin_of_mtcd


@given(st.data())
@settings(max_examples=40)
def test_mtcd_equals_its_plain_twin(data: st.DataObject) -> None:
    one = data.draw(split_cases())
    method = data.draw(split_settings(one))
    T = data.draw(st.integers(1, 4))
    run = one.train(method, mtcd.Stop(iterations=T * method.hops))
    assume(run.status != "diverged")  # there is no model then; it happens, if rarely
    assert run.final.syncs == T
    check_equal(run, *twin_of_mtcd(one, method, T))


@given(split_cases(connected=True), st.data())
@settings(max_examples=25)
def test_stcd_equals_its_plain_twin(one: SplitCase, data: st.DataObject) -> None:
    where = data.draw(st.sampled_from([None, "each", *one.data.clients]))
    first_pass = data.draw(st.booleans())
    method = STCD(data.draw(st.integers(1, 3)), 0.1, fusion_client=where, first_pass=first_pass)
    hops = data.draw(st.integers(1, 12))
    run = one.train(method, mtcd.Stop(iterations=hops))
    K = one.network.size
    fusing = (
        range(K) if where == "each" else [0 if where is None else one.data.clients.index(where)]
    )
    roaming = plan_roaming(one.network, 1, None, "lazy", None, one.seed, None)
    check_equal(
        run,
        *reference.stcd(
            task(one), roaming, how(one, method, 0), frozenset(fusing), hops, first_pass
        ),
    )


@given(
    split_cases(),
    st.integers(1, 3),
    st.sampled_from([None, 1, 4]),
    st.integers(1, 4),
    st.sampled_from([None, 2]),
)
@settings(max_examples=25)
def test_svfl_equals_its_plain_twin(
    one: SplitCase, Q: int, batch: int | None, rounds: int, fusion_updates: int | None
) -> None:
    method = SVFL(Q, 0.03, batch, mtcd.Schedule(every=1), fusion_updates)
    run = one.train(method, mtcd.Stop(iterations=rounds))
    check_equal(
        run, *reference.svfl(task(one), how(one, method, fusion_updates or Q), rounds)[rounds]
    )


@pytest.mark.parametrize("batch", [None, 4])
@pytest.mark.parametrize("aggregation", ["sum", "mean", "concat"])
def test_without_edges_mtcd_is_svfl(aggregation: str, batch: int | None) -> None:
    """Each client is its own cluster, one hop: the same weights; but a token also pays for its
    hop."""
    one = case(aggregation=aggregation, count=13)
    alone = SplitCase(one.data, one.model, mtcd.network_from_edges([], one.data.clients), one.seed)
    clusters = [[client] for client in one.data.clients]
    T, K = 9, 4
    tokens = MTCD(hops=1, local_updates=2, stepsize=0.1, batch=batch, clusters=clusters)
    ours, theirs = (
        alone.train(method, mtcd.Stop(iterations=T)) for method in (tokens, SVFL(2, 0.1, batch))
    )
    if batch is not None or aggregation == "concat":
        assert same_weights(weights_of(ours), weights_of(theirs))
    # the sync adds up changes where SVFL asks everybody
    for name, value in weights_of(theirs).items():
        torch.testing.assert_close(weights_of(ours)[name], value, rtol=1e-5, atol=1e-6)
    assert ours.ledger.messages("sent") == theirs.ledger.messages("sent")
    assert ours.ledger.messages("sent") == {
        "client_client": 0,
        "uplink": K * (T + 1),
        "downlink": K * T,
    }
    assert ours.ledger.messages()["client_client"] == K * T
    assert theirs.ledger.messages()["client_client"] == 0
    assert (ours.ledger.hops, theirs.ledger.hops) == (K * T, 0)
    same_floats = ours.ledger.floats("sent") == theirs.ledger.floats("sent")
    # with the full batch a whole token goes up, not one representation
    assert same_floats == (batch is not None)
