"""`-w`, `--every` and `--sort`: a watch outlives a worker's restart, and both commands read the same words."""

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from dovetail.answers.failures import CommandFailed
from dovetail.answers.shown.documents import Document
from dovetail.answers.status.columns import SORTS
from dovetail.answers.status.nodes_text import chosen
from dovetail.cli.commands import status
from dovetail.cli.main import INTERRUPTED, main, parser
from dovetail.ports.failures import Failure
from dovetail.settings.settings import read_settings
from tests.cli.fleet import Reply, Served, a_fleet, documents, serving_by
from tests.cli.test_status_text import a_status, some_nodes

DOWN: Reply = (503, "application/json", '{"message": "no endpoints available for service \\"dovetail\\""}')


class Stopped(Exception):
    """Instead of another pause."""


def _answers(*replies: Reply) -> Iterator[Reply]:
    yield from replies
    while True:
        yield DOWN


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long was waited; the third time a person interrupts."""
    found: list[float] = []

    def pause(seconds: float) -> None:
        found.append(seconds)
        if len(found) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr("time.sleep", pause)
    return found


def typed(served: Served, monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    for name, value in served.environment.items():
        monkeypatch.setenv(name, value)
    return main([*words, "--service", "dovetail/dovetail"])


@pytest.mark.parametrize("name", ["status", "nodes"])
def test_a_watch_outlives_a_look_that_fails_and_says_since_when_it_is_old(
    name: str,
    tmp_path: Path,
    pauses: list[float],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    fine: Reply = (200, "application/json", json.dumps(documents(3)[name]))
    replies = _answers(fine, DOWN, fine)
    with serving_by(tmp_path, lambda _: next(replies)) as served:
        code = typed(served, monkeypatch, name, "-w", "--every", "5")

    printed = capsys.readouterr()
    assert (code, pauses) == (INTERRUPTED, [5.0, 5.0, 5.0])
    assert printed.out.count("\x1b[H\x1b[2J") == 3, "what was seen last is shown again"
    said = printed.err.splitlines()
    assert len(said) == 1 and said[0].startswith("dovetail: no answer since 20") and "no worker runs" in said[0]


def test_a_watch_whose_first_look_fails_ends(
    tmp_path: Path, pauses: list[float], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving_by(tmp_path, lambda _: DOWN) as served:
        code = typed(served, monkeypatch, "status", "-w")

    assert (code, pauses) == (1, []) and "no worker runs" in capsys.readouterr().err


def test_a_worker_that_does_not_listen_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that starts or crashes is behind the Service too, and the API server takes any."""
    refused: Reply = (503, "text/plain", "error trying to reach service: dial tcp 10.0.0.7:8082: connection refused")
    fine: Reply = (200, "application/json", json.dumps(documents(3)["status"]))
    replies = iter([refused, refused, fine])
    with serving_by(tmp_path, lambda _: next(replies)) as served:
        assert typed(served, monkeypatch, "status", "-o", "name") == 0
    with serving_by(tmp_path, lambda _: refused) as served:
        assert typed(served, monkeypatch, "status") == 1

    assert "connection refused" in capsys.readouterr().err


def test_a_watch_from_here_outlives_a_look_that_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = parser().parse_args(["status", "--watch", "--every", "1", "-o", "name"])
    looks: list[Document | Failure] = [a_status(), Failure("Node/list", "the API server does not answer"), a_status()]

    async def ask(*_: object) -> SimpleNamespace:
        if not looks:
            raise Stopped
        found = looks.pop(0)
        if isinstance(found, Failure):
            raise found
        return SimpleNamespace(document=lambda: found)

    monkeypatch.setattr(status, "answered_here", ask)
    monkeypatch.setattr("time.sleep", lambda _: None)
    with pytest.raises(Stopped):
        status._here(given, read_settings({"CLUSTER_NAME": "demo"}))

    printed = capsys.readouterr()
    assert printed.out.count("default-a1") == 2 and "the API server does not answer" in printed.err


def test_names_of_nothing_are_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    quiet = json.dumps({**a_status(), "underWay": []})
    with serving_by(tmp_path, lambda _: (200, "application/json", quiet)) as served:
        code = typed(served, monkeypatch, "status", "-o", "name")

    assert (code, capsys.readouterr().out) == (0, "")


@pytest.mark.parametrize("name", ["status", "nodes", "top"])
@pytest.mark.parametrize("text", ["0", "0.2", "-1", "nan", "3601", "often"])
def test_the_time_between_two_looks_has_bounds(name: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([name, f"--every={text}"])

    assert ended.value.code == 2
    assert f"argument --every: {text} is no number of seconds from 1 to 3600" in capsys.readouterr().err


@pytest.mark.parametrize("sort", SORTS)
def test_nodes_knows_every_order_and_its_other_way_round(sort: str) -> None:
    def names(way: str) -> list[str]:
        return [node.name for node in chosen(a_fleet(20), "", "", f"{sort}{way}")[1].nodes]

    assert sorted(names("")) == sorted(names("=asc")) == sorted(names("=desc"))
    assert names("") in (names("=asc"), names("=desc")) and names("=asc") != names("=desc")


def test_an_order_that_is_none_is_named() -> None:
    with pytest.raises(CommandFailed, match="--sort colour: it is one of price, age"):
        chosen(some_nodes(), "", "", "colour")
