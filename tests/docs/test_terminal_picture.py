"""The picture of the README is what the script draws from what the demo printed."""

import xml.etree.ElementTree as ElementTree
from pathlib import Path

from docs.tools.terminal_picture import picture, scenes

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"


def test_the_picture_is_that_of_the_text() -> None:
    lines = (PICTURES / "demo.txt").read_text().splitlines()
    assert (PICTURES / "demo.svg").read_text() == picture(lines), "run: python -m docs.tools.terminal_picture FILE"
    assert any("SCENE 1." in line for line in lines) and not any(line.count("/home/") for line in lines)


def test_anything_that_is_printed_can_be_drawn() -> None:
    drawn = ElementTree.fromstring(picture(["[ 1.0 s] SCENE 1. <&>", "", "$ dovetail status", "x" * 500]))
    texts = [element.text or "" for element in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[0] == "[ 1.0 s] SCENE 1. <&>" and len(texts) == 3 and texts[2].endswith("…")


def test_the_lines_before_the_first_scene_are_left_out() -> None:
    assert scenes("at /somewhere\n[ 1 s] SCENE 1. A\n  b\n", most=2) == ["[ 1 s] SCENE 1. A", "  b"]
