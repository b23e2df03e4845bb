"""Which samples all parties have: aligned on ids before training, with what each learns kept small.

The party that holds the labels (the asker) goes through the same two steps with every other party (an answerer):
one request, one response, plain bytes. It then knows the ids that it shares with each, keeps those that it shares
with all, and announces them; everybody sorts its rows by them.

What each learns, if all keep to the protocol:

- the asker: how many samples each other party has, and which of its own ids each of them has. That is more than the
  common ids: it also learns who misses which of its ids. It never learns an id that is not its own;
- an answerer, with psi: how many samples the asker has, and the common ids of all parties, which are all its own.
  With hashed matching: also which of its ids the asker has;
- who passes these messages on without being meant, with psi: the numbers of samples. With hashed matching whoever
  has the secret can test guesses: is this id in that table? So it is for parties that trust each other;
- the announcement names the common ids in clear. All parties have these; the server does not, and must not carry it.

Neither keeps a party from lying about its ids: one that adds guessed ids to its table learns which of them others
have. PSI cannot prevent that; agreements between the parties must.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import pairwise

from mtcd.errors import DataError
from mtcd.extras import find

DIGEST = 32
LEAST_SECRET = 16


class Asker(ABC):
    """The side that learns which of its ids the other has."""

    @abstractmethod
    def request(self) -> bytes:
        """What to send to the other side."""

    @abstractmethod
    def shared(self, response: bytes) -> set[str]:
        """The ids of its own that the other has, from the response."""


class Answerer(ABC):
    """The other side."""

    @abstractmethod
    def respond(self, request: bytes) -> bytes:
        """What to send back."""


def asker(kind: str, ids: Sequence[str], secret: bytes | None = None) -> Asker:
    """The label holder's side of ``alignment: psi`` or ``hashed``, with one other party."""
    check_ids(ids)
    made: Asker = find("mtcd.federation.psi").PsiAsker(ids) if kind == "psi" else HashedAsker(ids, _checked(secret))
    return made


def answerer(kind: str, ids: Sequence[str], secret: bytes | None = None) -> Answerer:
    """The side of any other party."""
    check_ids(ids)
    if kind == "psi":
        made: Answerer = find("mtcd.federation.psi").PsiAnswerer(ids)
        return made
    return HashedAnswerer(ids, _checked(secret))


def announce(shared: Iterable[set[str]]) -> bytes:
    """The ids that the label holder shares with all others, for all of them."""
    common = set.intersection(*shared)
    if not common:
        raise DataError("No sample is known to all parties: do their id columns hold the same kind of ids?")
    return json.dumps(sorted(common)).encode()


def rows_of(announcement: bytes, ids: Sequence[str]) -> list[int]:
    """Which rows a party uses, in the order that all agree on."""
    try:
        common = json.loads(announcement)
    except (ValueError, RecursionError):
        raise DataError("The announcement of common ids is not readable.") from None
    if not isinstance(common, list) or not common or not all(isinstance(one, str) for one in common):
        raise DataError("The announcement of common ids is not a list of ids.")
    if any(a >= b for a, b in pairwise(common)):
        raise DataError("The announcement of common ids is not sorted, or names one twice.")
    place = {one: row for row, one in enumerate(ids)}
    unknown = sum(one not in place for one in common)
    if unknown:
        raise DataError(f"The announcement of common ids names {unknown} that this party does not have.")
    return [place[one] for one in common]


def check_ids(ids: Sequence[str]) -> None:
    """Refuse ids that are empty or given twice. Rows are told, never ids: those are private."""
    seen: dict[str, int] = {}
    for row, one in enumerate(ids, start=1):
        if not isinstance(one, str) or not one:
            raise DataError(f"Row {row} has no id: every sample needs one. Leave the row out, or fill it in.")
        if (first := seen.setdefault(one, row)) != row:
            raise DataError(f"Rows {first} and {row} have the same id: every sample needs its own.")
        try:
            one.encode()
        except UnicodeEncodeError:
            raise DataError(f"The id of row {row} is not valid text.") from None
    if not ids:
        raise DataError("There are no samples to align: the table has no rows.")


class HashedAsker(Asker):
    """Sends keyed hashes of its ids."""

    def __init__(self, ids: Sequence[str], secret: bytes) -> None:
        self.by_digest = _digests(ids, secret)

    def request(self) -> bytes:
        return b"".join(sorted(self.by_digest))

    def shared(self, response: bytes) -> set[str]:
        digests = _split(response)
        if not self.by_digest.keys() >= digests:
            raise DataError("The response of hashed alignment holds hashes that were not asked for.")
        return {self.by_digest[digest] for digest in digests}


class HashedAnswerer(Answerer):
    """Sends back those of the hashes that it has too."""

    def __init__(self, ids: Sequence[str], secret: bytes) -> None:
        self.by_digest = _digests(ids, secret)

    def respond(self, request: bytes) -> bytes:
        return b"".join(sorted(_split(request) & self.by_digest.keys()))


def _digests(ids: Sequence[str], secret: bytes) -> dict[bytes, str]:
    return {blake2b(one.encode(), key=secret, digest_size=DIGEST, person=b"mtcd ids").digest(): one for one in ids}


def _split(content: bytes) -> set[bytes]:
    digests = [content[i : i + DIGEST] for i in range(0, len(content), DIGEST)]
    if len(content) % DIGEST or any(a >= b for a, b in pairwise(digests)):
        raise DataError("A message of hashed alignment is not a sorted list of hashes.")
    return set(digests)


def _checked(secret: bytes | None) -> bytes:
    if secret is None or not LEAST_SECRET <= len(secret) <= blake2b.MAX_KEY_SIZE:
        raise DataError("Hashed alignment needs the secret of the kit (made from parties.key).")
    return secret
