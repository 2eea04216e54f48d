"""The sub-commands that explain and change nothing: explain, plan, snapshot, history, doctor."""

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from dovetail.answers.failures import CommandFailed
from dovetail.cli.commands.asking import Answer, Question, ask_workers, asks, shown
from dovetail.cli.commands.plan import add_forecast, add_plan
from dovetail.cli.commands.record import add_record
from dovetail.cli.output import as_json, say
from dovetail.cli.remote.asking import add_place
from dovetail.cli.shown.formats import add_output

if TYPE_CHECKING:
    from dovetail.cli.remote.workers import Workers
    from dovetail.settings.settings import Settings

    Commands = argparse._SubParsersAction[argparse.ArgumentParser]


def add_commands(commands: "Commands", shared: argparse.ArgumentParser) -> None:
    printed = argparse.ArgumentParser(add_help=False)
    printed.add_argument("--json", action="store_true", help="print JSON, for scripts")
    recorded = argparse.ArgumentParser(add_help=False)
    recorded.add_argument("--snapshot", type=Path, metavar="FILE", help="look at this recorded snapshot instead")

    explain = commands.add_parser("explain", help="why a node stays or goes, why a pod finds no node")
    subjects = explain.add_subparsers(dest="subject", required=True, metavar="SUBJECT")
    for subject, words, name in (
        ("node", "every check, budget and price that bears on a node", "the Node or NodeClaim"),
        ("pod", "where a pod goes, or which pool refuses it for what", "the pod, as NAMESPACE/NAME"),
    ):
        one = subjects.add_parser(subject, parents=[shared, printed, recorded], help=words)
        one.add_argument("name", metavar="NAME", help=name)
        one.add_argument(
            "--at", default="", metavar="TIME", help="as it was a time ago (3h) or at a moment, from what was kept"
        )
        add_place(one, namespace=subject != "pod")
        if subject == "pod":
            one.add_argument("-n", "--namespace", dest="pods", default="", help="the pod's, where NAME has none")
        add_output(one)
        asks(one, Question(route=f"explain/{subject}", name=_name, words=_at))

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
    asks(story, Question(route="history", name=_name))

    add_record(commands, shared, printed)

    checks = commands.add_parser("doctor", parents=[shared], help="check everything that Dovetail needs")
    add_place(checks)
    add_output(checks)
    checks.add_argument("--json", dest="older", action="store_true", help="print JSON without a version, for scripts")
    checks.add_argument("--preflight", action="store_true", help="before an installation: nothing of ours runs yet")
    asks(checks, Question(route="doctor", words=_preflight, show=_judged))
    checks.set_defaults(remote=_doctor_of_workers)


def _name(given: argparse.Namespace) -> str:
    """The name; a pod's namespace may be given separately."""
    name: str = given.name
    return name if "/" in name or not getattr(given, "pods", "") else f"{given.pods}/{name}"


def _at(given: argparse.Namespace) -> dict[str, str]:
    if given.at and given.snapshot is not None:
        raise CommandFailed("--at: a recorded snapshot has one moment, its own")
    return {"at": given.at}


async def _snapshot(given: argparse.Namespace, settings: "Settings") -> None:
    from dovetail.answers.look.sources import record
    from dovetail.answers.wording import moment_text, plural

    recording = await record(settings, given.out)
    counts = {kind: len(raws) for kind, raws in recording.objects.items()}
    numbers = ", ".join(plural(counts.get(kind, 0), kind) for kind in ("NodePool", "NodeClaim", "Node", "Pod"))
    size = given.out.stat().st_size
    say(f"{given.out}: cluster {recording.cluster} at {moment_text(recording.taken_at)}, {numbers}, {size:,} bytes")


def _doctor_of_workers(given: argparse.Namespace, workers: "Workers") -> int | None:
    """Only without a cluster's name; with one the checks run here, where more can be seen."""
    here = given.preflight or given.cluster or os.environ.get("CLUSTER_NAME")
    return None if here else ask_workers(given, workers)


def _preflight(given: argparse.Namespace) -> dict[str, str]:
    return {"preflight": "true" if given.preflight else ""}


def _judged(given: argparse.Namespace, answer: Answer) -> int:
    from dovetail.answers.wording import plural

    found = answer.document()
    if given.older:
        say(as_json({"cluster": found["cluster"], "checks": found["checks"]}))
    else:
        shown(given, answer)
    verdicts = [check["verdict"] for check in found["checks"]]
    if failed := verdicts.count("fails"):
        raise CommandFailed(f"doctor: {plural(failed, 'check')} of {len(verdicts)} failed")
    return 0
