"""Asking several parties the same kind of question, again and again, until all have answered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from mtcd.federation.node.log import REQUESTS, Log
from mtcd.federation.node.loop import Loop
from mtcd.federation.node.mail import Mail

AGAIN = 0.3  # seconds until the next try
AGAIN_REFUSED = 3.0

Answers = dict[str, bytes]


class Questions:
    """Of one party."""

    def __init__(self, mail: Mail, loop: Loop, log: Log) -> None:
        self.mail, self.loop, self.log = mail, loop, log
        self._asked: list[set[str]] = []

    @property
    def waits_for(self) -> set[str]:
        """Who has not answered all that it was asked."""
        return set().union(*self._asked)

    def ask_when_made(
        self,
        kind: str,
        names: Iterable[str],
        make: Callable[[], Mapping[str, bytes]],
        then: Callable[[Answers], None],
    ) -> None:
        """The same where it takes long to make what is asked: a thread does, while these are waited for already."""
        waited_for = set(names)
        self._asked.append(waited_for)

        def made(bodies: Mapping[str, bytes]) -> None:
            self._asked = [names for names in self._asked if names is not waited_for]
            self.ask(kind, bodies, then)

        self.loop.work(make, made)

    def ask(
        self,
        kind: str,
        bodies: Mapping[str, bytes],
        then: Callable[[Answers], None] = lambda answers: None,
        each: Callable[[str], None] = lambda name: None,
    ) -> None:
        """Everybody whom there is something for; ``then`` has all answers in the same order."""
        answers: Answers = {}
        missing = set(bodies)
        if not bodies:
            then(answers)
            return
        self._asked.append(missing)

        def ask(name: str) -> None:
            self.mail.ask(name, kind, bodies[name], lambda answer, why: heard(name, answer, why))

        def heard(name: str, answer: bytes | None, why: str) -> None:
            if name in answers:  # nobody answers twice
                return
            if answer is None:
                if why:
                    told = f"{name} refuses {REQUESTS.get(kind, f'a {kind}')}: {why}"
                    self.log.now_and_then(("waiting", kind, name, why), told, often=1)
                self.loop.later(AGAIN_REFUSED if why else AGAIN, lambda: ask(name))
                return
            answers[name] = answer
            missing.discard(name)
            each(name)
            if not missing:
                self._asked = [names for names in self._asked if names is not missing]
                then({one: answers[one] for one in bodies})

        for name in bodies:
            ask(name)
