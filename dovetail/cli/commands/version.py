"""`dovetail --version`, and `dovetail version`: this program, the workers, Kubernetes and Temporal.

The number is kept here, and a test compares it with the package's, because looking up the package takes longer than the
rest of --version.
"""

import argparse
from typing import TYPE_CHECKING, Any, Final

from dovetail.cli.commands.asking import Question, answered_here, asks
from dovetail.cli.output import say
from dovetail.cli.remote.asking import add_place
from dovetail.cli.shown.formats import add_output

if TYPE_CHECKING:
    from dovetail.answers.shown.documents import Document
    from dovetail.settings.settings import Settings

    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

VERSION: Final = "0.1.0"


class PrintedVersion(argparse.Action):
    def __init__(self, **named: Any) -> None:
        super().__init__(**{**named, "nargs": 0})

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        print(VERSION)
        parser.exit()


def add_version(commands: "Commands", shared: argparse.ArgumentParser) -> None:
    shown = commands.add_parser("version", parents=[shared], help="this program, the workers, Kubernetes, Temporal")
    add_place(shown)
    add_output(shown)
    shown.add_argument("--client", action="store_true", help="this program's alone; nobody is asked")
    asks(shown, Question(route="version", show=lambda given, answer: _print(given, answer.document())))
    shown.set_defaults(print=_alone, act=_here, unasked=_unasked)


def _alone(given: argparse.Namespace) -> int | None:
    """With --client only this program's version, before anybody is asked or known to be reachable."""
    return _print(given, {}) if given.client else None


def _unasked(given: argparse.Namespace, why: str) -> int:
    return _print(given, {"trouble": why})


async def _here(given: argparse.Namespace, settings: "Settings") -> int:
    """What can be seen from here: who polls, and the servers' versions."""
    from dataclasses import asdict

    from dovetail.answers.questions.versions import VersionsAnswer
    from dovetail.connection.configuration import TemporalUnusable
    from dovetail.ports.failures import Failure
    from dovetail.settings.settings import SettingsError

    try:
        answered = await answered_here(given, settings)
    except (Failure, SettingsError, TemporalUnusable) as error:
        return _print(given, {"trouble": str(error)})
    assert isinstance(answered.answer, VersionsAnswer)
    return _print(given, {**asdict(answered.answer), "worker": None})  # each worker reports its own, and none was asked


def _print(given: argparse.Namespace, found: "Document") -> int:
    from dovetail.answers.shown.documents import API_VERSION
    from dovetail.cli.shown.formats import rendered

    versions = {"apiVersion": API_VERSION, "kind": "Versions", **found, "client": VERSION}
    say(_text(versions) if given.output == "text" else rendered(versions, given.output, {}))
    return 0


def _text(found: "Document") -> str:
    workers = found.get("workers") or ()
    lines = [f"client      {found['client']}"]
    if "trouble" in found:
        return "\n".join([*lines, f"workers     could not be asked: {found['trouble']}"])
    if "worker" in found:
        count = f"{len(workers)} polling"
        own = f"worker      {found['worker']}{f' ({count})' if workers else ''}"
        lines += [own if found["worker"] else f"workers     {count}"]
        lines += [f"kubernetes  {found['kubernetes']}", f"temporal    {found['temporal'] or 'does not answer'}"]
    return "\n".join(lines)
