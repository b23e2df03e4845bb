"""Parties that cheat, with good certificates. See ``test_hostile_messages.py``."""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from hubs import Done, Hub, Passing, holds
from mtcd.core.errors import MtcdError, WireError
from mtcd.federation.credentials.bundle_schema import BundleConfig
from mtcd.federation.delivery.frames import decode_ack, decode_envelope
from mtcd.federation.node.chunks import unwrap, wrap
from mtcd.federation.node.node import Node
from mtcd.federation.node.opening import Agreed
from mtcd.federation.node.rpc import NO, OK
from mtcd.federation.node.training import DEFERRED
from spoiling import spoilt_envelopes, spoilt_lines, spoilt_parts

MOST = 10  # times that a sealed request of four parties is passed on


class Cheats:
    """Spoil what passes, and watch the victim."""

    def __init__(self, hub: Hub) -> None:
        self.hub, self.some = hub, random.Random(1)
        self.sent: Counter[str] = Counter()
        self.envelopes: list[Passing] = []
        self.answers: defaultdict[tuple[str, str], list[bytes]] = defaultdict(list)
        hub.meddle, hub.tamper = self.before, self.spoil_answer

    def before(self, passing: Passing) -> None:
        sender, to, kind, body = passing
        match kind:
            case "envelope":
                for spoilt in spoilt_envelopes(body, self.some, 4):
                    self.envelope(passing._replace(body=spoilt))
                self.old_envelopes(passing)
            case "relay":
                self.relay(passing)
            case "ready" | "diverged" | "evaluate" | "result":
                for wrong in (b"", body[:-1], body + b"0", body.swapcase() + b" ", b"\xff" * 16):
                    self.refused(passing._replace(body=wrong))
            case "exit_status":
                for spoilt in spoilt_words(body):
                    self.refused(passing._replace(body=spoilt))
            case _:
                for spoilt in spoilt_lines(body):
                    another = kind in ("add", "sum") and is_another_pass(spoilt, body)
                    self.refused(passing._replace(body=spoilt), or_answered=another)
                for spoilt in (
                    spoilt_start(body, self.hub.nodes[to].participant)
                    if kind == "start"
                    else spoilt_parts(body)
                ):
                    self.refused(passing._replace(body=spoilt), or_answered=kind != "start")
        # without a server, words are passed on
        if kind not in ("relay", "ready", "diverged", "exit_status"):
            others = sorted(self.hub.wires[to].peers - {sender})
            for other in others:
                self.refused(passing._replace(sender=other))  # it speaks in another's name
        for wrong in (
            "x",
            "",
            "envelope/answer",
            "control/stop",
            "control/status",
            "**",
            "*",
            "\n" * 900,
        ):
            self.refused(passing._replace(kind=wrong))
        if to in self.hub.wires:
            self.refused(Passing("operator", to, "control/dance", body))

    def envelope(self, passing: Passing) -> None:
        """Unless it is a sound envelope: then it says what its sender may say."""
        trainer = self.hub.nodes[passing.to].trainer
        if trainer is not None:
            try:
                decode_envelope(passing.body, trainer._bounds[trainer.numbers[passing.sender]])
            except WireError:
                pass
            else:
                self.sent["sound"] += 1
                return
        self.refused(passing)

    def old_envelopes(self, passing: Passing) -> None:
        """Envelopes that were recorded: known ones get their ack again, those for others are
        refused."""
        self.envelopes.append(passing)
        for old in self.some.sample(self.envelopes[:-1], min(2, len(self.envelopes) - 1)):
            if old.to != passing.to:
                if old.sender in self.hub.wires[passing.to].peers:
                    self.refused(old._replace(to=passing.to))
            elif self.hub.nodes[old.to].trainer is not None and self.was_taken_in(old):
                before = holds(self.hub.nodes[old.to])
                answer = self.hub.ask(old)
                assert answer[:1] == OK
                assert holds(self.hub.nodes[old.to]) == before
                self.sent["replayed"] += 1

    def was_taken_in(self, old: Passing) -> bool:
        trainer = self.hub.nodes[old.to].trainer
        envelope = decode_envelope(old.body, trainer._bounds[trainer.numbers[old.sender]])
        return trainer.reliable.is_duplicate(envelope)

    def relay(self, passing: Passing) -> None:
        line, _, sealed = passing.body.partition(b"\n")
        head = json.loads(line)
        wrong_heads = [
            {**head, "to": "nobody"},
            {**head, "left": -1},
            {**head, "left": 99},
            {**head, "left": True},
        ]
        wrong_heads += [
            {**head, "by": wrong}
            for wrong in (None, "x", ["nobody"], [[]], {}, [7], [head["to"]] * 900)
        ]
        for wrong in [
            *wrong_heads,
            *({name: head[name] for name in head if name != one} for one in head),
            1,
            [],
            None,
        ]:
            self.refused(passing._replace(body=json.dumps(wrong).encode() + b"\n" + sealed))
        for wrong in (line, sealed, b"", bytes(400) + b"\n" + sealed):
            self.refused(passing._replace(body=wrong))
        if head["to"] != passing.to:
            return
        for _ in range(10):
            at = self.some.randrange(len(sealed))
            flipped = (
                sealed[:at] + bytes([sealed[at] ^ 1 << self.some.randrange(8)]) + sealed[at + 1 :]
            )
            self.refused(passing._replace(body=line + b"\n" + flipped))
        self.insiders(passing, line)

    def insiders(self, passing: Passing, line: bytes) -> None:
        """Parties with a seal of their own, who send what only others may send, or only over a
        link."""
        for name in self.hub.clients:
            if name == passing.to:
                continue
            seal = self.hub.nodes[name].rpc.seal
            tokens = [
                old.body for old in self.envelopes if old.sender == name and old.to == passing.to
            ]
            kinds = {
                "control/stop": b"",
                "relay": passing.body,
                "x": b"",
                "ready": b"x",
                "envelope": (tokens or [b"x"])[0],
            }
            if name != self.hub.clients[0]:
                kinds |= dict.fromkeys(
                    ("align", "prepare", "start"), b'{"agreement": "", "sizes": [0]}\n'
                )
            for kind, body in kinds.items():
                if kind == "envelope" and tokens and self.is_relayable(name, passing.to, body):
                    continue
                sealed = seal.seal(passing.to, kind, body)
                self.refused(passing._replace(body=line + b"\n" + sealed), name, sealed=True)

    def is_relayable(self, name: str, to: str, body: bytes) -> bool:
        trainer = self.hub.nodes[to].trainer
        if trainer is None:
            return False
        try:
            decode_envelope(body, trainer._relayed[trainer.numbers[name]])
        except WireError:
            return False
        return True

    def spoil_answer(self, passing: Passing, answer: bytes | None, done: Done) -> None:
        """Acks that are none, and answers to sealed requests that are not sealed by the right one,
        or not now."""
        node, kind = self.hub.nodes[passing.sender], passing.kind
        if (
            not answer
            or answer[:1] == NO
            or answer[1:] == DEFERRED
            or (kind == "relay" and not is_first(passing))
        ):
            return
        if kind == "relay" and self.some.random() < 0.5:
            return  # it would be sent again too often
        if kind == "envelope":
            spoilt = [
                OK + wrong
                for wrong in spoilt_envelopes(answer[1:], self.some, 2)
                if self.is_no_ack(passing, wrong)
            ]
            self.wrong_answers(passing, done, node, passing.to, spoilt)
        elif kind == "relay":
            to = json.loads(passing.body.partition(b"\n")[0])["to"]
            old = list(self.answers[passing.sender, to])
            self.answers[passing.sender, to].append(answer)
            forged = [
                self.hub.nodes[k].rpc.seal.seal(passing.sender, "x", b"")
                for k in self.hub.clients[1::2]
            ]
            damaged = [answer[:-1], answer + b"0", bytes(len(answer))]
            self.wrong_answers(passing, done, node, to, [*old[-3:], *damaged, *forged])

    def is_no_ack(self, passing: Passing, wrong: bytes) -> bool:
        trainer = self.hub.nodes[passing.sender].trainer
        try:
            ack = decode_ack(wrong, trainer._bounds[trainer.numbers[passing.to]])
        except WireError:
            return True
        return ack.sequence != int.from_bytes(passing.body[64:72], "little")

    def wrong_answers(
        self, passing: Passing, done: Done, node: Node, named: str, answers: list[bytes]
    ) -> None:
        for wrong in answers:
            before, count = holds(node), refusals(node, named)
            done(wrong)
            assert holds(node) == before, passing
            assert refusals(node, named) == count + 1, passing
            self.sent["answer"] += 1

    def refused(
        self,
        passing: Passing,
        named: str | None = None,
        sealed: bool = False,
        or_answered: bool = False,
    ) -> None:
        """``or_answered``: it may be another question, to which there is an answer."""
        node, named = self.hub.nodes[passing.to], named or passing.sender
        before, count = holds(node), refusals(node, named)
        answer = self.hub.ask(passing)
        assert holds(node) == before, passing
        if node.trainer is None and passing.kind in ("envelope", "ready"):
            # before training nobody reads them, and honest ones come again
            assert not answer, passing
        elif not (or_answered and answer and answer[:1] == OK):
            assert sealed or not answer or answer[:1] == NO, passing
            assert refusals(node, named) == count + 1, passing
        assert not node.loop._stopped
        self.sent[
            passing.kind
            if passing.kind in ("envelope", "relay", "align", "prepare", "start")
            else "other"
        ] += 1


def spoilt_words(body: bytes) -> Iterator[bytes]:
    """Exit statuses that are forged, of another run, or no words."""
    (one, *_) = json.loads(body)
    word = json.loads(one["word"])
    for key, value in {
        "run": "0" * 16,
        "party": "c9",
        "outcome": "failed",
        "time": word["time"] + 1,
        "x": 1,
    }.items():
        yield json.dumps([{**one, "word": json.dumps({**word, key: value})}]).encode()
    for key in one:
        for wrong in ("", "AAAA", None, 3, [], one[key][:-4]):
            yield json.dumps([{**one, key: wrong}]).encode()
        yield json.dumps([{name: one[name] for name in one if name != key}]).encode()
    for wrong in ([], [one, one], [{**one, "more": 1}], [[one]], one, None):
        yield json.dumps(wrong).encode()
    yield from (b"", body[:-1], b"\xff" * 16, b"[" * 100_000)


def spoilt_start(body: bytes, participant: Any) -> Iterator[bytes]:
    """What was agreed, spoilt; not what is another run that could be."""
    head, (packed,) = unwrap(body, ("agreement",), 1)
    honest = Agreed.unpacked(packed)
    (size,) = honest.settings.keys() & {"outputs", "widths"}
    for spoilt in [*spoilt_lines(packed), *spoilt_parts(packed)]:
        try:
            other = Agreed.unpacked(spoilt)
            participant.checked(
                other.settings, *honest.settings.keys() - {"samples", "stepsize", "notes"}
            )
            if other.settings.get("fusion_code") != honest.settings.get("fusion_code"):
                raise WireError("fusion_code", "is another")
            same = [
                (one.settings["samples"], one.labels, one.announcement) for one in (honest, other)
            ]
            sound = same[0] == same[1] and may_be(
                other.settings[size], honest.settings[size], participant.config
            )
            sound = sound or (not honest.labels and same[0][1:] == same[1][1:])  # it knows no sizes
        except MtcdError:
            sound = False
        if not sound:
            yield wrap(head, spoilt)


def may_be(size: Any, honest: Any, config: BundleConfig) -> bool:
    """Of widths a party knows its own, the server none."""
    if not isinstance(honest, list) or not isinstance(size, list) or len(size) != len(honest):
        return bool(size == honest)
    known = [config.parties.index(config.name)] if config.name in config.parties else []
    return all(type(one) is int and one > 0 for one in size) and all(
        size[k] == honest[k] for k in known
    )


def is_first(passing: Passing) -> bool:
    """Whether the sender of a sealed request is the one who made it, and does not pass it on."""
    return bool(json.loads(passing.body.partition(b"\n")[0])["left"] == MOST)


def is_another_pass(spoilt: bytes, body: bytes) -> bool:
    """Whether it differs in the number alone, and that can be one: its sender may begin as many as
    it likes."""
    line, _, rest = body.partition(b"\n")
    return spoilt == json.dumps({**json.loads(line), "pass": "x"}).encode() + b"\n" + rest


def refusals(node: Any, named: str) -> int:
    return sum(n for kind, n in node.log._counts.items() if kind[:2] == ("refused", named))
