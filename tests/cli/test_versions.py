"""`dovetail version` where no worker is asked: what can be seen from here, or what kept it from being seen."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dovetail.answers.questions import checks
from dovetail.answers.questions.versions import VersionsAnswer
from dovetail.cli.commands import version
from dovetail.cli.main import main, parser
from dovetail.connection import temporal as connecting
from dovetail.connection.configuration import TemporalUnusable
from tests.cli.worlds import a_world, settings_of

GIVEN = parser().parse_args(["version"])
SEEN = VersionsAnswer(worker="0.1.0", workers=("one", "two"), kubernetes="", temporal="1.29.1")


async def test_from_here_it_says_who_polls_and_what_the_servers_are(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def connected(_: object) -> None:
        return None

    async def asked(_: object, __: str, kubernetes: str) -> VersionsAnswer:
        return replace(SEEN, kubernetes=kubernetes)

    monkeypatch.setattr(connecting, "connect", connected)
    monkeypatch.setattr(checks, "versions_of", asked)

    assert await version._here(GIVEN, settings_of(a_world(tmp_path))) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [f"client      {version.VERSION}", "workers     2 polling"]
    assert lines[2].startswith("kubernetes  ") and lines[3] == "temporal    1.29.1"


async def test_a_temporal_that_does_not_answer_is_named(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def refused(_: object) -> None:
        raise TemporalUnusable("nobody listens at 127.0.0.1:1")

    monkeypatch.setattr(connecting, "connect", refused)

    assert await version._here(GIVEN, settings_of(a_world(tmp_path))) == 0
    assert "could not be asked: nobody listens at 127.0.0.1:1" in capsys.readouterr().out


def typed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], kubeconfig: str, *words: str
) -> tuple[int, str, str]:
    for name in ("CLUSTER_NAME", "DOVETAIL_WORLD", "DOVETAIL_CONTEXT", "DOVETAIL_SERVICE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("KUBECONFIG", kubeconfig)
    code = main(["version", *words])
    told = capsys.readouterr()
    return code, told.out, told.err


@pytest.mark.parametrize("cluster", [(), ("--cluster", "shop")])
def test_the_clients_own_version_needs_no_kubeconfig(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], cluster: tuple[str, ...]
) -> None:
    asked = typed(monkeypatch, capsys, "/nowhere/config", "--client", *cluster)
    assert asked == (0, f"client      {version.VERSION}\n", "")


def test_without_a_kubeconfig_the_clients_version_is_printed_with_what_could_not_be_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = typed(monkeypatch, capsys, "/nowhere/config")
    client, workers = out.splitlines()
    assert (code, err, client) == (0, "", f"client      {version.VERSION}")
    assert workers == "workers     could not be asked: kubeconfig /nowhere/config: there is no such file"


def test_a_server_that_is_not_there_leaves_the_clients_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config").write_text(
        "contexts: [{name: a, context: {cluster: a}}]\n"
        "clusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}]\n"
        "current-context: a\n"
    )
    code, out, _ = typed(monkeypatch, capsys, str(tmp_path / "config"))
    assert code == 0 and out.startswith(f"client      {version.VERSION}\nworkers     could not be asked: ")
