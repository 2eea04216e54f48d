"""Whole numbers in texts that anybody may have written.

Python's own int() refuses more than 4,300 digits with a plain ValueError, takes time that grows with their square, and
reads the digits of all alphabets. These read what Go's ParseInt reads, and never convert more than 19 digits.
"""

import re
from typing import Final

MAX_INT: Final = 2**63 - 1
MIN_INT: Final = -(2**63)

_INTEGER: Final = re.compile(r"([+-]?)0*+([0-9]*+)")  # possessive: a million zeros are read once
_MOST_DIGITS: Final = len(str(MAX_INT))


def nearest_integer(text: str) -> int | None:
    """The number that the text spells, or the nearest one that fits into 64 bits; None if it is no number."""
    found = _INTEGER.fullmatch(text)
    if found is None or not text[-1:].isdigit():
        return None
    sign, digits = found.groups()
    size = MAX_INT + 1 if len(digits) > _MOST_DIGITS else int(digits or "0")
    return max(MIN_INT, -size) if sign == "-" else min(MAX_INT, size)


def integer(text: str) -> int | None:
    """The 64-bit number that the text spells; None if it is none, or does not fit."""
    found = _INTEGER.fullmatch(text)
    if found is None or not text[-1:].isdigit() or len(found[2]) > _MOST_DIGITS:
        return None
    value = int(found[2] or "0") * (-1 if found[1] == "-" else 1)
    return value if MIN_INT <= value <= MAX_INT else None


def in_32_bits(number: int) -> int:
    """The number as Go keeps it in 32 bits: it wraps around."""
    return (number + 2**31) % 2**32 - 2**31
