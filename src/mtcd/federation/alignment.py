"""Sample alignment: finds the ids that all parties have, with limited disclosure.

The label holder (the asker) exchanges one request and one response with every other party (an
answerer). It then knows the ids that it shares with each, intersects them, and announces the common
ids; every party sorts its rows by them.

What each party learns, if all follow the protocol:

- the asker: the number of samples of each other party, and which of the asker's ids each of them
  has. That is more than the common ids: it also learns which of its ids each party lacks. It never
  learns an id that is not its own;
- an answerer, with psi: the number of samples of the asker, and the common ids of all parties,
  which are all its own. With hashed matching: also which of its ids the asker has;
- a relay, with psi: the numbers of samples. With hashed matching, any party that has the secret can
  test whether a guessed id is in a table: it is for parties that trust each other;
- the announcement contains the common ids in clear. All parties have these ids; the server does
  not, and must not relay it.

Neither protocol prevents a party from lying about its ids: a party that adds guessed ids to its
table learns which of them others have. Agreements between the parties must rule that out.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import pairwise

from mtcd.core.errors import DataError
from mtcd.core.mappings import positions
from mtcd.core.optional import find

DIGEST_BYTES = 32
LEAST_SECRET_BYTES = 16


class Asker(ABC):
    """The side that learns which of its ids the other has."""

    @abstractmethod
    def request(self) -> bytes:
        """The request to the other side."""

    @abstractmethod
    def shared(self, response: bytes) -> set[str]:
        """The own ids that the other side has, from its response."""


class Answerer(ABC):
    """The side that answers the request."""

    @abstractmethod
    def respond(self, request: bytes) -> bytes:
        """The response to a request."""


def asker(kind: str, ids: Sequence[str], secret: bytes | None = None) -> Asker:
    """The label holder's side of ``alignment: psi`` or ``hashed``, with one other party."""
    check_ids(ids)
    if kind == "psi":
        made: Asker = find("mtcd.federation.psi").PsiAsker(ids)
        return made
    return HashedAsker(ids, _checked(secret))


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
        # All are to sort their rows by the announcement, so it has one order for a set of ids.
        raise DataError(
            "The parties have no sample in common: check that their id columns hold the same kind "
            "of ids."
        )
    return json.dumps(sorted(common)).encode()


def rows_of(announcement: bytes, ids: Sequence[str]) -> list[int]:
    """The rows of the announced ids, in the announced order."""
    try:
        common = json.loads(announcement)
    except (ValueError, RecursionError):
        raise DataError("The announcement of common ids is not readable.") from None
    if (
        not isinstance(common, list)
        or not common
        or not all(isinstance(one, str) for one in common)
    ):
        raise DataError("The announcement of common ids is not a list of ids.")
    # Sorted and distinct: the rows of all parties then match, and none trains on a sample twice.
    if any(a >= b for a, b in pairwise(common)):
        raise DataError("The announcement of common ids is not sorted, or names one twice.")
    place = positions(ids)
    # The error gives a number, not the ids: an announcement that was forged must not be able to
    # probe a table by what is printed here.
    unknown = sum(one not in place for one in common)
    if unknown:
        raise DataError(
            f"The announcement of common ids names {unknown} that this party does not have."
        )
    return [place[one] for one in common]


def check_ids(ids: Sequence[str]) -> None:
    """Refuse ids that are empty or not unique. Errors name rows, never ids, which are private."""
    seen: dict[str, int] = {}
    for row, one in enumerate(ids, start=1):
        if not isinstance(one, str) or not one:
            raise DataError(
                f"Row {row} has no id: every sample needs one. Remove the row, or fill in its id."
            )
        # `setdefault` gives the first row of an id, and remembers this one if it is new.
        if (first := seen.setdefault(one, row)) != row:
            raise DataError(
                f"Rows {first} and {row} have the same id: ids must be unique. Remove one of the "
                "rows."
            )
        # A lone surrogate, as a damaged file may have, has no UTF-8 form, and could be neither
        # hashed nor sent.
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
        # Sorted: the order of the table tells things about its rows, such as when they were added.
        return b"".join(sorted(self.by_digest))

    def shared(self, response: bytes) -> set[str]:
        digests = _split(response)
        # An answer can only be a subset of the question. Another hash comes from a faulty or lying
        # party.
        if not self.by_digest.keys() >= digests:
            raise DataError(
                "The response of hashed alignment holds hashes that were not asked for."
            )
        return {self.by_digest[digest] for digest in digests}


class HashedAnswerer(Answerer):
    """Answers with the hashes that it has too."""

    def __init__(self, ids: Sequence[str], secret: bytes) -> None:
        self.by_digest = _digests(ids, secret)

    def respond(self, request: bytes) -> bytes:
        return b"".join(sorted(_split(request) & self.by_digest.keys()))


def _digests(ids: Sequence[str], secret: bytes) -> dict[bytes, str]:
    digests = {}
    for one in ids:
        # `person` separates these hashes from others made with the same key.
        made = blake2b(one.encode(), key=secret, digest_size=DIGEST_BYTES, person=b"mtcd ids")
        digests[made.digest()] = one
    return digests


def _split(content: bytes) -> set[bytes]:
    # The last one is short if the content is cut off; the test below refuses it.
    digests = [content[i : i + DIGEST_BYTES] for i in range(0, len(content), DIGEST_BYTES)]
    if len(content) % DIGEST_BYTES or any(a >= b for a, b in pairwise(digests)):
        raise DataError("A message of hashed alignment is not a sorted list of hashes.")
    return set(digests)


def _checked(secret: bytes | None) -> bytes:
    if secret is None or not LEAST_SECRET_BYTES <= len(secret) <= blake2b.MAX_KEY_SIZE:
        raise DataError("Hashed alignment needs the secret in parties.key of the bundle.")
    return secret
