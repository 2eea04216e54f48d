"""`dovetail log` and `dovetail savings`: their arguments."""

import argparse
from typing import TYPE_CHECKING, Final

from dovetail.cli.commands.asking import Question, asks
from dovetail.cli.remote.asking import add_place
from dovetail.cli.shown.formats import add_output

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

KINDS: Final = ("disruption", "launch", "termination")
_BY: Final = "what is added up: by pool, or by the namespaces whose pods were on the nodes; pool"
_POD: Final = "only what made a node for this pod: disruptions, and launches as far back as Temporal's retention"
_TIME: Final = "a time ago (12h, 30d) or a moment (2026-05-01T12:00:00Z)"


def add_record(commands: "Commands", shared: argparse.ArgumentParser, printed: argparse.ArgumentParser) -> None:
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
    asks(entries, Question(route="log"))

    saved = commands.add_parser("savings", parents=[shared, printed, period], help="what disruption has saved")
    saved.add_argument("--since", default="30d", metavar="TIME", help=f"{_TIME}; 30d")
    saved.add_argument("--by", choices=("pool", "namespace"), default="", help=_BY)
    add_output(saved, "markdown")
    asks(saved, Question(route="savings"))
