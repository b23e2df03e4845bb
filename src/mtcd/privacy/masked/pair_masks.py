"""The masks of one client: a key shared with each other client, and a stream of masks from each
key.

The keys that two clients share follow from the public keys of *all* clients and from the generation
of this set: where one client has a new key, the masks of all pairs are new.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256
from struct import Struct
from typing import Any

import numpy as np

from mtcd.core.errors import WireError
from mtcd.core.fixed_point import Words
from mtcd.core.optional import find

KEY_BYTES = 32
KEY_WORDS = KEY_BYTES // 8
LABEL = b"mtcd masked aggregation 2"
# the sync, both places in it, and 32 bits that count blocks of the stream
COUNTER = Struct(">QHH4x")
PAIR = Struct(">HH")  # the numbers of two clients
MOST_PLACES = 2**16
"""The most clients, or tokens, of a sync."""
GENERATION = Struct(">Q")
I8 = np.dtype("<i8")


def new_private_key() -> Words:
    """A private key of X25519."""
    x25519 = find("cryptography.hazmat.primitives.asymmetric.x25519")
    return _words(x25519.X25519PrivateKey.generate().private_bytes_raw())


def public_key(private: Words) -> Words:
    """The public key of a private one."""
    x25519 = find("cryptography.hazmat.primitives.asymmetric.x25519")
    return _words(
        x25519.X25519PrivateKey.from_private_bytes(private.tobytes())
        .public_key()
        .public_bytes_raw()
    )


def shared_keys(
    number: int,
    private: Words,
    public: Words,
    generation: int = 0,
    label: bytes = LABEL,
    numbered: bool = False,
) -> list[bytes]:
    """The key that client ``number`` shares with each client; in its own place, one that nobody
    else knows.

    ``generation``: of this set of public keys. ``numbered``: the key of a pair depends on the
    numbers of the two, so that no client can have another one's keys by giving its public key as
    its own.
    """
    x25519 = find("cryptography.hazmat.primitives.asymmetric.x25519")
    own = x25519.X25519PrivateKey.from_private_bytes(private.tobytes())
    # The label and all public keys: keys of another run, or of a set in which one was exchanged,
    # are others.
    label += sha256(GENERATION.pack(generation) + public.tobytes()).digest()
    keys = []
    for k, theirs in enumerate(public):
        if k == number:
            # Nobody has this key, but indices stay those of the clients.
            keys.append(_derived(private.tobytes(), label))
            continue
        try:
            secret = own.exchange(x25519.X25519PublicKey.from_public_bytes(theirs.tobytes()))
        except ValueError:
            raise WireError("keys", f"hold an invalid key of client {k}") from None
        # in the same order at both clients, which then derive the same key
        first, second = sorted((k, number))
        numbers = PAIR.pack(first, second) if numbered else b""
        # HKDF as the exchanged secret is not uniform, and to bind the key to its purpose.
        keys.append(
            _derived(secret, label + numbers + public[first].tobytes() + public[second].tobytes())
        )
    return keys


class PairMasks:
    """Client ``number`` with the keys of all pairs that it is part of.

    A sync has places, each with a holder: the client that uploads it. The masks of a place add up
    to 0 with those of all other places of the same sync. A client must mask a place of a sync once
    only, or with the same numbers.
    """

    def __init__(self, number: int, private: Words, public: Words, generation: int = 0) -> None:
        self._keys = shared_keys(number, private, public, generation)

    def masked(self, words: Words, sync: int, place: int, holders: Sequence[int]) -> Words:
        """The words with the masks of this place, in a new array; no words remain none."""
        found = words.copy()
        for other, holder in enumerate(holders):
            if other != place:
                # added at one of the two places and taken off at the other: 0 in the sum
                first, second = sorted((place, other))
                mask = stream(self._keys[holder], found, COUNTER.pack(sync, first, second))
                (np.add if place < other else np.subtract)(found, mask, out=found)
        return found


def stream(key: bytes, like: Words, counter: bytes = bytes(16)) -> Words:
    """Pseudorandom words, as many as in an array and of the same type: AES in counter mode, from a
    counter on."""
    cipher = _cipher()
    # By default from 0, for keys that are used once. A key that is used for several syncs and places
    # gets another counter each time: the same stream twice would cancel in a difference.
    encryptor = cipher.Cipher(cipher.algorithms.AES(key), cipher.modes.CTR(counter)).encryptor()
    return np.frombuffer(encryptor.update(_zeros(like.nbytes)), like.dtype).reshape(like.shape)


@lru_cache(maxsize=1)
def _cipher() -> Any:
    return find("cryptography.hazmat.primitives.ciphers")


@lru_cache(maxsize=4)
# Encrypting zeros gives the key stream itself.
def _zeros(size: int) -> bytes:
    return bytes(size)


def _derived(secret: bytes, info: bytes) -> bytes:
    hashes = find("cryptography.hazmat.primitives.hashes")
    hkdf = find("cryptography.hazmat.primitives.kdf.hkdf")
    derived: bytes = hkdf.HKDF(hashes.SHA256(), KEY_BYTES, salt=None, info=info).derive(secret)
    return derived


def _words(key: bytes) -> Words:
    return np.frombuffer(key, I8)
