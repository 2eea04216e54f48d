"""`dovetail top`: its arguments, and a single frame if there is no terminal."""

import argparse
from typing import TYPE_CHECKING

from dovetail.answers.failures import CommandFailed
from dovetail.answers.status.columns import GROUPS
from dovetail.answers.status.orders import SORT_HELP, checked_sort
from dovetail.cli.output import say
from dovetail.cli.remote.asking import add_place
from dovetail.cli.shown.watching import add_every

if TYPE_CHECKING:
    from dovetail.cli.remote.workers import Workers
    from dovetail.cli.top.view import View
    from dovetail.settings.settings import Settings

    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

LINES = 40  # of a frame without a terminal to say how many


def add_top(commands: "Commands", shared: argparse.ArgumentParser) -> None:
    top = commands.add_parser("top", parents=[shared], help="the cluster, live: nodes, what moves, keys to act")
    add_place(top)
    top.add_argument("--sort", default="price", help=SORT_HELP)
    top.add_argument("--group", choices=GROUPS, default="", help="with a sum for each")
    top.add_argument(
        "--filter", default="", help="words that a line has, or KEY=VALUE, KEY!=VALUE, KEY~PART, !KEY, as -l has them"
    )
    top.add_argument("--extra-labels", default="", metavar="LABEL,…", help="a column for each")
    add_every(top, "between two looks")
    top.add_argument("--once", action="store_true", help="print one screen and end")
    top.add_argument("--web", action="store_true", help="the same as a page for a browser of this machine")
    top.add_argument("--port", type=int, default=0, help="with --web: the port on 127.0.0.1 (default: a free one)")
    top.set_defaults(act=_here, remote=_remote)


def _remote(given: argparse.Namespace, workers: "Workers") -> int:
    from dovetail.answers.shown.screen import screen
    from dovetail.cli.top.view import View

    sort, turned = checked_sort(given.sort)
    extra = tuple(label.strip() for label in given.extra_labels.split(",") if label.strip())
    view = View(sort=sort, turned=turned, group=given.group, filter=given.filter, extra=extra)
    if given.once:
        return _once(workers, view)
    workers.document("version")  # so that an error is printed before the screen changes
    if given.web:
        from dovetail.cli.top.clusters import clusters_of_here
        from dovetail.cli.top.web import serve_page

        serve_page(workers, given.port, clusters_of_here())
        return 0
    from dovetail.cli.top.top import run_top

    return run_top(given, view, screen().colours)


def _once(workers: "Workers", view: "View") -> int:
    import os

    from dovetail.answers.shown.screen import screen
    from dovetail.cli.top.drawing import Shown, Size, frame
    from dovetail.cli.top.questions import look
    from dovetail.cli.top.view import items_of

    found = look(workers)
    assert found.status is not None and found.nodes is not None
    lines = os.environ.get("LINES", "")
    on = screen()
    size = Size(columns=on.width or 200, lines=int(lines) if lines.isdecimal() and int(lines) > 5 else LINES)
    shown = Shown(status=found.status, nodes=found.nodes, items=items_of(found.nodes, view))
    view.selected = 0
    say("\n".join(frame(shown, view, size, on)[:-1]).rstrip())
    return 0


async def _here(given: argparse.Namespace, settings: "Settings") -> None:
    raise CommandFailed("top: it asks workers alone; `dovetail status` and `dovetail nodes` look from here")
