"""`dovetail fleet`: all clusters of a Temporal namespace, from Temporal alone.

No worker answers it: access to one cluster's workers need not mean access to all others.
"""

import argparse
import time
from typing import TYPE_CHECKING

from dovetail.cli.output import NEEDS_PERSON, say
from dovetail.cli.shown.formats import add_output, rendered

if TYPE_CHECKING:
    from dovetail.answers.fleet.answer import FleetAnswer
    from dovetail.answers.shown.documents import Document
    from dovetail.settings.settings import Settings

    Commands = argparse._SubParsersAction[argparse.ArgumentParser]


def add_fleet(commands: "Commands") -> None:
    fleet = commands.add_parser("fleet", help="all clusters of the Temporal namespace, those in trouble first")
    fleet.add_argument(
        "--check",
        action="store_true",
        help=f"exit code {NEEDS_PERSON} where a cluster is silent or something needs a person",
    )
    add_output(fleet, "wide")
    fleet.set_defaults(act=_fleet, without_cloud=True)


async def _fleet(given: argparse.Namespace, settings: "Settings") -> int:
    from dovetail.answers.fleet.looking import fleet_of
    from dovetail.connection.temporal import connect

    found = await fleet_of(await connect(settings), time.time())
    say(shown(found, given.output))
    return NEEDS_PERSON if given.check and needs_person(found) else 0


def needs_person(found: "FleetAnswer") -> bool:
    return any(row.state in ("silent", "needs a person") for row in found.clusters)


def shown(found: "FleetAnswer", form: str) -> str:
    """The text in the requested format."""
    from dovetail.answers.fleet.text import fleet_text
    from dovetail.answers.shown.screen import screen

    others = {
        "text": lambda _: fleet_text(found, screen()),
        "wide": lambda _: fleet_text(found, screen(), wide=True),
    }
    return rendered(fleet_document(found), form, others)


def fleet_document(found: "FleetAnswer") -> "Document":
    """The document, which belongs to no single cluster."""
    from dovetail.answers.shown.documents import document

    return document("Fleet", "", found)
