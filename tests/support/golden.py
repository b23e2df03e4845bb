"""One payload of each class, as the bytes of a frame and of a journal: recorded in ``golden.json``
with the versions.

`python tests/support/golden.py` records them anew. Do that only after counting up PROTOCOL
(``mtcd/core/version.py``), FORMAT (``federation/delivery/frames.py``) or MAGIC
(``federation/delivery/journal.py``): parties of both versions would otherwise take each other's
bytes for their own.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from mtcd.core.version import PROTOCOL
from mtcd.federation.delivery.frames import FORMAT, Header, encode, encode_ack, encode_envelope
from mtcd.federation.delivery.journal import MAGIC
from mtcd.methods.cluster_memory.slots import SUMS, WEIGHTS
from mtcd.methods.dcpa.dcpa import Offer
from mtcd.methods.mtcd.client import Done, Share
from mtcd.methods.mtcd.combine.rule import SYNC_CHANGE
from mtcd.methods.optimal_sync.tally import TALLY, SyncTally
from mtcd.methods.past_weights import PAST
from mtcd.methods.svfl.svfl import Shared
from mtcd.methods.tours.instruction import PRODUCTS, TOUR, Instruction
from mtcd.methods.tree_cg.tree_cg import Direction, Summand
from mtcd.models.splitnet.parties import UpdateFusion
from mtcd.models.splitnet.slots import JOURNEY, THETA_0, VISITED, Journey
from mtcd.models.trees.gains import GAINS
from mtcd.privacy.masked.payloads import (
    DoubleMaskedUpload,
    MaskedToken,
    MaskedUpload,
    OpenedMasks,
    OpenMasks,
    PublicKey,
    PublicKeys,
    SignedKey,
    SignedKeys,
)
from mtcd.privacy.sealed.payloads import (
    NextTour,
    SealedAnswer,
    SealedEnd,
    SealedKeys,
    SealedRequest,
    SealedToken,
)
from mtcd.protocol.codec import envelopes as control
from mtcd.protocol.codec.payloads import Payload
from mtcd.protocol.codec.records import pack
from mtcd.protocol.gathering import Fresh, Gathering
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.protocol.party import Begin, Message, Part, Progress
from mtcd.protocol.token import Token
from mtcd.training.plateau import WINDOWS, Windows

FILE = Path(__file__).with_name("golden.json")
Z = np.array([1.5, -2.0, 0.25])
WORDS = np.array([1, -(2**63), 2**63 - 1, 0], dtype="<i8")
INSTRUCTION = Instruction(3, (0.5, 0.25, 0.25), 2, True, False, 0.125, True)
SLOTS = {
    SYNC_CHANGE: 2 * Z,
    GAINS: np.array([0.5, -1.0, 0.0]),
    TOUR: INSTRUCTION,
    PRODUCTS: np.arange(10.0),
    PAST: {1: np.array([0.5, 0.5])},
    TALLY: SyncTally(np.arange(2.0), -1.0, {0, 2}),
    WINDOWS: Windows(2, 0.5),
    THETA_0: [np.ones((2, 1), np.float32)],
    JOURNEY: Journey(2, 0.25),
    VISITED: frozenset({1, 3}),
    WEIGHTS: np.array([0.5, -2.0, 1.0]),
    SUMS: np.arange(6.0),
}
BYTES = np.arange(11, dtype=np.uint8)
UPLOADS = np.array([5, 4], dtype="<i8")
PAYLOADS: tuple[Payload, ...] = (
    Begin(),
    Token(1, 2, 3, Z, 0.5),
    Token(1, 2, 3, Z, 0.5, -0.25, 4, {slot.name: value for slot, value in SLOTS.items()}),
    *(Token(0, 2, 1, Z, 0.0, slots={slot.name: value}) for slot, value in SLOTS.items()),
    Done(1, frozenset({0, 3})),
    Share(4),
    Fresh(Z, 0.75),
    Shared(5, Z),
    UpdateFusion(6),
    Offer(7, Z),
    Part(8, Z),
    Progress(9, 2, Z, 0.5),
    Summand(1, Z, np.arange(6.0)),
    Direction(1, Z, np.array([0.5, -0.5])),
    control.Received(),
    control.Cancelled(3),
    control.End("converged", 4, 9),
    control.End("converged", 4, 9, {PAST.name: {1: np.array([0.5, 0.5])}}),
    control.Undeliverable(2),
    control.HolderLost(2, 1),
    control.ResendTokens(2),
    control.Prepare(5, 12, True),
    control.Promise(12, 4, 13, frozenset({1})),
    control.Release(12),
    MaskedUpload(3, 1, WORDS),
    MaskedToken(1, 2, 3, WORDS),
    PublicKey(np.arange(4, dtype="<i8"), 5),
    PublicKeys(np.arange(8, dtype="<i8").reshape(2, 4), UPLOADS, 3, 6),
    SealedKeys(1, 2, BYTES),
    SealedToken(1, 2, np.array([0.5]), 2.0, 64.0, BYTES),
    SealedRequest(2, 1, 2, BYTES),
    SealedAnswer(2, 1, 2, Z),
    SealedEnd(1, BYTES, True, 7.0, 0.5),
    NextTour(2),
    SignedKey(np.arange(4, dtype="<i8"), 5, BYTES),
    SignedKeys(np.arange(8, dtype="<i8").reshape(2, 4), UPLOADS, 3, 6, BYTES),
    DoubleMaskedUpload(2, 1, WORDS),
    OpenMasks(2, 1, (0, 1, 3), (3,), (0, 1), 2),
    OpenedMasks(2, 1, np.arange(8, dtype="<i8").reshape(4, 2), np.zeros((4, 2), "<i8")),
)


def versions() -> dict[str, Any]:
    """What must change when bytes change."""
    return {"protocol": PROTOCOL, "frame": FORMAT, "journal": MAGIC.decode()}


def current() -> dict[str, str]:
    """The bytes as this version writes them, in hexadecimal."""
    frames = {f"{number}: {type(one).__name__}": one for number, one in enumerate(PAYLOADS)}
    found = {
        f"frame {name}": encode(Message(0, 1, one, 3, 3), Header("run", 0, 1, 2, 5))
        for name, one in frames.items()
    }
    envelope = control.Envelope(
        0, 1, 5, 2, 1, {2: 1}, Message(0, 1, PAYLOADS[1], 3, 3), frozenset({3})
    )
    found["envelope"] = encode_envelope(envelope, "run")
    found["ack"] = encode_ack(control.Ack(0, 1, 5, {2: 1}), "run")
    kept = {
        "outbox": [envelope],
        "payloads": list(PAYLOADS),
        "ledger": Ledger([1, 2, 3]),
        "uploads": Gathering(2),
    }
    found["journal"] = pack(
        kept | {"state": {"theta": (Z, 0.5), "t": 3, "none": None, "names": {1, 2}}}
    )
    return {name: data.hex() for name, data in found.items()}


def main() -> None:
    """Record all anew."""
    FILE.write_text(json.dumps({"versions": versions(), "bytes": current()}, indent=1) + "\n")


if __name__ == "__main__":
    main()
