"""The chart of the curve: dollars against pods moved, a point for what a move must save."""

from typing import Any, Final

from research.days.curve import curve
from research.days.play import Course

_WIDTH: Final = 860
_HEIGHT: Final = 360
_LEFT: Final = 70
_TOP: Final = 40
_BOTTOM: Final = 50
_RIGHT: Final = 40
_GREY: Final = "#57606a"
_GREEN: Final = "#2da44e"

Recorded = dict[str, Any]


def curve_picture(recorded: Recorded) -> str:
    """Both over the default policy's; the setting's default is the filled point."""
    points = curve(recorded["points"])
    axes = _Axes(
        most_moved=max(moved for moved, _ in points.values()) * 1.05,
        least=min(dollars for _, dollars in points.values()) - 0.02,
        most=max(1.0, *(dollars for _, dollars in points.values())) + 0.01,
    )
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}">',
        '<g font-family="sans-serif" font-size="13">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>',
        f'<text x="{_LEFT}" y="24" fill="{_GREY}">dollars over the default policy\'s, by DOVETAIL_COST_WORTH</text>',
        *axes.drawn(),
    ]
    joined = " ".join(f"{axes.across(moved):.1f},{axes.down(dollars):.1f}" for moved, dollars in points.values())
    lines.append(f'<polyline fill="none" stroke="{_GREEN}" stroke-width="2" points="{joined}"/>')
    for worth, (moved, dollars) in points.items():
        x, y = axes.across(moved), axes.down(dollars)
        fill = _GREEN if worth == Course(cost=True).worth else "#ffffff"
        lines.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{fill}" stroke="{_GREEN}" stroke-width="2"/>')
        lines.append(f'<text x="{x + 9:.1f}" y="{y - 8:.1f}" fill="{_GREEN}">{worth:g}</text>')
    return "\n".join([*lines, "</g>", "</svg>"]) + "\n"


class _Axes:
    """Pods moved to the right, dollars upwards to the default policy's."""

    def __init__(self, most_moved: float, least: float, most: float) -> None:
        self._most_moved, self._least, self._most = max(1.0, most_moved), least, most

    def across(self, moved: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * moved / self._most_moved

    def down(self, dollars: float) -> float:
        return _TOP + (_HEIGHT - _TOP - _BOTTOM) * (self._most - dollars) / (self._most - self._least)

    def drawn(self) -> list[str]:
        """Lines of dollars, marks of moves."""
        found = []
        for percent in range(int(self._most * 50) * 2, int(self._least * 100), -2):
            y = self.down(percent / 100)
            found.append(f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{_WIDTH - _RIGHT}" y2="{y:.1f}" stroke="#d0d7de"/>')
            words = f"{percent / 100:.2f}"
            found.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end" fill="{_GREY}">{words}</text>')
        for quarter in range(int(self._most_moved * 4) + 1):
            x, words = self.across(quarter / 4), f"{quarter / 4:g}"
            found.append(
                f'<text x="{x:.1f}" y="{_HEIGHT - 30}" text-anchor="middle" fill="{_GREY}">{words}</text>',
            )
        middle, words = (_LEFT + _WIDTH - _RIGHT) / 2, "pods moved over the default policy's"
        found.append(f'<text x="{middle:.1f}" y="{_HEIGHT - 10}" text-anchor="middle" fill="{_GREY}">{words}</text>')
        return found
