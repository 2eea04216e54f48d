"""Draws what a terminal showed as an SVG: `python -m docs.tools.terminal_picture docs/pictures/demo.txt`.

The text is what `make demo` printed; `make picture` plays it anew and draws it. Lines that begin a scene and commands
stand out, everything else is as it was printed.
"""

import sys
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Final

CHARACTER: Final = 8.4  # pixels of a monospaced letter of 14
LINE: Final = 19
EDGE: Final = 18
BAR: Final = 30  # of the window
LONGEST: Final = 110  # characters; what is longer is cut with an ellipsis

_COLOURS: Final = {"scene": "#8be9fd", "command": "#50fa7b", "plain": "#e6e6e6"}


def picture(lines: Sequence[str]) -> str:
    """The SVG of these lines."""
    shown = [line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…" for line in lines]
    width = round(2 * EDGE + CHARACTER * max(map(len, shown), default=0))
    height = BAR + 2 * EDGE + LINE * len(shown)
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
        f'<rect width="{width}" height="{height}" rx="8" fill="#1e1f29"/>',
        *(
            f'<circle cx="{EDGE + 18 * number}" cy="{BAR // 2 + 2}" r="5" fill="{fill}"/>'
            for number, fill in enumerate(("#ff5f56", "#ffbd2e", "#27c93f"))
        ),
        '<g font-family="ui-monospace,Menlo,Consolas,monospace" font-size="14" xml:space="preserve">',
        *(_line(line, BAR + EDGE + LINE * number) for number, line in enumerate(shown) if line.strip()),
        "</g>",
        "</svg>",
    ]
    return "\n".join(drawn) + "\n"


def _line(text: str, y: int) -> str:
    said = text.partition("] ")[2] if text.startswith("[") else text
    sort = "scene" if said.startswith("SCENE") else "command" if said.startswith("$ ") else "plain"
    return f'<text x="{EDGE}" y="{y}" fill="{_COLOURS[sort]}">{escape(text)}</text>'


def scenes(printed: str, most: int = 34) -> list[str]:
    """From the first scene on, so many lines: what is before names folders of the machine."""
    lines = [line.rstrip() for line in printed.splitlines()]
    first = next(number for number, line in enumerate(lines) if "SCENE 1." in line)
    return lines[first : first + most]


def main(given: Sequence[str]) -> None:
    """Draw the file beside itself; from standard input where a story is piped into it."""
    file = Path(given[0])
    if given[1:] == ["-"]:
        file.write_text("\n".join(scenes(sys.stdin.read())) + "\n")
    file.with_suffix(".svg").write_text(picture(file.read_text().splitlines()))


if __name__ == "__main__":
    main(sys.argv[1:])
