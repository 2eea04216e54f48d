"""Writes docs/reference/logs.md from the list of lines: `python -m tests.log.reference`."""

import logging
from pathlib import Path

from dovetail.telemetry.log import words
from dovetail.telemetry.log.words import LogLine

FILE = Path(__file__).parents[2] / "docs/reference/logs.md"

HEAD = """# What the log says

Made from `dovetail/telemetry/log/words.py` by `python -m tests.log.reference`; do not edit. `docs/operations.md` says
how lines look and where they go.

One line for each thing that is done, by the worker that did it, on the write that made it so; none for a look that
found nothing to do. Messages, names of fields and their order are Karpenter's where it does the same. Every line has
`level`, `time`, `logger`, `message`, `commit` (our version) and, written by a step, `workflow_id`; in a trace also
`trace_id` and `span_id`. Such lines have `controller`, `namespace` and `name` besides, and the object that they are
about. There is no `reconcileID`: `workflow_id` leads to everything that was done together.

| message | controller | about | fields | level | when |
|---|---|---|---|---|---|
"""

TAIL = """
Other lines are warnings and errors, with the module that says them as `logger`.
"""

ALL = [log_line for log_line in vars(words).values() if isinstance(log_line, LogLine)]


def row(log_line: LogLine) -> str:
    """A line of the log as a row of the table."""
    message = f"`{log_line.message}`" + (" (ours)" if log_line.ours else "")
    fields = ", ".join(f"`{field}`" for field in log_line.fields)
    about, level = log_line.about or "–", logging.getLevelName(log_line.level)
    return f"| {message} | `{log_line.controller}` | {about} | {fields or '–'} | {level} | {log_line.when} |"


def text() -> str:
    """The whole reference."""
    return HEAD + "\n".join(row(log_line) for log_line in ALL) + "\n" + TAIL


if __name__ == "__main__":
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(text())
