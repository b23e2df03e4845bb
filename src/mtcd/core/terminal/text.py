"""Text from files and other parties, for the screen: it may hold neither markup nor codes that
steer a terminal."""

from __future__ import annotations

import math
import unicodedata

from rich import markup

KEPT = "\n\t"


def escape(text: str) -> str:
    """The text for a screen with markup: see :func:`plain_text`; square brackets stay as they are."""
    return markup.escape(plain_text(text))


def plain_text(text: str) -> str:
    """The text with a visible mark for each control character, and for each character that turns
    the direction of writing.

    >>> plain_text("a\\x1b[2Jb")
    'a�[2Jb'
    """
    return "".join("\ufffd" if _steers(c) else c for c in text)


def rounded(value: float) -> str:
    """A number as a table shows it; a dash where there is none.

    >>> rounded(0.12345), rounded(12345.6), rounded(float("inf"))
    ('0.123', '12,346', '-')
    """
    if not math.isfinite(value):
        return "-"
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def duration(seconds: float) -> str:
    """A measured or predicted time with three digits; a dash where there is none.

    >>> duration(0.01234), duration(75), duration(float("inf"))
    ('12.3 ms', '75 s', '-')
    """
    if not math.isfinite(seconds):
        return "-"
    if seconds < 1:
        return f"{1e3 * seconds:.3g} ms"
    return f"{seconds:,.3g} s"


def _steers(character: str) -> bool:
    return character not in KEPT and unicodedata.category(character) in ("Cc", "Cf", "Cs")


def span(seconds: float) -> str:
    """A time as people say it.

    >>> span(4.21), span(75), span(7500)
    ('4.2 s', '1 min 15 s', '2 h 5 min')
    """
    # Rounded first: 59.7 seconds are a minute, not 60 seconds.
    whole = round(seconds)
    if whole < 60:
        if seconds < 10:
            return f"{seconds:.1f} s"
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
