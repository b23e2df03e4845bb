"""Private set intersection with openmined-psi: elliptic-curve Diffie-Hellman on hashed ids, one message each way.

The response is the answerer's own set, blinded by its key, and the asker's ids blinded by both keys. Sets are sent
raw, not as filters, which have false positives.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import private_set_intersection.python as library
from google.protobuf.message import DecodeError

from mtcd.errors import DataError
from mtcd.federation.alignment import Answerer, Asker

LENGTH = struct.Struct(">Q")
NO_FILTER = 1e-9  # the false-positive rate, which the library requires; raw sets have none


class PsiAsker(Asker):
    """Sends its ids blinded by an ephemeral key."""

    def __init__(self, ids: Sequence[str]) -> None:
        self.ids = list(ids)
        self.client = library.client.CreateWithNewKey(True)

    def request(self) -> bytes:
        return bytes(self.client.CreateRequest(self.ids).SerializeToString())

    def shared(self, response: bytes) -> set[str]:
        size = LENGTH.unpack_from(response)[0] if len(response) >= LENGTH.size else len(response)
        if size > len(response) - LENGTH.size:
            raise DataError("A message of private set intersection is cut short.")
        try:
            setup, answer = library.ServerSetup(), library.Response()
            setup.ParseFromString(response[LENGTH.size : LENGTH.size + size])
            answer.ParseFromString(response[LENGTH.size + size :])
            if len(answer.encrypted_elements) != len(self.ids):
                raise DataError("The response of private set intersection is to another request.")
            if not setup.HasField("raw"):
                raise DataError("The response of private set intersection holds a filter, not a set.")
            return {self.ids[i] for i in self.client.GetIntersection(setup, answer)}
        except (DecodeError, RuntimeError, ValueError, IndexError) as error:
            raise DataError(f"A message of private set intersection is not readable: {_first_line(error)}.") from None


class PsiAnswerer(Answerer):
    """Blinds the asker's ids with an ephemeral key of its own."""

    def __init__(self, ids: Sequence[str]) -> None:
        self.ids = list(ids)

    def respond(self, request: bytes) -> bytes:
        server = library.server.CreateWithNewKey(True)
        try:
            parsed = library.Request()
            parsed.ParseFromString(request)
            if not parsed.encrypted_elements or not parsed.reveal_intersection:
                raise DataError("A request of private set intersection is empty.")
            answer = server.ProcessRequest(parsed).SerializeToString()
        except (DecodeError, RuntimeError, ValueError) as error:
            raise DataError(f"A message of private set intersection is not readable: {_first_line(error)}.") from None
        known = server.CreateSetupMessage(
            NO_FILTER, len(parsed.encrypted_elements), self.ids, library.DataStructure.RAW
        ).SerializeToString()
        return bytes(LENGTH.pack(len(known)) + known + answer)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or ["damaged"])[0][:200]
