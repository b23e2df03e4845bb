"""Conjugate gradients on a spanning tree: the textbook's iterates, the optimum, what is sent, what
is refused."""

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

import mtcd
from any_order import check_any_order
from commands import outcome, run
from mtcd.core.errors import ConfigError, NetworkError, WireError
from mtcd.data.checks import LARGEST
from mtcd.engines.local import LocalEngine
from mtcd.methods.tree_cg.reference import tree_cg
from mtcd.methods.tree_cg.tree_cg import COEFFICIENTS, INNER_PRODUCTS, Direction, Summand, TreeCG
from mtcd.models.glm.model import Glm
from mtcd.network.topology import Network, make_network
from mtcd.protocol.ledger.costs import Costs
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.protocol.party import MONITOR, Progress
from mtcd.training.stop import Stop
from mtcd.training.train import train
from problems import MODELS, Case, cases, make_data, networks

SMOOTH = [model for model in MODELS if not model.l1] + [Glm("linear"), Glm("squared-hinge", l2=0.1)]


def smooth_cases() -> st.SearchStrategy[Case]:
    return cases(connected=True).filter(lambda case: not case.model.l1)


def moments(case: Case, count: int, ledger: Ledger | None = None) -> list[Progress]:
    """Progress of iterations 0, ..., count - 1, message by message."""
    parties = TreeCG().parties(case.model.problem(case.data), case.network, case.seed)
    return list(itertools.islice(LocalEngine(parties, ledger or Ledger()).run(), count))


@given(smooth_cases())
@settings(max_examples=80)
def test_the_parties_give_the_iterates_of_the_plain_version(case: Case) -> None:
    T = 6
    told = moments(case, T + 1)
    assert [progress.hop for progress in told] == list(range(T + 1))
    for progress, iterate in zip(told, tree_cg(case.model.problem(case.data), T), strict=True):
        for ours, theirs in zip(progress.parameters, iterate, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("l2", [0.1, 3.0])
def test_for_squared_loss_these_are_the_textbook_s_conjugate_gradients(
    l2: float, sparse: bool
) -> None:
    """Iterate by iterate, on the normal equations (X^T X + l2 I) theta = X^T y from theta = 0."""
    model = Glm("ridge", alpha=l2)
    data = make_data(model, 60, [6, 3, 9, 4, 8], seed=3, sparse=sparse)
    X = np.hstack([block.toarray() if sparse else block for block in data.blocks])
    theirs: list[np.ndarray] = []
    A, b = X.T @ X + l2 * np.eye(X.shape[1]), X.T @ data.labels
    scipy.sparse.linalg.cg(A, b, rtol=0, maxiter=15, callback=lambda x: theirs.append(x.copy()))
    case = Case(data, model, make_network("star", data.clients), 0)
    ours = [np.concatenate(progress.parameters) for progress in moments(case, 16)[1:]]
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("model", SMOOTH, ids=str)
def test_every_step_ends_at_the_lowest_point_of_its_plane(model: Glm) -> None:
    """No point of theta + span(gradient, last direction) is lower, by another minimiser."""
    data = make_data(model, 40, [4, 3, 5], seed=8)
    case = Case(data, model, make_network("path", data.clients), 0)
    problem, told = model.problem(data), moments(case, 5)
    for before, now, after in zip(told, told[1:], told[2:], strict=False):
        slope = problem.fit.gradient(problem.aggregate(now.parameters))
        gradient = [problem.client(k).gradient(now.parameters[k], slope) for k in range(3)]

        def f(w: np.ndarray, before=before, now=now, gradient=gradient) -> float:
            return problem.evaluate(
                [
                    theta + w[0] * g + w[1] * (theta - old)
                    for theta, old, g in zip(
                        now.parameters, before.parameters, gradient, strict=True
                    )
                ]
            )

        lowest = scipy.optimize.minimize(
            f, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-13}
        )
        assert problem.evaluate(after.parameters) <= lowest.fun * (1 + 1e-7)


@pytest.mark.parametrize("network", ["path", "complete", "star"])
def test_it_reaches_the_closed_form_of_ridge_with_an_intercept(network: str) -> None:
    data = mtcd.synthetic("ridge", samples=60, features=90, clients=6, seed=4)
    data = mtcd.split(np.hstack(data.blocks), data.labels + 5.0, clients=6)
    trained = train(
        data,
        Glm("ridge", alpha=2.0, intercept=True),
        network,
        TreeCG(),
        Stop(gap=1e-13, iterations=500),
    )
    X = np.hstack([*data.blocks, np.ones((60, 1))])
    best = np.linalg.solve(X.T @ X + 2.0 * np.diag([1.0] * 90 + [0.0]), X.T @ data.labels)
    np.testing.assert_allclose(trained.coefficients, best[:-1], atol=1e-5)
    assert float(trained.intercept) == pytest.approx(best[-1], abs=1e-5)
    assert trained.stepsize is None


@pytest.mark.parametrize("model", SMOOTH, ids=str)
def test_it_reaches_the_optimum_of_every_smooth_model(model: Glm) -> None:
    # without a penalty these classes are told apart perfectly, at infinity
    if model.kind == "multinomial":
        model = replace(model, l2=0.1)
    data = make_data(model, 40, [3, 2, 4, 1], seed=5)
    trained = train(data, model, "cycle", TreeCG(), Stop(gap=1e-9, iterations=3000))
    assert trained.status == "converged"


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("kind", ["ridge", "logistic", "huber"])
def test_the_scale_of_the_features_does_not_matter(kind: str, scale: float) -> None:
    model = Glm(kind, l2=1e-3 * scale**2)
    data = make_data(model, 50, [4, 4, 4], seed=2)
    scaled = mtcd.split(scale * np.hstack(data.blocks), data.labels, clients=3)
    trained = train(scaled, model, "path", TreeCG(), Stop(gap=1e-8, iterations=300))
    assert trained.status == "converged"


def test_far_from_the_labels_where_huber_s_loss_is_linear_it_still_gets_there() -> None:
    model = Glm("huber", delta=0.01, l2=1e-3)
    data = make_data(model, 50, [4, 4, 4], seed=2)
    far = mtcd.split(np.hstack(data.blocks), data.labels + 1e4, clients=3)
    model = Glm("huber", delta=0.01, l2=1e-3, intercept=True)
    trained = train(far, model, "path", TreeCG(), Stop(gap=1e-6, iterations=5000))
    assert trained.status == "converged"


def test_at_the_optimum_it_stays() -> None:
    data = make_data(MODELS[0], 30, [3, 4], seed=1)
    case = Case(data, MODELS[0], make_network("path", data.clients), 0)
    told = moments(case, 400)
    settled, last = told[50].parameters, told[-1].parameters
    for one, other in zip(settled, last, strict=True):
        assert np.array_equal(one, other)


def test_the_objective_never_rises() -> None:
    for model in SMOOTH:
        data = make_data(model, 30, [3, 4, 2], seed=6)
        case = Case(data, model, make_network("path", data.clients), 0)
        values = [
            model.problem(data).evaluate(progress.parameters) for progress in moments(case, 60)
        ]
        assert all(after <= before * (1 + 1e-13) for before, after in itertools.pairwise(values)), (
            model
        )


@given(st.integers(1, 8).flatmap(lambda size: networks(size, connected=True)), st.booleans())
def test_an_iteration_is_two_messages_per_link_of_the_tree(
    network: Network, multinomial: bool
) -> None:
    model = Glm("multinomial", l2=0.3) if multinomial else MODELS[0]
    data = make_data(model, 9, [2] * network.size, seed=1)
    case, ledger, T = Case(data, model, network, 0), Ledger(), 5
    links, floats = network.size - 1, 9 * (3 if multinomial else 1)
    parties = TreeCG().parties(model.problem(data), network, 0)
    for progress in itertools.islice(LocalEngine(parties, ledger).run(), T):
        t = progress.hop
        assert ledger.messages("sent") == ledger.messages("charged")
        assert ledger.messages() == {"client_client": 2 * links * t, "uplink": 0, "downlink": 0}
        assert ledger.floats()["client_client"] == t * links * (
            2 * floats + INNER_PRODUCTS + COEFFICIENTS
        )
        sizes = TreeCG().messages(network, 0, 9, floats // 9).sizes
        for costs in (Costs(50), Costs(50, per="float")):
            assert costs.total(ledger) == pytest.approx(
                t * TreeCG().prices(network, 1).iteration(costs, sizes)
            )
    assert case.network.size == len(parties.clients)


@given(smooth_cases(), st.integers(0, 100))
@settings(max_examples=40)
def test_the_order_of_deliveries_does_not_matter(case: Case, seed: int) -> None:
    check_any_order(lambda: TreeCG().parties(case.model.problem(case.data), case.network, 0), seed)


def test_messages_go_along_links_only() -> None:
    data = make_data(MODELS[0], 10, [1] * 9, seed=0)
    network = make_network("grid", data.clients)
    parties = TreeCG().parties(MODELS[0].problem(data), network, 0)
    waiting, sent = list(parties.opening), 0
    while sent < 60:
        message = waiting.pop(0)
        if message.to == MONITOR:
            continue
        if message.to != message.sender:
            assert message.to in network.neighbours[message.sender]
            sent += 1
        waiting.extend(parties.clients[message.to].receive(message))


def test_one_client_alone_sends_nothing() -> None:
    data = make_data(MODELS[0], 20, [5], seed=5)
    trained = train(data, MODELS[0], "path", TreeCG(), Stop(gap=1e-6, iterations=50))
    assert trained.status == "converged"
    assert trained.ledger.messages()["client_client"] == 0


def test_what_it_cannot_train_is_refused() -> None:
    data = make_data(MODELS[0], 10, [1, 1, 1], seed=0)
    with pytest.raises(NetworkError, match="tree-cg needs a connected network"):
        train(data, MODELS[0], "empty", TreeCG(), Stop(iterations=1))
    with pytest.raises(ConfigError, match="acceleration: momentum"):
        train(data, Glm("linear", l1=0.1), "path", TreeCG(), Stop(iterations=1))
    leaving = mtcd.with_changes(make_network("path", data.clients), [mtcd.Change(2, leave=["c2"])])
    with pytest.raises(ConfigError, match=r"network\.changes: tree-cg"):
        train(data, MODELS[0], leaving, TreeCG(), Stop(iterations=1))


@pytest.mark.parametrize("kind", ["linear", "huber"])
def test_features_of_any_size_that_is_allowed_are_learnt_from(kind: str) -> None:
    data = make_data(MODELS[0], 20, [2, 1, 3], seed=0)
    found = []
    for scale in (1.0, 0.1 * LARGEST, 1.0 / LARGEST):
        scaled = mtcd.split(scale * np.hstack(data.blocks), data.labels, clients=3)
        found.append(train(scaled, Glm(kind), "path", TreeCG(), Stop(iterations=20)).objective)
    assert found == pytest.approx([found[0]] * 3, rel=1e-6)


def test_columns_of_zeros_and_columns_twice_do_no_harm() -> None:
    data = make_data(MODELS[0], 20, [3, 2], seed=0)
    X = np.hstack(data.blocks)
    wider = mtcd.split(np.hstack([X, X[:, :1], 0 * X[:, :1], X]), data.labels, clients=4)
    trained = train(
        wider, Glm("ridge", alpha=0.1), "star", TreeCG(), Stop(gap=1e-10, iterations=100)
    )
    assert trained.status == "converged"
    nothing = mtcd.split(0 * X, data.labels, clients=2)
    trained = train(nothing, Glm("ridge", alpha=0.1), "path", TreeCG(), Stop(iterations=3))
    assert not trained.coefficients.any()


CONFIG = """
data: {synthetic: logistic, samples: 60, features: 20, clients: 5}
model: {kind: logistic, l2: 1}
network: {kind: path}
method: {kind: tree-cg}
stop: {gap: 1e-6, iterations: 500}
costs: {ratio: 50}
"""


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "config.yaml"
    path.write_text(CONFIG)
    return str(path)


def test_it_trains_from_a_config_and_the_run_is_kept(
    config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("train", config, "--out", str(tmp_path / "run"), "--json") == 0
    summary = outcome(capsys)
    assert summary["status"] == "converged"
    assert summary["stepsize"] is None
    assert summary["messages"]["client_client"] == 8 * summary["iterations"]
    kept = mtcd.load_run(tmp_path / "run")
    assert kept.stepsize is None
    assert "method='Tree-CG',\n" in repr(kept)
    assert "kind: tree-cg" in (tmp_path / "run" / "config.yaml").read_text()


def test_inspect_tells_the_tree_and_the_messages(
    config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("inspect", config, "--json") == 0
    found = outcome(capsys)
    assert found["cost_per_iteration"] == pytest.approx(8 / 50)
    assert found["stepsize"] is None
    assert found["theory"]["tree_depth"]["value"] == 2
    assert "root client_2" in found["theory"]["tree_depth"]["shown"]
    assert "2(K - 1) = 8 messages" in found["theory"]["tree_depth"]["meaning"]
    assert run("inspect", config) == 0
    said = capsys.readouterr().out
    assert "step size" in said
    assert "spanning tree" in said


def test_inspect_refuses_what_train_would_refuse(
    config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("inspect", config, "--set", "model.l1=1") == 2
    assert "smooth objective" in " ".join(capsys.readouterr().err.split())


def test_a_step_size_in_the_config_is_told_to_be_of_no_use(
    config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("train", config, "--set", "method.stepsize=0.1", "--json") == 0
    assert "no use for stepsize" in capsys.readouterr().err


DATA = make_data(MODELS[0], 12, [2, 1, 3], seed=3)


NETWORK = make_network("path", DATA.clients)


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
