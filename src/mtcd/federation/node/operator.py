"""The person who watches a federation: asks everybody how it is, and can ask all to stop."""

from __future__ import annotations

import json
from pathlib import Path
from time import monotonic
from typing import Any

from mtcd.errors import ConfigError, MtcdError
from mtcd.federation.keys import CONTROL
from mtcd.federation.kit import Kit, read_kit
from mtcd.federation.names import OPERATOR
from mtcd.federation.node.link import Link
from mtcd.federation.node.log import tidy
from mtcd.federation.node.loop import Loop
from mtcd.federation.node.mail import NO, OK

ONE_TRY = 1.0  # seconds
PAUSE = 0.1


def operator_kit(folder: Path) -> Kit:
    """The operator's kit: this folder, or the one in it."""
    inside = folder / OPERATOR
    kit = read_kit(inside if (inside / "party.yaml").exists() else folder)
    if not kit.config.is_operator:
        raise ConfigError(f"{folder} is the kit of {kit.config.name}: the operator's is needed, kits/operator.")
    return kit


def ask_everybody(kit: Kit, kind: str, seconds: float = 5.0) -> dict[str, Any]:
    """The answers, by name, of all who can be reached; one who refuses is told by its MtcdError."""
    loop, answers, end = Loop(), {}, monotonic() + seconds
    link = Link(kit, loop, lambda request: request.let_go(), lambda name, here: None)

    def ask(name: str) -> None:
        link.query(name, f"{CONTROL}/{kind}", lambda answer: heard(name, answer), ONE_TRY)

    def heard(name: str, answer: bytes | None) -> None:
        if answer is not None:
            answers[name] = _read(answer)
        elif monotonic() < end:
            loop.later(PAUSE, lambda: ask(name))
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
