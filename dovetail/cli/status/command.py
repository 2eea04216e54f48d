"""`dovetail status` and `dovetail nodes`: asked of a worker, or worked out here, and shown as the person wants it."""

import argparse
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from dovetail.cli.output import CommandFailed, say
from dovetail.cli.remote.asking import add_place
from dovetail.cli.shown.formats import add_output, rendered

if TYPE_CHECKING:
    from dovetail.cli.remote.workers import Workers
    from dovetail.cli.shown.documents import Document
    from dovetail.cli.shown.screen import Screen
    from dovetail.worker.settings import Settings

    Show = Callable[[Document, argparse.Namespace, Screen], tuple[str, int]]
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

NEEDS_PERSON = 4  # the exit code of --check where something needs a person
CLEAR = "\x1b[H\x1b[2J\x1b[3J"


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
    rows.add_argument("--sort", choices=("price", "age", "cpu", "memory", "name"), default="price")
    rows.set_defaults(act=_nodes, remote=_remote_nodes)


def _shown(command: argparse.ArgumentParser) -> None:
    add_place(command)
    add_output(command, "wide", "name", "markdown")
    command.add_argument("-w", "--watch", action="store_true", help="again and again, until it is interrupted")
    command.add_argument("--every", type=float, default=2.0, metavar="SECONDS", help="with --watch (default: 2)")


def _remote_status(given: argparse.Namespace, workers: "Workers") -> int:
    return _again(given, lambda: workers.document("status"), show_status)


def _remote_nodes(given: argparse.Namespace, workers: "Workers") -> int:
    return _again(given, lambda: workers.document("nodes"), show_nodes)


def _again(given: argparse.Namespace, ask: "Callable[[], Document]", show: "Show") -> int:
    """Once, or for as long as the person watches."""
    from dovetail.cli.shown.screen import screen

    while True:
        found = ask()
        _check_cluster(given, found)
        on = screen()
        text, code = show(found, given, on)
        _say(f"{CLEAR if given.watch and on.width else ''}{text}")
        if not given.watch:
            return code
        time.sleep(max(0.2, given.every))


def _say(text: str) -> None:
    """Not even an empty line where there is nothing: `-o name` goes on to kubectl."""
    if text:
        say(text)


def _check_cluster(given: argparse.Namespace, found: "Document") -> None:
    named = getattr(given, "cluster", None)
    if named and found["cluster"] and named != found["cluster"]:
        raise CommandFailed(f"--cluster {named}: the workers of this context serve {found['cluster']}")


def show_status(found: "Document", given: argparse.Namespace, on: "Screen") -> tuple[str, int]:
    """The text and the exit code."""
    from dovetail.cli.status.text import status_markdown, status_names, status_text

    found = _of_pool(found, given.pool)
    others = {
        "text": lambda d: status_text(d, on),
        "wide": lambda d: status_text(d, on, wide=True),
        "name": status_names,
        "markdown": status_markdown,
    }
    needed = given.check and found["needsPerson"]
    return rendered(found, given.output, others), NEEDS_PERSON if needed else 0


def _of_pool(found: "Document", pool: str) -> "Document":
    if not pool:
        return found
    pools = [each for each in found["pools"] if each["name"] == pool]
    if not pools:
        known = ", ".join(each["name"] for each in found["pools"]) or "none"
        raise CommandFailed(f"--pool {pool}: there is no such NodePool of ours; there is {known}")
    return {**found, "pools": pools, "underWay": [move for move in found["underWay"] if move["pool"] == pool]}


def show_nodes(found: "Document", given: argparse.Namespace, on: "Screen") -> tuple[str, int]:
    """The text; the exit code is 0."""
    from dovetail.cli.status.nodes_text import chosen, nodes_markdown, nodes_names, nodes_text

    found = chosen(found, given.pool, given.selector, given.sort)
    others = {
        "text": lambda d: nodes_text(d, on),
        "wide": lambda d: nodes_text(d, on, wide=True),
        "name": nodes_names,
        "markdown": nodes_markdown,
    }
    return rendered(found, given.output, others), 0


async def _status(given: argparse.Namespace, settings: "Settings") -> int:
    from dovetail.cli.status.local import local_status

    return await _local(given, lambda: local_status(settings), show_status)


async def _nodes(given: argparse.Namespace, settings: "Settings") -> int:
    from dovetail.cli.status.local import local_nodes

    return await _local(given, lambda: local_nodes(settings), show_nodes)


async def _local(given: argparse.Namespace, ask: "Callable[[], Awaitable[Document]]", show: "Show") -> int:
    from dovetail.cli.shown.screen import screen

    while True:
        text, code = show(await ask(), given, screen())
        _say(text)
        if not given.watch:
            return code
        await _pause(given.every)


async def _pause(seconds: float) -> None:
    import asyncio

    await asyncio.sleep(max(0.2, seconds))
