"""Texts that anybody may have written, as errors, logs and Events quote them: short, and in one line."""

from typing import Final

_SHOWN: Final = 80  # characters of one value
_LINE: Final = 500  # of a whole message


def shown(text: str) -> str:
    """A value that could not be read."""
    return repr(text) if len(text) <= _SHOWN else f"{text[:_SHOWN]!r}… ({len(text)} characters)"


def quoted(text: str) -> str:
    """The same between double quotes, as Go's messages have it."""
    cut = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    return f'"{one_line(cut)}"'


def one_line(text: str) -> str:
    """A message in which such texts stand."""
    cut = text if len(text) <= _LINE else f"{text[:_LINE]}…"
    return cut if cut.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in cut)
