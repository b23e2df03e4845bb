"""Ridge regression as in the paper's experiments (N=1000, d=2000, K=40, alpha=10): gaps of the
right size.

The values come from an independent prototype on other draws of the same data, so only their order
is checked.
"""

import numpy as np
import pytest

import mtcd

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def data() -> mtcd.VerticalData:
    return mtcd.synthetic("ridge", samples=1000, features=2000, clients=40)


def gaps(data: mtcd.VerticalData, network: str, method, *iterations: int) -> list[float]:
    stop = mtcd.Stop(gap=0, iterations=max(iterations))
    history = mtcd.train(data, mtcd.Glm("ridge", alpha=10), network, method, stop).history
    return [float(np.interp(i, history["iteration"], history["gap"])) for i in iterations]


def test_stcd_on_the_complete_graph(data) -> None:
    early, late = gaps(data, "complete", mtcd.STCD(20, 1e-5), 2000, 20_000)
    assert 0.03 < early < 0.3
    assert 0.005 < late < 0.05


def test_stcd_on_the_path(data) -> None:
    early, late = gaps(data, "path", mtcd.STCD(20, 1e-5), 20_000, 160_000)
    assert 0.3 < early < 3
    assert 0.03 < late < 0.3


def test_svfl(data) -> None:
    (late,) = gaps(data, "path", mtcd.SVFL(20, 5e-7), 3000)
    assert 3e-7 < late < 3e-5


def test_dcpa_on_the_path(data) -> None:
    early, late = gaps(data, "path", mtcd.DCPA(1e-2, 3e-4), 8000, 16_000)
    assert early == pytest.approx(9.8e-2, rel=0.3)
    assert late == pytest.approx(4.4e-3, rel=0.3)


def test_more_tokens_help_with_one_local_update_only_if_visitors_are_averaged(data) -> None:
    """With 1/Gamma weights every update shrinks by Gamma, so that nothing is gained."""
    at = {
        (combine, tokens): gaps(data, "path", mtcd.MTCD(tokens, 1, 1, 1e-5, combine=combine), 4000)[
            0
        ]
        for combine in ("average", "visitors")
        for tokens in (1, 2, 4)
    }
    assert [at["average", tokens] for tokens in (1, 2, 4)] == pytest.approx(
        [7.91, 7.89, 7.91], rel=0.15
    )
    assert [at["visitors", tokens] for tokens in (1, 2, 4)] == pytest.approx(
        [7.91, 2.10, 0.41], rel=0.3
    )
