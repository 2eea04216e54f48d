"""The sub-commands that explain and change nothing: explain, plan, snapshot, history, doctor.

Each makes one answer and prints it as text or, with -o, as JSON or YAML for scripts. The answers are made in modules of
their own, which know nothing of arguments and are imported when they are asked for.
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from dovetail.answers.failures import CommandFailed
from dovetail.cli.commands.plan import add_forecast, add_plan
from dovetail.cli.commands.record import add_record
from dovetail.cli.output import as_json, say
from dovetail.cli.remote.asked_text import pod_name, remote_answer, shown_locally
from dovetail.cli.remote.asking import add_place
from dovetail.cli.shown.formats import add_output, rendered

if TYPE_CHECKING:
    from dovetail.answers.look.sources import Look
    from dovetail.cli.remote.workers import Workers
    from dovetail.settings.settings import Settings

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
        path = f"explain/{subject}"
        one = subjects.add_parser(subject, parents=[shared, printed, recorded], help=words)
        one.add_argument("name", metavar="NAME", help=name)
        one.add_argument(
            "--at", default="", metavar="TIME", help="as it was a time ago (3h) or at a moment, from what was kept"
        )
        add_place(one, namespace=subject != "pod")
        if subject == "pod":
            one.add_argument("-n", "--namespace", dest="pods", default="", help="the pod's, where NAME has none")
        add_output(one)
        one.set_defaults(act=act, remote=remote_answer, path=path)

    add_plan(commands, [shared, printed, recorded])
    add_forecast(commands, [shared, printed, recorded])

    snapshot = commands.add_parser("snapshot", parents=[shared], help="record the cluster for explain and plan")
    snapshot.add_argument("out", type=Path, metavar="OUT", help="the file to write (gzip)")
    snapshot.set_defaults(act=_snapshot)

    story = commands.add_parser(
        "history", parents=[shared, printed], help="the story of a node, claim, pod or disruption"
    )
    story.add_argument("name", metavar="NODE|CLAIM|NS/POD|WORKFLOW", help="a Node, NodeClaim, pod or workflow id")
    add_place(story)
    add_output(story)
    story.set_defaults(act=_history, remote=remote_answer, path="history")

    add_record(commands, shared, printed)

    checks = commands.add_parser("doctor", parents=[shared], help="check everything that Dovetail needs")
    add_place(checks)
    add_output(checks)
    checks.add_argument("--json", dest="older", action="store_true", help="print JSON without a version, for scripts")
    checks.add_argument("--preflight", action="store_true", help="before an installation: nothing of ours runs yet")
    checks.set_defaults(act=_doctor, remote=_remote_doctor)


async def _looked(given: argparse.Namespace, settings: "Settings") -> "Look":
    """Now, in a file, or at a moment that has passed."""
    import time

    from dovetail.answers.look.sources import look

    if not given.at:
        return await look(settings, given.snapshot)
    if given.snapshot is not None:
        raise CommandFailed("--at: a recorded snapshot has one moment, its own")
    from dovetail.answers.replay.replaying import look_back

    _named(settings)
    return await look_back(settings, given.at, time.time())


async def _explain_node(given: argparse.Namespace, settings: "Settings") -> None:
    import asyncio

    from dovetail.answers.explain.explain_node import explain_node_now
    from dovetail.answers.explain.explain_node_text import node_text

    found = await _looked(given, settings)
    answer = await asyncio.to_thread(explain_node_now, found, given.name)
    shown_locally(given, ("NodeExplanation", found.settings.cluster, answer), node_text)


async def _explain_pod(given: argparse.Namespace, settings: "Settings") -> None:
    import asyncio

    from dovetail.answers.explain.explain_pod import explain_pod
    from dovetail.answers.explain.explain_pod_text import pod_text

    found = await _looked(given, settings)
    answer = await asyncio.to_thread(explain_pod, found, pod_name(given))
    shown_locally(given, ("PodExplanation", found.settings.cluster, answer), pod_text)


async def _snapshot(given: argparse.Namespace, settings: "Settings") -> None:
    from dovetail.answers.look.sources import record
    from dovetail.answers.wording import moment_text, plural

    recording = await record(settings, given.out)
    counts = {kind: len(raws) for kind, raws in recording.objects.items()}
    shown = ", ".join(plural(counts.get(kind, 0), kind) for kind in ("NodePool", "NodeClaim", "Node", "Pod"))
    size = given.out.stat().st_size
    say(f"{given.out}: cluster {recording.cluster} at {moment_text(recording.taken_at)}, {shown}, {size:,} bytes")


async def _history(given: argparse.Namespace, settings: "Settings") -> None:
    from dovetail.answers.record.history import history
    from dovetail.answers.record.history_text import history_text

    _named(settings)
    answer = await history(settings, given.name)
    shown_locally(given, ("History", settings.cluster, answer), history_text)


def _remote_doctor(given: argparse.Namespace, workers: "Workers") -> int | None:
    """Whoever names no cluster asks a worker; else the checks are made from here, which sees more."""
    import os

    if given.preflight or given.cluster or os.environ.get("CLUSTER_NAME"):
        return None
    from dovetail.answers.shown.screen import screen

    found = workers.document("doctor")
    if given.older:
        say(as_json({"cluster": found["cluster"], "checks": found["checks"]}))
    elif given.output == "text":
        say(workers.text("doctor", screen().width))
    else:
        say(rendered(found, given.output, {}))
    _judge([check["verdict"] for check in found["checks"]])
    return 0


def _judge(verdicts: list[str]) -> None:
    from dovetail.answers.wording import plural

    failed = verdicts.count("fails")
    if failed:
        raise CommandFailed(f"doctor: {plural(failed, 'check')} of {len(verdicts)} failed")


async def _doctor(given: argparse.Namespace, settings: "Settings") -> None:
    from dovetail.answers.doctor.doctor import doctor, preflight
    from dovetail.answers.doctor.text import doctor_text

    _named(settings)
    answer = await (preflight if given.preflight else doctor)(settings)
    given.json = given.older
    shown_locally(given, ("Checks", settings.cluster, answer), doctor_text)
    _judge([check.verdict for check in answer.checks])


def _named(settings: "Settings") -> None:
    from dovetail.settings.settings import SettingsError

    if not settings.cluster:
        raise SettingsError("CLUSTER_NAME: not set; it names the cluster in workflow ids")
