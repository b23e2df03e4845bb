"""A token as bytes and back, against a bare copy of as many bytes: what a hop costs beside the link
itself."""

from __future__ import annotations

import numpy as np

from benchmarks.timing import best_of, report
from mtcd.federation.delivery.frames import Header, decode, encode
from mtcd.methods.mtcd.mtcd import STCD
from mtcd.network.topology import make_network
from mtcd.protocol.party import Message
from mtcd.protocol.token import Token

REPEATS = 200


def token(samples: int, repeats: int = REPEATS) -> None:
    """Three lines for a token of so many numbers: written, read from bytes, and read in place."""
    network = make_network("cycle", [f"c{k}" for k in range(8)])
    bounds = STCD(stepsize=1.0).messages(network, 0, samples, 1).bounds("benchmark")
    message = Message(
        2,
        3,
        Token(0, 0, 17, np.random.default_rng(0).standard_normal(samples), 0.5),
        samples,
        samples,
    )
    header = Header("benchmark", 2, 3, 0, 12)
    frame = encode(message, header)
    whole, writable = memoryview(frame), bytearray(frame)

    def repeated(work):  # type: ignore[no-untyped-def]
        def repeat() -> None:
            for _ in range(repeats):
                work()

        return repeat

    works = (
        lambda: bytes(whole),
        lambda: encode(message, header),
        lambda: decode(frame, bounds),
        lambda: decode(writable, bounds),
    )
    floor, *ours = (seconds / repeats for seconds in best_of(*map(repeated, works)))
    size = f"a token of {round(len(frame) / 1000)} KB"
    for what, seconds in zip(
        ("as bytes", "from bytes", "from a bytearray, in place"), ours, strict=True
    ):
        report(f"{size} {what}", seconds, floor, note="floor: a copy of its bytes")


def main() -> None:
    """Small and large."""
    token(1000)
    token(100_000)


if __name__ == "__main__":
    main()
