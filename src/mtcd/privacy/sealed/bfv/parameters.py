"""Parameters of the BFV scheme for a training: 128-bit security, and noise that is known
beforehand.

Noise is followed as a standard deviation per coefficient, with the usual heuristic that
coefficients are independent; ``tests/unit/privacy/sealed/test_sealing_bfv.py`` measures that it is
an upper bound. The security of a degree and a coefficient modulus is that of the tables of the
Homomorphic Encryption Standard (ternary secret, 128 bits, classical).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import lru_cache

from mtcd.core.checks import check_whole
from mtcd.core.errors import ConfigError
from mtcd.privacy.sealed.bfv.layout import Layout

SECURE_BITS = {8192: 218, 16384: 438}
"""The most bits of the coefficient modulus, special prime included, that keep 128-bit security, by
ring degree."""
LEAST_BUDGET = 20
"""The bits of noise budget that must be left at decryption."""
FLOODING = 40
"""The flooded noise of one ciphertext is within 2^-40 of a distribution that does not depend on the
matrix."""
ERROR = 3.24
"""The standard deviation of a fresh error: SEAL's centred binomial distribution."""
TAIL = 8.0
"""Standard deviations that no coefficient exceeds, but with a probability below 1e-10."""
SENT_PRIMES = 2
"""The primes that are left of the coefficient modulus when a value goes to the key holder."""
MOST_DROPPED = (6, 5)
"""Bytes of each polynomial that parameters are chosen to spare: 48 and 40 bits, both below the
flooding noise."""
LARGEST_PRIME = 56
"""Bits of a prime of the coefficient modulus: seven bytes on the wire, and room for 64-bit
arithmetic."""
MOST_SPARED = 2
"""Bytes of each coefficient of a masked product that may be spared."""
MISSES = 40
"""A masked product is decrypted wrongly with a probability of at most 2^-40."""
LEAST_TOKEN_BITS = 11
"""Fewer would leave less than 8 bits for a derivative, beside the room for its growth within a
tour."""


@dataclass(frozen=True)
class Parameters:
    """What all parties of a run agree on. Made by ``choose_parameters``."""

    samples: int
    degree: int
    """The ring degree n."""
    plain_modulus: int
    """t: a prime, 1 modulo 2n."""
    modulus_bits: tuple[int, ...]
    """The primes of the coefficient modulus; the last one is used for key switching only."""
    stride: int
    """The number of baby steps; there are rotation keys for 1 and for this number of slots."""
    visits: int
    """The most visits between two openings of the token: each adds noise."""
    most_columns: int
    token_bound: int
    """The largest absolute value of an entry of the token."""

    def __post_init__(self) -> None:
        for field in fields(self):
            if field.name != "modulus_bits":
                check_whole(field.name, getattr(self, field.name))
        # SEAL itself checks this too, but later, and with an error about its own settings.
        if self.degree not in SECURE_BITS or sum(self.modulus_bits) > SECURE_BITS[self.degree]:
            raise ConfigError(
                f"A ring degree of {self.degree} with a modulus of {sum(self.modulus_bits)} bits "
                "has less than 128 bits of security: use choose_parameters."
            )
        if self.plain_modulus >= 2**60:
            raise ConfigError("The plaintext modulus has more than 60 bits: use choose_parameters.")
        if len(self.modulus_bits) <= SENT_PRIMES + 1:
            raise ConfigError("The coefficient modulus has too few primes: use choose_parameters.")
        if self.token_bound > self.half:
            raise ConfigError(
                "The bound of the token exceeds half of the plaintext modulus: use "
                "choose_parameters."
            )

    @property
    def half(self) -> int:
        """The largest integer that can be represented: (t - 1) / 2."""
        return (self.plain_modulus - 1) // 2

    def layout(self, columns: int = 1) -> Layout:
        return Layout(self.degree, self.samples, columns)

    @property
    def data_bits(self) -> int:
        return sum(self.modulus_bits[:-1])

    def _fresh(self) -> float:
        """Variance of the noise of an encryption with the public key: u e + e0 + e1 s, u and s
        ternary.

        SEAL encrypts with the special prime and divides by it, so that little more than the
        rounding is left.
        """
        return (
            ERROR**2 * (4 / 3 * self.degree + 1) / 4.0 ** self.modulus_bits[-1] + self._rounding()
        )

    def _rotation(self) -> float:
        """Variance that a key switch adds: the digits times the errors of the keys, divided by the
        special prime.

        Digits are uniform from 0 to a prime p: of variance p^2 / 12 around p / 2. The part of p / 2
        is the same for all ciphertexts of a key, and varies from key to key: four times its mean
        covers 99 of 100.
        """
        digits = sum(4.0 ** (bits - self.modulus_bits[-1]) for bits in self.modulus_bits[:-1])
        return self.degree * (1 / 12 + 4 * 1 / 4) * ERROR**2 * digits + self._rounding()

    def _rounding(self) -> float:
        """Variance of the rounding of a ciphertext to another modulus, after decryption with a
        ternary secret."""
        return (1 + 2 / 3 * self.degree) / 12

    def product_noise(self) -> float:
        """The standard deviation of the noise of the largest product at the end of a tour."""
        layout = self.layout(self.most_columns)
        # Every visit adds the noise of a fresh encryption, and rotations of a product that of key
        # switches.
        token = (self.visits + 1) * self._fresh() + (
            min(self.stride, layout.diagonals) - 1
        ) * self._rotation()
        # of an encoded diagonal, squared
        energy = self.degree * float(self.plain_modulus) ** 2 / 12
        giants = -(-layout.diagonals // self.stride)
        products = layout.diagonals * layout.ciphertexts * energy * token
        return math.sqrt(products + giants * self._rotation() + self._fresh())

    def flood_bits(self) -> int:
        """The flooding noise is uniform within 2^bits: n deviations of the noise shift it by 2^-40
        in all."""
        # Uniform noise shifted by s is within s / 2^bits of itself; n coefficients add up.
        return math.ceil(math.log2(self.product_noise() * self.degree / 2) + FLOODING)

    def budget(self, dropped: tuple[int, int] | None = None) -> int:
        """Bits of noise budget, as SEAL rounds it down, of a flooded product after modulus
        switching and rounding.

        ``dropped``: how many of the lowest bytes of each polynomial are not sent, by default as
        many as are.
        """
        if dropped is None:
            dropped = self.dropped()
        bits = sum(self.modulus_bits[:SENT_PRIMES])
        flooding = 2.0 ** (self.flood_bits() - self.data_bits + bits)
        # What is not sent is an error that is uniform in 2^(8 count) integers, of variance 4^(8
        # count)/12.
        first, second = _cut_variance(dropped[0]), _cut_variance(dropped[1])
        rounding = self._rounding() + first + second * 2 / 3 * self.degree
        noise = flooding + TAIL * math.sqrt(rounding)
        # As SEAL rounds the budget down, so that what is promised is what a decryption finds.
        return bits - 1 - math.ceil(math.log2(self.plain_modulus) + math.log2(noise))

    def dropped(self) -> tuple[int, int]:
        """How many of the lowest bytes of each polynomial are not sent, since the budget suffices
        without."""
        if self.budget(MOST_DROPPED) >= LEAST_BUDGET:
            return MOST_DROPPED
        return (0, 0)

    def miss_bits(self, spared: int) -> float:
        """Minus log2 of the probability that a masked product is decrypted wrongly.

        Key holder and client round their halves to integers by themselves. The sum is off by one
        where a half is closer to the middle of two integers than the noise is large: of one
        coefficient with probability E|noise| / unit, since halves are uniform.

        Parameters
        ----------
        spared : int
            How many of the lowest bytes of each coefficient are not sent.
        """
        # of both halves together: q / t after the switch to two primes
        bits = sum(self.modulus_bits[:SENT_PRIMES])
        unit = 2.0**bits / self.plain_modulus
        switched = (self.product_noise() * 2.0 ** (bits - self.data_bits)) ** 2
        unsent = 0.0
        if spared:
            unsent = 4.0 ** (8 * spared) / 12 * 2 / 3 * self.degree
        # Expectation of the absolute value of a Gaussian.
        noise = math.sqrt(switched + self._rounding() + unsent)
        mean = math.sqrt(2 / math.pi) * noise
        return -math.log2(self.degree * mean / unit)

    def spared(self) -> int:
        """How many of the lowest bytes of each coefficient of a masked product are not sent."""
        fitting = [count for count in range(MOST_SPARED + 1) if self.miss_bits(count) >= MISSES]
        return max(fitting, default=0)

    def check_budget(self) -> None:
        """Reject parameters whose noise budget may fall below 20 bits."""
        left = self.budget()
        if left < LEAST_BUDGET:
            raise ConfigError(
                f"The noise budget could fall to {left} bits, but must be {LEAST_BUDGET} or more, "
                f"with {self.samples} samples, {self.most_columns} columns at one party and "
                f"{self.visits} visits per tour. Use fewer visits per tour, or let "
                "choose_parameters choose."
            )


def choose_parameters(samples: int, columns: Sequence[int], visits: int) -> Parameters:
    """The smallest ring degree, and in it the largest plaintext modulus, that leave a noise budget
    of 20 bits.

    ``columns``: the number of columns of each client; ``visits``: the most visits between two
    openings of the token.
    """
    check_whole("samples", samples)
    check_whole("visits", visits)
    widest = max(columns, default=0)
    check_whole("columns", widest)
    for degree in SECURE_BITS:
        # Degrees in increasing order: the first that fits is the cheapest.
        if widest <= Layout(degree, samples, 1).most_columns and (
            best := _largest(degree, samples, widest, visits)
        ):
            return best
    raise ConfigError(
        f"A sealed training of {samples} samples, {widest} columns at one party and {visits} "
        "visits per tour needs more precision than 128-bit security leaves room for: use fewer "
        "samples, columns per party or visits."
    )


@lru_cache(maxsize=64)
def _largest(degree: int, samples: int, widest: int, visits: int) -> Parameters | None:
    """The parameters of this ring degree with the largest plaintext modulus, if it is large
    enough."""
    stride = Layout(degree, samples, widest).best_stride()
    spared = (0, 0)
    if degree == min(SECURE_BITS):  # with many samples precision is worth more than bytes
        spared = MOST_DROPPED
    # Downwards: the first plaintext modulus that leaves enough budget is the largest.
    for bits in range(48, 20, -1):
        modulus = plain_prime(degree, bits)
        # An entry of the token and one of a standardised matrix get about as many bits as each
        # other.
        token_bits = round(math.log2(10 * modulus / samples) / 2)
        if token_bits < LEAST_TOKEN_BITS:
            return None
        for chain in _chains(degree):
            tried = Parameters(
                samples, degree, modulus, chain, stride, visits, widest, 2**token_bits
            )
            if tried.budget(spared) >= LEAST_BUDGET:
                return tried
    return None


def _chains(degree: int) -> list[tuple[int, ...]]:
    """Sizes of primes, tried in this order: three in ciphertexts of degree 8192, four in larger
    ones.

    Large primes that stay until decryption leave room for rounding; a large special prime makes
    rotations less noisy.
    """
    count = 2
    if degree == min(SECURE_BITS):
        count = 1
    # rotations lose noise by the special prime: it is large, and so are those that stay
    total = min(SECURE_BITS[degree], 270)  # more bits cost time, and nothing here needs them
    chains = []
    for special in range(LARGEST_PRIME, 49, -1):
        for kept in range(LARGEST_PRIME, 53, -1):
            # The rest is shared as evenly as possible: the smallest prime decides how much a switch
            # loses.
            size, more = divmod(total - special - SENT_PRIMES * kept, count)
            others = [size + (i < more) for i in range(count)]
            if max(others) <= LARGEST_PRIME:
                chains.append((*[kept] * SENT_PRIMES, *others, special))
    return chains


def plain_prime(degree: int, bits: int) -> int:
    """The largest prime below 2^bits that is 1 modulo 2n.

    >>> plain_prime(8192, 20)
    1032193
    """
    candidate = (1 << bits) - 2 * degree + 1
    while not _is_prime(candidate):
        candidate -= 2 * degree
    return candidate


def _is_prime(number: int) -> bool:
    # These twelve bases leave no strong pseudoprime below 2^64 (Sorenson and Webster).
    """Miller-Rabin with bases that decide for all 64-bit integers."""
    odd, twos = number - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for base in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37):
        power = pow(base, odd, number)
        if power not in (1, number - 1) and not any(
            (power := power * power % number) == number - 1 for _ in range(twos)
        ):
            return False
    return True


def _cut_variance(count: int) -> float:
    """The variance of the error where so many of the lowest bytes are not sent."""
    if count == 0:
        return 0.0
    return 4.0 ** (8 * count) / 12
