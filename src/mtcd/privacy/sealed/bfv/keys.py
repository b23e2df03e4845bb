"""Parameters from bytes; secret keys on disk, in a file that only its owner can read; and secret
randomness."""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import fields
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mtcd.core.errors import ConfigError, MtcdError, WireError, raised_as, system_reason
from mtcd.core.received import are_whole
from mtcd.privacy.sealed.bfv.parameters import LARGEST_PRIME, Parameters, plain_prime


def parse_parameters(content: bytes) -> Parameters:
    """Parameters from another party: rejected unless complete, secure, and with enough noise
    budget."""
    try:
        found = json.loads(content)
        if not isinstance(found, dict) or set(found) != {
            field.name for field in fields(Parameters)
        }:
            raise WireError("parameters", "do not have the expected fields")
        # JSON is another party's: types and ranges are checked before `Parameters` sees them.
        bits = found.pop("modulus_bits")
        if not are_whole(bits, 30, LARGEST_PRIME):
            raise WireError("parameters.modulus_bits", "are not sizes of primes")
        if not 2 <= len(bits) <= 8:
            raise WireError(
                "parameters.modulus_bits", f"has {len(bits)} entries, but 2 to 8 were expected"
            )
        parameters = Parameters(modulus_bits=tuple(bits), **found)
        # `choose_parameters` takes the largest prime of a size: any other was chosen for some
        # reason.
        if parameters.plain_modulus != plain_prime(
            parameters.degree, parameters.plain_modulus.bit_length()
        ):
            raise WireError("parameters.plain_modulus", "is not a prime that was expected")
        # the key holder could choose weak ones: they are checked as those of choose_parameters are
        parameters.layout(parameters.most_columns)
        parameters.check_budget()
    except (ValueError, TypeError, RecursionError):
        raise WireError("parameters", "cannot be read") from None
    except (ConfigError, OverflowError) as error:
        raise WireError("parameters", f"cannot be used ({error})") from None
    return parameters


def write_private(path: Path, content: bytes) -> None:
    """Write a new file with mode 0600, whole or not at all."""
    # in a file beside it first: a crash leaves the whole key or none
    writing = path.with_name(f".mtcd-{path.name}-{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Of a process with this number that was killed.
        writing.unlink(missing_ok=True)
        with os.fdopen(os.open(writing, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(writing, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            writing.unlink(missing_ok=True)
        raise MtcdError(
            f"The secret key could not be written to {path}: {system_reason(error)}."
        ) from None


def read_private(path: Path) -> bytes:
    """Read such a file; one that others can read is rejected."""
    with raised_as(f"The secret key cannot be read from {path}"):
        mode = path.stat().st_mode & 0o077
        content = path.read_bytes()
    # others may have read it, and can open every token of the run
    if mode:
        raise MtcdError(
            f"{path} holds a secret key, but others can read it: start a new run, with new keys."
        )
    return content


def join(parts: list[bytes]) -> bytes:
    """The parts in one block, each after its length."""
    return b"".join(len(part).to_bytes(8, "little") + part for part in parts)


def split(content: bytes, count: int | None = None) -> list[bytes]:
    """The inverse of ``join``; rejects what has another number of parts, if one is given."""
    parts, start = [], 0
    while start < len(content):
        # Lengths in front, so that no two lists of parts have the same bytes.
        size = int.from_bytes(content[start : start + 8], "little")
        if start + 8 + size > len(content):
            raise WireError("sealed", "is cut off, or has a wrong length inside")
        parts.append(content[start + 8 : start + 8 + size])
        start += 8 + size
    if not parts or (count is not None and len(parts) != count):
        raise WireError("sealed", f"has {len(parts)} parts, not as many as expected")
    return parts


# Secret randomness, from the operating system: never from a seed, which others could know.


Integers = npt.NDArray[np.int64]


def uniform(modulus: int, count: int) -> Integers:
    """``count`` integers, uniform from 0 to ``modulus`` - 1, by rejection."""
    # cut to the bits of the modulus, at least half of all draws are kept
    bits = modulus.bit_length()
    # Some are rejected, so draw again what is missing. A remainder modulo t would not be uniform.
    found = np.empty(0, np.uint64)
    while len(found) < count:
        drawn = np.frombuffer(os.urandom(8 * (count - len(found))), np.uint64) >> np.uint64(
            64 - bits
        )
        found = np.concatenate([found, drawn[drawn < modulus]])
    return found.astype(np.int64)


def uniform_residues(bits: int, count: int, moduli: list[int]) -> npt.NDArray[np.uint64]:
    """``count`` integers, uniform from -2^bits to 2^bits - 1, modulo each of these moduli below
    2^56: one row each."""
    # more bits than a word has: digit by digit, from the highest one
    # One byte more than the bits may need; the top one is masked.
    size = bits // 8 + 1
    drawn = np.frombuffer(os.urandom(size * count), np.uint8).reshape(size, count)
    top = drawn[:1] & np.uint8((2 << (bits - 8 * (size - 1))) - 1)
    digits = np.concatenate([top, drawn[1:]]).astype(np.uint64)
    rows = []
    for modulus in moduli:
        row = np.zeros(count, np.uint64)
        for digit in digits:
            row = (row * np.uint64(256) + digit) % np.uint64(modulus)
        rows.append((row + np.uint64(modulus - (1 << bits) % modulus)) % np.uint64(modulus))
    return np.array(rows)
