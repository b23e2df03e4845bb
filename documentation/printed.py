"""What a page says that a command prints, against what it prints."""

from __future__ import annotations

import re

FRAMES = re.compile(r"[\u2500-\u257f]")


def missing_lines(expected: str, printed: str) -> list[str]:
    """The lines that were to be printed and were not, in this order; others may come in between."""
    missing, rest = [], [_words(line) for line in printed.splitlines()]
    for line in filter(str.strip, expected.splitlines()):
        words = _words(line)
        found = next((i for i, candidate in enumerate(rest) if _alike(words, candidate)), None)
        if found is None:
            missing.append(line)
        else:
            rest = rest[found + 1 :]
    return missing


def _words(line: str) -> list[str]:
    """Without the frames of tables."""
    return FRAMES.sub(" ", line).split()


def _alike(expected: list[str], printed: list[str]) -> bool:
    """The same words; numbers may differ by 2%, as on another machine, and '...' stands for any one
    word."""
    return len(expected) == len(printed) and all(map(_alike_words, expected, printed))


def _alike_words(expected: str, printed: str) -> bool:
    if expected in ("...", printed):
        return True
    try:
        a, b = (float(word.strip("%,.;()[]").replace(",", "")) for word in (expected, printed))
    except ValueError:
        return False
    return abs(a - b) <= 0.02 * max(abs(a), abs(b))
