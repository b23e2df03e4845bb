"""What must hold of sealed tours: they are those of a training in one process that nothing
befell."""

from __future__ import annotations

import numpy as np

from faulty.federation import Faulty
from mtcd.federation.file import method_of, network_of, read_federation
from mtcd.federation.participant.keeping import read_summary
from mtcd.models.glm.party.block import read_block
from mtcd.privacy.sealed.participant import KEY_FILE
from mtcd.training.stop import Stop
from mtcd.training.train import train


def check_sealed(faulty: Faulty) -> None:
    """Every block, bit for bit; all ended at the same moment; the key is gone."""
    federation, _ = read_federation(faulty.file)
    summaries = [read_summary(faulty.run_folder(name)) for name in faulty.names]
    assert {(one.status, one.iterations) for one in summaries} == {
        ("iterations", faulty.plan.iterations)
    }
    method, network, stop = (
        method_of(federation)[0],
        network_of(federation),
        Stop(iterations=faulty.plan.iterations),
    )
    same = train(faulty.plan.data, faulty.plan.glm, network, method, stop, seed=federation.seed)
    for name in faulty.parties:
        np.testing.assert_array_equal(
            read_block(faulty.run_folder(name)).theta, same.parameters[name]
        )
    assert not list(faulty.bundles.rglob(KEY_FILE))
