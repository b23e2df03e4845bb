"""Requests to several parties, retried until all have answered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from mtcd.federation.node.log import Log, in_words
from mtcd.federation.node.loop import Loop
from mtcd.federation.node.rpc import Rpc

RETRY_SECONDS = 0.3
REFUSED_RETRY_SECONDS = 3.0

Answers = dict[str, bytes]


class RpcClient:
    """The pending requests of one party."""

    def __init__(self, rpc: Rpc, loop: Loop, log: Log) -> None:
        self.rpc, self.loop, self.log = rpc, loop, log
        self._asked: list[set[str]] = []
        self._over = False

    def give_up(self) -> None:
        """Ask nothing any more, and act on no answer: this party is about to end."""
        self._asked, self._over = [], True

    @property
    def waits_for(self) -> set[str]:
        """The parties with a pending request."""
        # Sets that change while requests are answered: united anew each time.
        return set().union(*self._asked)

    def ask_when_made(
        self,
        kind: str,
        names: Iterable[str],
        make: Callable[[], Mapping[str, bytes]],
        then: Callable[[Answers], None],
    ) -> None:
        """Like ``ask``, but ``make`` computes the bodies in a thread; ``names`` count as pending
        meanwhile."""
        waited_for = set(names)
        self._asked.append(waited_for)

        def made(bodies: Mapping[str, bytes]) -> None:
            # By identity: two requests may wait for the same parties.
            self._asked = [names for names in self._asked if names is not waited_for]
            self.ask(kind, bodies, then)

        self.loop.work(make, made)

    def ask(
        self,
        kind: str,
        bodies: Mapping[str, bytes],
        then: Callable[[Answers], None] = lambda answers: None,
        each: Callable[[str], None] = lambda name: None,
        refused: Callable[[str, str], bytes | None] = lambda name, why: None,
    ) -> None:
        """Send each party its body; call ``each`` per answer, and ``then`` with all answers in the
        order of bodies.

        ``refused`` gets a party that refuses, and why: what it returns is taken as its answer.
        Otherwise it is asked again.
        """
        answers: Answers = {}
        missing = set(bodies)
        if self._over:
            return
        if not bodies:
            then(answers)
            return
        self._asked.append(missing)

        def ask(name: str) -> None:
            self.rpc.ask(name, kind, bodies[name], lambda answer, why: answered(name, answer, why))

        def answered(name: str, answer: bytes | None, why: str) -> None:
            # An earlier attempt may be answered after a later one.
            if name in answers or self._over:  # a duplicate, or nobody waits for it any more
                return
            if answer is None and why:
                answer = refused(name, why)
            if answer is None:
                if why:
                    refusal = f"{name} refuses {in_words(kind)}: {why}"
                    self.log.throttled(("waiting", kind, name, why), refusal, often=1)
                self.loop.later(REFUSED_RETRY_SECONDS if why else RETRY_SECONDS, lambda: ask(name))
                return
            answers[name] = answer
            missing.discard(name)
            each(name)
            if not missing:
                self._asked = [names for names in self._asked if names is not missing]
                # In the order of the bodies: sums of floats depend on it.
                then({one: answers[one] for one in bodies})

        for name in bodies:
            ask(name)
