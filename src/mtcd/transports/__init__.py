"""Transports: the form in which aggregates travel between parties. A file for each; by name in ``TRANSPORTS``."""

from mtcd.protocol.transport import Transport
from mtcd.transports.registry import DEFAULT, TRANSPORTS, make_transport

__all__ = ["DEFAULT", "TRANSPORTS", "Transport", "make_transport"]
