"""The panel of tours: its anchors reach the optimum, and it runs on something small."""

import numpy as np
import pytest
from benchmarks.panel import __main__ as panel
from benchmarks.panel import anchors, tours
from benchmarks.panel.cases import CASES, DESIGNS, GRAPHS, Case

from mtcd.models.glm.optimum.optimum import optimum

SMALL = Case("path", 4, "scaled", 0.3, "logistic", 0.5, samples=40)
CLASSES = Case("star", 4, "AR", 0.3, "multinomial", 0.5, samples=40)


def best(case: Case) -> float:
    problem = case.model.problem(case.data)
    return optimum(problem.blocks, problem.labels, problem.loss, problem.penalties).value


@pytest.mark.parametrize("case", [SMALL, CLASSES], ids=str)
@pytest.mark.parametrize("name", anchors.ANCHORS)
def test_an_anchor_descends_to_the_optimum(case: Case, name: str) -> None:
    problem = case.model.problem(case.data)
    f = anchors.Objective(problem, case.l2)
    spent = anchors.Spent(case.clients, problem.labels.size)
    values = []
    for value in anchors.ANCHORS[name](f, spent):
        values.append(value)
        if value - best(case) <= 1e-8 * best(case) or len(values) > 3000:
            break
    assert values[-1] == pytest.approx(best(case), rel=1e-7)
    assert (np.diff(values) <= 1e-12 * values[0]).all()
    # an iteration is one sum up the tree and its result down, of Newton-CG at least one
    assert spent.messages >= 2 * 3 * (len(values) - 1)
    assert spent.messages % 6 == 0


def test_conjugate_gradients_on_the_tree_are_those_of_the_package() -> None:
    """The method ``tree-cg`` needs the same iterations."""
    import mtcd

    case = Case("path", 4, "AR", 0.3, "ridge", 0.5, samples=40)
    stop = mtcd.Stop(gap=1e-6)
    run = mtcd.train(case.data, case.model, case.network, mtcd.TreeCG(), stop)
    [reached] = anchors.arrivals(case, "tree: CG", best(case), (1e-6,), 10_000)
    assert reached is not None
    assert reached[0] == run.final.messages["client_client"]


def test_tours_on_raw_scales_are_near_the_best_by_hand() -> None:
    """The survey sees the scales of columns. Without it they take 20 times as many. Twin tours
    need none."""
    gaps, found = (1e-4,), {}
    for name, method in tours.methods(SMALL).items():
        [found[name]] = tours.arrivals(SMALL, method, best(SMALL), gaps, 3000)
    by_hand = [found[name][0] for name in panel.HAND if found[name]]
    assert found["auto"] is not None
    assert found["twin"] is not None
    assert found["auto"][0] <= 1.6 * min(by_hand)
    assert found["twin"][0] < found["auto"][0]


def test_the_table_has_every_method_and_names_losers(capsys: pytest.CaptureFixture[str]) -> None:
    panel.main((SMALL,), ["--most", "120"])
    told = capsys.readouterr().out
    assert told.count(str(SMALL)) >= 2
    assert "tree: Newton-CG, blocks" in told
    assert "| auto | by hand | 0.0001 | messages |" in told
    assert "Losers:" in told


def test_the_panel_covers_what_it_should() -> None:
    assert len(CASES) >= 28
    assert {case.design for case in CASES} == set(DESIGNS)
    assert {case.graph for case in CASES} == set(GRAPHS)
    assert {case.clients for case in CASES} == {8, 20, 40}
