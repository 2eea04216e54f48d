"""Printing and exit codes of commands.

A failure that a person can fix is one line on standard error and exit code 1; anything else is a bug and shows its
traceback.
"""

import sys
from typing import Final

from dovetail.answers.failures import CommandFailed
from dovetail.model.values.quoting import printable

NEEDS_PERSON: Final = 4  # the exit code of --check if something needs a person
LEFT_BEHIND: Final = 4  # the exit code of a planned change that would leave something as it is


class NoWorkerAnswers(CommandFailed):
    """The API server was reached but no worker behind it, or it was not reached at all."""


class ReaderGone(Exception):
    """Nobody reads our output any more: `dovetail doctor | head` has seen enough."""


def say(text: str, before: str = "") -> None:
    """Print a line at once, without terminal control characters. `before`: control characters to send first."""
    try:
        print(f"{before}{printable(text)}", flush=True)
    except BrokenPipeError:
        raise ReaderGone from None


def complain(text: str) -> None:
    """A line on standard error."""
    print(f"dovetail: {printable(text)}", file=sys.stderr, flush=True)


def as_json(answer: object) -> str:
    """An answer for scripts, with all the facts of the text."""
    import orjson

    return orjson.dumps(answer, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS).decode()
