"""The arguments of `dovetail pause` and `dovetail resume`."""

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dovetail.settings.settings import Settings

    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

WORDS = ("disruption", "expiry", "launches", "all")


def add_pauses(commands: "Commands", shared: argparse.ArgumentParser) -> None:
    stop = commands.add_parser(
        "pause",
        parents=[shared],
        help="begin no disruption and let nothing expire; nodes are still launched for pending pods",
    )
    _named(stop, "what is paused (default: disruption and expiry)", *WORDS)
    stop.add_argument("--for", dest="lasts", default="", metavar="DURATION", help="end by itself after this: 30m, 2h")
    stop.add_argument("--reason", required=True, help="why, for everybody who looks")
    stop.add_argument("--drains", action="store_true", help="also pause the drains of disruptions that run")
    stop.set_defaults(act=_pause, order=True)

    go = commands.add_parser("resume", parents=[shared], help="end a pause, and the stop of a NodePool's launches")
    _named(go, "what goes on (default: everything)", *WORDS, "drains")
    go.set_defaults(act=_resume, order=True)


def _named(command: argparse.ArgumentParser, words: str, *known: str) -> None:
    command.add_argument("what", nargs="?", choices=known, metavar="|".join(known), help=words)
    command.add_argument("--pool", default="", help="for this NodePool alone")
    command.set_defaults(service="", local=False, url="")
    command.add_argument("--context", default="", help="the context of the kubeconfig (DOVETAIL_CONTEXT)")


async def _pause(given: argparse.Namespace, settings: "Settings | None") -> None:
    from dovetail.cli.orders.pause import pause

    await pause(given, settings)


async def _resume(given: argparse.Namespace, settings: "Settings | None") -> None:
    from dovetail.cli.orders.pause import resume

    await resume(given, settings)
