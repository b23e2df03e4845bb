"""Exit after the end: a party stays until all reachable parties know of the end, as it may relay it
to some."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from mtcd.federation.node.presence import ENDED, HAS_ENDED
from mtcd.federation.node.rpc_client import RpcClient
from mtcd.federation.node.training import Trainer
from mtcd.protocol.codec.envelopes import End

LONGEST_STAY_SECONDS = 30.0
UNREACHABLE_STAY_SECONDS = 10.0  # an unreachable party may be restarting
STEP_SECONDS = 0.2
# requests without an answer after which a party that is no neighbour counts as unreachable
UNANSWERED_LIMIT = 5


class Leaving:
    """The exit of one party. ``step`` calls ``leave``, or schedules itself again; ``undone``, if
    the end is undone."""

    def __init__(
        self,
        trainer: Trainer,
        rpc_client: RpcClient,
        leave: Callable[[], None],
        undone: Callable[[], None],
    ) -> None:
        self.trainer, self.rpc_client, self.leave, self.undone = trainer, rpc_client, leave, undone
        self.rpc, self.loop = trainer.rpc, trainer.loop
        self._began = self.loop.now()
        self._unanswered: Counter[str] = Counter()

    def step(self) -> None:
        """Exit if there is no party to wait for.

        An unreachable party that only this one may notify has ``UNREACHABLE_STAY_SECONDS`` to come
        back.
        """
        trainer, link, reliable = self.trainer, self.rpc.link, self.trainer.reliable
        if reliable.ended is None:  # a stale token had ended it
            self.undone()
            return
        undelivered = {trainer.names[to] for to, _ in reliable.outbox if to != reliable.number}
        unnotified = undelivered | self.rpc_client.waits_for
        unaware = (undelivered | link.up) - trainer.known_ended | self.rpc_client.waits_for
        stayed = self.loop.now() - self._began
        expected = unnotified if stayed < UNREACHABLE_STAY_SECONDS else set()
        waited_for = {
            name for name in unaware if name in expected or not self._is_unreachable(name)
        }
        if not (waited_for or trainer.awaits_reports()) or stayed > LONGEST_STAY_SECONDS:
            self._leave(unnotified & unaware)
            return
        # before, the others must stay up to relay reports
        ended = b"" if trainer.awaits_reports() else HAS_ENDED
        for name in unaware:
            self.rpc.ask(name, "ready", trainer.run.encode() + ended, self._answered(name))
        self.loop.later(STEP_SECONDS, self.step)

    def _leave(self, unnotified: set[str]) -> None:
        if unnotified:
            names = ", ".join(sorted(unnotified))
            left = (
                f"Unreachable at the end of the run: {names}. When restarted, this party notifies "
                "them."
            )
            self.trainer.log.say("left", left)
        self._commit()
        self.leave()

    def _commit(self) -> None:
        """Commit an outbox without end messages to parties that know of the end: a restart sends
        none of them."""
        reliable, names = self.trainer.reliable, self.trainer.names
        for place, envelope in list(reliable.outbox.items()):
            if (
                isinstance(envelope.message.payload, End)
                and names[envelope.to] in self.trainer.known_ended
            ):
                del reliable.outbox[place]
        reliable.commit()

    def _is_unreachable(self, name: str) -> bool:
        link = self.rpc.link
        return (
            name not in link.up
            if name in link.peers
            else self._unanswered[name] >= UNANSWERED_LIMIT
        )

    def _answered(self, name: str) -> Callable[[bytes | None, str], None]:
        def answered(answer: bytes | None, why: str) -> None:
            self._unanswered[name] = 0 if answer is not None else self._unanswered[name] + 1
            if answer == ENDED:
                self.trainer.known_ended.add(name)

        return answered
