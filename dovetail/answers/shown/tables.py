"""Tables that fit: columns that matter least are left out first, then long cells are cut. A row is never wrapped.

What is left out is in `-o wide` and in `-o json`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from dovetail.answers.shown.screen import Screen

GAP: Final = 2
SHORTEST: Final = 12  # of a cut cell

Row = Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column. `rank`: without enough room, the highest ranks are left out first, rank 0 never. `cut`: whether its
    cells may be shortened, to no less than `least`."""

    head: str
    rank: int = 0
    cut: bool = False
    least: int = SHORTEST
    right: bool = False


def table(columns: Sequence[Column], rows: Sequence[Row], screen: Screen, colours: Sequence[str] = ()) -> list[str]:
    """The table's lines with a head. `colours`: one for each row's first cell."""
    kept = _kept(columns, rows, screen.width)
    widths = _widths(columns, rows, kept, screen.width)
    lines = [_line([columns[i].head for i in kept], kept, columns, widths)]
    for number, row in enumerate(rows):
        cells = [cut(row[i], widths[i]) for i in kept]
        line = _line(cells, kept, columns, widths)
        colour = colours[number] if colours else ""
        first = len(cells[0])
        lines.append(screen.paint(line[:first], colour) + line[first:])
    return lines


def _natural(column: Column, index: int, rows: Sequence[Row]) -> int:
    return max([len(column.head), *[len(row[index]) for row in rows]])


def _least(column: Column, natural: int) -> int:
    return min(natural, max(len(column.head), column.least)) if column.cut else natural


def _kept(columns: Sequence[Column], rows: Sequence[Row], width: int | None) -> list[int]:
    kept = [i for i, column in enumerate(columns) if column.rank == 0 or any(row[i] for row in rows)]
    if width is None:
        return kept
    least = {i: _least(columns[i], _natural(columns[i], i, rows)) for i in kept}
    while sum(least[i] + GAP for i in kept) - GAP > width:
        last = max(kept, key=lambda i: columns[i].rank)
        if columns[last].rank == 0:
            break
        kept.remove(last)
    return kept


def _widths(columns: Sequence[Column], rows: Sequence[Row], kept: list[int], width: int | None) -> dict[int, int]:
    """The width of each kept column; the widest that may be cut is narrowed, a character at a time."""
    widths = {i: _natural(columns[i], i, rows) for i in kept}
    least = {i: _least(columns[i], widths[i]) for i in kept}
    over = sum(widths[i] + GAP for i in kept) - GAP - width if width is not None else 0
    while over > 0:
        loose = [i for i in kept if widths[i] > least[i]]
        if not loose:
            break
        widths[max(loose, key=lambda i: widths[i])] -= 1
        over -= 1
    return widths


def _line(cells: list[str], kept: list[int], columns: Sequence[Column], widths: dict[int, int]) -> str:
    parts = [
        cell.rjust(widths[i]) if columns[i].right else cell.ljust(widths[i])
        for cell, i in zip(cells, kept, strict=True)
    ]
    return (" " * GAP).join(parts).rstrip()


def cut(cell: str, width: int) -> str:
    return cell if len(cell) <= width else cell[: width - 1] + "…"


def markdown_table(columns: Sequence[Column], rows: Sequence[Row]) -> list[str]:
    """The table as Markdown, with every column."""
    heads = "| " + " | ".join(column.head for column in columns) + " |"
    rule = "|" + "|".join("---:" if column.right else "---" for column in columns) + "|"
    return [heads, rule, *["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]]


def bar(share: float, cells: int = 20) -> str:
    full = max(0, min(cells, round(share * cells)))
    return "▇" * full + "░" * (cells - full)
