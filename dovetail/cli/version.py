"""`dovetail --version`, and `dovetail version`: this program, the workers, Kubernetes and Temporal.

The number is kept here and compared with the package's by a test, because looking the package up takes longer than all
the rest of --version.
"""

import argparse
from typing import TYPE_CHECKING, Any, Final

from dovetail.cli.output import say
from dovetail.cli.remote.asking import add_place
from dovetail.cli.shown.formats import add_output

if TYPE_CHECKING:
    from dovetail.answers.shown.documents import Document
    from dovetail.cli.remote.workers import Workers
    from dovetail.settings.settings import Settings

    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

VERSION: Final = "0.1.0"


class PrintedVersion(argparse.Action):
    """--version."""

    def __init__(self, **named: Any) -> None:
        super().__init__(**{**named, "nargs": 0})

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Print it and end."""
        print(VERSION)
        parser.exit()


def add_version(commands: "Commands", shared: argparse.ArgumentParser) -> None:
    """Register `dovetail version`."""
    shown = commands.add_parser("version", parents=[shared], help="this program, the workers, Kubernetes, Temporal")
    add_place(shown)
    add_output(shown)
    shown.add_argument("--client", action="store_true", help="this program's alone; nobody is asked")
    shown.set_defaults(print=_alone, act=_here, remote=_everywhere, unasked=_unasked)


def _alone(given: argparse.Namespace) -> int | None:
    """Before anybody is asked, and before it is known whether anybody could be."""
    return _print(given, {}) if given.client else None


def _everywhere(given: argparse.Namespace, workers: "Workers") -> int:
    return _print(given, workers.document("version"))


def _unasked(given: argparse.Namespace, why: str) -> int:
    return _print(given, {"trouble": why})


async def _here(given: argparse.Namespace, settings: "Settings") -> int:
    """What can be seen from here: who polls, and the servers' own."""
    from dataclasses import asdict

    from dovetail.answers.look.sources import opened
    from dovetail.answers.serving.versions import versions_of
    from dovetail.connection.configuration import TemporalUnusable
    from dovetail.connection.temporal import connect
    from dovetail.ports.failures import Failure
    from dovetail.settings.settings import SettingsError

    try:
        client = await connect(settings)
        async with opened(settings) as world:
            facts = await world.inspection.facts()
    except (Failure, SettingsError, TemporalUnusable) as error:
        return _print(given, {"trouble": str(error)})
    found = asdict(await versions_of(client, settings.cluster, facts.version))
    return _print(given, {**found, "worker": None})  # each worker says its own, and none was asked


def _print(given: argparse.Namespace, found: "Document") -> int:
    from dovetail.answers.shown.documents import API_VERSION
    from dovetail.cli.shown.formats import rendered

    told = {"apiVersion": API_VERSION, "kind": "Versions", **found, "client": VERSION}
    say(_text(told) if given.output == "text" else rendered(told, given.output, {}))
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
