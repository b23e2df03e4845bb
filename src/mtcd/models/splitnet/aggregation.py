"""Aggregations of the clients' representations, sample by sample: sum, mean or concatenation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import accumulate

import torch
from torch import Tensor

from mtcd.core.errors import ConfigError, check_known, listing


class Aggregation(ABC):
    """H of K representations, each of ``widths[k]`` numbers per sample.

    To update its own h_k, a client computes the contribution of the others (``rest``) and then the
    new H (``put``).
    """

    sums = False
    """Whether H is a sum of the representations, up to a factor."""

    def __init__(self, widths: Sequence[int]) -> None:
        self.widths = tuple(widths)

    @property
    @abstractmethod
    def width(self) -> int:
        """Numbers per sample in H."""

    @abstractmethod
    def of(self, representations: Sequence[Tensor]) -> Tensor:
        """H of all representations, in the order of the clients."""

    @abstractmethod
    def rest(self, H: Tensor, k: int, h: Tensor) -> Tensor:
        """H without the contribution h of client k."""

    @abstractmethod
    def put(self, rest: Tensor, k: int, h: Tensor) -> Tensor:
        """H with the representation h of client k."""


class Sum(Aggregation):
    """H = sum_k h_k. Its size does not depend on K."""

    sums = True
    weight = 1.0

    @property
    def width(self) -> int:
        return self.widths[0]

    def of(self, representations: Sequence[Tensor]) -> Tensor:
        return torch.stack(list(representations)).sum(dim=0) * self.weight

    def rest(self, H: Tensor, k: int, h: Tensor) -> Tensor:
        # The token stays equal to the sum of all representations: what was added is what is taken
        # out.
        return H - self.weight * h

    def put(self, rest: Tensor, k: int, h: Tensor) -> Tensor:
        return rest + self.weight * h


class Mean(Sum):
    """H = the mean of the h_k."""

    def __init__(self, widths: Sequence[int]) -> None:
        super().__init__(widths)
        self.weight = 1.0 / len(self.widths)


class Concat(Aggregation):
    """H = (h_1, ..., h_K), concatenated: K times the size of one representation, without
    rounding."""

    def __init__(self, widths: Sequence[int]) -> None:
        super().__init__(widths)
        self.starts = [0, *accumulate(self.widths)]

    @property
    def width(self) -> int:
        return self.starts[-1]

    def of(self, representations: Sequence[Tensor]) -> Tensor:
        return torch.cat(list(representations), dim=1)

    def rest(self, H: Tensor, k: int, h: Tensor) -> Tensor:
        # A slot is replaced, so nothing has to be taken out, and nothing is rounded.
        return H

    def put(self, rest: Tensor, k: int, h: Tensor) -> Tensor:
        return torch.cat([rest[:, : self.starts[k]], h, rest[:, self.starts[k + 1] :]], dim=1)


AGGREGATIONS: dict[str, type[Aggregation]] = {"sum": Sum, "mean": Mean, "concat": Concat}


def check_aggregation(name: str) -> None:
    """Reject an unknown aggregation."""
    check_known(name, AGGREGATIONS, f"model.aggregation: nothing is called {name!r};")


def make_aggregation(name: str, clients: Sequence[str], widths: Sequence[int]) -> Aggregation:
    """The aggregation of these clients' representations."""
    check_aggregation(name)
    # Only concatenation puts representations of different widths side by side.
    if name != "concat" and len(set(widths)) > 1:
        found = listing(
            [f"{client}: {width}" for client, width in zip(clients, widths, strict=True)]
        )
        raise ConfigError(
            f"aggregation {name!r} needs representations of the same width from all clients, but "
            f"they have {found}. Make them equal, or use aggregation='concat'."
        )
    return AGGREGATIONS[name](widths)
