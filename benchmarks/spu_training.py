"""Logistic regression on SPU, all parties in one process: run by ``benchmarks/spu_beside.py``.

By SecretFlow's sml, or, where the settings have a ``momentum``, by steps of Nesterov on whitened
columns.

It runs in the environment of SPU, which need not have mtcd: the table is read from an npz file, and
the result is a line of JSON. Every party logs its link statistics, from which the caller takes
bytes and messages.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import jax.numpy as jnp
import numpy as np
from sml.linear_model.logistic import LogisticRegression
from spu import api, libspu
from spu.experimental import make_cached_var
from spu.utils.simulation import PropagatingThread, Simulator, sim_jax

PARTIES = {"SEMI2K": 2, "ABY3": 3}


class ProfiledParties(Simulator):
    """SPU's simulator, except that all parties log their statistics, not the first only, and that
    CPU time is kept."""

    def __call__(self, executable: Any, *inputs: Any) -> list[Any]:
        start = time.process_time()
        shares = [
            self.io.make_shares(np.asarray(one, np.float32), libspu.Visibility.VIS_SECRET)
            for one in inputs
        ]
        parties = libspu.link.Desc()
        for rank in range(self.wsize):
            parties.add_party(f"party_{rank}", f"thread_{rank}")

        def run(rank: int) -> list[Any]:
            runtime = api.Runtime(
                libspu.link.create_mem(parties, rank), libspu.RuntimeConfig(self.rt_config)
            )
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


def nesterov(x: Any, labels: Any, penalty: Any, rate: float, momentum: float, steps: int) -> Any:
    """Steps against the mean gradient, with the exact sigmoid; ``penalty`` is the matrix of a
    quadratic one."""
    samples = x.shape[0]
    x = make_cached_var(x)  # its mask is opened once, not in every product
    weights = ahead = jnp.zeros((x.shape[1], 1))
    for _ in range(steps):
        errors = 1 / (1 + jnp.exp(-(x @ ahead))) - labels
        following = ahead - rate * (x.T @ errors / samples + penalty @ ahead)
        weights, ahead = following, following + momentum * (following - weights)
    return weights


def main(path: str, protocol: str, settings: str) -> None:
    """Train with these settings, and print the coefficients of the columns given, that of the
    intercept last."""
    with np.load(path) as table:
        X, y, penalty = table["X"], table["y"][:, None], table["penalty"]
    runtime = libspu.RuntimeConfig(
        protocol=getattr(libspu.ProtocolKind, protocol), field=libspu.FieldType.FM64
    )
    runtime.enable_pphlo_profile = True
    parties = ProfiledParties(PARTIES[protocol], runtime)

    chosen = json.loads(settings)

    def fit(x: Any, labels: Any) -> Any:
        return LogisticRegression(**chosen).fit(x, labels).weights

    def fit_whitened(x: Any, labels: Any, penalty: Any) -> Any:
        return nesterov(x, labels, penalty, **chosen)

    found = (
        sim_jax(parties, fit_whitened)(X, y, penalty)
        if "momentum" in chosen
        else sim_jax(parties, fit)(X, y)
    )
    weights = np.asarray(found).ravel()
    print(json.dumps({"weights": weights.tolist(), "seconds": parties.seconds}))


if __name__ == "__main__":
    main(*sys.argv[1:])
