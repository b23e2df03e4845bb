"""Envelopes and acks as bytes: they come back as they were, and whatever is done to them is refused
or sound."""

from collections import Counter
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtcd.core.errors import WireError
from mtcd.federation.delivery.frames import (
    MOST_TERMS,
    decode_ack,
    decode_envelope,
    encode_ack,
    encode_envelope,
    largest,
)
from mtcd.methods.mtcd.mtcd import MTCD
from mtcd.network.topology import make_network
from mtcd.protocol.codec import envelopes
from mtcd.protocol.codec.envelopes import (
    Ack,
    Cancelled,
    End,
    Envelope,
    HolderLost,
    Prepare,
    Promise,
    Release,
    ResendTokens,
    Status,
    Undeliverable,
    with_control,
)
from mtcd.protocol.codec.limits import Bounds
from mtcd.protocol.codec.payloads import SCHEMAS
from mtcd.protocol.codec.reading import OUT_OF_RANGE, WORD, Reader
from mtcd.protocol.codec.records import pack
from mtcd.protocol.party import MONITOR, SERVER, Message
from mtcd.protocol.token import Token
from mtcd.testing.simulator.world import Faults, World
from simulated_deliveries import DATA, METHODS, making_parties
from simulated_ends import recovering
from tampered_frames import WORDS, check, tells_numbers

RUN = "run-7"
TERMS = {3: 2, 7: 1, 9: 0}


def expected(name: str) -> Bounds:
    return METHODS[name].messages(make_network("cycle", DATA.clients), 7, 12, 1).bounds(RUN)


class Wired(World):
    """All envelopes and acks travel as bytes of the wire format."""

    wire: Bounds

    def arrive(self, thing: Envelope | Ack, data: bytes) -> None:
        if isinstance(thing, Ack):
            frame = encode_ack(thing, RUN)
            thing = decode_ack(frame, replace(self.wire, sender=thing.to, receiver=thing.sender))
        else:
            frame = encode_envelope(thing, RUN)
            thing = decode_envelope(
                bytearray(frame), replace(self.wire, sender=thing.sender, receiver=thing.to)
            )
        assert pack(thing) == data
        most = largest(with_control(self.wire))
        assert len(frame) <= most + 8 * (3 + 2 * MOST_TERMS + self.wire.clients)
        super().arrive(thing, data)


@pytest.mark.parametrize("name", METHODS)
def test_trainings_travel_as_bytes(name: str) -> None:
    world = Wired(
        making_parties(name),
        3,
        make=recovering(name, "cycle"),
        faults=Faults(loss=0.05, duplicate=0.1),
    )
    world.wire = expected(name)
    while len(world.reports) < 12:
        world.step()
        if world.time == 60:
            for k in world.numbers:
                world.parties[k].peer_lost((k + 1) % 5)
        if world.time == 300:
            for reliable in world.parties.values():
                reliable.peer_found((reliable.number + 1) % 5)
        assert world.time < 20_000


def envelope(payload: object, sender: int = 0, to: int = 1, iteration: int = 0) -> Envelope:
    return Envelope(
        sender, to, 5, iteration, 1, TERMS, Message(sender, to, payload), frozenset({2, 4})
    )


@cache
def frames() -> list[tuple[bytes, Bounds]]:
    """Of every kind, with and without a server."""
    lone, optimal = (
        expected("stcd"),
        expected("clusters").with_slots("past", past=len(DATA.clients)),
    )
    z = np.ones(12)
    past = {0: np.ones(2), 4: np.full(2, 0.5)}
    with_server = [
        envelope(Cancelled(6), iteration=6),
        envelope(End("iterations", 6, 18, {"past": past}), SERVER, iteration=6),
        envelope(Undeliverable(6), 0, SERVER, iteration=6),
        envelope(HolderLost(6, 2), 0, SERVER, iteration=6),
        envelope(ResendTokens(6), SERVER, 0, iteration=6),
    ]
    without = [
        envelope(End("seconds", 0, 18)),
        envelope(Prepare(9, 7, True)),
        envelope(Promise(9, 4, 7, frozenset({0, 3}))),
        envelope(Release(9)),
    ]
    found = [(encode_envelope(one, RUN), optimal) for one in with_server]
    found.append(
        (encode_envelope(envelope(Token(1, 6, 2, z, 0.5), iteration=6), RUN), expected("clusters"))
    )
    found += [(encode_envelope(one, RUN), lone) for one in without]
    found.append((encode_ack(Ack(2, 3, 8, TERMS), RUN), lone))
    found.append((encode_ack(Ack(2, SERVER, 8, {}), RUN), optimal))
    return found


def verdict(frame: bytes, wire: Bounds) -> str:
    """'refused' or 'sound', as an envelope or as an ack; anything else fails."""
    seen = []
    for read, write in ((decode_envelope, encode_envelope), (decode_ack, encode_ack)):
        try:
            thing = read(frame, wire)
        except WireError as error:
            seen.append(
                "refused"
                if error.field == "version" or not tells_numbers(error)
                else "tells numbers"
            )
            continue
        assert write(thing, RUN) == frame  # type: ignore[operator]  # there is one way to say a thing
        assert 0 <= thing.sequence < 2**48
        assert all(0 <= key < 2**48 and 0 <= value < 2**48 for key, value in thing.terms.items())
        if isinstance(thing, Envelope):
            check(thing.message, wire)
            assert thing.to != MONITOR
            assert thing.iteration >= 0
            assert thing.avoid <= set(range(wire.clients))
            assert thing.iteration == getattr(thing.message.payload, "t", thing.iteration)
            assert getattr(thing.message.payload, "down", frozenset()) <= set(range(wire.clients))
        seen.append("sound")
    assert "refused" in seen  # nothing is both
    assert "tells numbers" not in seen
    return max(seen)


def test_there_are_frames_of_every_kind_and_they_are_sound() -> None:
    kinds = {int.from_bytes(frame[12:14], "little") for frame, _ in frames()}
    assert kinds >= {
        s.number for kind, s in SCHEMAS.items() if kind.__module__.startswith("mtcd.federation")
    }
    assert {verdict(frame, wire) for frame, wire in frames()} == {"sound"}


def test_every_word_replaced_by_every_extreme_and_every_truncation() -> None:
    seen: Counter[str] = Counter()
    for frame, wire in frames():
        for at in range(0, len(frame), 8):
            for word in WORDS:
                seen[
                    verdict(
                        frame[:at] + word.to_bytes(8, "little", signed=True) + frame[at + 8 :], wire
                    )
                ] += 1
        for end in range(len(frame)):
            assert verdict(frame[:end], wire) == "refused"
        assert verdict(frame + bytes(8), wire) == "refused"
    assert seen["refused"] > 2500
    assert seen["refused"] > seen["sound"]


@given(st.data())
@settings(max_examples=300)
def test_whatever_is_done_to_a_frame_it_is_refused_or_sound(data: st.DataObject) -> None:
    frame, wire = data.draw(st.sampled_from(frames()))
    changed = bytearray(frame)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(changed)))
        changed[at : at + data.draw(st.integers(0, 16))] = data.draw(st.binary(max_size=16))
    verdict(bytes(changed), wire)


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        (envelope(End("over", 0, 1)), "sender"),  # only the server may end it
        (envelope(Prepare(1, 2, True)), "kind"),  # there is a server to ask
        (envelope(Cancelled(2), iteration=1), "iteration"),
        (envelope(Undeliverable(1), 0, 1, iteration=1), "receiver"),
        (envelope(ResendTokens(1), 0, 1, iteration=1), "receiver"),
        (envelope(Token(0, 0, 1, np.ones(12), 0.0), 0, MONITOR), "receiver"),
        (envelope(Cancelled(2), 0, 1, iteration=2)._replace(terms={-1: 1}), "terms"),
        (envelope(Cancelled(2), 0, 1, iteration=2)._replace(terms={1: -1}), "terms"),
        (envelope(Cancelled(2), 0, 1, iteration=2)._replace(sequence=-1), "delivery"),
        (envelope(Cancelled(2), 0, 1, iteration=2)._replace(term=2**50), "delivery"),
    ],
)
def test_envelopes_outside_the_plan_are_refused_by_the_name_of_the_field(
    wrong: Envelope, field: str
) -> None:
    with pytest.raises(WireError) as refused:
        decode_envelope(encode_envelope(wrong, RUN), expected("clusters"))
    assert refused.value.field == field


def test_nobody_writes_envelopes_or_gives_acks_for_another() -> None:
    wire = expected("clusters")
    frame, ack = (
        encode_envelope(envelope(Cancelled(0), 2, 1), RUN),
        encode_ack(Ack(1, 2, 5, {}), RUN),
    )
    assert decode_envelope(frame, replace(wire, sender=2, receiver=1)).sender == 2
    assert decode_ack(ack, replace(wire, sender=2, receiver=1)) == Ack(1, 2, 5, {})
    for read, data in ((decode_envelope, frame), (decode_ack, ack)):
        for wrong in (
            replace(wire, sender=3),
            replace(wire, receiver=2),
            replace(wire, run="other"),
        ):
            with pytest.raises(WireError):
                read(data, wrong)


def test_what_cannot_be_sent_is_refused() -> None:
    for status in ("", "x" * 33, "Ä", "two\nlines"):
        with pytest.raises(WireError, match="status"):
            encode_envelope(envelope(End(status, 0, 0)), RUN)
    with pytest.raises(WireError, match="terms"):
        encode_envelope(
            envelope(Prepare(1, 2, False))._replace(terms=dict.fromkeys(range(MOST_TERMS + 1), 1)),
            RUN,
        )


@pytest.mark.parametrize(("length", "sound"), [(0, False), (1, True), (32, True), (33, False)])
def test_a_status_has_1_to_32_letters(length: int, sound: bool) -> None:
    frame = WORD.pack(length) + b"x" * length + bytes(-length % 8)
    reader = Reader(memoryview(frame), 0, expected("stcd"), 0)
    if sound:
        assert Status().named("status").read(reader) == "x" * length
        assert reader.at == len(frame)
    else:
        with pytest.raises(WireError, match=f"status {OUT_OF_RANGE}"):
            Status().named("status").read(reader)


def test_more_terms_than_a_party_can_send_are_refused_on_arrival(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    too_many = envelope(Release(1))._replace(terms=dict.fromkeys(range(MOST_TERMS + 1), 1))
    with monkeypatch.context() as patch:
        patch.setattr(
            "mtcd.federation.delivery.frames.MOST_TERMS", MOST_TERMS + 1
        )  # of a sender with another limit
        frame = encode_envelope(too_many, RUN)
    with pytest.raises(WireError, match=f"terms {OUT_OF_RANGE}"):
        decode_envelope(frame, expected("stcd"))


def test_an_end_knows_the_weights_of_earlier_iterations_only() -> None:
    optimal = expected("clusters").with_slots("past", past=len(DATA.clients))
    for t, sound in ((5, True), (6, False), (7, False)):
        frame = encode_envelope(
            envelope(
                End("iterations", 6, 18, {"past": {2: np.ones(2), t: np.ones(2)}}), SERVER, 1, 6
            ),
            RUN,
        )
        if sound:
            assert decode_envelope(frame, optimal).message.payload.slots["past"].keys() == {2, t}
        else:
            with pytest.raises(WireError, match="still to come") as refused:
                decode_envelope(frame, optimal)
            assert refused.value.field == "past"


def test_every_payload_of_the_envelopes_is_a_control_payload() -> None:
    assert {
        kind for kind in SCHEMAS if kind.__module__ == envelopes.__name__
    } == envelopes.CONTROL_PAYLOADS
    released = decode_envelope(encode_envelope(envelope(Release(9)), RUN), expected("stcd"))
    assert type(released.message.payload) in envelopes.CONTROL_PAYLOADS


def test_tokens_may_roam_on_where_they_come_up_to_the_server() -> None:
    network = make_network("cycle", DATA.clients)
    assert MTCD(tokens=2, hops=3, stepsize=0.1).messages(network, 0, 12, 1).bounds(RUN).hops > 1000
    assert (
        MTCD(tokens=2, hops=3, stepsize=0.1, batch=4).messages(network, 0, 12, 1).bounds(RUN).hops
        == 3
    )


def test_an_envelope_may_have_as_many_terms_as_can_be_sent() -> None:
    bounds = expected("stcd")
    full = envelope(Prepare(1, 2, False))._replace(
        terms=dict.fromkeys(range(MOST_TERMS), 1), avoid=frozenset(range(bounds.clients))
    )
    assert decode_envelope(encode_envelope(full, RUN), bounds) == full


def test_an_envelope_that_goes_on_after_its_end_is_refused() -> None:
    sound = envelope(End("seconds", 0, 18))
    frame = encode_envelope(sound, RUN)
    assert pack(decode_envelope(frame, expected("stcd"))) == pack(sound)
    with pytest.raises(WireError, match="goes on after its end"):
        decode_envelope(frame + bytes(8), expected("stcd"))


def test_terms_travel_in_order_however_they_were_learned() -> None:
    in_order = envelope(End("seconds", 0, 18))
    learned = in_order._replace(terms=dict(reversed(TERMS.items())))
    frame = encode_envelope(learned, RUN)
    assert frame == encode_envelope(in_order, RUN)
    assert decode_envelope(frame, expected("stcd")).terms == TERMS


def test_clients_to_avoid_travel_in_order() -> None:
    """A set of small numbers gives 8 before 1."""
    avoiding = envelope(Cancelled(0))._replace(terms={}, avoid=frozenset({8, 1}))
    words = np.frombuffer(encode_envelope(avoiding, RUN), np.int64)
    assert words[-2:].tolist() == [1, 8]
