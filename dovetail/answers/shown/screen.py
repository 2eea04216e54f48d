"""The screen that an answer is printed on: how wide it is, and whether it has colours.

A file or a pipe has no width, so nothing is cut there; COLUMNS and NO_COLOR are honoured everywhere.
"""

import os
import sys
from dataclasses import dataclass
from typing import Final

NARROWEST: Final = 40

# Colour means state and nothing else.
GOES_ON: Final = "32"
WAITS: Final = "33"
NEEDS_PERSON: Final = "31"


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """Width in columns, None if nothing has to fit; and whether colours are shown."""

    width: int | None = None
    colours: bool = False

    def paint(self, text: str, colour: str) -> str:
        """The text in that colour, if colours are shown and one is given."""
        return f"\x1b[{colour}m{text}\x1b[0m" if self.colours and colour and text else text


def screen() -> Screen:
    terminal = sys.stdout.isatty()
    colours = terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "") != "dumb"
    return Screen(width=_width(terminal), colours=colours)


def _width(terminal: bool) -> int | None:
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) > 0:
        return max(NARROWEST, int(columns))
    if not terminal:
        return None
    try:
        return max(NARROWEST, os.get_terminal_size(sys.stdout.fileno()).columns)
    except OSError:
        return 80
