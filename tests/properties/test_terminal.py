"""Nothing that others wrote steers a person's terminal: by `say`, on standard error, and in `top`."""

import json
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dovetail.answers.shown.screen import NEEDS_PERSON, Screen
from dovetail.cli.output import complain, say
from dovetail.model.values.quoting import printable

COLOURS = re.compile("\x1b\\[[0-9]+m")
HOSTILE = "\x1b]0;PWNED\x07\x1b[2J\x1b[Hall fine\x1b[8m"
TEXTS = st.text(st.characters(codec=None), max_size=40)


@given(TEXTS)
@example(HOSTILE)
@example("\x9b2J\u202e\u2066\r\b")
def test_what_is_sent_is_printable_lines_and_colours(text: str) -> None:
    sent = printable(text)

    assert all(each == "\n" or each.isprintable() for each in COLOURS.sub("", sent))
    assert "\x1b[8m" not in sent
    assert len(printable(text, "?")) <= len(text)
    assert printable(sent) == sent


@given(st.text(max_size=40))
@example(HOSTILE)
@example("\U000e0001")
def test_a_json_document_says_the_same_afterwards(text: str) -> None:
    document = json.dumps({"a": text}, ensure_ascii=False)

    assert json.loads(printable(document)) == {"a": text}


def test_both_streams_go_through_it_and_keep_our_colours(capsys: pytest.CaptureFixture[str]) -> None:
    ours = Screen(colours=True).paint("needs a person", NEEDS_PERSON)

    say(f"{ours}: {HOSTILE}")
    complain(HOSTILE)

    out, err = capsys.readouterr()
    assert out == f"{ours}: \\u001b]0;PWNED\\u0007\\u001b[2J\\u001b[Hall fine\\u001b[8m\n"
    assert "\x1b" not in err and "\x07" not in err
