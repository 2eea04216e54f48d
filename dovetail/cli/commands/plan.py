"""`dovetail plan` and `dovetail forecast`: what would happen now, after a change, and in the days to come."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dovetail.answers.failures import CommandFailed
from dovetail.answers.questions.table import CARRIED
from dovetail.cli.commands.asking import Answer, Question, ask_here, ask_workers, asks, shown
from dovetail.cli.output import LEFT_BEHIND, say
from dovetail.cli.remote.asking import add_place
from dovetail.cli.shown.formats import add_output

if TYPE_CHECKING:
    from dovetail.cli.remote.workers import Workers
    from dovetail.settings.settings import Settings

    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

_CHANGE: Final = "what provisioning and disruption would do now, or after a change"
_EXIT: Final = "Exit code with -f: 0 where everything that drifts is replaced, 4 where something would be left behind."


def add_plan(commands: "Commands", parents: list[argparse.ArgumentParser]) -> None:
    plan = commands.add_parser("plan", parents=parents, help=_CHANGE, epilog=_EXIT)
    plan.add_argument(
        "-f", "--file", type=Path, metavar="FILE", help="NodePools and NodeClasses as if they were applied; - for stdin"
    )
    plan.add_argument("--diff", action="store_true", help="with -f: every node that goes and that comes")
    add_output(plan, "markdown")
    plan.add_argument("--for", dest="ahead", default="30d", metavar="TIME", help="with -f: how far to look ahead (30d)")
    add_place(plan)
    asks(plan, Question(route="plan", words=_words, show=_shown))
    plan.set_defaults(remote=_of_workers, act=_here)


def add_forecast(commands: "Commands", parents: list[argparse.ArgumentParser]) -> None:
    ahead = commands.add_parser("forecast", parents=parents, help="windows, expiries and waves of drift to come")
    ahead.add_argument("--for", dest="for", default="7d", metavar="TIME", help="how far to look ahead (7d)")
    ahead.add_argument("--pool", default="", help="only of this NodePool")
    add_output(ahead, "markdown")
    add_place(ahead)
    asks(ahead, Question(route="forecast"))


def _words(given: argparse.Namespace) -> dict[str, str]:
    """The parameters; the file is sent as a whole."""
    if given.file is None:
        if given.diff:
            raise CommandFailed("--diff: there is nothing to compare without -f FILE")
        return {}
    from dovetail.answers.change.documents import called, text_of

    words = {CARRIED: text_of(given.file), "called": called(given.file), "for": given.ahead}
    return {**words, "diff": "true" if given.diff else ""}


def _of_workers(given: argparse.Namespace, workers: "Workers") -> int:
    if str(given.file) == "-":
        workers.document("version")  # to see whether one answers: standard input can be read only once
    return ask_workers(given, workers)


async def _here(given: argparse.Namespace, settings: "Settings") -> int:
    if given.file is not None and str(given.file) != "-" and not given.file.is_file():
        raise CommandFailed(f"{given.file}: there is no such file")
    return await ask_here(given, settings)


def _shown(given: argparse.Namespace, answer: Answer) -> int:
    """Print it; with a file the exit code says whether something would be left behind."""
    if given.file is None and given.output == "markdown":
        say(f"```text\n{answer.text('text')}\n```")
        return 0
    left_behind = given.file is not None and answer.document()["leftBehind"]
    shown(given, answer)
    return LEFT_BEHIND if left_behind else 0
