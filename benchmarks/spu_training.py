"""Logistic regression of SecretFlow's sml on SPU, all parties in one process: run by ``benchmarks/spu_beside.py``.

It runs in the environment of SPU, which need not have mtcd: the table is read from an npz file, and the result is a
line of JSON. Every party logs its link statistics, from which the caller takes bytes and messages.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np
from sml.linear_model.logistic import LogisticRegression
from spu import api, libspu
from spu.utils.simulation import PropagatingThread, Simulator, sim_jax

PARTIES = {"SEMI2K": 2, "ABY3": 3}


class ProfiledParties(Simulator):
    """SPU's simulator, except that all parties log their statistics, not the first only, and that CPU time is kept."""

    def __call__(self, executable: Any, *inputs: Any) -> list[Any]:
        start = time.process_time()
        shares = [self.io.make_shares(np.asarray(one, np.float32), libspu.Visibility.VIS_SECRET) for one in inputs]
        parties = libspu.link.Desc()
        for rank in range(self.wsize):
            parties.add_party(f"party_{rank}", f"thread_{rank}")

        def run(rank: int) -> list[Any]:
            runtime = api.Runtime(libspu.link.create_mem(parties, rank), libspu.RuntimeConfig(self.rt_config))
            for name, share in zip(executable.input_names, shares, strict=True):
                runtime.set_var(name, share[rank])
            runtime.run(executable)
            return [runtime.get_var(name) for name in executable.output_names]

        threads = [PropagatingThread(target=run, args=(rank,)) for rank in range(self.wsize)]
        for thread in threads:
            thread.start()
        outputs = zip(*[thread.join() for thread in threads], strict=True)
        found = [self.io.reconstruct(output) for output in outputs]
        self.seconds = time.process_time() - start
        return found


def main(path: str, protocol: str, settings: str) -> None:
    """Train with these settings of sml's LogisticRegression, and print coefficients, the intercept last."""
    with np.load(path) as table:
        X, y = table["X"], table["y"][:, None]
    runtime = libspu.RuntimeConfig(protocol=getattr(libspu.ProtocolKind, protocol), field=libspu.FieldType.FM64)
    runtime.enable_pphlo_profile = True
    parties = ProfiledParties(PARTIES[protocol], runtime)

    def fit(x: Any, labels: Any) -> Any:
        return LogisticRegression(**json.loads(settings)).fit(x, labels).weights

    weights = np.asarray(sim_jax(parties, fit)(X, y)).ravel()
    print(json.dumps({"weights": weights.tolist(), "seconds": parties.seconds}))


if __name__ == "__main__":
    main(*sys.argv[1:])
