"""A token pass: a sum over all parties of which only one learns the result, and nobody any single part.

Who sees the result begins with random numbers and subtracts them in the end, so what goes from party to party looks
random to all of them. Numbers are whole multiples of 2^-32, added up modulo 2^64: then the mask hides them perfectly.
What goes to a party is locked for it alone, as it may pass through others who would see the same sum before and after
somebody's part. Every party checks that the order names everybody once, so that nobody's part can be asked for alone.
What those next to a party in the order can find out together, or the seer and others, they can find out.
"""

from __future__ import annotations

import secrets
from base64 import b64decode
from collections.abc import Callable, Sequence
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from mtcd.arrays import Array
from mtcd.errors import DataError, WireError
from mtcd.federation.kit_schema import KitConfig
from mtcd.federation.names import SERVER
from mtcd.federation.node.asking import Questions
from mtcd.federation.node.mail import Asked, Mail
from mtcd.federation.node.parcels import unwrap, wrap
from mtcd.federation.sealed import Seal

Sums = NDArray[np.uint64]
STEPS = 2.0**32
LARGEST = 2.0**30
PASS_KEYS = ("pass", "order", "certificates")


def to_sums(values: NDArray[Any]) -> Sums:
    """As multiples of 2^-32."""
    numbers = np.asarray(values, dtype=np.float64)
    if not np.isfinite(numbers).all() or (numbers.size and np.abs(numbers).max() >= LARGEST):
        raise DataError("What the model gives for the new samples is too large: are they of the same kind as before?")
    return np.rint(numbers * STEPS).astype(np.int64).view(np.uint64)


def fits(values: NDArray[Any], parties: int) -> bool:
    """Whether the values are finite, and small enough for the parts of so many parties to be added up."""
    return bool(np.isfinite(values).all()) and not (values.size and np.abs(values).max() >= LARGEST / parties)


def from_sums(sums: Sums) -> Array:
    """Back again."""
    return sums.view(np.int64) / STEPS


def order_of(config: KitConfig) -> list[str]:
    """Everybody but the seer, from neighbour to neighbour as far as the network allows; the last is near the seer."""
    graph = nx.Graph(config.links)
    graph.add_nodes_from(config.parties)
    start = config.seen_by if config.seen_by in graph else config.parties[0]
    found = [*nx.dfs_postorder_nodes(graph, start), *config.parties]
    return [name for name in dict.fromkeys(found) if name != config.seen_by]


class Passing:
    """A party's side of a pass: adds its own part, once for each pass, and passes the sum on."""

    def __init__(self, mail: Mail, questions: Questions, config: KitConfig, own: Callable[[], Sums]) -> None:
        assert mail.seal is not None  # it is a party
        self.questions, self.config, self.own, self.seal = questions, config, own, mail.seal
        self.expected = order_of(config)
        self._seen: set[str] = set()
        mail.on("add", self._add)

    def _add(self, asked: Asked) -> None:
        head, content = _read(asked.body, self.expected, self.config)
        number, order = head["pass"], self.expected
        place = order.index(self.config.name)
        if asked.sender != (self.config.seen_by if place == 0 else order[place - 1]):
            raise WireError("sender", "is not the one before in the order")
        if number not in self._seen:
            part = self.own()
            told = read_sums(content if asked.sender == SERVER else self.seal.unlock(content), part.shape) + part
            last = place == len(order) - 1
            to = self.config.seen_by if last else order[place + 1]
            body = wrap(head, locked(self.seal, to, head["certificates"], told))
            self._seen.add(number)
            self.questions.ask("sum" if last else "add", {to: body})
        asked.answer()


def locked(seal: Seal | None, to: str, certificates: Any, sums: Sums) -> bytes:
    """For that party alone. The server has a link of its own to everybody, and needs no lock."""
    if to == SERVER or seal is None:
        return sums.tobytes()
    return seal.lock(to, certificate_of(certificates, to), sums.tobytes())


def certificate_of(certificates: Any, name: str) -> bytes:
    """Of one party, out of what the leader told."""
    try:
        certificate = b64decode(certificates[name], validate=True)
    except (KeyError, TypeError, ValueError):
        certificate = b""
    if not certificate:
        raise WireError("certificates", f"lack that of {name}")
    return certificate


class Seeing:
    """The seer's side: it begins a pass, again if it does not come back, and has the sum in the end."""

    def __init__(self, mail: Mail, questions: Questions, config: KitConfig) -> None:
        self.questions, self.config, self.seal = questions, config, mail.seal
        self.order = order_of(config)
        self._number = ""
        self._mask: Sums = np.zeros(0, dtype=np.uint64)
        self._done: Callable[[Sums], None] | None = None
        mail.on("sum", self._sum)

    def begin(self, shape: Sequence[int], certificates: Any, done: Callable[[Sums], None]) -> None:
        """Send the mask round; ``done`` has the sum of all others."""
        self._number = secrets.token_hex(8)
        count = int(np.prod(shape, dtype=np.int64))
        self._mask = np.frombuffer(secrets.token_bytes(8 * count), dtype=np.uint64).reshape(tuple(shape))
        self._done = done
        head = {"pass": self._number, "order": self.order, "certificates": certificates}
        first = self.order[0]
        self.questions.ask("add", {first: wrap(head, locked(self.seal, first, certificates, self._mask))})

    def _sum(self, asked: Asked) -> None:
        head, content = _read(asked.body, self.order, self.config)
        if asked.sender != self.order[-1]:
            raise WireError("sender", "is not the last in the order")
        if head["pass"] == self._number and self._done is not None:
            sums = read_sums(content if self.seal is None else self.seal.unlock(content), self._mask.shape)
            done, self._done = self._done, None
            asked.answer()
            done(sums - self._mask)
        else:
            asked.answer()  # of a pass that was begun anew


def read_sums(content: bytes, shape: Sequence[int]) -> Sums:
    """Sums of this shape."""
    if len(content) != 8 * int(np.prod(shape, dtype=np.int64)):
        raise WireError("sum", "is of another size")
    return np.frombuffer(content, dtype="<u8").astype(np.uint64).reshape(tuple(shape))


def _read(body: bytes, order: list[str], config: KitConfig) -> tuple[dict[str, Any], bytes]:
    """The head and the sums of a pass in this order. A head is passed on, so all of it must be sound."""
    head, (content,) = unwrap(body, PASS_KEYS, 1)
    number, certificates = head["pass"], head["certificates"]
    if not isinstance(number, str) or not 1 <= len(number) <= 64 or not (number.isascii() and number.isalnum()):
        raise WireError("pass", "is not the number of one")
    if head["order"] != order:
        raise WireError("order", "does not name everybody once, as the network has it")
    if not isinstance(certificates, dict) or certificates.keys() != set(config.parties):
        raise WireError("certificates", "are not those of all parties")
    for name in certificates:
        certificate_of(certificates, name)
    return head, content


def is_seer(config: KitConfig) -> bool:
    """Whether this party, or the server, sees predictions."""
    return config.name == config.seen_by


def server_takes_part(config: KitConfig) -> bool:
    """Whether the server has something to do in a pass."""
    return config.seen_by == SERVER
