"""`dovetail replay`: its arguments. A worker answers, or whoever can read where the decisions are kept."""

import argparse
from typing import TYPE_CHECKING, Final

from dovetail.answers.failures import CommandFailed
from dovetail.cli.output import say
from dovetail.cli.remote.asking import add_place
from dovetail.cli.shown.formats import add_output

if TYPE_CHECKING:
    from dovetail.cli.remote.workers import Workers
    from dovetail.settings.settings import Settings

    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

DIFFERS: Final = 4  # the exit code where something else comes out


def add_replay(commands: "Commands", shared: argparse.ArgumentParser) -> None:
    """Register it."""
    again = commands.add_parser(
        "replay",
        parents=[shared],
        help="decide again on what a decision was made from",
        epilog="Exit code: 0 where the same comes out, 4 where something else does.",
    )
    again.add_argument("decision", nargs="?", default="", metavar="DECISION", help="its id; without one, list them")
    add_place(again)
    add_output(again)
    again.set_defaults(act=_here, remote=_remote)


def _remote(given: argparse.Namespace, workers: "Workers") -> int:
    from urllib.parse import quote

    from dovetail.answers.shown.screen import screen
    from dovetail.cli.shown.formats import rendered

    path = f"replay/{quote(given.decision, safe='')}" if given.decision else "replay"
    found = workers.document(path)
    text = given.output == "text"
    say(workers.text(path, screen().width) if text else rendered(found, given.output, {}))
    return 0 if found.get("same", True) else DIFFERS


async def _here(given: argparse.Namespace, settings: "Settings") -> int:
    from dovetail.answers.replay.replaying import flights_text, list_flights, replay, replay_text
    from dovetail.cli.remote.asked_text import shown_locally

    if not settings.cluster:
        raise CommandFailed("CLUSTER_NAME: not set; it names the cluster whose decisions are kept")
    given.json = False
    if not given.decision:
        shown_locally(given, ("FlightList", settings.cluster, await list_flights(settings)), flights_text)
        return 0
    answer = await replay(settings, given.decision)
    shown_locally(given, ("Replay", settings.cluster, answer), replay_text)
    return 0 if answer.same else DIFFERS
