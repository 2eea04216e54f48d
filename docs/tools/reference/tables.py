"""Tables in Markdown."""

from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; a bar in a cell is text."""
    lines = [_line(head), "|" + "---|" * len(head)]
    return "\n".join([*lines, *(_line(row) for row in rows)])


def code(text: str) -> str:
    """As code, where there is any."""
    return f"`{text}`" if text else ""


def _line(cells: Sequence[str]) -> str:
    shown = [cell.replace("|", "\\|").replace("\n", " ") for cell in cells]
    return "| " + " | ".join(shown) + " |"
