"""Faults, drawn from a seed: who is hit, by what, when, and for how long."""

from __future__ import annotations

import heapq
import itertools
import random
from collections import Counter
from collections.abc import Callable
from time import monotonic, sleep

from faulty.federation import Faulty
from mtcd.federation.names import SERVER

Act = Callable[[], None]
MOST_AT_ONCE = 3
KINDS = {
    "kill holder": 4,
    "kill": 2,
    "kill server": 2,
    "hang": 2,
    "hang holder": 1,
    "hang server": 1,
    "cut": 3,
}


class Chaos:
    """Strikes a federation again and again, and mends what it broke after a while."""

    def __init__(
        self, faulty: Faulty, seed: int, say: Callable[[str], None] = lambda told: None
    ) -> None:
        self.faulty, self.random, self.say = faulty, random.Random(seed), say
        self.happened: Counter[str] = Counter()
        self.kinds = KINDS
        self._due: list[tuple[float, int, Act]] = []
        self._count = itertools.count()
        self._hit: set[object] = set()
        self._began = monotonic()

    def go(self, faults: int, pause: float = 1.2) -> None:
        """So many faults, and then all that is broken is mended."""
        while sum(self.happened.values()) < faults:
            self._wait(self.random.uniform(0.2, 2 * pause))
            if len(self._hit) < MOST_AT_ONCE:
                self.strike()
        while self._due:
            self._wait(max(self._due[0][0] - monotonic(), 0.0))

    def strike(self) -> None:
        """One fault."""
        kinds = [kind for kind in self.kinds if SERVER not in kind or SERVER in self.faulty.names]
        kind = self.random.choices(kinds, [self.kinds[one] for one in kinds])[0]
        if kind == "cut":
            self._cut()
            return
        free = {
            name
            for name in self.faulty.names
            if name not in self._hit and (name == SERVER) == (SERVER in kind)
        }
        if not free:
            return
        victim = self.faulty.holder(free) if "holder" in kind else self.random.choice(sorted(free))
        if "kill" in kind:
            self.faulty.kill(victim)
            self._mend(
                kind,
                victim,
                self.random.choice([0.0, 0.3, 1.0, 3.0]),
                lambda: self.faulty.start(victim),
            )
        else:
            self.faulty.hang(victim)
            self._mend(
                kind, victim, self.random.uniform(3.0, 4.0), lambda: self.faulty.wake(victim)
            )

    def _cut(self) -> None:
        free = [link for link in self.faulty.links if link not in self._hit]
        if not free:
            return
        link, broken = self.random.choice(free), self.random.random() < 0.5
        self.faulty.cut(link, broken)
        kind = "broken link" if broken else "silent link"
        self._mend(kind, link, self.random.uniform(3.0, 5.0), lambda: self.faulty.heal(link))

    def _mend(self, kind: str, what: object, seconds: float, act: Act) -> None:
        self.happened[kind] += 1
        self._hit.add(what)
        self.say(f"{monotonic() - self._began:6.1f} s  {kind}: {what}, for {seconds:.1f} s")

        def mend() -> None:
            act()
            self._hit.discard(what)

        heapq.heappush(self._due, (monotonic() + seconds, next(self._count), mend))

    def _wait(self, seconds: float) -> None:
        end = monotonic() + seconds
        while True:
            while self._due and self._due[0][0] <= monotonic():
                heapq.heappop(self._due)[2]()
            self.faulty.check_alive()
            left = end - monotonic()
            if left <= 0:
                return
            sleep(min(left, 0.05))
