"""Draws a recorded day, week or curve: `python -m research.days.picture pictures/day.json` writes day.svg."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import orjson

from research.days.curve_picture import curve_picture

_WIDTH: Final = 860
_HEIGHT: Final = 360
_LEFT: Final = 60
_TOP: Final = 40
_BOTTOM: Final = 40
_RIGHT: Final = 20
_CURVES: Final = (("default", "default policy", "#8b949e"), ("cost", "policy cost", "#2da44e"))
_LOWEST: Final = ("lowest", "nobody can be below", "#cf222e")

Recorded = dict[str, Any]


def picture(recorded: Recorded) -> str:
    """Dollars an hour over the hours of the day or week, under both policies and the least that is possible."""
    curves = [(words, colour, recorded[name]["dollars"]) for name, words, colour in _CURVES]
    curves.append((_LOWEST[1], _LOWEST[2], recorded["default"]["lowest"]))
    most = max(max(values) for _, _, values in curves) * 1.1
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}">',
        '<g font-family="sans-serif" font-size="13">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>',
        *_axes(len(curves[0][2]), most),
    ]
    for number, (words, colour, values) in enumerate(curves):
        lines.append(_curve(values, most, colour))
        total = f"{words}: ${sum(values):.0f}"
        lines.append(f'<text x="{_LEFT + 10 + 250 * number}" y="24" fill="{colour}">{total}</text>')
    return "\n".join([*lines, "</g>", "</svg>"]) + "\n"


def _across(hour: float, hours: int) -> float:
    return _LEFT + (_WIDTH - _LEFT - _RIGHT) * hour / max(1, hours)


def _down(dollars: float, most: float) -> float:
    return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * dollars / most


def _axes(hours: int, most: float) -> list[str]:
    found = []
    for part in range(5):
        dollars = most * part / 4
        y = _down(dollars, most)
        found.append(f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{_WIDTH - _RIGHT}" y2="{y:.1f}" stroke="#d0d7de"/>')
        found.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end" fill="#57606a">${dollars:.1f}</text>')
    by_day = hours > 48
    for hour in range(0, hours + 1, 24 if by_day else max(1, hours // 8)):
        x, words = _across(hour, hours), f"day {hour // 24}" if by_day else f"{hour}:00"
        found.append(f'<text x="{x:.1f}" y="{_HEIGHT - 16}" text-anchor="middle" fill="#57606a">{words}</text>')
    return found


def _curve(values: Sequence[float], most: float, colour: str) -> str:
    """Steps: each hour's own figure."""
    points = [
        f"{_across(hour + end, len(values)):.1f},{_down(value, most):.1f}"
        for hour, value in enumerate(values)
        for end in (0, 1)
    ]
    return f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{" ".join(points)}"/>'


def main() -> int:
    """Read the figures, write the picture beside them."""
    source = Path(sys.argv[1])
    recorded = orjson.loads(source.read_bytes())
    drawn = curve_picture(recorded) if "points" in recorded else picture(recorded)
    source.with_suffix(".svg").write_text(drawn)
    return 0


if __name__ == "__main__":
    sys.exit(main())
