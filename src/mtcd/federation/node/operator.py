"""The operator's requests to all parties: status, logs and stop."""

from __future__ import annotations

import json
from pathlib import Path
from time import monotonic
from typing import Any

from mtcd.errors import ConfigError, MtcdError
from mtcd.federation.keys import CONTROL
from mtcd.federation.kit import Kit, read_kit
from mtcd.federation.names import OPERATOR
from mtcd.federation.node.counters import Counters
from mtcd.federation.node.link import Link
from mtcd.federation.node.log import tidy
from mtcd.federation.node.loop import Loop
from mtcd.federation.node.mail import NO, OK

QUERY_TIMEOUT_SECONDS = 1.0
RETRY_SECONDS = 0.1


def operator_kit(folder: Path) -> Kit:
    """The operator's kit (credentials bundle), in this folder or in its subfolder."""
    inside = folder / OPERATOR
    kit = read_kit(inside if (inside / "party.yaml").exists() else folder)
    if not kit.config.is_operator:
        raise ConfigError(f"{folder} is the kit of {kit.config.name}: give the operator's kit, such as kits/operator.")
    return kit


def ask_everybody(kit: Kit, kind: str, seconds: float = 5.0) -> dict[str, Any]:
    """The answers of all reachable parties, by name; a refusal is returned as an MtcdError."""
    loop, answers, end = Loop(), {}, monotonic() + seconds
    link = Link(kit, loop, lambda request: request.drop(), lambda name, here: None, Counters(kit.config.peers))

    def ask(name: str) -> None:
        link.query(name, f"{CONTROL}/{kind}", lambda answer: answered(name, answer), QUERY_TIMEOUT_SECONDS)

    def answered(name: str, answer: bytes | None) -> None:
        if answer is not None:
            answers[name] = _read(answer)
        elif monotonic() < end:
            loop.later(RETRY_SECONDS, lambda: ask(name))
            return
        else:
            answers[name] = None
        if len(answers) == len(link.peers):
            loop.stop()

    try:
        for name in link.peers:
            ask(name)
        if link.peers:
            loop.run()
    finally:
        link.close()
    return {name: answers[name] for name in kit.config.peers if answers.get(name) is not None}


def _read(answer: bytes) -> Any:
    if answer[:1] == NO:
        return MtcdError(tidy(answer[1:].decode(errors="replace")))
    try:
        return json.loads(answer[1:]) if answer[:1] == OK else None
    except (ValueError, RecursionError):
        return None
