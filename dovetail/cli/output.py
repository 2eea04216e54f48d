"""What commands print, and how they end.

A failure that a person can mend is one line on standard error and exit code 1; anything else is a bug and shows its
traceback.
"""

import sys

import orjson


class CommandFailed(Exception):
    """The command cannot do what was asked; the message is the one line that says why."""


def say(text: str) -> None:
    """A line on standard output, at once."""
    print(text, flush=True)


def complain(text: str) -> None:
    """A line on standard error."""
    print(f"dovetail: {text}", file=sys.stderr, flush=True)


def table(rows: list[tuple[str, ...]], heads: tuple[str, ...]) -> str:
    """Columns as wide as their widest cell."""
    lines = [heads, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(heads))]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines)


def as_json(answer: object) -> str:
    """An answer for scripts: the same facts as the text, every one of them."""
    return orjson.dumps(answer, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS).decode()
