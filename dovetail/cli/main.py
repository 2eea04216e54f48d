"""`dovetail`: the command that operators type.

One sub-command per question. What a person can fix (no Temporal server, no cluster, no rights, a setting) is one clear
line and exit code 1. The process exits with os._exit after a flush, because Python 3.11 sometimes aborts at interpreter
exit with Temporal's SDK loaded.

A command's imports happen when it runs: --help and --version load no SDK, and a worker does not load the explaining
commands.
"""

import argparse
import os
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dovetail.answers.failures import CommandFailed
from dovetail.cli.commands.decisions import add_replay, add_shadow
from dovetail.cli.commands.explain import add_commands
from dovetail.cli.commands.fleet import add_fleet
from dovetail.cli.commands.status import add_status
from dovetail.cli.commands.version import PrintedVersion, add_version
from dovetail.cli.completion.commands import ASKED, add_completion
from dovetail.cli.helping import check_command, dress, meant, with_options_behind
from dovetail.cli.orders.decide import add_decide
from dovetail.cli.orders.pause_commands import add_pauses
from dovetail.cli.orders.replace import add_replace
from dovetail.cli.output import ReaderGone, complain, say
from dovetail.cli.remote.asking import add_place, asked
from dovetail.cli.rollout.command import add_rollout
from dovetail.cli.top.command import add_top

if TYPE_CHECKING:
    from dovetail.settings.settings import Settings

    Commands = argparse._SubParsersAction[argparse.ArgumentParser]


NAME: Final = "dovetail"

# Exit codes (docs/guides/command-line.md). 2 is argparse's, for unreadable arguments; 4 depends on the answer.
FAILED: Final = 1
OTHER_CLUSTER: Final = 3  # the name belongs to another cluster
INTERRUPTED: Final = 130
READER_GONE: Final = 141  # like a program ended by SIGPIPE

_SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")


def parser(called: str = NAME) -> argparse.ArgumentParser:
    """All commands, in the order of the help. `called`: the name under which the program was called."""
    top = argparse.ArgumentParser(
        prog=called,
        description="Node lifecycle automation for Kubernetes.",
        epilog=f"{called} COMMAND --help has the options of a command.",
    )
    top.add_argument("--version", action=PrintedVersion, help="this program's version; `dovetail version` has all")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND", title="commands")
    shared = _connection()
    _add_worker(commands, shared)
    add_status(commands, shared)
    add_fleet(commands)
    add_top(commands, shared)
    _add_cancel(commands, shared)
    add_replace(commands, shared)
    add_decide(commands, shared)
    add_rollout(commands, shared)
    _add_set_up(commands, shared)
    add_pauses(commands, shared)
    add_commands(commands, shared)
    add_shadow(commands, shared)
    add_replay(commands, shared)
    add_version(commands, shared)
    add_completion(commands, shared)
    _add_demo(commands)
    dress(top)
    return top


def _connection() -> argparse.ArgumentParser:
    """The options with which a command finds its cluster."""
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--cluster", help="the cluster's name (CLUSTER_NAME)")
    shared.add_argument("--kubeconfig", type=Path, help="the cluster's kubeconfig (KUBECONFIG)")
    shared.add_argument("--world", type=Path, help="an embedded world's file (DOVETAIL_WORLD)")
    return shared


def _add_worker(commands: "Commands", shared: argparse.ArgumentParser) -> None:
    worker = commands.add_parser(
        "worker",
        parents=[shared],
        help="serve the task queues until stopped",
        epilog="Every setting is a flag too, by Karpenter's names: --batch-idle-duration 2s for BATCH_IDLE_DURATION.",
    )
    worker.add_argument("--list-settings", action=_ListSettings, help="print every setting and its flag, and end")
    worker.add_argument("--roles", help="control, plan, or both (DOVETAIL_ROLES)")
    worker.set_defaults(act=_worker)


def _add_cancel(commands: "Commands", shared: argparse.ArgumentParser) -> None:
    stop = commands.add_parser("cancel", parents=[shared], help="call a disruption off before its delete")
    stop.add_argument("node", help="the Node or NodeClaim")
    stop.add_argument("--reason", required=True, help="why, for the record")
    stop.add_argument("--wait", action="store_true", help="until everything is taken back")
    add_place(stop)
    stop.set_defaults(act=_cancel, order=True)


def _add_set_up(commands: "Commands", shared: argparse.ArgumentParser) -> None:
    """Commands run once for a cluster or for Temporal."""
    over = commands.add_parser("take-over", parents=[shared], help="take the place of another cluster of this name")
    over.add_argument("--from", dest="theirs", required=True, metavar="UID", help="the cluster that is gone")
    over.set_defaults(act=_take_over)

    temporal = commands.add_parser("set-up-temporal", help="create Temporal's namespace and search attributes")
    temporal.add_argument("--retention", default="30d", help="how long ended workflows are kept (30d)")
    temporal.set_defaults(act=_set_up_temporal)


def _add_demo(commands: "Commands") -> None:
    story = commands.add_parser("demo", help="play the story of a few nodes in an embedded world")
    story.add_argument("--folder", type=Path, default=Path(".dovetail/demo"), help="where its files are kept")
    story.add_argument("--keep", action="store_true", help="leave world, Temporal and worker running until Ctrl-C")
    story.add_argument("--change", action="store_true", help="the story of a change of image that goes step by step")
    story.set_defaults(act=_demo)


class _ListSettings(argparse.Action):
    """Prints the settings, which are loaded only then."""

    def __init__(self, option_strings: list[str], dest: str, **rest: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, **rest)

    def __call__(self, parser: argparse.ArgumentParser, *rest: Any) -> None:
        from dovetail.settings.flags import settings_text

        say(settings_text())
        parser.exit()


async def _worker(given: argparse.Namespace, settings: "Settings") -> None:
    from dovetail.worker.allocator import keep_little

    keep_little()  # must come before the SDKs are loaded
    from dovetail.worker.run import run_worker

    await run_worker(settings, given.source)


async def _cancel(given: argparse.Namespace, settings: "Settings | None") -> None:
    from dovetail.cli.orders.cancel import cancel

    await cancel(given, settings)


async def _take_over(given: argparse.Namespace, settings: "Settings") -> None:
    from dovetail.answers.look.sources import opened
    from dovetail.cli.orders.take_over import take_over
    from dovetail.connection.temporal import connect

    client = await connect(settings)
    async with opened(settings) as world:
        await take_over(client, world, settings, given.theirs)


async def _set_up_temporal(given: argparse.Namespace, settings: "Settings") -> None:
    from dovetail.cli.commands.set_up_temporal import set_up_temporal
    from dovetail.connection.temporal import connect

    await set_up_temporal(await connect(settings), given.retention)


async def _demo(given: argparse.Namespace, settings: "Settings") -> None:
    try:
        from dovetail.cli.demo.command import demo
    except ModuleNotFoundError:  # the image has no demo
        raise CommandFailed(
            "demo: it is not part of the image; run `make demo`, or `dovetail demo` of the package"
        ) from None
    await demo(given.folder, given.keep, given.change)


def main(arguments: list[str], called: str = NAME) -> int:
    """Run one command; returns its exit code."""
    try:
        if arguments[:1] == [ASKED]:
            return _completed(arguments[1:])
        top = parser(called)
        own, flags = _flags_apart(with_options_behind(arguments, top))
        check_command(top, own)
        given = _read(top, own)
        given.flags = flags
        printed = getattr(given, "print", None)
        answered = printed(given) if printed is not None else None
        if answered is None:
            answered = _ordered(given) if _is_order(given) else asked(given)
        return _carried_out(given) if answered is None else answered
    except CommandFailed as error:
        complain(str(error))
        return FAILED
    except ReaderGone:
        return READER_GONE
    except KeyboardInterrupt:
        say("interrupted")
        return INTERRUPTED


def _read(top: argparse.ArgumentParser, arguments: list[str]) -> argparse.Namespace:
    """What was typed, parsed; unknown arguments are refused with the command's own usage, not that of all commands."""
    given, unknown = top.parse_known_args(arguments)
    if unknown:
        command = _command_of(top, given)
        hint = meant(unknown[0].partition("=")[0], list(command._option_string_actions))
        command.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
    return given


def _command_of(of: argparse.ArgumentParser, given: argparse.Namespace) -> argparse.ArgumentParser:
    """The parser of the typed command, or of the sub-command after it."""
    for action in of._actions:
        if isinstance(action, argparse._SubParsersAction) and action.dest in given:
            return _command_of(action.choices[getattr(given, action.dest)], given)
    return of


def _completed(words: list[str]) -> int:
    from dovetail.cli.completion.words import completions

    for line in completions(parser(), words):
        say(line)
    return 0


def _flags_apart(arguments: list[str]) -> tuple[list[str], list[str]]:
    """What the parser knows, and, from the first one on, the settings given to a worker as flags."""
    if arguments[:1] != ["worker"]:
        return arguments, []
    known = ("--cluster", "--kubeconfig", "--world", "--roles", "--help", "--list-settings")
    first = next(
        (at for at, word in enumerate(arguments) if word.startswith("--") and word.partition("=")[0] not in known),
        len(arguments),
    )
    return arguments[:first], arguments[first:]


def _is_order(given: argparse.Namespace) -> bool:
    """Whether it is an order that needs a kubeconfig and nothing else."""
    if not getattr(given, "order", False):
        return False
    from dovetail.cli.orders.written_on import is_alone

    return is_alone(given)


def _ordered(given: argparse.Namespace) -> int:
    """Carry out an order without settings, and without any library of a cloud, Kubernetes or Temporal."""
    import asyncio

    from dovetail.cli.orders.target import OtherWorkers
    from dovetail.ports.failures import Failure

    try:
        code: int | None = asyncio.run(given.act(given, None))
    except OtherWorkers as error:
        complain(str(error))
        return OTHER_CLUSTER
    except Failure as error:
        raise CommandFailed(str(error)) from None
    return code or 0


def _carried_out(given: argparse.Namespace) -> int:
    """Carry out a command with the settings of this machine."""
    import asyncio

    from dovetail.connection.configuration import TemporalUnusable
    from dovetail.connection.owner import OtherCluster
    from dovetail.ports.failures import Failure
    from dovetail.settings.flags import flags_of
    from dovetail.settings.settings import SettingsError, environment_with, read_settings
    from dovetail.workflows.converter import UnreadablePayload

    try:
        given.source = environment_with(flags_of(given.flags))
        settings = read_settings(
            given.source,
            with_cloud=not getattr(given, "without_cloud", False),
            cluster=getattr(given, "cluster", None),
            kubeconfig=_kubeconfig(given),
            context=getattr(given, "context", None) or None,
            world=getattr(given, "world", None),
            roles=getattr(given, "roles", None),
        )
        found: Coroutine[Any, Any, int | None] | int = given.act(given, settings)
        code = found if isinstance(found, int) else asyncio.run(found)
    except OtherCluster as error:
        complain(str(error))
        return OTHER_CLUSTER
    except (Failure, SettingsError, TemporalUnusable, UnreadablePayload) as error:
        raise CommandFailed(str(error)) from None
    return code or 0


def _kubeconfig(given: argparse.Namespace) -> Any:
    """The file that was named; outside a pod also the one in the home folder, as kubectl does."""
    named = getattr(given, "kubeconfig", None)
    if named is not None or given.command == "worker" or os.environ.get("KUBECONFIG") or _SERVICE_ACCOUNT.exists():
        return named
    usual = Path.home() / ".kube" / "config"
    return usual if usual.is_file() else None


def run(called: str = NAME) -> None:
    code = main(sys.argv[1:], called)
    if code != READER_GONE:
        sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def run_plugin() -> None:
    """The same as `kubectl dovetail`."""
    run(f"kubectl {NAME}")


if __name__ == "__main__":
    run()
