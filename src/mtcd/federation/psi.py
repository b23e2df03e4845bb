"""Private set intersection with openmined-psi: elliptic-curve Diffie-Hellman on hashed ids, one
message each way.

The response is the answerer's own set, blinded by its key, and the asker's ids blinded by both
keys. Sets are sent raw, not as filters, which have false positives. Ids are computed in chunks, so
that progress can be reported: a chunk at a time gives the same messages as all at once.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import private_set_intersection.python as library
from google.protobuf.message import DecodeError

from mtcd.core.errors import DataError
from mtcd.federation.alignment import Answerer, Asker

LENGTH = struct.Struct(">Q")
NO_FILTER = 1e-9  # the false-positive rate, which the library requires; raw sets have none
CHUNK = 200  # ids: about a tenth of a second
Report = Callable[[int, int], None]
"""Called with the number of ids that are done, and of all."""


def _silent(done: int, of: int) -> None:
    """The default of `report`: whoever aligns without a terminal is told nothing."""


class PsiAsker(Asker):
    """Sends its ids blinded by an ephemeral key."""

    def __init__(
        self, ids: Sequence[str], key: bytes | None = None, report: Report = _silent
    ) -> None:
        self.ids, self.report = ids, report
        client = library.client
        if key is None:
            self.client = client.CreateWithNewKey(True)
        else:
            self.client = client.CreateFromKey(key, True)

    @property
    def key(self) -> bytes:
        """The ephemeral key, with which another asker continues."""
        return bytes(self.client.GetPrivateKeyBytes())

    def request(self) -> bytes:
        made = library.Request(reveal_intersection=True)
        for ids in _chunks(self.ids, self.report):
            made.encrypted_elements.extend(self.client.CreateRequest(ids).encrypted_elements)
        return bytes(made.SerializeToString())

    def shared(self, response: bytes) -> set[str]:
        # A prefix that is cut off gives a size that cannot be, so both faults get the same error.
        size = LENGTH.unpack_from(response)[0] if len(response) >= LENGTH.size else len(response)
        if size > len(response) - LENGTH.size:
            raise DataError("A message of private set intersection is cut short.")
        try:
            setup, answer = library.ServerSetup(), library.Response()
            setup.ParseFromString(response[LENGTH.size : LENGTH.size + size])
            answer.ParseFromString(response[LENGTH.size + size :])
            # The library matches by position: a response of another length would pair ids with
            # elements of others.
            if len(answer.encrypted_elements) != len(self.ids):
                raise DataError("The response of private set intersection is to another request.")
            # A filter has false positives: an id that the other lacks would be announced as common.
            if not setup.HasField("raw"):
                raise DataError(
                    "The response of private set intersection holds a filter, not a set."
                )
            return set(self._matches(setup, answer.encrypted_elements))
        except (DecodeError, RuntimeError, ValueError, IndexError) as error:
            raise DataError(
                f"A message of private set intersection is not readable: {_first_line(error)}."
            ) from None

    def _matches(self, setup: Any, elements: Sequence[bytes]) -> Iterator[str]:
        start = 0
        for some in _chunks(elements, self.report):
            part = library.Response()
            part.encrypted_elements.extend(some)
            # The library numbers matches within the part that it is given.
            yield from (self.ids[start + i] for i in self.client.GetIntersection(setup, part))
            start += len(some)


class PsiAnswerer(Answerer):
    """Blinds the asker's ids with an ephemeral key of its own."""

    def __init__(self, ids: Sequence[str], report: Report = _silent) -> None:
        self.ids, self.report = ids, report

    def respond(self, request: bytes) -> bytes:
        # A fresh key for each request: with one key for two, the asker could link both answers.
        server = library.server.CreateWithNewKey(True)
        try:
            parsed = library.Request()
            parsed.ParseFromString(request)
            asked = len(parsed.encrypted_elements)
            # Without `reveal_intersection` the answer would hold the size of the intersection only,
            # and the asker could not announce it.
            if not asked or not parsed.reveal_intersection:
                raise DataError("A request of private set intersection is empty.")
            of = asked + len(self.ids)
            answer = library.Response()
            for some in _chunks(parsed.encrypted_elements, lambda done, _: self.report(done, of)):
                part = library.Request(reveal_intersection=True)
                part.encrypted_elements.extend(some)
                answer.encrypted_elements.extend(server.ProcessRequest(part).encrypted_elements)
        except (DecodeError, RuntimeError, ValueError) as error:
            raise DataError(
                f"A message of private set intersection is not readable: {_first_line(error)}."
            ) from None
        blinded: list[bytes] = []
        for ids in _chunks(self.ids, lambda done, _: self.report(asked + done, of)):
            setup = server.CreateSetupMessage(NO_FILTER, asked, ids, library.DataStructure.RAW)
            blinded.extend(setup.raw.encrypted_elements)
        known = library.ServerSetup()
        # their order must not tell that of the table
        known.raw.encrypted_elements.extend(sorted(blinded))
        content = known.SerializeToString()
        return bytes(LENGTH.pack(len(content)) + content + answer.SerializeToString())


def _chunks(items: Sequence[Any], report: Report) -> Iterator[list[Any]]:
    """The items in chunks; reports those before each chunk as done, and in the end all of them."""
    for start in range(0, len(items), CHUNK):
        report(start, len(items))
        yield list(items[start : start + CHUNK])
    report(len(items), len(items))


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or ["damaged"])[0][:200]
