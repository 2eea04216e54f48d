"""Writes docs/reference/logs.md from the list of deeds: `python -m tests.deeds.reference`."""

import logging
from pathlib import Path

from dovetail.telemetry.log import words
from dovetail.telemetry.log.words import Deed

FILE = Path(__file__).parents[2] / "docs/reference/logs.md"

HEAD = """# What the log says

Made from `dovetail/telemetry/log/words.py` by `python -m tests.deeds.reference`; do not edit. `docs/operations.md` says
how lines look and where they go.

One line for each deed, by whichever worker did it, on the write that made it so; none for a look that found nothing to
do. Messages, names of fields and their order are Karpenter's where it does the same. Every line has `level`, `time`,
`logger`, `message`, `commit` (our version) and, written by a step, `workflow_id`; in a trace also `trace_id` and
`span_id`. Those of deeds have `controller`, `namespace` and `name` besides, and the object that they are about. There
is no `reconcileID`: `workflow_id` leads to everything that was done together.

| message | controller | about | fields | level | when |
|---|---|---|---|---|---|
"""

TAIL = """
Lines that are no deeds are warnings and errors, with the module that says them as `logger`.
"""

ALL = [deed for deed in vars(words).values() if isinstance(deed, Deed)]


def row(deed: Deed) -> str:
    """A deed as a row of the table."""
    message = f"`{deed.message}`" + (" (ours)" if deed.ours else "")
    fields = ", ".join(f"`{field}`" for field in deed.fields)
    level = logging.getLevelName(deed.level)
    return f"| {message} | `{deed.controller}` | {deed.about or '–'} | {fields or '–'} | {level} | {deed.when} |"


def text() -> str:
    """The whole reference."""
    return HEAD + "\n".join(row(deed) for deed in ALL) + "\n" + TAIL


if __name__ == "__main__":
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(text())
