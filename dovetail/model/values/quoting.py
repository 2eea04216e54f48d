"""Texts that anybody may have written, as errors, logs and Events quote them: short, and on one line."""

import re
from typing import Final

_SHOWN: Final = 80  # characters of one value
_LINE: Final = 500  # of a whole message

# What is sent to a terminal: lines of printable characters, and the colours that we use. Anything else in a text was
# written by others, and could clear a screen, hide what follows, or set the title and the clipboard.
_NOT_PLAIN: Final = re.compile("(\x1b\\[(?:0|1|2|7|3[1-6])m)|[^\n -~]")


def shown(text: str) -> str:
    """A value that could not be read."""
    return repr(text) if len(text) <= _SHOWN else f"{text[:_SHOWN]!r}… ({len(text)} characters)"


def quoted(text: str) -> str:
    """The text in double quotes, as in Go's messages."""
    cut = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    return f'"{one_line(cut)}"'


def one_line(text: str) -> str:
    """A message that contains such texts."""
    cut = text if len(text) <= _LINE else f"{text[:_LINE]}…"
    return cut if cut.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in cut)


def printable(text: str, instead: str = "") -> str:
    """Any text for a terminal, with its lines and colours. Unprintable characters are spelled as in JSON, which is
    valid in a JSON document too; `instead` replaces each such character if the text may not grow longer."""

    def plain(found: re.Match[str]) -> str:
        character = found[0]
        return character if found[1] or character.isprintable() else instead or _spelled(character)

    return _NOT_PLAIN.sub(plain, text)


def _spelled(character: str) -> str:
    data = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{data[at : at + 4]}" for at in range(0, len(data), 4))
