"""Federations in which a party is killed at the end."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from mtcd.core.errors import MtcdError
from mtcd.federation.node import ending, final_check
from mtcd.federation.node.final_check import Outcome
from mtcd.federation.node.node import Node
from waiting import PATIENCE

pytest.importorskip("cryptography")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits long for those who are gone."""
    monkeypatch.setattr(final_check, "UNREACHABLE_TIMEOUT_SECONDS", 1.0)
    monkeypatch.setattr(ending, "UNREACHABLE_STAY_SECONDS", 2.0)


class KilledAtEnd(Node):
    """As if it were killed when training has ended, before anything else."""

    def _end(self) -> None:
        self.loop.stop()


class KilledBeforeVerdict(Node):
    """As if it were killed when it has done its part, before it hears what came of it."""

    def _conclude(self, outcome: Outcome) -> None:
        self.loop.stop()


def run_killing(nodes: dict[str, Node], killed: str) -> None:
    """This one does not come to an end."""
    with ThreadPoolExecutor(len(nodes)) as pool:
        futures = {name: pool.submit(one.run) for name, one in nodes.items()}
        with pytest.raises(MtcdError, match="Stopped before"):
            futures.pop(killed).result(PATIENCE)
        for future in futures.values():
            future.result(PATIENCE)
