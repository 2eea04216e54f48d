"""`dovetail plan` and `dovetail forecast`: what would happen now, after a change, and in the days to come."""

import argparse
import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dovetail.answers.failures import CommandFailed
from dovetail.answers.wording import seconds_of
from dovetail.cli.output import LEFT_BEHIND, Ended, as_json, say
from dovetail.cli.remote.asked_text import fitted, say_asked, shown_as_document
from dovetail.cli.remote.asking import add_place
from dovetail.cli.shown.formats import DOCUMENTS, add_output, rendered

if TYPE_CHECKING:
    from dovetail.answers.change.answer import ChangeAnswer
    from dovetail.cli.remote.workers import Workers
    from dovetail.settings.settings import Settings

    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

_CHANGE: Final = "what provisioning and disruption would do now, or after a change"
_EXIT: Final = "Exit code with -f: 0 where everything that drifts is replaced, 4 where something would be left behind."


def add_plan(commands: "Commands", parents: list[argparse.ArgumentParser]) -> None:
    """Register them."""
    plan = commands.add_parser("plan", parents=parents, help=_CHANGE, epilog=_EXIT)
    plan.add_argument(
        "-f", "--file", type=Path, metavar="FILE", help="NodePools and NodeClasses as if they were applied; - for stdin"
    )
    plan.add_argument("--diff", action="store_true", help="with -f: every node that goes and that comes")
    add_output(plan, "markdown")
    plan.add_argument("--for", dest="ahead", default="30d", metavar="TIME", help="with -f: how far to look ahead (30d)")
    add_place(plan)
    plan.set_defaults(act=_plan, remote=_remote_plan)


def add_forecast(commands: "Commands", parents: list[argparse.ArgumentParser]) -> None:
    """Register it."""
    ahead = commands.add_parser("forecast", parents=parents, help="windows, expiries and waves of drift to come")
    ahead.add_argument("--for", dest="ahead", default="7d", metavar="TIME", help="how far to look ahead (7d)")
    ahead.add_argument("--pool", default="", help="only of this NodePool")
    add_output(ahead, "markdown")
    add_place(ahead)
    ahead.set_defaults(act=_forecast, remote=_remote_forecast)


def _remote_plan(given: argparse.Namespace, workers: "Workers") -> int:
    """What would happen now, or after the file."""
    if given.file is not None:
        return _remote_change(given, workers)
    _check_diff(given)
    from dovetail.answers.shown.screen import screen

    if given.output in DOCUMENTS:
        say(rendered(workers.document("plan"), given.output, {}))
    else:
        say(_fenced(workers.text("plan", screen().width), given.output))
    return 0


def _remote_change(given: argparse.Namespace, workers: "Workers") -> int:
    """The file goes along; the exit code is that of the answer."""
    from dovetail.answers.change.carried import packed
    from dovetail.answers.change.documents import called, text_of

    if str(given.file) == "-":
        workers.document("version")  # whether one answers: standard input can be read only once
    words = {"file": packed(text_of(given.file)), "called": called(given.file), "for": given.ahead}
    found = workers.document("plan", words)
    if given.output in DOCUMENTS:
        say(rendered(found, given.output, {}))
    else:
        say_asked(given, workers, "plan", {**words, "diff": "true" if given.diff else ""})
    return LEFT_BEHIND if found["leftBehind"] else 0


def _remote_forecast(given: argparse.Namespace, workers: "Workers") -> int:
    say_asked(given, workers, "forecast", {"for": given.ahead, "pool": given.pool})
    return 0


async def _forecast(given: argparse.Namespace, settings: "Settings") -> None:
    from dovetail.answers.change.forecast import forecast, forecast_in
    from dovetail.answers.shown.documents import document

    answer = await forecast(settings, given.snapshot, seconds_of(given.ahead), given.pool)
    found = document("Forecast", answer.cluster, answer)
    shown_as_document(given, found, lambda: fitted(lambda: forecast_in(answer, given.output)))


async def _plan(given: argparse.Namespace, settings: "Settings") -> None:
    if given.file is None:
        await _plan_now(given, settings)
        return
    from dovetail.answers.change.planned import planned_change

    if str(given.file) != "-" and not given.file.is_file():
        raise CommandFailed(f"{given.file}: there is no such file")
    answer = await planned_change(settings, given.file, given.snapshot, seconds_of(given.ahead))
    _show_change(answer, "json" if given.json else given.output, diff=given.diff)


async def _plan_now(given: argparse.Namespace, settings: "Settings") -> None:
    from dovetail.answers.look.sources import look
    from dovetail.answers.plan.plan import plan_now
    from dovetail.answers.plan.plan_text import plan_text
    from dovetail.answers.shown.documents import document

    _check_diff(given)
    found = await look(settings, given.snapshot)
    answer = await asyncio.to_thread(plan_now, found)
    if given.json:
        say(as_json(answer))
    elif given.output in DOCUMENTS:
        say(rendered(document("Plan", found.settings.cluster, answer), given.output, {}))
    else:
        say(_fenced(fitted(lambda: plan_text(answer)), given.output))


def _check_diff(given: argparse.Namespace) -> None:
    if given.diff:
        raise CommandFailed("--diff: there is nothing to compare without -f FILE")


def _fenced(text: str, form: str) -> str:
    return f"```text\n{text}\n```" if form == "markdown" else text


def _show_change(answer: "ChangeAnswer", form: str, *, diff: bool) -> None:
    """Print it; the exit code says whether something would be left behind."""
    from dovetail.answers.change.planned import change_in
    from dovetail.answers.shown.documents import document

    if form in DOCUMENTS:
        say(rendered(document("PlannedChange", answer.cluster, answer), form, {}))
    else:
        say(fitted(lambda: change_in(answer, form, diff=diff)))
    if answer.left_behind:
        raise Ended(LEFT_BEHIND)
