"""Time from the moment a token's holder is killed, or hangs, until it moves again: ``python -m
faulty.recovery``.

The token has moved when somebody has visited with one of a new term and has that in its journal.
Where the one who is hit had no token after all, which is seen from its moving on in the old term,
nothing is counted.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from statistics import median
from time import monotonic, sleep
from typing import Any

from faulty.federation import Faulty
from faulty.plans import Plan
from faulty.suite import AVERAGE, RIDGE, STCD, chords, plan
from mtcd.core.errors import JournalError
from mtcd.federation.delivery.journal import FileJournal
from mtcd.federation.node.folder import JOURNAL
from mtcd.protocol.token import Token

TRIALS = 8
LONGEST = 20.0
PARTIES = 8
NONE = (0, 0)


def main() -> None:
    """Print median and worst of each."""
    print(f"Seconds until the token moves again, K={PARTIES}, one machine:")
    for name, method in {"stcd": STCD, "mtcd": AVERAGE}.items():
        for how in ("killed", "hung"):
            with tempfile.TemporaryDirectory(prefix="mtcd-recovery-") as folder:
                times = measure(
                    Path(folder) / "run",
                    plan(method, chords(PARTIES), PARTIES, RIDGE),
                    how == "killed",
                )
            told = f"median {median(times):.3f}, worst {max(times):.3f}, of {len(times)}"
            print(f"  {name}, the holder is {how}: {told}", flush=True)


def measure(folder: Path, made: Plan, kill: bool, trials: int = TRIALS) -> list[float]:
    """The times of so many recoveries."""
    times: list[float] = []
    with Faulty(folder, made, cuttable=False) as faulty:
        faulty.start(*faulty.names)
        faulty.wait_for_training()
        for _ in range(10 * trials):
            if len(times) == trials:
                break
            faulty.wait_for_iteration(faulty.iteration() + 20)
            sleep(0.5)
            time, victim = recover(faulty, kill)
            (faulty.start if kill else faulty.wake)(victim)
            faulty.wait_for_everybody()
            times += [] if time is None else [time]
    return times


def recover(faulty: Faulty, kill: bool) -> tuple[float | None, str]:
    """Hit the holder; the time until a token of a new term has been visited with, if it was hit;
    and whom."""
    before = terms(faulty, faulty.parties)
    victim = faulty.holder(set(faulty.parties))
    began = monotonic()
    (faulty.kill if kill else faulty.hang)(victim)
    others = [name for name in faulty.parties if name != victim]
    last = 0
    while monotonic() - began < LONGEST:
        now = terms(faulty, others)
        if any(term > before.get(t, NONE)[0] for t, (term, _) in now.items()):
            return monotonic() - began, victim
        hop = max((hop for _, hop in now.values()), default=0)
        if hop > last + 50 and last:
            return None, victim
        last = last or hop
    raise faulty.failure(f"no token moves {LONGEST} s after {victim} was hit")


def terms(faulty: Faulty, names: list[str]) -> dict[int, tuple[int, int]]:
    """By iteration, the latest term of tokens that were passed on, and their hop."""
    found: dict[int, tuple[int, int]] = {}
    for name in names:
        for envelope in _outbox(faulty.run_folder(name) / JOURNAL):
            if isinstance(envelope.message.payload, Token):
                seen = envelope.term, envelope.message.payload.hop
                found[envelope.iteration] = max(found.get(envelope.iteration, NONE), seen)
    return found


def _outbox(path: Path) -> list[Any]:
    try:
        kept = FileJournal(path).last()
    except JournalError:  # it is being written
        return []
    return [] if kept is None else kept["outbox"]


if __name__ == "__main__":
    main()
