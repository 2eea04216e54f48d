"""What workers remember on a NodeClaim: each thing stands for itself."""

import json
from dataclasses import fields

import pytest

from dovetail.model import names
from dovetail.model.own.claim_memory import CalledOff, ClaimMemory, Pin, memory_of, remembering

WHOLE = ClaimMemory(
    asks_again=True,
    replacement_for="drifted",
    roll_out=Pin(how="stable", target="t"),
    called_off=CalledOff(why="not now", by="alice"),
    reboots=(60.0, 120.0),
)
TEXT = remembering({}, **{each.name: getattr(WHOLE, each.name) for each in fields(WHOLE)})[names.REMEMBERED] or ""


def test_it_comes_back_as_it_was_written() -> None:
    assert memory_of({names.REMEMBERED: TEXT}) == WHOLE


@pytest.mark.parametrize(
    ("part", "spoilt"),
    [
        ("asks_again", 3),
        ("replacement_for", ["x"]),
        ("roll_out", "back"),
        ("called_off", {"why": 1}),
        ("reboots", ["x"]),
    ],
)
def test_a_part_that_cannot_be_read_takes_no_other_with_it(part: str, spoilt: object) -> None:
    """A node that is called off is not taken because somebody spoilt when it was rebooted."""
    body = json.loads(TEXT)
    body["entries"][0][part] = spoilt

    found = memory_of({names.REMEMBERED: json.dumps(body)})

    parts = ("asks_again", "replacement_for", "roll_out", "called_off", "reboots")
    assert [getattr(found, one) == getattr(WHOLE, one) for one in parts] == [one != part for one in parts]
    assert getattr(found, part) == getattr(ClaimMemory(), part)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"v": 2, "entries": [{}]}', '{"v": 1, "entries": [7]}'])
def test_what_is_no_memory_at_all_says_nothing(text: str) -> None:
    assert memory_of({names.REMEMBERED: text}) == ClaimMemory()
