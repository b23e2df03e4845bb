"""A party's answers to the operator's requests: status, logs and stop."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mtcd.core.errors import WireError
from mtcd.federation.names import OPERATOR
from mtcd.federation.node.link import IncomingRequest
from mtcd.federation.participant.keeping import STOPPED
from mtcd.federation.transport import CONTROL

if TYPE_CHECKING:
    from mtcd.federation.node.node import Node

EXIT_DELAY_SECONDS = 0.2  # for the answer to be sent


def answer_operator(node: Node) -> None:
    """Register the handlers of the operator's requests at a node."""
    answers: dict[str, Callable[[Node], Any]] = {"status": _status, "stop": _stop, "logs": _logs}
    for kind, answer in answers.items():
        node.rpc.on(f"{CONTROL}/{kind}", _for_operator(node, answer))


def _for_operator(node: Node, answer: Callable[[Node], Any]) -> Callable[[IncomingRequest], None]:
    def handle(request: IncomingRequest) -> None:
        if request.sender != OPERATOR or not request.direct:
            raise WireError("sender", "is not the operator")
        request.answer(json.dumps(answer(node), allow_nan=False).encode())

    return handle


def _status(node: Node) -> dict[str, Any]:
    node.watched.asked()
    trainer, config = node.trainer, node.bundle.config
    status: dict[str, Any] = {
        "name": config.name,
        "phase": node.phase,
        "connected": sorted(node.rpc.link.up & set(config.peers)),
        "lost": {name: int(when) for name, when in node.lost.items()},
        "waiting_for": node.waits_for(),
        "aligning": _aligning(node),
        "exit_statuses": node.gossip.known.signed(),
    }
    if trainer is not None and node.watch is not None:
        reliable = trainer.reliable
        ended = None
        if reliable.ended is not None:
            ended = reliable.ended.status

        status |= {
            "run": trainer.run,
            "gone": sorted(trainer.names[k] for k in reliable.down),
            "tokens": node.watch.tokens(),
            "heard_end": sorted(trainer.known_ended),
            "ended": ended,
            "ledger": reliable.ledger.to_dict(),
            **node.watch.facts(),
        }
    return status


def _aligning(node: Node) -> dict[str, Any] | None:
    """The progress of the private set intersection, while it is computed here."""
    if node.leading is not None:
        return node.leading.leader.progress.facts()
    if node.following is None:
        return None
    return node.following.alignment.progress.facts()


def _stop(node: Node) -> dict[str, Any]:
    node.log.say("stopping", "Stopping on request of the operator.")
    # Before training there is nothing to finish; the others must know all the same.
    if node.trainer is None:
        node.gossip.say(STOPPED)
    else:
        node.trainer.finish(STOPPED)
    # After the answer has left: the operator would report a party that did not answer.
    if node.trainer is None or node.staying:
        node.loop.later(EXIT_DELAY_SECONDS, node.loop.stop)
    return {}


def _logs(node: Node) -> list[dict[str, Any]]:
    return list(node.log.tail)
