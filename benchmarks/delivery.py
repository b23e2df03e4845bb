"""What delivery adds to a hop: a token arrives, visits and goes into the outbox, with a commit to
the journal."""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.timing import best_of, report
from mtcd.data.synthetic import synthetic
from mtcd.federation.delivery.frames import decode_envelope, encode_envelope
from mtcd.federation.delivery.journal import FileJournal
from mtcd.federation.delivery.reliable_party import ReliableParty
from mtcd.federation.recovery.iteration_client import IterationClient
from mtcd.methods.mtcd.mtcd import MTCD
from mtcd.methods.mtcd.server import TokenClient
from mtcd.models.glm.model import Glm
from mtcd.network.topology import make_network
from mtcd.protocol.codec.envelopes import Envelope
from mtcd.protocol.party import Message
from mtcd.protocol.token import Token

REPEATS = 50


def hop(samples: int, folder: Path) -> None:
    """Two lines for a token of so many numbers: a visit with its delivery, and a commit alone."""
    data = synthetic("ridge", samples, 40, clients=8)
    network = make_network("complete", data.clients)
    method, problem = MTCD(tokens=1, hops=10**6, stepsize=1e-9), Glm("ridge").problem(data)
    kept, bare = (method.parties(problem, network, 0).clients[1] for _ in range(2))
    assert isinstance(kept, TokenClient)
    assert isinstance(bare, TokenClient)
    journal = FileJournal(folder / f"journal-{samples}")
    reliable = ReliableParty(1, kept, IterationClient(kept, network), journal, clients=8).resume()
    token = Token(0, 0, 3, problem.labels * 1e-3, 0.5)
    frame = encode_envelope(Envelope(0, 1, 0, 0, 0, {}, Message(0, 1, token)), "benchmark")
    bounds = method.messages(network, 0, samples, 1).bounds("benchmark")
    numbers = iter(range(10**9))

    def deliver() -> None:
        for _ in range(REPEATS):
            reliable.outbox.clear()
            reliable.deliver(decode_envelope(frame, bounds)._replace(sequence=next(numbers)))
            for envelope in reliable.unacknowledged():
                encode_envelope(envelope, "benchmark")

    def visit() -> None:
        for _ in range(REPEATS):
            message = decode_envelope(frame, bounds).message
            for sent in bare.receive(message):
                encode_envelope(Envelope(sent.sender, sent.to, 0, 0, 0, {}, sent), "benchmark")

    def commit() -> None:
        for _ in range(REPEATS):
            reliable.commit()

    floor, whole, alone = (seconds / REPEATS for seconds in best_of(visit, deliver, commit))
    size = f"a token of {round(len(frame) / 1000)} KB"
    report(
        f"{size}: visit with delivery and wire",
        whole,
        floor,
        note="floor: the same without delivery",
    )
    report(f"{size}: a commit alone", alone, floor)


def main() -> None:
    """Small and large."""
    with tempfile.TemporaryDirectory() as folder:
        hop(1000, Path(folder))
        hop(100_000, Path(folder))


if __name__ == "__main__":
    main()
