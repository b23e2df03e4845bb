"""The field of a payload that says why a training ended."""

from __future__ import annotations

import re

from mtcd.core.errors import WireError
from mtcd.protocol.codec.fields import Field
from mtcd.protocol.codec.limits import Bounds
from mtcd.protocol.codec.reading import WORD, Chunks, Reader, padded

LONGEST_STATUS = 32
STATUS = re.compile(rb"[a-z]([a-z ]*[a-z])?")


class Status(Field):
    """A few lower-case letters."""

    def write(self, value: str, chunks: Chunks) -> None:
        data = value.encode()
        # Few letters and nothing else: the text is shown on screens and written to logs as it is.
        if not (len(data) <= LONGEST_STATUS and STATUS.fullmatch(data)):
            raise WireError(self.name, "is not one that can be sent")
        chunks += [WORD.pack(len(data)), data, bytes(-len(data) % 8)]

    def read(self, frame: Reader) -> str:
        length = frame.whole(self.name, 1, LONGEST_STATUS + 1)
        end = frame.at + padded(length)
        data = bytes(frame.view[frame.at : end])
        # The filling too: there is one encoding of a status.
        if len(data) < padded(length) or any(data[length:]) or not STATUS.fullmatch(data[:length]):
            raise WireError(self.name, "is not one that can be sent")
        frame.at = end
        return data[:length].decode()

    def most(self, bounds: Bounds) -> int:
        return 8 + LONGEST_STATUS
