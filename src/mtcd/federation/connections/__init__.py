"""Connections between members of a federation: framed messages over TLS 1.3, with certificates of
its authority at both ends."""
