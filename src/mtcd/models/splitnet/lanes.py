"""Lanes for tokens: on a GPU each has its own stream, so that tokens of several clusters roam
concurrently."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

MOST = 8  # more streams than this do not run concurrently


def new_stream(device: torch.device) -> torch.cuda.Stream:
    """A stream of this device."""
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]


class Lanes:
    """Orders work on the device: a lane starts after all work enqueued outside of lanes before;
    ``join`` follows all.

    This process never waits. With one lane, all work is in one stream.
    """

    def __init__(self, device: torch.device, count: int) -> None:
        self.device = device
        self.streams = []
        if count > 1:
            self.streams = [new_stream(device) for _ in range(min(count, MOST))]
        self._begun: set[int] = set()

    @contextmanager
    def lane(self, token: int) -> Iterator[None]:
        """The context in which work is enqueued for this token."""
        if not self.streams:
            yield
            return
        place = token % len(self.streams)
        stream = self.streams[place]
        # Only once: later work in the lane need not wait for what other lanes have enqueued since.
        if place not in self._begun:
            stream.wait_stream(torch.cuda.current_stream(self.device))
            self._begun.add(place)
        with torch.cuda.stream(stream):
            yield

    def join(self) -> None:
        """Let all further work wait for all lanes."""
        # Without a lane no device is asked for: there may be none.
        here = torch.cuda.current_stream(self.device) if self._begun else None
        for place in self._begun:
            assert here is not None
            here.wait_stream(self.streams[place])
        self._begun = set()
