"""`--help` of every command: what for, examples that the parser reads, the connection apart; and what was mistyped."""

import shlex

import pytest

from dovetail.cli.helping import CONNECTION, USES, commands_of, with_options_behind
from dovetail.cli.main import main, parser


def test_every_command_is_told_of_and_no_other() -> None:
    assert {words for words, _ in commands_of(parser())} == set(USES)


@pytest.mark.parametrize("words", USES)
def test_help_has_a_sentence_three_examples_that_can_be_typed_and_the_connection_apart(
    words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    what, *examples = USES[words]
    text = dict(commands_of(parser()))[words].format_help()

    assert " ".join(what.split()) in " ".join(text.split()) and len(examples) == 3
    assert text.index("usage:") == 0 and text.count("\n", 0, text.index(what[:20])) == 2, "usage is one line"
    for example in examples:
        assert f"\n  {example}\n" in f"{text}\n"
        typed = shlex.split(example.partition(" && ")[0])
        begins = typed.index("dovetail") + 1
        given = parser().parse_args(typed[begins:])
        assert " ".join(typed[begins : begins + words.count(" ") + 1]) == words, given
    options, _, connection = text.partition("connection:")
    assert not any(f"  {option}" in options for option in CONNECTION)
    assert not connection or any(option in connection for option in CONNECTION)


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        (["--context", "x", "status", "--check"], ["status", "--context", "x", "--check"]),
        (["--context=x", "-n", "y", "explain", "node", "n"], ["explain", "node", "--context=x", "-n", "y", "n"]),
        (["--local", "doctor"], ["doctor", "--local"]),
        (["status", "--context", "x"], ["status", "--context", "x"]),
        (["--help"], ["--help"]),
        (["--context"], ["--context"]),
    ],
)
def test_options_of_the_connection_may_stand_before_the_command(typed: list[str], read: list[str]) -> None:
    assert with_options_behind(typed, parser()) == read


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        (["satus"], "there is no command 'satus': did you mean status?; `dovetail --help` lists them"),
        (["xyzzy"], "there is no command 'xyzzy'; `dovetail --help` lists them"),
        (["status", "--wach"], "unrecognized arguments: --wach: did you mean --watch?"),
    ],
)
def test_what_was_probably_meant_is_named(typed: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(typed)
    assert ended.value.code == 2 and says in capsys.readouterr().err
