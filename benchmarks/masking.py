"""The masks of one upload: CPU time per sync and client, against the same upload without masks;
double masks too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import process_time

import numpy as np

from mtcd.core.fixed_point import WIDE
from mtcd.privacy.masked.double_masks import DoubleMasks, unmasked
from mtcd.privacy.masked.pair_masks import PairMasks, new_private_key, public_key, shared_keys

ROUNDS, REPEATS = 7, 100
SIZES = ((3, 5000), (8, 5000), (8, 500), (32, 5000), (8, 100_000))
"""Clients and samples of the table."""


def cpu_seconds(work: Callable[[int], object]) -> float:
    """The least CPU time of one call, over several rounds."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = process_time()
        for sync in range(REPEATS):
            work(sync)
        best = min(best, (process_time() - start) / REPEATS)
    return best


def masks(clients: int, samples: int) -> tuple[float, float, float]:
    """Seconds to round an upload, to round and mask it, and to derive the keys of a run."""
    private = [new_private_key() for _ in range(clients)]
    public = np.stack([public_key(one) for one in private])
    own = PairMasks(0, private[0], public)
    values = np.random.default_rng(0).standard_normal(samples + 1)
    holders = range(clients)
    rounded = cpu_seconds(lambda sync: WIDE.encode(values, clients))
    masked = cpu_seconds(lambda sync: own.masked(WIDE.encode(values, clients), sync, 0, holders))
    start = process_time()
    shared_keys(0, private[0], public)
    return rounded, masked, process_time() - start


def double_masks(clients: int, samples: int) -> tuple[float, float, float]:
    """Seconds to put double masks on an upload, to open masks, both of a client, and to take them
    off the sum."""
    private = [new_private_key() for _ in range(clients)]
    public = np.stack([public_key(one) for one in private])
    everyone = tuple(range(clients))
    all_masks = [DoubleMasks(k, private[k], public) for k in everyone]
    words = WIDE.encode(np.random.default_rng(0).standard_normal(samples + 1), clients)
    opened = {k: all_masks[k].opened(0, everyone, everyone, ()) for k in everyone}
    return (
        cpu_seconds(lambda sync: all_masks[0].masked(words, sync, everyone)),
        cpu_seconds(lambda sync: all_masks[0].opened(sync, everyone, everyone, ())),
        cpu_seconds(lambda sync: unmasked(words, everyone, everyone, opened)),
    )


def main(sizes: Sequence[tuple[int, int]] = SIZES) -> None:
    """Print a line on single and one on double masks for each pair of clients and samples."""
    for clients, samples in sizes:
        rounded, masked, keys = masks(clients, samples)
        print(
            f"K={clients:3} N={samples:7}: {masked * 1e3:7.3f} ms a sync and client, of which "
            f"{rounded * 1e3:6.3f} ms "
            f"fixed point; keys, once {keys * 1e3:6.2f} ms"
        )
        masked, opened, server = double_masks(clients, samples)
        print(
            f"    double: {masked * 1e3:7.3f} ms a sync and client, {opened * 1e3:6.3f} ms to open "
            f"masks; "
            f"server {server * 1e3:7.3f} ms a sync"
        )


if __name__ == "__main__":
    main()
