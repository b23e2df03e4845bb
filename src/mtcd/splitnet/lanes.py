"""Lanes for tokens: on a GPU each has a stream of its own, so that tokens of several clusters roam at the same time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

MOST = 8  # more streams than this do not run at the same time


def new_stream(device: torch.device) -> torch.cuda.Stream:
    """A stream of this device."""
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]


class Lanes:
    """Work of a lane starts after all that was asked for outside of lanes before, and ``join`` waits for all lanes.

    Nothing here makes this process wait: the order holds on the device. With one lane there is nothing to order.
    """

    def __init__(self, device: torch.device, count: int) -> None:
        self.device = device
        self.streams = [new_stream(device) for _ in range(min(count, MOST))] if count > 1 else []
        self._begun: set[int] = set()

    @contextmanager
    def lane(self, token: int) -> Iterator[None]:
        """What is asked for in here is done for this token."""
        if not self.streams:
            yield
            return
        place = token % len(self.streams)
        stream = self.streams[place]
        if place not in self._begun:
            stream.wait_stream(torch.cuda.current_stream(self.device))
            self._begun.add(place)
        with torch.cuda.stream(stream):
            yield

    def join(self) -> None:
        """What is asked for from now on comes after all lanes."""
        here = torch.cuda.current_stream(self.device) if self._begun else None
        for place in self._begun:
            assert here is not None
            here.wait_stream(self.streams[place])
        self._begun = set()
