"""`dovetail log` and `dovetail savings`: their arguments."""

import argparse
import time
from typing import TYPE_CHECKING, Final

from dovetail.answers.failures import CommandFailed
from dovetail.cli.remote.asked_text import say_asked, shown_as_document
from dovetail.cli.remote.asking import add_place
from dovetail.cli.shown.formats import add_output

if TYPE_CHECKING:
    from dovetail.cli.remote.workers import Workers
    from dovetail.settings.settings import Settings

    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

KINDS: Final = ("disruption", "launch", "termination")
_POD: Final = "only what made a node for this pod: disruptions, and launches as far back as Temporal's retention"
_TIME: Final = "a time ago (12h, 30d) or a moment (2026-05-01T12:00:00Z)"


def add_record(commands: "Commands", shared: argparse.ArgumentParser, printed: argparse.ArgumentParser) -> None:
    """Register them."""
    period = argparse.ArgumentParser(add_help=False)
    period.add_argument("--until", default="", metavar="TIME", help="until then; else until now")
    add_place(period)

    entries = commands.add_parser("log", parents=[shared, printed, period], help="every disruption, launch and end")
    entries.add_argument("--since", default="24h", metavar="TIME", help=f"{_TIME}; 24h")
    entries.add_argument("--pool", default="", help="only of this NodePool")
    entries.add_argument("--reason", default="", help="only for this reason: Drifted, Empty, Underutilized, …")
    entries.add_argument("--pod", default="", metavar="NS/NAME", help=_POD)
    entries.add_argument(
        "--kind", action="append", choices=KINDS, default=[], help="only of this kind; may be repeated"
    )
    add_output(entries, "wide", "markdown")
    entries.set_defaults(act=_log, remote=_remote, path="log")

    saved = commands.add_parser("savings", parents=[shared, printed, period], help="what disruption has saved")
    saved.add_argument("--since", default="30d", metavar="TIME", help=f"{_TIME}; 30d")
    add_output(saved, "markdown")
    saved.set_defaults(act=_savings, remote=_remote, path="savings")


def _remote(given: argparse.Namespace, workers: "Workers") -> int:
    """Ask a worker, which reads the histories of some thousand workflows at most."""
    words = {key: getattr(given, key, "") for key in ("since", "until", "pool", "reason", "pod")}
    say_asked(given, workers, given.path, {**words, "kind": ",".join(getattr(given, "kind", ()))})
    return 0


async def _log(given: argparse.Namespace, settings: "Settings") -> None:
    from dovetail.answers.record.entries import period_of
    from dovetail.answers.record.log import Wanted, log, log_in
    from dovetail.answers.shown.documents import document
    from dovetail.answers.shown.screen import screen

    _named(settings)
    period = period_of(given.since, given.until, time.time())
    wanted = Wanted(period=period, pool=given.pool, reason=given.reason, pod=given.pod, kinds=tuple(given.kind))
    answer = await log(settings, wanted)
    found = document("Log", settings.cluster, answer)
    shown_as_document(given, found, lambda: log_in(answer, given.output, screen().width))


async def _savings(given: argparse.Namespace, settings: "Settings") -> None:
    from dovetail.answers.record.entries import period_of
    from dovetail.answers.record.savings import savings, savings_in
    from dovetail.answers.shown.documents import document
    from dovetail.answers.shown.screen import screen

    _named(settings)
    now = time.time()
    answer = await savings(settings, period_of(given.since, given.until, now), now)
    found = document("Savings", settings.cluster, answer)
    shown_as_document(given, found, lambda: savings_in(answer, given.output, screen().width))


def _named(settings: "Settings") -> None:
    if not settings.cluster:
        raise CommandFailed("CLUSTER_NAME: not set; it names the cluster in workflow ids")
