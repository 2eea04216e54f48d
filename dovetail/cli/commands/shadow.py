"""`dovetail shadow report`: asked of the worker beside Karpenter, which has watched."""

import argparse
from typing import TYPE_CHECKING

from dovetail.answers.failures import CommandFailed
from dovetail.cli.remote.asked_text import say_asked
from dovetail.cli.remote.asking import add_place
from dovetail.cli.shown.formats import add_output

if TYPE_CHECKING:
    from dovetail.cli.remote.workers import Workers
    from dovetail.settings.settings import Settings

    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

PATH = "shadow"


def add_shadow(commands: "Commands", shared: argparse.ArgumentParser) -> None:
    """Register it."""
    shadow = commands.add_parser("shadow", help="what a worker beside Karpenter would have done")
    questions = shadow.add_subparsers(dest="question", required=True, metavar="QUESTION")
    report = questions.add_parser(
        "report", parents=[shared], help="where Dovetail and Karpenter agree, what differs, what it would have saved"
    )
    add_place(report)
    add_output(report)
    report.set_defaults(act=_here, remote=_remote)


def _remote(given: argparse.Namespace, workers: "Workers") -> int:
    say_asked(given, workers, PATH, {})
    return 0


async def _here(given: argparse.Namespace, settings: "Settings") -> None:
    raise CommandFailed("shadow report: only a worker with --beside-karpenter has watched; it cannot be made from here")
