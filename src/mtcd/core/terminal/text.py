"""Text from files and other parties, for the screen: it may hold neither markup nor codes that
steer a terminal."""

from __future__ import annotations

import unicodedata

from rich import markup

KEPT = "\n\t"


def escape(text: str) -> str:
    """The text as it is, but that control characters, and those that turn the writing round, become
    a visible mark."""
    return markup.escape(plain_text(text))


def plain_text(text: str) -> str:
    """The same without regard to markup.

    >>> plain_text("a\\x1b[2Jb")
    'a�[2Jb'
    """
    return "".join("\ufffd" if _steers(c) else c for c in text)


def _steers(character: str) -> bool:
    return character not in KEPT and unicodedata.category(character) in ("Cc", "Cf", "Cs")
