"""Whole runs under faults, and what must hold after each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from time import sleep

import mtcd
from faulty.chaos import Chaos
from faulty.federation import Faulty
from faulty.holds import check_delivery, check_end, check_trees
from faulty.plans import Plan
from mtcd.federation.file import method_of, network_of, read_federation
from mtcd.federation.names import SERVER
from mtcd.training.stop import Stop
from waiting import PATIENCE

GAP = 1e-6
Say = Callable[[str], None]
Happened = Counter[str]


def silence(told: str) -> None:
    """Say nothing."""


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
    folder: Path, plan: Plan, faults: int, seed: int, early: bool = False, say: Say = silence
) -> Happened:
    """Strike, mend, and go on to the optimum. ``early``: from the start on, when they still agree
    on the run.

    Mini-batches lead to no optimum, but must go on as well.
    """
    exact = "batch" not in plan.method
    with Faulty(folder, plan) as faulty:
        least = enough(faulty) if exact else 1000
        faulty.start(*faulty.names)
        chaos = Chaos(faulty, seed, say)
        if early:
            chaos.go(faults // 3)
        faulty.wait_for_training()
        chaos.go(faults)
        faulty.wait_for_everybody()
        # a server that was just started again does not know it yet
        least += faulty.wait_for_iteration(1)
        say(f"all is mended; on to iteration {least}")
        _all_die(faulty, faulty.wait_for_iteration(least), say)
        chaos.happened["kill all"] += 1
        faulty.stop()
        faulty.wait_for_end(*faulty.names)
        say(check_end(faulty, GAP if exact else float("inf"))[0].message)
        return chaos.happened


def run_without_some(
    folder: Path, plan: Plan, away: tuple[int, ...], say: Say = silence
) -> Happened:
    """Some are killed one after the other, each when it has a token, and stay away: the others find
    their optimum."""
    with Faulty(folder, plan) as faulty:
        least = enough(faulty)
        faulty.start(*faulty.names)
        faulty.wait_for_training()
        happened: Happened = Counter()
        for k in away:
            faulty.wait_for_iteration(faulty.iteration() + 5)
            faulty.kill(faulty.parties[k])
            say(f"{faulty.parties[k]} is killed for ever")
            happened["kill for ever"] += 1
        living = [name for name in faulty.names if name not in faulty.down]
        reached = faulty.wait_for_iteration(faulty.iteration() + least)
        held = _all_die(faulty, reached, say)
        happened["kill all"] += 1
        faulty.stop()
        faulty.wait_for_end(*living)
        say(check_end(faulty, GAP, {k: held[k] for k in away})[0].message)
        for k in away:
            assert any(f"{faulty.parties[k]} is unreachable" in line for line in faulty.said)
        assert any("Unreachable at the end of the run" in line for line in faulty.said)
        return happened


def run_without_server(folder: Path, plan: Plan, kills: int, say: Say = silence) -> Happened:
    """The server is killed at any moment and away for a while: tokens roam on meanwhile, and sync
    when it is back."""
    with Faulty(folder, plan) as faulty:
        least = enough(faulty)
        faulty.start(*faulty.names)
        faulty.wait_for_training()
        for _ in range(kills):
            synced = faulty.wait_for_iteration(faulty.iteration() + 1)
            faulty.kill(SERVER)
            sleep(1.0)  # until all know
            faulty.wait("tokens roam on", _further_than(faulty, faulty.hops() + 200))
            say(f"without the server since iteration {synced}, tokens are at hop {faulty.hops()}")
            faulty.start(SERVER)
        _all_die(faulty, faulty.wait_for_iteration(faulty.wait_for_iteration(1) + least), say)
        faulty.stop()
        faulty.wait_for_end(*faulty.names)
        say(check_end(faulty, GAP)[0].message)
        return Counter({"kill server": kills, "kill all": 1})


def _further_than(faulty: Faulty, hops: int) -> Callable[[], bool]:
    return lambda: faulty.hops() > hops


def run_to_the_limit(
    folder: Path, plan: Plan, kills: int, seed: int, say: Say = silence
) -> Happened:
    """Parties are killed while all hear that the limit of iterations is reached: each hears it in
    the end."""
    with Faulty(folder, plan) as faulty:
        faulty.start(*faulty.names)
        faulty.wait_for_training()
        chaos = Chaos(faulty, seed, say)
        chaos.kinds = {"kill holder": 1, "kill": 1}
        chaos.go(kills, pause=0.5)
        faulty.wait("all have ended", lambda: _all_have_ended(faulty))
        faulty.wait_for_end(*faulty.names)
        summaries = check_end(faulty, float("inf"))
        assert all(
            one.iterations >= plan.iterations and one.status == "iterations" for one in summaries
        )
        say(summaries[0].message)
        return chaos.happened


def run_undisturbed(
    folder: Path,
    plan: Plan,
    faults: int,
    seed: int,
    check: Callable[[Faulty], None],
    say: Say = silence,
) -> Happened:
    """Methods that wait for whoever is away: in the end, all have what a training in one process
    gives them."""
    with Faulty(folder, plan) as faulty:
        faulty.start(*faulty.names)
        faulty.wait_for_training()
        chaos = Chaos(faulty, seed, say)
        chaos.go(faults)
        assert not any(map(faulty.ended, faulty.names)), "it ended before all had befallen it"
        faulty.wait("all have ended", lambda: _all_have_ended(faulty))
        faulty.wait_for_end(*faulty.names)
        check(faulty)
        return chaos.happened


def run_trees(folder: Path, plan: Plan, faults: int, seed: int, say: Say = silence) -> Happened:
    """Parties with trees: the token is the sum of their margins, whatever befalls them."""
    with Faulty(folder, plan) as faulty:
        faulty.start(*faulty.names)
        faulty.wait_for_training()
        chaos = Chaos(faulty, seed, say)
        chaos.go(faults)
        faulty.wait_for_everybody()
        _all_die(faulty, faulty.wait_for_iteration(faulty.wait_for_iteration(1) + 20), say)
        faulty.stop()
        faulty.wait_for_end(*faulty.names)
        check_trees(faulty)
        return chaos.happened


def _all_have_ended(faulty: Faulty) -> bool:
    """Whether all have; whoever left before it could tell others is started again, as it asks
    for."""
    for line in [line for line in faulty.said if "Unreachable at the end of the run" in line]:
        faulty.said.remove(line)
        name = line.split()[1].rstrip(":")
        faulty.processes.running[name].wait(PATIENCE)
        faulty.start(name)
    return all(map(faulty.ended, faulty.names))


def _all_die(faulty: Faulty, reached: int, say: Say) -> list[object]:
    """All at once; what they kept is looked at, and they are started again. Returns the blocks that
    they hold."""
    living = [name for name in faulty.names if name not in faulty.down]
    faulty.kill(*living)
    held = check_delivery(faulty)
    say(f"all are killed; all invariants hold at iteration {reached}")
    faulty.start(*living)
    faulty.wait_for_iteration(reached)
    return held
