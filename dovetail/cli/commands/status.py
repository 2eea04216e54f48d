"""`dovetail status` and `dovetail nodes`: asked of a worker, or worked out here, and shown as the person wants it."""

import argparse
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from dovetail.answers.failures import CommandFailed
from dovetail.answers.status.orders import SORT_HELP
from dovetail.cli.remote.asking import add_place, where_of
from dovetail.cli.shown.formats import add_output, rendered
from dovetail.cli.shown.watching import Watch, add_every

if TYPE_CHECKING:
    from dovetail.answers.shown.documents import Document
    from dovetail.answers.shown.screen import Screen
    from dovetail.cli.remote.workers import Workers
    from dovetail.settings.settings import Settings

    Show = Callable[[Document, argparse.Namespace, Screen], tuple[str, int]]
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

NEEDS_PERSON = 4  # the exit code of --check where something needs a person


def add_status(commands: "Commands", shared: argparse.ArgumentParser) -> None:
    """Register both."""
    shown = commands.add_parser(
        "status", parents=[shared], help="what it costs, what moves, what needs a person, and how to stop it"
    )
    _shown(shown)
    shown.add_argument("--pool", default="", help="of this NodePool alone")
    shown.add_argument("--check", action="store_true", help=f"exit code {NEEDS_PERSON} where something needs a person")
    shown.set_defaults(act=_status, remote=_remote_status)

    rows = commands.add_parser("nodes", parents=[shared], help="every node: price, use, age, what becomes of it")
    _shown(rows)
    rows.add_argument("--pool", default="", help="of this NodePool alone")
    rows.add_argument(
        "-l", "--selector", default="", help="of labels and fields: KEY=VALUE, KEY!=VALUE, KEY~PART, KEY, !KEY"
    )
    rows.add_argument("--sort", default="price", help=SORT_HELP)
    rows.set_defaults(act=_nodes, remote=_remote_nodes)


def _shown(command: argparse.ArgumentParser) -> None:
    add_place(command)
    add_output(command, "wide", "name", "markdown")
    command.add_argument("-w", "--watch", action="store_true", help="again and again, until it is interrupted")
    add_every(command, "with --watch")


def _remote_status(given: argparse.Namespace, workers: "Workers") -> int:
    return _again(given, workers, "status", show_status)


def _remote_nodes(given: argparse.Namespace, workers: "Workers") -> int:
    return _again(given, workers, "nodes", show_nodes)


def _again(given: argparse.Namespace, workers: "Workers | None", path: str, show: "Show") -> int:
    """Once, or for as long as the person watches."""
    from dovetail.answers.shown.screen import screen
    from dovetail.cli.remote.workers import Workers

    watch = Watch(given)
    while True:
        on = screen()
        try:
            workers = workers or Workers(where_of(given))
            found = workers.document(path)
            _check_cluster(given, found)
            text, code = show(found, given, on)
        except CommandFailed as error:
            watch.keep(error, on)
            workers = None  # asked anew, with the kubeconfig of then: a token may have ended
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
    """The text and the exit code."""
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
    needed = given.check and answer.needs_person
    return rendered(found, given.output, others), NEEDS_PERSON if needed else 0


def show_nodes(found: "Document", given: argparse.Namespace, on: "Screen") -> tuple[str, int]:
    """The text; the exit code is 0."""
    from dovetail.answers.status.nodes_text import chosen, nodes_markdown, nodes_names, nodes_text

    found, answer = chosen(found, given.pool, given.selector, given.sort)
    others = {
        "text": lambda _: nodes_text(answer, on),
        "wide": lambda _: nodes_text(answer, on, wide=True),
        "name": lambda _: nodes_names(answer),
        "markdown": lambda _: nodes_markdown(answer),
    }
    return rendered(found, given.output, others), 0


async def _status(given: argparse.Namespace, settings: "Settings") -> int:
    from dovetail.answers.status.local import local_status

    return await _local(given, lambda: local_status(settings), show_status)


async def _nodes(given: argparse.Namespace, settings: "Settings") -> int:
    from dovetail.answers.status.local import local_nodes

    return await _local(given, lambda: local_nodes(settings), show_nodes)


async def _local(given: argparse.Namespace, ask: "Callable[[], Awaitable[Document]]", show: "Show") -> int:
    import asyncio

    from dovetail.answers.shown.screen import screen

    watch = Watch(given)
    while True:
        on = screen()
        try:
            text, code = show(await ask(), given, on)
        except _failures() as error:
            watch.keep(error, on)
        else:
            watch.show(text, on)
            if not given.watch:
                return code
        await asyncio.sleep(given.every)


def _failures() -> tuple[type[Exception], ...]:
    """What a look from here may end with, and the next one may not."""
    from temporalio.service import RPCError

    from dovetail.connection.configuration import TemporalUnusable
    from dovetail.ports.failures import Failure
    from dovetail.workflows.converter import UnreadablePayload

    return CommandFailed, Failure, RPCError, TemporalUnusable, UnreadablePayload
