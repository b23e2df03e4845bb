"""Transports: the form in which aggregates travel between parties. A file for each; by name in
``TRANSPORTS``."""
