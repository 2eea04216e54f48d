"""The formats of `-o`: each answer in every one that its command has, from a worker and from here."""

import argparse
import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from docs.tools.reference.commands import commands_page
from dovetail.answers.questions import record
from dovetail.answers.record.entries import Entries
from dovetail.cli import local
from dovetail.cli import main as main_module
from dovetail.cli.main import main, parser
from dovetail.cli.shown.formats import DOCUMENTS, TABLE, TEXT
from dovetail.connection import temporal as connecting
from tests.cli.captured import CLUSTER, ENTRIES, HELD, STORIES, Stage, _saying
from tests.cli.test_screens import stage  # noqa: F401  the cluster of the captures

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
SOURCES = Path(main_module.__file__).parent
DECISION = "2026-05-28T17-26-40.000Z_disruption"
ASKED = (
    ("status",),
    ("nodes",),
    ("explain", "node", HELD),
    ("explain", "node", HELD, "--at", "3h"),
    ("explain", "pod", "default/zonal"),
    ("plan",),
    ("plan", "-f", "change.yaml"),
    ("forecast",),
    ("log",),
    ("savings",),
    ("history", HELD),
    ("replay",),
    ("replay", DECISION),
    ("doctor",),
    ("version",),
)
FROM_HERE = (*(words for words in ASKED if words != ("doctor",)), ("doctor", "--local"))
OF_WORKERS = (*ASKED, ("shadow", "report"))


@pytest.fixture
def asked(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    """A worker answers."""
    monkeypatch.setenv("KUBECONFIG", str(stage.served.kubeconfig))


@pytest.fixture
def here(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    """The same is looked at from here; what Temporal would say is made up."""
    monkeypatch.setenv("DOVETAIL_WORLD", str(stage.world.file))
    monkeypatch.setenv("DOVETAIL_FLIGHTS", str(stage.folder / "flights"))
    monkeypatch.setenv("CLUSTER_NAME", CLUSTER)
    monkeypatch.setattr(record, "entries_of", _saying(Entries(entries=ENTRIES)))
    monkeypatch.setattr(record, "stories_or_kept", _saying(STORIES))
    link = SimpleNamespace(config=SimpleNamespace(target_host="temporal.prod.internal:7233"))
    monkeypatch.setattr(connecting, "connect", _saying(SimpleNamespace(service_client=link, namespace="dovetail")))
    monkeypatch.setattr(local, "link_words", lambda _: "TLS")
    monkeypatch.setattr(local, "state_from", _saying((None, "")))


def printed(capsys: pytest.CaptureFixture[str], *typed: str) -> str:
    capsys.readouterr()
    main(list(typed))
    return capsys.readouterr().out


def compared(capsys: pytest.CaptureFixture[str], typed: tuple[str, ...]) -> dict[str, Any]:
    """The document, after JSON and YAML have said the same, and both words for text, of which one is the default."""
    found: dict[str, Any] = json.loads(printed(capsys, *typed, "-o", "json"))
    assert found == yaml.load(printed(capsys, *typed, "-o", "yaml"), Loader=LOADER)
    assert printed(capsys, *typed, "-o", "table") == printed(capsys, *typed)
    return found


@pytest.mark.usefixtures("asked")
@pytest.mark.parametrize("typed", OF_WORKERS, ids=" ".join)
def test_every_answer_of_a_worker_has_every_format(typed: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert compared(capsys, typed)["apiVersion"] == "dovetail.sh/v1"


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("typed", FROM_HERE, ids=" ".join)
def test_every_answer_from_here_has_every_format(typed: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert compared(capsys, typed)["apiVersion"] == "dovetail.sh/v1"


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("form", ["text", "json", "markdown"])
@pytest.mark.parametrize("typed", [("log",), ("savings",), ("history", HELD), ("replay",), ("replay", DECISION)])
def test_a_worker_and_a_command_from_here_say_the_same(
    typed: tuple[str, ...],
    form: str,
    stage: Stage,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Of what does not depend on when and by whom the cluster was looked at."""
    monkeypatch.setenv("COLUMNS", "90")
    words = (*typed, "-o", form if typed[0] in ("log", "savings") or form != "markdown" else "yaml")
    from_here = printed(capsys, *words)
    for name in ("DOVETAIL_WORLD", "DOVETAIL_FLIGHTS", "CLUSTER_NAME"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("KUBECONFIG", str(stage.served.kubeconfig))
    of_worker = printed(capsys, *words)
    assert from_here == of_worker and len(from_here.splitlines()) > 1


@pytest.mark.usefixtures("asked")
def test_the_older_json_of_doctor_asks_whom_doctor_asks(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(printed(capsys, "doctor", "-o", "json"))
    older = json.loads(printed(capsys, "doctor", "--json"))
    assert older == {key: found[key] for key in ("cluster", "checks")}


def options(of: argparse.ArgumentParser, name: str = "") -> Iterator[tuple[str, argparse.Action]]:
    """-o of every command."""
    for action in of._actions:
        if isinstance(action, argparse._SubParsersAction):
            for called, command in action.choices.items():
                yield from options(command, f"{name} {called}".strip())
        elif "-o" in action.option_strings:
            yield name, action


def test_every_command_that_answers_has_the_same_words_for_its_formats() -> None:
    found = dict(options(parser()))
    assert set(found) == {" ".join(words) for words in (*map(_command, ASKED), ("shadow", "report"), ("fleet",))}
    for action in found.values():
        assert action.choices is not None and {TEXT, TABLE, *DOCUMENTS} <= set(action.choices)
        assert action.default == TEXT


def _command(words: tuple[str, ...]) -> tuple[str, ...]:
    return words[:2] if words[0] == "explain" else words[:1]


@pytest.mark.usefixtures("asked")
@pytest.mark.parametrize("typed", [("nodes", "-l", "pool=none"), ("status", "--pool", "batch")], ids=" ".join)
def test_no_name_at_all_is_not_even_an_empty_line(typed: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, *typed, "-o", "name") == ""


@pytest.mark.parametrize(
    ("typed", "usage"),
    [
        (("doctor", "-o", "nope"), "usage: dovetail doctor "),
        (("status", "--snapshot", "x"), "usage: dovetail status "),
        (("explain", "node", "n1", "--nope"), "usage: dovetail explain node "),
        (("--nope",), "usage: dovetail "),
    ],
)
def test_a_wrong_option_shows_the_usage_of_its_command(
    typed: tuple[str, ...], usage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(list(typed))
    assert capsys.readouterr().err.startswith(usage)


def test_a_plugin_is_called_as_it_was_typed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["status", "--help"], "kubectl dovetail")
    assert capsys.readouterr().out.startswith("usage: kubectl dovetail status ")


def test_what_is_left_out_of_a_text_is_said_to_be_in_the_format_that_has_it() -> None:
    texts = [file for file in SOURCES.rglob("*.py") if "--json has" in file.read_text()]
    assert texts == []


def test_the_page_of_commands_has_every_exit_code_of_the_guide() -> None:
    def codes(page: str) -> list[str]:
        return re.findall(r"^\| (\d+) \|", page, re.MULTILINE)

    guide = (SOURCES.parents[1] / "docs" / "guides" / "command-line.md").read_text()
    assert codes(commands_page()) == codes(guide) != []
