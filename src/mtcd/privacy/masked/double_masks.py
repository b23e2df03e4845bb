"""Double masks: an upload carries pair masks, which cancel in the sum, and a mask of its own, which
does not.

Every pair of clients derives three seeds for each sync from its key: that of the pair mask, and one
share of each one's own mask. The seed of an own mask is the exclusive or of its shares, one with
each other client. After the uploads every client opens for each other client *one* of the two: its
share of that client's own mask if the upload has arrived, the seed of the pair mask if it has not.
Clients that cannot answer are replaced by the others: a client also opens the shares of its own
mask that it has with them. So an upload that arrives late keeps its own mask, and one that is
summed keeps the pair masks with the others that are summed; no share is ever sent before it is
opened.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from struct import Struct

import numpy as np

from mtcd.core.fixed_point import Words

# Every label names its version: seeds of another protocol are others.
from mtcd.privacy.masked.pair_masks import I8, shared_keys, stream

LABEL = b"mtcd double-masked aggregation 2"
SEED_WORDS = 2
"""Seeds of 128 bits."""
COUNTER = Struct(">Q8x")  # the sync, and 64 bits that count blocks of the stream
PAIR, OF_FIRST, OF_SECOND = range(3)
"""The seeds of a pair: of its mask, and the shares of the own masks of its first and second
client."""


@dataclass(frozen=True)
class Opened:
    """What one client has opened in a sync; a row of zeros where it has opened nothing.

    ``theirs``: by client, its share of their own mask, or the seed of the pair mask. ``mine``: by
    client that cannot open it any more, the share of the mask of the client that opens.
    """

    theirs: Words
    mine: Words


class DoubleMasks:
    """Client ``number``. It must mask one upload for each sync, and open masks for one set of
    uploads."""

    def __init__(self, number: int, private: Words, public: Words, generation: int = 0) -> None:
        self.number, self.clients = number, len(public)
        self._keys = shared_keys(number, private, public, generation, LABEL, numbered=True)

    def masked(self, words: Words, sync: int, participants: Collection[int]) -> Words:
        """The words with all masks, in a new array; no words remain none."""
        # Seeds of the pairs that take part: masks with others would not cancel.
        seeds = {k: self._seeds(k, sync) for k in participants if k != self.number}
        # The own mask is drawn from all shares: none of the others can compute it alone.
        found = words + stream(
            combined(self._share_of(self.number, k, of_k) for k, of_k in seeds.items()), words
        )
        for k, of_k in seeds.items():
            add_pair_mask(found, of_k[PAIR], self.number, k)
        return found

    def opened(
        self,
        sync: int,
        participants: Collection[int],
        arrived: Collection[int],
        gone: Collection[int],
    ) -> Opened:
        """The seeds for a sum over the uploads that have arrived; ``gone`` are those of their
        owners that are down."""
        # Rows of zeros tell the server that nothing was opened; a seed is zero with probability
        # 2^-128.
        nothing = np.zeros((self.clients, SEED_WORDS), I8)
        theirs, mine = nothing, nothing.copy()
        for k in participants:
            if k == self.number:
                continue

            # one of the two, never both: with both, the upload of k would be open
            seeds = self._seeds(k, sync)
            if k in arrived:
                theirs[k] = self._share_of(k, k, seeds)
            else:
                theirs[k] = seeds[PAIR]
            if k not in arrived or k in gone:
                mine[k] = self._share_of(self.number, k, seeds)
        return Opened(theirs, mine)

    def _seeds(self, other: int, sync: int) -> Words:
        return stream(self._keys[other], np.zeros((3, SEED_WORDS), I8), COUNTER.pack(sync))

    def _share_of(self, owner: int, other: int, seeds: Words) -> Words:
        """Of the own mask of ``owner``, who is this client or the other one."""
        place = OF_SECOND
        # The pair has an order, so that both derive the same two shares.
        if owner == min(self.number, other):
            place = OF_FIRST
        share: Words = seeds[place]
        return share


def unmasked(
    total: Words,
    participants: Collection[int],
    arrived: Collection[int],
    opened: Mapping[int, Opened],
) -> Words | None:
    """The sum of the uploads that have arrived, without masks; None while a seed is missing."""
    found, zeros = total.copy(), np.zeros((max(participants) + 1, SEED_WORDS), I8)
    by = {k: opened.get(k, Opened(zeros, zeros)) for k in participants}
    missing = [k for k in participants if k not in arrived]
    for k in arrived:
        of_others = [
            (by[other].theirs[k], by[k].mine[other]) for other in participants if other != k
        ]
        # either of the two may open it
        shares = [share if share.any() else same for share, same in of_others]
        pairs = [by[k].theirs[other] for other in missing]
        # The sum is opened as a whole or not at all: a total with a mask on it would be read as
        # numbers.
        if not all(seed.any() for seed in (*shares, *pairs)):
            return None
        found -= stream(combined(shares), found)
        for other, seed in zip(missing, pairs, strict=True):
            # with the sign of the other client, which takes it off
            add_pair_mask(found, seed, other, k)
    return found


def combined(shares: Iterable[Words]) -> bytes:
    """The seed of an own mask."""
    seed: Words = reduce(np.bitwise_xor, shares)
    return seed.tobytes()


def add_pair_mask(words: Words, seed: Words, number: int, other: int) -> None:
    """Put the mask of a pair on the words of client ``number``."""
    mask = stream(seed.tobytes(), words)
    (np.add if number < other else np.subtract)(words, mask, out=words)
