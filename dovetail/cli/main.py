"""`dovetail`: the command that operators type.

One sub-command per question. What a person can mend (no Temporal server, no cluster, no rights, a setting) is one clear
line and exit code 1. The process leaves with os._exit after a flush, because Python 3.11 now and then aborts at
interpreter exit with Temporal's SDK loaded.

What a command needs is imported when that command is run: --help and --version load no SDK, and a worker does not hold
the commands that explain.
"""

import argparse
import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

from dovetail.cli.explain.commands import add_commands
from dovetail.cli.output import CommandFailed, complain, say
from dovetail.worker.telemetry import product_version

if TYPE_CHECKING:
    from dovetail.worker.settings import Settings
    from dovetail.worker.wiring import World


def parser() -> argparse.ArgumentParser:
    """All sub-commands and their arguments."""
    top = argparse.ArgumentParser(prog="dovetail", description="Node lifecycle automation for Kubernetes.")
    top.add_argument("--version", action="version", version=product_version())
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--cluster", help="the cluster's name (CLUSTER_NAME)")
    shared.add_argument("--kubeconfig", type=Path, help="the cluster's kubeconfig (KUBECONFIG)")
    shared.add_argument("--world", type=Path, help="an embedded world's file (DOVETAIL_WORLD)")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    worker = commands.add_parser("worker", parents=[shared], help="serve the task queues until stopped")
    worker.add_argument("--roles", help="control, plan, or both (DOVETAIL_ROLES)")
    worker.set_defaults(act=_worker)

    shown = commands.add_parser("status", parents=[shared], help="nodes, claims and what is under way")
    shown.set_defaults(act=_status)

    stop = commands.add_parser("cancel", parents=[shared], help="call a disruption off before its delete")
    stop.add_argument("node", help="the Node or NodeClaim")
    stop.add_argument("--reason", required=True, help="why, for the record")
    stop.set_defaults(act=_cancel)

    for name, words in (("pause", "carry out no new plan"), ("resume", "plan again")):
        one = commands.add_parser(name, parents=[shared], help=words)
        one.set_defaults(act=_switch)
        if name == "resume":
            one.add_argument(
                "--pool", help="launch again for this NodePool, which was stopped (dovetail.sh/launches-stopped)"
            )

    add_commands(commands, shared)

    story = commands.add_parser("demo", help="play the story of a few nodes in an embedded world")
    story.add_argument("--folder", type=Path, default=Path(".dovetail/demo"), help="where its files are kept")
    story.set_defaults(act=_demo)
    return top


async def _worker(given: argparse.Namespace, settings: "Settings") -> None:
    from dovetail.worker.allocator import keep_little

    keep_little()  # before the SDKs are loaded
    from dovetail.worker.run import run_worker

    await run_worker(settings)


async def _with_world(settings: "Settings", act: "Callable[[World], Awaitable[None]]") -> None:
    from dovetail.worker.wiring import open_world

    world = await open_world(settings)
    try:
        await world.ready()
        await act(world)
    finally:
        await world.close()


async def _status(given: argparse.Namespace, settings: "Settings") -> None:
    from dovetail.cli.status import status
    from dovetail.worker.temporal import connect

    client = await connect()
    await _with_world(settings, lambda world: status(client, world, settings.cluster))


async def _cancel(given: argparse.Namespace, settings: "Settings") -> None:
    from dovetail.cli.cancel import cancel
    from dovetail.worker.temporal import connect

    client = await connect()
    await _with_world(settings, lambda world: cancel(client, world, given.node, given.reason))


async def _switch(given: argparse.Namespace, settings: "Settings") -> None:
    from dovetail.cli.resume_pool import resume_pool
    from dovetail.cli.switch import switch
    from dovetail.worker.settings import SettingsError
    from dovetail.worker.temporal import connect

    pool = getattr(given, "pool", None)
    if pool is not None:
        await _with_world(settings, lambda world: resume_pool(world, pool))
        return
    if not settings.cluster:
        raise SettingsError("CLUSTER_NAME: not set")
    await switch(await connect(), settings.cluster, given.command)


async def _demo(given: argparse.Namespace, settings: "Settings") -> None:
    from dovetail.cli.demo.command import demo

    await demo(given.folder)


def main(arguments: list[str]) -> int:
    """Run one command; its exit code."""
    given = parser().parse_args(arguments)
    return _carried_out(given)


def _carried_out(given: argparse.Namespace) -> int:
    from dovetail.ports.failures import Failure
    from dovetail.worker.settings import SettingsError, read_settings
    from dovetail.worker.temporal import TemporalUnusable

    try:
        settings = read_settings(
            cluster=getattr(given, "cluster", None),
            kubeconfig=getattr(given, "kubeconfig", None),
            world=getattr(given, "world", None),
            roles=getattr(given, "roles", None),
        )
        asyncio.run(given.act(given, settings))
    except (CommandFailed, Failure, SettingsError, TemporalUnusable) as error:
        complain(str(error))
        return 1
    except KeyboardInterrupt:
        say("interrupted")
        return 130
    return 0


def run() -> None:
    """The console script."""
    code = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    run()
