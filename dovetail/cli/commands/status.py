"""`dovetail status` and `dovetail nodes`: asked of a worker, or worked out here, and shown as requested."""

import argparse
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from dovetail.answers.failures import CommandFailed
from dovetail.answers.status.orders import SORT_HELP
from dovetail.cli.commands.asking import Question, answered_here, asks, of_workers
from dovetail.cli.output import NEEDS_PERSON
from dovetail.cli.remote.asking import add_place, where_of
from dovetail.cli.shown.formats import add_output, rendered
from dovetail.cli.shown.watching import ScreenWatch, add_every

if TYPE_CHECKING:
    from dovetail.answers.shown.documents import Document
    from dovetail.answers.shown.screen import Screen
    from dovetail.cli.remote.workers import Workers
    from dovetail.settings.settings import Settings

    Commands = argparse._SubParsersAction[argparse.ArgumentParser]


def add_status(commands: "Commands", shared: argparse.ArgumentParser) -> None:
    shown = commands.add_parser(
        "status", parents=[shared], help="what it costs, what moves, what needs a person, and how to stop it"
    )
    _add_shown(shown)
    shown.add_argument("--pool", default="", help="of this NodePool alone")
    shown.add_argument("--check", action="store_true", help=f"exit code {NEEDS_PERSON} where something needs a person")
    _asks(shown, "status")

    rows = commands.add_parser("nodes", parents=[shared], help="every node: price, use, age, what becomes of it")
    _add_shown(rows)
    rows.add_argument("--pool", default="", help="of this NodePool alone")
    rows.add_argument(
        "-l", "--selector", default="", help="of labels and fields: KEY=VALUE, KEY!=VALUE, KEY~PART, KEY, !KEY"
    )
    rows.add_argument("--sort", default="price", help=SORT_HELP)
    _asks(rows, "nodes")


def _add_shown(command: argparse.ArgumentParser) -> None:
    add_place(command)
    add_output(command, "wide", "name", "markdown")
    command.add_argument("-w", "--watch", action="store_true", help="again and again, until it is interrupted")
    add_every(command, "with --watch")


def _asks(command: argparse.ArgumentParser, route: str) -> None:
    asks(command, Question(route=route))
    command.set_defaults(remote=_of_workers, act=_here)


def _of_workers(given: argparse.Namespace, asked: "Workers") -> int:
    from dovetail.cli.remote.workers import Workers

    kept: list[Workers] = [asked]

    def look() -> "Document":
        workers = kept.pop() if kept else Workers(where_of(given))
        found = of_workers(given, workers).document()
        _check_cluster(given, found)
        kept.append(workers)  # found again after a failure, with the current kubeconfig: a token may expire
        return found

    return _again(given, look, (CommandFailed,))


def _here(given: argparse.Namespace, settings: "Settings") -> int:
    import asyncio

    return _again(given, lambda: asyncio.run(answered_here(given, settings)).document(), _failures())


def _again(given: argparse.Namespace, look: "Callable[[], Document]", lost: tuple[type[Exception], ...]) -> int:
    """Look once, or for as long as the person watches. `lost`: errors after which the next look may succeed."""
    from dovetail.answers.shown.screen import screen

    watch, show = ScreenWatch(given), SHOWS[given.asks.route]
    while True:
        on = screen()
        try:
            text, code = show(look(), given, on)
        except lost as error:
            watch.keep(error, on)
        else:
            watch.show(text, on)
            if not given.watch:
                return code
        time.sleep(given.every)


def _check_cluster(given: argparse.Namespace, found: "Document") -> None:
    named = getattr(given, "cluster", None)
    if named and found["cluster"] and named != found["cluster"]:
        raise CommandFailed(f"--cluster {named}: the workers of this context serve {found['cluster']}")


def show_status(found: "Document", given: argparse.Namespace, on: "Screen") -> tuple[str, int]:
    """The status as text, and the exit code."""
    from dovetail.answers.shown.documents import read_document
    from dovetail.answers.status.answer import ClusterStatus
    from dovetail.answers.status.asked_pool import status_of_pool
    from dovetail.answers.status.text import status_markdown, status_names, status_text

    if given.pool:
        found = status_of_pool(found, given.pool)
    answer = read_document(ClusterStatus, found)
    others = {
        "text": lambda _: status_text(answer, on),
        "wide": lambda _: status_text(answer, on, wide=True),
        "name": lambda _: status_names(answer),
        "markdown": lambda _: status_markdown(answer),
    }
    needed = given.check and (answer.needs_person or answer.troubles)
    return rendered(found, given.output, others), NEEDS_PERSON if needed else 0


def show_nodes(found: "Document", given: argparse.Namespace, on: "Screen") -> tuple[str, int]:
    """The nodes as text; the exit code is 0."""
    from dovetail.answers.status.nodes_text import chosen, nodes_markdown, nodes_names, nodes_text

    found, answer = chosen(found, given.pool, given.selector, given.sort)
    others = {
        "text": lambda _: nodes_text(answer, on),
        "wide": lambda _: nodes_text(answer, on, wide=True),
        "name": lambda _: nodes_names(answer),
        "markdown": lambda _: nodes_markdown(answer),
    }
    return rendered(found, given.output, others), 0


def _failures() -> tuple[type[Exception], ...]:
    from temporalio.service import RPCError

    from dovetail.connection.configuration import TemporalUnusable
    from dovetail.ports.failures import Failure
    from dovetail.workflows.converter import UnreadablePayload

    return CommandFailed, Failure, RPCError, TemporalUnusable, UnreadablePayload


SHOWS: Final = {"status": show_status, "nodes": show_nodes}
