"""DCPA: the same iterates as its plain version, the optimum, and its place in the library."""

import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from any_order import check_any_order
from mtcd.core.errors import ConfigError, NetworkError
from mtcd.data.synthetic import synthetic
from mtcd.engines.local import LocalEngine
from mtcd.engines.lockstep import LockstepEngine
from mtcd.methods.dcpa.dcpa import DCPA, metropolis_weights
from mtcd.methods.dcpa.reference import dcpa
from mtcd.methods.method import Method
from mtcd.methods.tree_cg.tree_cg import TreeCG
from mtcd.models.glm.model import Glm
from mtcd.network.edges import network_from_edges
from mtcd.network.topology import make_network
from mtcd.protocol.ledger.costs import Costs
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.protocol.party import Parties
from mtcd.training.stop import Stop
from mtcd.training.train import train
from problems import MODELS, Case, cases, make_data, networks

ONE_OUTPUT = [model for model in MODELS if model.kind != "multinomial"]


@st.composite
def dcpa_settings(draw: st.DrawFn) -> DCPA:
    variant = draw(st.sampled_from(["A", "B"]))
    mu_x = draw(st.sampled_from([0.01, 0.2])) if variant == "A" else None
    return DCPA(
        draw(st.sampled_from([0.01, 0.05])), draw(st.sampled_from([None, 0.02])), mu_x, variant
    )


def dcpa_cases() -> st.SearchStrategy[Case]:
    return cases(connected=True).filter(lambda case: case.model.kind != "multinomial")


def start(case: Case, method: DCPA) -> Parties:
    return method.parties(case.model.problem(case.data), case.network, case.seed)


def assert_close(ours: list[np.ndarray], theirs: list[np.ndarray]) -> None:
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-10)


@given(dcpa_cases(), dcpa_settings())
@settings(max_examples=80)
def test_both_engines_give_the_iterates_of_the_plain_version(case: Case, method: DCPA) -> None:
    T = 7
    plain = dcpa(case.model.problem(case.data), case.network, method, T)
    parties = start(case, method)
    told = list(itertools.islice(LocalEngine(parties, Ledger()).run(), T + 1))
    assert [progress.hop for progress in told] == list(range(T + 1))
    for progress, iterate in zip(told, plain, strict=True):
        assert_close(progress.parameters, iterate)
    together = start(case, method)
    for progress, iterate in zip(LockstepEngine(together, Ledger()).run(), plain, strict=False):
        assert_close([client.parameters() for client in together.clients], iterate)
        assert progress.parameters is None


@given(dcpa_cases(), dcpa_settings(), st.integers(0, 100))
@settings(max_examples=40)
def test_the_order_of_deliveries_does_not_matter(case: Case, method: DCPA, seed: int) -> None:
    check_any_order(lambda: start(case, method), seed)


@given(st.integers(2, 8).flatmap(lambda size: networks(size, connected=True)))
def test_two_messages_per_link_and_iteration_are_sent_and_charged(network) -> None:
    data = make_data(MODELS[0], 9, [1] * network.size, seed=1)
    case, method, T = Case(data, MODELS[0], network, 0), DCPA(0.01), 6
    ledger, messages = Ledger(), Ledger()
    next(itertools.islice(LockstepEngine(start(case, method), ledger).run(), T, None))
    expected = 2 * network.edges * T
    assert ledger.messages("sent") == ledger.messages("charged")
    assert ledger.messages() == {"client_client": expected, "uplink": 0, "downlink": 0}
    assert ledger.floats()["client_client"] == 9 * expected
    assert Costs(50).total(ledger) == pytest.approx(
        T * method.prices(network, 1).iteration(Costs(50))
    )
    # one by one, some clients have begun the next iteration when the last one ends this one: that
    # counts later
    next(itertools.islice(LocalEngine(start(case, method), messages).run(), T, None))
    assert messages.messages() == ledger.messages()
    assert messages.floats() == ledger.floats()


@pytest.mark.parametrize("variant", ["B", "A"])
@pytest.mark.parametrize("network", ["path", "complete", "star"])
def test_it_reaches_the_closed_form_of_ridge(variant: str, network: str) -> None:
    data = synthetic("ridge", samples=60, features=30, clients=6, seed=4)
    run = train(
        data,
        Glm("ridge", alpha=2.0),
        network,
        DCPA(variant=variant),
        Stop(gap=1e-13, iterations=20_000),
    )
    X = np.hstack(data.blocks)
    best = np.linalg.solve(X.T @ X + 2.0 * np.eye(30), X.T @ data.labels)
    np.testing.assert_allclose(run.coefficients, best, atol=1e-5)
    assert run.ledger.messages()["uplink"] == 0


@pytest.mark.parametrize("model", [*ONE_OUTPUT, Glm("logistic", l1=0.5)], ids=str)
@pytest.mark.parametrize("variant", ["B", "A"])
def test_auto_step_sizes_reach_the_optimum(model: Glm, variant: str) -> None:
    data = make_data(model, 40, [3, 2, 4, 1], seed=5)
    run = train(data, model, "cycle", DCPA(variant=variant), Stop(gap=1e-6, iterations=100_000))
    assert run.status == "converged"
    assert "primal-dual" in run.notes[0]


def test_one_client_alone_works_too() -> None:
    data = make_data(MODELS[0], 20, [5], seed=5)
    assert train(data, MODELS[0], "path", DCPA(), Stop(gap=1e-6)).status == "converged"


@pytest.mark.parametrize("method", [DCPA(), TreeCG()], ids=["dcpa", "tree-cg"])
def test_the_baselines_without_a_server_make_one_step_an_iteration_on_all_samples(
    method: Method,
) -> None:
    assert (method.local_updates, method.batch) == (1, None)
    assert (method.has_server, method.gradient_steps) == (False, False)


def test_too_large_a_step_is_told_without_a_limit_that_does_not_apply() -> None:
    data = make_data(MODELS[0], 20, [5, 3], seed=5)
    run = train(
        data, MODELS[0], "path", DCPA(stepsize=50.0, dual_stepsize=1.0), Stop(iterations=500)
    )
    assert run.status == "diverged"
    assert "likely to work up to" in run.message
    assert "client alone" not in run.message


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: DCPA(variant="C"), "variant"),
        (lambda: DCPA(dual_stepsize=0.0), "dual_stepsize"),
        (lambda: DCPA(dual_stepsize="auto"), "dual_stepsize"),
        (lambda: DCPA(consensus_stepsize=0.1), "variant A"),
        (lambda: DCPA(stepsize=-1), "stepsize"),
    ],
)
def test_settings_that_cannot_work_are_refused(make, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        make()


def test_what_it_cannot_train_is_refused() -> None:
    data = make_data(MODELS[0], 10, [1, 1, 1], seed=0)
    with pytest.raises(NetworkError, match="dcpa needs a connected network"):
        train(data, MODELS[0], "empty", DCPA(), Stop(iterations=1))
    classes = make_data(Glm("multinomial"), 12, [1, 1, 1], seed=0)
    with pytest.raises(ConfigError, match="one number per sample"):
        train(classes, Glm("multinomial"), "path", DCPA(0.1), Stop(iterations=1))


@given(st.integers(1, 8).flatmap(networks))
def test_metropolis_weights_are_doubly_stochastic_and_local(network) -> None:
    A = metropolis_weights(network).toarray()
    np.testing.assert_allclose(A, A.T)
    np.testing.assert_allclose(A.sum(axis=1), 1.0)
    assert (A >= -1e-15).all()
    links = nx.to_numpy_array(network.graph) + np.eye(network.size)
    assert (A[links == 0] == 0).all()
    assert ((A > 0) | (np.eye(network.size) > 0))[links > 0].all()


def test_metropolis_weights_by_hand() -> None:
    """A star of three leaves, and one more link: degrees 3, 2, 2, 1."""
    network = network_from_edges([(0, 1), (0, 2), (0, 3), (1, 2)], ["a", "b", "c", "d"])
    expected = [[1, 1, 1, 1], [1, 5 / 3, 4 / 3, 0], [1, 4 / 3, 5 / 3, 0], [1, 0, 0, 3]]
    assert metropolis_weights(network).toarray() == pytest.approx(np.array(expected) / 4)
    assert metropolis_weights(make_network("empty", ["a", "b"])).toarray().tolist() == [
        [1.0, 0.0],
        [0.0, 1.0],
    ]
