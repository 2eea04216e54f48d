"""The pictures of the README are what the script draws from what the demo and `dovetail top` printed."""

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from docs.tools.terminal_picture import picture, scenes

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"


@pytest.mark.parametrize(("name", "has"), [("demo", "SCENE 1."), ("change", "SCENE 4."), ("top", "terminating")])
def test_the_picture_is_that_of_the_text(name: str, has: str) -> None:
    lines = (PICTURES / f"{name}.txt").read_text().splitlines()
    assert (PICTURES / f"{name}.svg").read_text() == picture(lines), "run: python -m docs.tools.terminal_picture FILE"
    assert any(has in line for line in lines) and not any(line.count("/home/") for line in lines)


def test_the_picture_of_the_page_is_one_that_a_readme_can_show() -> None:
    content = (PICTURES / "page.png").read_bytes()
    assert content[:8] == b"\x89PNG\r\n\x1a\n" and len(content) < 200_000
    assert int.from_bytes(content[16:20], "big") >= 1000, "as wide as a window"


def test_anything_that_is_printed_can_be_drawn() -> None:
    drawn = ElementTree.fromstring(picture(["[ 1.0 s] SCENE 1. <&>", "", "$ dovetail status", "x" * 500]))
    texts = [element.text or "" for element in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[0] == "[ 1.0 s] SCENE 1. <&>" and len(texts) == 3 and texts[2].endswith("…")


def test_what_a_terminal_shows_in_colour_has_it() -> None:
    drawn = ElementTree.fromstring(picture(["a \x1b[31m<red>\x1b[0m b", "x" * 100 + "\x1b[7m" + "y" * 10 + "\x1b[0m"]))
    [red, turned] = drawn.iter("{http://www.w3.org/2000/svg}tspan")
    assert (red.text, red.tail, turned.text) == ("<red>", " b", "y" * 10), "a code has no width"


def test_the_lines_before_the_first_scene_are_left_out() -> None:
    printed = "at /somewhere\n[ 1 s] SCENE 1. A\n[ 6 s]   … waiting: b; at most 9 s more\n  b\n  c\n"
    assert scenes(printed, most=2) == ["[ 1 s] SCENE 1. A", "  b"]
