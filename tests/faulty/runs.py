"""Whole runs under faults, and what must hold after each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import mtcd
from faulty.chaos import Chaos
from faulty.federation import Faulty, Plan
from faulty.holds import check_custody, check_end
from mtcd.federation.file import method_of, network_of, read_federation
from mtcd.stop import Stop

GAP = 1e-6
Say = Callable[[str], None]


def enough(faulty: Faulty) -> int:
    """Iterations after which a training in one process is at the optimum, with some to spare."""
    federation, _ = read_federation(faulty.file)
    found = mtcd.train(
        faulty.plan.data,
        model=faulty.plan.glm,
        method=method_of(federation)[0],
        network=network_of(federation),
        stop=Stop(gap=GAP / 100, iterations=500_000),
        seed=federation.seed,
    )
    assert found.status == "converged", found.message
    return int(1.5 * found.history.rows[-1].iteration)


def run_with_faults(
    folder: Path, plan: Plan, faults: int, seed: int, early: bool = False, say: Say = lambda told: None
) -> Counter[str]:
    """Strike, mend, go on to the optimum; there all are killed at once, looked at, and started again to end."""
    with Faulty(folder, plan) as faulty:
        least = enough(faulty)
        faulty.start(*faulty.names)
        if not early:
            faulty.wait_for_training()
        chaos = Chaos(faulty, seed, say)
        chaos.go(faults)
        faulty.wait_for_training()
        say(f"all is mended; now to iteration {least}")
        reached = faulty.wait_for_iteration(least)
        faulty.kill(*faulty.names)
        check_custody(faulty)
        say(f"custody holds at iteration {reached}")
        faulty.start(*faulty.names)
        faulty.wait_for_iteration(reached)
        faulty.ask("stop")
        faulty.wait_for_end(*faulty.names)
        summary = check_end(faulty, GAP)[0]
        say(f"ended: {summary.message}")
        return chaos.happened
