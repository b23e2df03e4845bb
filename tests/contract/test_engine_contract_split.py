"""The engine contract of split networks: every party trains its own module, and all is as in one
process."""

from pathlib import Path

import pytest

pytest.importorskip("torch")

from contract_split_cases import (
    CASES,
    Participant,
    assert_same_networks,
    bundles_for,
    federate,
    four_clinics,
    in_process,
    table_of,
)
from mtcd.core.errors import MtcdError
from mtcd.testing.federation_engine import FederationEngine


@pytest.mark.parametrize("case", CASES)
def test_a_federation_trains_networks_as_one_process_does(case: str, tmp_path: Path) -> None:
    data = four_clinics()
    model = {"kind": "split", "client": "mlp", "optimiser": {"kind": "SGD", "momentum": 0.5}}
    bundles, told = federate(tmp_path, data, 12, model=model, method=CASES[case])
    same = in_process(data, bundles["a"])
    assert told.ledger == same.ledger
    assert_same_networks(tmp_path, bundles, same)
    expected = {f"train_{name}": value for name, value in same.evaluate(data).items()}
    assert told.summaries["a"].metrics == pytest.approx(expected, rel=1e-4), "of the label holder"
    assert not any(one.metrics for name, one in told.summaries.items() if name != "a")


def test_an_engine_does_not_collect_the_networks_of_others(tmp_path: Path) -> None:
    data = four_clinics()
    bundles = bundles_for(
        tmp_path, 12, model={"kind": "split", "client": "mlp"}, method=CASES["full batch"]
    )
    with FederationEngine(
        bundles, tmp_path / "runs", lambda bundle: Participant(bundle, table_of(data, bundle))
    ) as engine:
        assert next(engine.run()).hop == 0
        with pytest.raises(MtcdError, match="networks stay with their parties"):
            engine.parameters()
