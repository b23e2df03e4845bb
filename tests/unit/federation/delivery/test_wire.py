"""The wire format: trainings whose messages travel as bytes are the same, bit for bit, and frames
are as planned."""

import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mtcd.core.errors import ConfigError, MtcdError, WireError
from mtcd.core.version import PROTOCOL
from mtcd.federation.delivery.frames import Header, decode, encode, largest
from mtcd.methods.mtcd.client import Done, Share
from mtcd.methods.mtcd.mtcd import MTCD
from mtcd.methods.optimal_sync.tally import SyncTally
from mtcd.methods.tours.instruction import Instruction
from mtcd.models.splitnet.slots import VISITED
from mtcd.network.topology import make_network
from mtcd.protocol.codec.limits import Bounds
from mtcd.protocol.party import SERVER, Begin, Message
from mtcd.protocol.token import Token
from wired import LINEAR, RUN, SPLIT, changing, followed, linear, payload_names, split, wired


def kinds(frames: list[bytes]) -> set[str]:
    names = payload_names()
    return {names[int.from_bytes(frame[12:14], "little")] for frame in frames}


@pytest.mark.long
@pytest.mark.parametrize("name", LINEAR)
def test_linear_trainings_by_wire_are_the_same(name: str) -> None:
    plain, ours, wire = linear(name)
    moments = 60
    assert list(followed(wired(ours, wire), moments)) == list(followed(plain, moments))
    for mine, theirs in zip(ours.parameters(), plain.parameters(), strict=True):
        assert mine.tobytes() == theirs.tobytes()
        assert np.abs(mine).max() > 0
    assert kinds(wire.frames) == {kind.__name__ for kind in wire.bounds.kinds}
    assert max(map(len, wire.frames)) <= largest(wire.bounds)


def test_a_training_through_changes_by_wire_is_the_same() -> None:
    plain, ours, wire = changing()
    assert list(followed(wired(ours, wire), 30)) == list(followed(plain, 30))


@pytest.mark.parametrize("name", SPLIT)
def test_split_trainings_by_wire_are_the_same(name: str) -> None:
    torch = pytest.importorskip("torch")
    plain, ours, wire, problem, other = split(name)
    assert list(followed(wired(ours, wire), 8)) == list(followed(plain, 8))
    for mine, theirs in zip(
        (*other.nets, other.fusion), (*problem.nets, problem.fusion), strict=True
    ):
        assert all(torch.equal(a, b) for a, b in zip(mine.values(), theirs.values(), strict=True))
    assert kinds(wire.frames) == {kind.__name__ for kind in wire.bounds.kinds}
    assert max(map(len, wire.frames)) <= largest(wire.bounds)


def expected(**others: object) -> Bounds:
    network = make_network("cycle", [f"c{k}" for k in range(4)])
    made = MTCD(tokens=2, hops=3, stepsize=0.1, batch=6).messages(network, 0, 20, 1).bounds(RUN)
    return replace(made, **others)  # type: ignore[arg-type]


def sent(payload: object, sender: int = 0, to: int = 1, run: str = RUN, **delivery: int) -> bytes:
    return encode(Message(sender, to, payload), Header(run, sender, to, **delivery))


def token(**others: object) -> Token:
    made = Token(0, 0, 0, np.ones(6), 0.5)
    for name, value in others.items():
        setattr(made, name, value)
    return made


@pytest.mark.parametrize(
    ("frame", "field"),
    [
        (sent(token(index=2)), "index"),
        (sent(token(index=-1)), "index"),
        (sent(token(t=-1)), "t"),
        (sent(token(t=2**60)), "t"),
        (sent(token(hop=4)), "hop"),
        (sent(token(previous=4)), "previous"),
        (sent(token(previous=-2)), "previous"),
        (sent(token(aggregate=np.ones(7))), "aggregate"),
        (sent(token(aggregate=np.ones((6, 1)))), "aggregate"),
        (sent(token(aggregate=np.ones(6, np.float32))), "aggregate"),
        (sent(token(slots={"sync_change": np.ones(6)})), "slots"),
        (sent(token(slots={"past": {0: np.ones(2)}})), "slots"),
        (sent(token(slots={"gains": np.ones(3)})), "slots"),
        (sent(token(), sender=4), "sender"),
        (sent(token(), to=4), "receiver"),
        (sent(token(), to=-3), "receiver"),
        (sent(token(), run="other"), "run"),
        (sent(token(), sequence=-1), "delivery"),
        (sent(token(), term=2**50), "delivery"),
        (sent(token(aggregate=np.ones(1000))), "frame"),
        (sent(Share(-1), SERVER), "t"),
        (sent(Share(1), 0), "receiver"),
        (sent(Done(0, frozenset({1})), 0, SERVER), "length"),
        (sent(Begin(), 0, 0), "kind"),
        (encode(Message(0, 1, token(), 10**6), Header(RUN, 0, 1)), "floats"),
        (b"", "frame"),
        (sent(token())[:40], "frame"),
        (sent(token()) + b"\0" * 8, "length"),
    ],
)
def test_a_message_outside_the_plan_is_refused_by_the_name_of_its_field(
    frame: bytes, field: str
) -> None:
    with pytest.raises(WireError) as refused:
        # leaves room for longer messages, so that not all are just too large
        decode(frame, expected().with_slots("tour", snapshots=50))
    assert refused.value.field == field
    assert isinstance(refused.value, MtcdError)


SLOTS = {
    "tour": Instruction(0, trial=True),
    "gains": np.array([0.5, -1.0, 0.0, 2.0]),
    "tally": SyncTally(np.ones(2), 0.5, {1, 3}),
    "past": {0: np.ones(2)},
    "sync_change": np.full(6, 2.0),
}
LIMITS = {"snapshots": 2, "gains": 4, "products": 2, "past": 4, "visited": 4}


@pytest.mark.parametrize("name", SLOTS)
def test_a_slot_that_was_not_agreed_on_is_refused(name: str) -> None:
    carrying = token(t=1, slots={name: SLOTS[name]})
    frame = sent(carrying)
    arrived = decode(frame, expected().with_slots(name, **LIMITS))[0].payload
    assert repr(arrived.slots) == repr(carrying.slots)
    assert arrived.floats == carrying.floats
    with pytest.raises(WireError, match="frame is larger than any message of this run"):
        decode(frame, expected(limits=LIMITS))
    # a run in which the frame would have room
    others = {VISITED.name, *SLOTS} - {name}
    with pytest.raises(WireError, match="slots have one that this run has not agreed on"):
        decode(frame, expected().with_slots(*others, **{**LIMITS, "visited": 50}))


def test_slots_of_several_features_travel_together() -> None:
    frame = sent(token(t=1, slots=SLOTS))
    agreed = expected().with_slots(*SLOTS, **LIMITS)
    arrived = decode(frame, agreed)[0].payload
    assert arrived.slots.keys() == SLOTS.keys()
    assert repr({name: arrived.slots[name] for name in SLOTS}) == repr(SLOTS)
    assert len(frame) <= largest(agreed)
    assert sent(arrived) == frame


def test_a_token_without_a_slot_that_all_tokens_of_the_run_carry_is_refused() -> None:
    agreed = expected().with_slots("gains", "past", **LIMITS)
    with pytest.raises(WireError, match="slots lack one that every token of this run carries"):
        decode(sent(token(t=1, slots={"past": {0: np.ones(2)}})), agreed)
    with pytest.raises(WireError, match="slots lack one"):
        decode(sent(token()), agreed)
    # the weights of earlier syncs are there after the first one only
    assert decode(sent(token(slots={"gains": SLOTS["gains"]})), agreed)


def test_a_plain_token_takes_80_bytes_beside_its_aggregate() -> None:
    """Ten words: index, t, hop, three that describe the aggregate, both penalties, previous, slots."""
    head = len(encode(Message(0, 1, Begin()), Header(RUN, 0, 1)))
    assert len(sent(token())) - head - 6 * 8 == 80


def test_who_sends_on_a_link_cannot_speak_for_another() -> None:
    frame = sent(token(), 2, 1)
    assert decode(frame, expected(sender=2, receiver=1))[0].sender == 2
    for wrong in (expected(sender=3), expected(receiver=2)):
        with pytest.raises(WireError, match="is not a party that may"):
            decode(frame, wrong)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_neither_sent_nor_taken(bad: float) -> None:
    z = np.ones(6)
    z[4] = bad
    for payload in (token(aggregate=z), token(penalty=bad)):
        with pytest.raises(WireError, match="not finite"):
            sent(payload)
    frame = sent(token(aggregate=np.full(6, 12345.0), penalty=678.0))
    for number in (12345.0, 678.0):
        forged = frame.replace(np.float64(number).tobytes(), np.float64(bad).tobytes(), 1)
        assert forged != frame
        with pytest.raises(WireError, match="not finite"):
            decode(forged, expected())


def test_another_version_is_told() -> None:
    frame = bytearray(sent(token()))
    frame[8] = 9
    with pytest.raises(
        WireError,
        match=rf"format 9, protocol {PROTOCOL}; here 1 and {PROTOCOL}\): install the same version",
    ):
        decode(frame, expected())


def test_what_cannot_be_sent_is_refused() -> None:
    for payload in (
        "text",
        {"a": 1},
        token(aggregate=np.ones(6, int)),
        token(aggregate=[1.0]),
        token(t=0.5),
    ):
        with pytest.raises(WireError):
            sent(payload)
    with pytest.raises(WireError, match="another message"):
        encode(Message(0, 1, token()), Header(RUN, 0, 2))


def test_arrays_that_arrive_can_be_written_to_and_bytes_are_left_alone() -> None:
    frame = sent(token())
    kept = bytes(bytearray(frame))
    for data in (frame, bytearray(frame), memoryview(frame), memoryview(b"x" + frame)[1:]):
        arrived = decode(data, expected())[0].payload
        arrived.aggregate += 1.0
        np.testing.assert_array_equal(arrived.aggregate, 2.0)
    assert frame == kept


def test_torch_is_not_needed_for_linear_models() -> None:
    script = "import sys; sys.modules['torch'] = None\nimport mtcd.federation.delivery.frames\nprint('fine')"
    shown = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout
    assert shown.strip() == "fine"


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ("text", "frame is not made of bytes"),
        ([1, 2], "frame is not made of bytes"),
        (None, "frame is not made of bytes"),
        (memoryview(bytes(200))[::2], "frame is not in one piece"),
    ],
    ids=["text", "list", "None", "every other byte"],
)
def test_what_is_no_piece_of_bytes_is_no_frame(data: Any, told: str) -> None:
    bounds = linear("stcd")[2].bounds
    with pytest.raises(WireError, match=told):
        decode(data, bounds)


def test_the_numbers_of_a_head_are_taken_up_to_their_limits() -> None:
    """A token of six numbers in float64: the longest message of the run counts in such numbers."""
    most = largest(expected()) // 8
    for floats, hop_floats in ((most, most), (0, 0)):
        frame = encode(Message(0, 1, token(), floats, hop_floats), Header(RUN, 0, 1))
        message, _ = decode(frame, expected())
        assert (message.floats, message.hop_floats) == (floats, hop_floats)
    for floats, hop_floats in ((most + 1, 0), (0, most + 1), (-1, 0), (0, -1)):
        frame = encode(Message(0, 1, token(), floats, hop_floats), Header(RUN, 0, 1))
        with pytest.raises(WireError, match="floats"):
            decode(frame, expected())

    last = 2**48 - 1
    _, header = decode(sent(token(), term=last, sequence=last), expected())
    assert (header.term, header.sequence) == (last, last)
    for more in ({"term": 2**48}, {"sequence": 2**48}, {"term": -1}, {"sequence": -1}):
        with pytest.raises(WireError, match="delivery"):
            decode(sent(token(), **more), expected())


def test_the_id_of_a_run_has_1_to_64_characters() -> None:
    longest = "r" * 64
    frame = sent(token(), run=longest)
    assert decode(frame, expected(run=longest))[1].run == longest
    for run in ("", "r" * 65):
        with pytest.raises(WireError, match="no id of 1 to 64 characters"):
            sent(token(), run=run)
        with pytest.raises(ConfigError, match="64"):
            expected(run=run)
