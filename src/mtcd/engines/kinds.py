"""Kinds of engines by name: what ``engine`` in a config, or ``engine=`` of ``mtcd.train``, may
be."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from mtcd.core.registry import Registry
from mtcd.protocol.engine import Engine, Recipe
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.protocol.party import Parties

LOCAL = "local"
"""The kind of engines in this process."""
MakeEngine = Callable[[Parties, Ledger], Engine]


class EngineSettings(ABC):
    """The settings of a kind of engine. Subclasses are frozen dataclasses, whose fields are keys in
    a config."""

    @abstractmethod
    def maker(self, recipe: Recipe) -> MakeEngine:
        """A function that makes the engine of one training, whose parties are made by the
        recipe."""

    def connected(self) -> AbstractContextManager[object]:
        """The context in which the processes of the engine can be used several times."""
        return nullcontext()

    def map(self, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        """The results of a function, computed by the processes of the engine where it has some,
        while connected."""
        return [function(item) for item in items]


ENGINES: Registry[type[EngineSettings]] = Registry(
    EngineSettings, "mtcd.engines", "mtcd.engines", "engine.kind: no engine is called '{}';"
)
