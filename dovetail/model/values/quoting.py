"""Texts that anybody may have written, as errors, logs and Events quote them: short, and in one line."""

import re
from typing import Final

_SHOWN: Final = 80  # characters of one value
_LINE: Final = 500  # of a whole message

# What a terminal is sent: lines of what can be printed, and the colours that we use. Whatever else stands in a text was
# written by others, and could clear a screen, hide what comes after, or set a title and the clipboard.
_NOT_PLAIN: Final = re.compile("(\x1b\\[(?:0|1|2|7|3[1-6])m)|[^\n -~]")


def shown(text: str) -> str:
    """A value that could not be read."""
    return repr(text) if len(text) <= _SHOWN else f"{text[:_SHOWN]!r}… ({len(text)} characters)"


def quoted(text: str) -> str:
    """The text between double quotes, as Go's messages have it."""
    cut = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    return f'"{one_line(cut)}"'


def one_line(text: str) -> str:
    """A message in which such texts stand."""
    cut = text if len(text) <= _LINE else f"{text[:_LINE]}…"
    return cut if cut.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in cut)


def printable(text: str, instead: str = "") -> str:
    """A text of any kind for a terminal, its lines and colours kept. What is not printable is spelled as JSON spells
    it, which a JSON document may hold too; `instead` stands for each such character where nothing may grow longer."""

    def plain(found: re.Match[str]) -> str:
        character = found[0]
        return character if found[1] or character.isprintable() else instead or _spelled(character)

    return _NOT_PLAIN.sub(plain, text)


def _spelled(character: str) -> str:
    data = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{data[at : at + 4]}" for at in range(0, len(data), 4))
