"""`-w`: looks again and again, and survives a worker's restart: the last answer stays, and is marked as old."""

import argparse
import time
from typing import TYPE_CHECKING, Final

from dovetail.cli.output import complain, say

if TYPE_CHECKING:
    from dovetail.answers.shown.screen import Screen

CLEAR: Final = "\x1b[H\x1b[2J\x1b[3J"
LEAST_SECONDS: Final = 1.0
MOST_SECONDS: Final = 3600.0


def add_every(command: argparse.ArgumentParser, when: str) -> None:
    """Add the option for the time between two looks."""
    command.add_argument("--every", type=_seconds, default=2.0, metavar="SECONDS", help=f"{when} (default: 2)")


def _seconds(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not LEAST_SECONDS <= found <= MOST_SECONDS:
        words = f"{text} is no number of seconds from {LEAST_SECONDS:.0f} to {MOST_SECONDS:.0f}"
        raise argparse.ArgumentTypeError(words)
    return found


class ScreenWatch:
    """The screen of a person who watches, or looks once."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.given = given
        self._text = ""
        self._at: float | None = None  # when the last answer came

    def show(self, text: str, screen: "Screen") -> None:
        self._text, self._at = text, time.time()
        self._print(screen)

    def keep(self, error: Exception, screen: "Screen") -> None:
        """Keep the last answer because there is no new one. Raises the error if there was none, or nobody watches."""
        if self._at is None or not self.given.watch:
            raise error
        from dovetail.answers.wording import moment_text

        if self._clears(screen):
            self._print(screen)
        complain(f"no answer since {moment_text(self._at)}: {error}")

    def _clears(self, screen: "Screen") -> bool:
        return bool(self.given.watch and screen.width)

    def _print(self, screen: "Screen") -> None:
        clear = CLEAR if self._clears(screen) else ""
        if clear or self._text:  # `-o name` with an empty answer
            say(self._text, before=clear)
