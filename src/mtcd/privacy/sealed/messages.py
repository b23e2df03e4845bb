"""The messages of sealed tours: encrypted tokens, and requests to the key holder."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mtcd.methods.messages import Messages
from mtcd.methods.past_weights import PAST
from mtcd.privacy.sealed.bfv.parameters import SECURE_BITS, SENT_PRIMES, choose_parameters
from mtcd.privacy.sealed.payloads import (
    NextTour,
    SealedAnswer,
    SealedEnd,
    SealedKeys,
    SealedRequest,
    SealedToken,
)
from mtcd.protocol.codec.limits import Bounds
from mtcd.protocol.ledger.costs import Sizes
from mtcd.protocol.party import Progress

if TYPE_CHECKING:
    from mtcd.privacy.sealed.settings import SealedTours

PRIME_BYTES = 7  # of a coefficient modulo one prime, on the wire
# of one ciphertext: two polynomials of degree 16384, four primes of eight bytes each
MOST_BYTES = 1_048_576
MOST_KEY_BYTES = 8_388_608  # of public keys: those of the largest ring have 5.5 MiB
HEADER = 4096  # bytes of a ciphertext beside its polynomials, and some to spare


@dataclass(frozen=True, eq=False)
class SealedMessages(Messages):
    """The messages of sealed tours on one network."""

    method: SealedTours

    @property
    def sizes(self) -> Sizes:
        """In numbers of eight bytes: of a request, of the token as the server sends it, and as a
        client does."""
        numbers = self.method.token_numbers(self.samples)
        # Of the smallest party: what a token needs does not depend on the widest.
        p = choose_parameters(numbers, (1,), 2 * (self.network.size + 2))
        # A fresh token from the server has a seed in place of its second polynomial: half of the
        # bytes.
        token = 2 * p.degree * PRIME_BYTES * (len(p.modulus_bits) - 1) * p.layout().ciphertexts / 8
        request = p.degree * (PRIME_BYTES * SENT_PRIMES - p.spared()) / 8
        return Sizes(request, token / 2, token)

    def declared(self, general: Bounds) -> Bounds:
        method = self.method
        kinds = {SealedKeys, SealedToken, SealedRequest, SealedAnswer, NextTour, Progress}
        ciphertexts = 1 + method.token_numbers(self.samples) // min(SECURE_BITS)
        bounds = replace(
            general,
            kinds=frozenset(kinds | {SealedEnd} if method.server else kinds),
            server=method.server,
            tokens=1,
            hops=method.tour_length(self.network, self.seed),
        )
        return bounds.with_slots(
            PAST.name,
            snapshots=method.depth + 1,
            past=method.depth + 1,
            products=max(SECURE_BITS),  # as many columns as the largest ring has room for
            sealed_bytes=ciphertexts * MOST_BYTES + HEADER,
            sealed_keys=MOST_KEY_BYTES,
        )
