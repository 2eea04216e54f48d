"""The sub-commands that explain and change nothing: explain, plan, snapshot, history, doctor.

Each makes one answer and prints it as text or, with --json, as JSON for scripts. The answers are made in modules of
their own, which know nothing of arguments and are imported when they are asked for.
"""

import argparse
import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from dovetail.cli.output import CommandFailed, as_json, say

if TYPE_CHECKING:
    from dovetail.worker.settings import Settings

    Commands = argparse._SubParsersAction[argparse.ArgumentParser]


def add_commands(commands: "Commands", shared: argparse.ArgumentParser) -> None:
    """Register them."""
    printed = argparse.ArgumentParser(add_help=False)
    printed.add_argument("--json", action="store_true", help="print JSON, for scripts")
    recorded = argparse.ArgumentParser(add_help=False)
    recorded.add_argument("--snapshot", type=Path, metavar="FILE", help="look at this recorded snapshot instead")

    explain = commands.add_parser("explain", help="why a node stays or goes, why a pod finds no node")
    subjects = explain.add_subparsers(dest="subject", required=True, metavar="SUBJECT")
    for subject, act, words, name in (
        ("node", _explain_node, "every check, budget and price that bears on a node", "the Node or NodeClaim"),
        ("pod", _explain_pod, "where a pod goes, or which pool refuses it for what", "the pod, as NAMESPACE/NAME"),
    ):
        one = subjects.add_parser(subject, parents=[shared, printed, recorded], help=words)
        one.add_argument("name", metavar="NAME", help=name)
        one.set_defaults(act=act)

    plan = commands.add_parser(
        "plan", parents=[shared, printed, recorded], help="what provisioning and disruption would do now"
    )
    plan.set_defaults(act=_plan)

    snapshot = commands.add_parser("snapshot", parents=[shared], help="record the cluster for explain and plan")
    snapshot.add_argument("out", type=Path, metavar="OUT", help="the file to write (gzip)")
    snapshot.set_defaults(act=_snapshot)

    story = commands.add_parser("history", parents=[shared, printed], help="the story of a node, claim or disruption")
    story.add_argument("name", metavar="NODE|CLAIM|WORKFLOW", help="a Node, a NodeClaim or a workflow id")
    story.set_defaults(act=_history)

    checks = commands.add_parser("doctor", parents=[shared, printed], help="check everything that Dovetail needs")
    checks.set_defaults(act=_doctor)


async def _explain_node(given: argparse.Namespace, settings: "Settings") -> None:
    from dovetail.cli.explain.explain_node import explain_node_now
    from dovetail.cli.explain.explain_node_text import node_text
    from dovetail.cli.explain.sources import look

    found = await look(settings, given.snapshot)
    answer = await asyncio.to_thread(explain_node_now, found, given.name)
    say(as_json(answer) if given.json else node_text(answer))


async def _explain_pod(given: argparse.Namespace, settings: "Settings") -> None:
    from dovetail.cli.explain.explain_pod import explain_pod
    from dovetail.cli.explain.explain_pod_text import pod_text
    from dovetail.cli.explain.sources import look

    found = await look(settings, given.snapshot)
    answer = await asyncio.to_thread(explain_pod, found, given.name)
    say(as_json(answer) if given.json else pod_text(answer))


async def _plan(given: argparse.Namespace, settings: "Settings") -> None:
    from dovetail.cli.explain.plan import plan_now
    from dovetail.cli.explain.plan_text import plan_text
    from dovetail.cli.explain.sources import look

    found = await look(settings, given.snapshot)
    answer = await asyncio.to_thread(plan_now, found)
    say(as_json(answer) if given.json else plan_text(answer))


async def _snapshot(given: argparse.Namespace, settings: "Settings") -> None:
    from dovetail.cli.explain.sources import record
    from dovetail.cli.wording import moment_text, plural

    recording = await record(settings, given.out)
    counts = {kind: len(raws) for kind, raws in recording.objects.items()}
    shown = ", ".join(plural(counts.get(kind, 0), kind) for kind in ("NodePool", "NodeClaim", "Node", "Pod"))
    size = given.out.stat().st_size
    say(f"{given.out}: cluster {recording.cluster} at {moment_text(recording.taken_at)}, {shown}, {size:,} bytes")


async def _history(given: argparse.Namespace, settings: "Settings") -> None:
    from dovetail.cli.history.history import history
    from dovetail.cli.history.text import history_text

    _named(settings)
    answer = await history(settings, given.name)
    say(as_json(answer) if given.json else history_text(answer))


async def _doctor(given: argparse.Namespace, settings: "Settings") -> None:
    from dovetail.cli.doctor.doctor import doctor
    from dovetail.cli.doctor.text import doctor_text
    from dovetail.cli.wording import plural

    _named(settings)
    answer = await doctor(settings)
    say(as_json(answer) if given.json else doctor_text(answer))
    failed = sum(1 for check in answer.checks if check.verdict == "fails")
    if failed:
        raise CommandFailed(f"doctor: {plural(failed, 'check')} of {len(answer.checks)} failed")


def _named(settings: "Settings") -> None:
    from dovetail.worker.settings import SettingsError

    if not settings.cluster:
        raise SettingsError("CLUSTER_NAME: not set; it names the cluster in workflow ids")
