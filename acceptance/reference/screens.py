"""The page of screens: what commands print at three widths, as a test holds them line by line."""

from pathlib import Path
from typing import Final

CAPTURES: Final = Path(__file__).parents[2] / "tests" / "cli" / "golden"
COMMANDS: Final = ("status", "nodes", "top")
WIDTHS: Final = (80, 120, 200)


def screens_page() -> str:
    """Every capture."""
    parts = [_part(command, width) for command in COMMANDS for width in WIDTHS]
    return "\n".join(["# Screens", "", _HEAD, *parts])


_HEAD: Final = (
    "What is printed at 80, 120 and 200 columns, of made-up clusters: columns that matter least are left out first,\n"
    "no row is wrapped. Colours, which mean state and nothing else, are not shown. `top` is of 5,000 nodes."
)


def _part(command: str, width: int) -> str:
    text = (CAPTURES / f"{command}-{width}.txt").read_text(encoding="utf-8").rstrip("\n")
    return f"\n## `dovetail {command}`, {width} columns\n\n```text\n{text}\n```"
