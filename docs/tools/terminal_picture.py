"""Draws what a terminal showed as an SVG: `python -m docs.tools.terminal_picture docs/pictures/demo.txt`.

The text is what `make demo` or `dovetail top` printed; `make picture` makes it anew and draws it. Lines that begin a
scene and commands stand out, what the terminal was given in colour has it, everything else is plain.
"""

import re
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
# A terminal's codes: red, green, yellow, and turned round, which is a row that keys act on.
_PAINTED: Final = {"31": "#ff6e67", "32": "#50fa7b", "33": "#f1fa8c", "7": "#bd93f9"}
_CODE: Final = re.compile(r"\x1b\[(\d+)m(.*?)\x1b\[0m")


def picture(lines: Sequence[str]) -> str:
    """The SVG of these lines."""
    shown = [line if len(_plain(line)) <= LONGEST else f"{_plain(line)[: LONGEST - 1]}…" for line in lines]
    width = round(2 * EDGE + CHARACTER * max((len(_plain(line)) for line in shown), default=0))
    height = BAR + 2 * EDGE + LINE * len(shown)
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
        f'<rect width="{width}" height="{height}" rx="8" fill="#1e1f29"/>',
        *(
            f'<circle cx="{EDGE + 18 * number}" cy="{BAR // 2 + 2}" r="5" fill="{fill}"/>'
            for number, fill in enumerate(("#ff5f56", "#ffbd2e", "#27c93f"))
        ),
        '<g font-family="ui-monospace,Menlo,Consolas,monospace" font-size="14">',
        *(_line(line, BAR + EDGE + LINE * number) for number, line in enumerate(shown) if line.strip()),
        "</g>",
        "</svg>",
    ]
    return "\n".join(drawn) + "\n"


def _line(text: str, y: int) -> str:
    said = text.partition("] ")[2] if text.startswith("[") else text
    sort = "scene" if said.startswith("SCENE") else "command" if said.startswith("$ ") else "plain"
    place = f'xml:space="preserve" x="{EDGE}" y="{y}"'  # on each text: what stands above it is not used everywhere
    return f'<text {place} fill="{_COLOURS[sort]}">{_CODE.sub(_painted, escape(text))}</text>'


def _painted(found: re.Match[str]) -> str:
    return f'<tspan fill="{_PAINTED[found[1]]}">{found[2]}</tspan>'


def _plain(line: str) -> str:
    return _CODE.sub(r"\2", line)


def scenes(printed: str, most: int = 50) -> list[str]:
    """From the first scene on, so many lines: what is before names folders of the machine. Without waits."""
    lines = [line.rstrip() for line in printed.splitlines() if "… waiting: " not in line]
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
