"""`dovetail history NODE|CLAIM|POD|WORKFLOW`: what became of it, step by step, from Temporal's own record.

A claim's story has one workflow id for its whole life, run after run; it is shown with the disruptions that took its
node, and the one that it was launched for. The claim names the pods for which it was launched. The newest run and those
that it was continued from are read by id; earlier ones and disruptions are looked for in the visibility list, which may
lag by a moment and forgets after the retention.
"""

import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from dovetail.activities.identity.search_attributes import NODE_CLAIM
from dovetail.answers.failures import CommandFailed
from dovetail.answers.look.sources import opened
from dovetail.answers.record.decoding import decode
from dovetail.answers.record.entries import Entry, read_matching
from dovetail.answers.record.facts import Run, run_of
from dovetail.answers.record.kept import Archive, kept_about, kept_objects
from dovetail.answers.record.made_for import origins_of, trail_of
from dovetail.answers.record.story import Line, Pending, StoryLines, moment
from dovetail.answers.wording import plural, price_text, shown
from dovetail.messages.workflow_ids import claim_owner_id, node_owner_id, query_of
from dovetail.messages.workflow_types import DISRUPT_NODES, TERMINATE_NODE
from dovetail.model.objects.watched_kinds import FLEET
from dovetail.model.snapshot import Snapshot
from dovetail.ports.failures import Failure
from dovetail.settings.settings import Settings, SettingsError

MOST_RUNS: Final = 10  # a claim has two or three; the singletons never end
MOST_DISRUPTIONS: Final = 20
MOST_TERMINATIONS: Final = 200
NOTE: Final = "Temporal has forgotten it: this is from the kept record, which has no single steps"
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?\Z")
_POD: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z0-9]([-a-z0-9.]*[a-z0-9])?\Z")
_WORKFLOW: Final = re.compile(r"[A-Za-z0-9][-A-Za-z0-9._/:]*\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """One workflow id, over all its runs."""

    workflow: str
    type: str
    status: str
    started: float
    ended: float | None = None
    phase: str = ""
    lines: tuple[Line, ...] = ()
    now: tuple[Pending, ...] = ()  # what it waits for
    stuck: str = ""  # a workflow task that fails again and again
    cut: bool = False  # there are earlier runs


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryAnswer:
    name: str
    stories: tuple[Story, ...]
    notes: tuple[str, ...] = ()


async def stories_or_kept(client: Client, settings: Settings, name: str, snapshot: Snapshot | None) -> HistoryAnswer:
    """Temporal's stories, or the kept record if it has none."""
    try:
        return await stories_of(client, settings, name, snapshot)
    except CommandFailed:
        async with kept_objects(settings) as kept:
            found = await kept_about(Archive(kept, settings.cluster), name, time.time()) if kept is not None else ()
        if not found:
            raise
        return HistoryAnswer(name=name, stories=tuple(_kept_story(entry) for entry in found), notes=(NOTE,))


async def stories_of(client: Client, settings: Settings, name: str, snapshot: Snapshot | None) -> HistoryAnswer:
    """The stories of a node, a claim, a pod or a workflow. Without a snapshot the cluster is asked if needed."""
    if name.startswith(f"{settings.cluster}/") and _WORKFLOW.match(name):
        found = await story_of(client, name)
        if found is not None:
            return HistoryAnswer(name=name, stories=(found,))
        if not _POD.match(name):  # a namespace may have the cluster's name
            raise CommandFailed(f"{name}: there is no such workflow, or its retention has passed")
    if _POD.match(name):
        return await _of_pod(client, settings, name, snapshot)
    if not _NAME.match(name):
        raise CommandFailed(
            f"{name}: it is no name of a Node, NodeClaim or pod (NAMESPACE/NAME), and no workflow id of "
            f"{settings.cluster}"
        )
    snapshot, notes = (snapshot, ()) if snapshot is not None else await _seen(settings)
    ids, said = await _workflows_of(client, settings, name, snapshot)
    found_stories = await _stories(client, ids) or await _stories(client, await _as_log_names(client, settings, name))
    if not found_stories:
        raise CommandFailed(
            f"{name}: no workflow has worked on a Node or NodeClaim of that name, or its retention has passed"
        )
    return HistoryAnswer(name=name, stories=found_stories, notes=(*said, *notes))


async def _of_pod(client: Client, settings: Settings, name: str, snapshot: Snapshot | None) -> HistoryAnswer:
    """The stories of the pod's node and of what made nodes for it; a waiting pod may have none yet."""
    snapshot, notes = (snapshot, ()) if snapshot is not None else await _seen(settings)
    trail = await trail_of(client, settings.cluster, name, snapshot, time.time())
    if not trail.notes:
        raise CommandFailed(f"{name}: there is no such pod, and within the last day no node was made for one")
    ids, said = list(trail.workflows), list[str]()
    for place in trail.places:
        more, words = await _workflows_of(client, settings, place, snapshot)
        ids += more
        said += words
    notes = tuple(dict.fromkeys((*trail.notes, *said, *notes)))
    return HistoryAnswer(name=name, stories=await _stories(client, ids), notes=notes)


async def _workflows_of(
    client: Client, settings: Settings, name: str, snapshot: Snapshot | None
) -> tuple[list[str], list[str]]:
    """The ids of the workflows that worked on a node or claim, and what it was made for."""
    claims = await _claims_of(client, settings, name, snapshot)
    made = origins_of(snapshot, claims) if snapshot is not None else ()
    ids = [*[each.disruption(settings.cluster) for each in made], node_owner_id(settings.cluster, name)]
    ids += [claim_owner_id(settings.cluster, claim) for claim in claims]
    ids += await _disruptions(client, settings.cluster, name, claims)
    return ids, [each.text for each in made]


async def _stories(client: Client, ids: Iterable[str]) -> tuple[Story, ...]:
    """The stories of these ids, oldest first."""
    stories = [await story_of(client, identity) for identity in dict.fromkeys(ids)]
    return tuple(sorted((story for story in stories if story is not None), key=lambda s: (s.started, s.workflow)))


async def _seen(settings: Settings) -> tuple[Snapshot | None, tuple[str, ...]]:
    """The cluster as it is; or nothing, and the reason."""
    try:
        async with opened(settings) as world:
            return world.view.snapshot(FLEET), ()
    except (Failure, SettingsError) as error:
        return None, (f"the cluster could not be asked for NodeClaims and pods: {error}",)


async def _claims_of(client: Client, settings: Settings, name: str, snapshot: Snapshot | None) -> tuple[str, ...]:
    """The claims meant by a name: itself, the node's by the cluster, the node's by what disrupted it."""
    claims = [name]
    query = query_of(settings.cluster, f"DovetailNode='{name}'")
    async for found in client.list_workflows(query, limit=MOST_DISRUPTIONS):
        claim = found.typed_search_attributes.get(NODE_CLAIM)
        claims += [claim] if claim else []
    return tuple(dict.fromkeys([*claims, *(_of_node(snapshot, name) if snapshot is not None else ())]))


async def _as_log_names(client: Client, settings: Settings, name: str) -> list[str]:
    """The latest terminations whose own record names that node: if a node left before it was ready, no attribute names
    it, because its workflow began as its launch."""
    condition = f"WorkflowType='{TERMINATE_NODE}'"
    found = await read_matching(client, settings.cluster, condition, MOST_TERMINATIONS)
    return [entry.workflow for entry in found.entries if name in entry.nodes]


def _of_node(snapshot: Snapshot, name: str) -> list[str]:
    node = snapshot.nodes.get(name)
    return [] if node is None else sorted(claim.name for claim in snapshot.pairing.claims_of(node))


async def _disruptions(client: Client, cluster: str, name: str, claims: tuple[str, ...]) -> list[str]:
    wanted = " OR ".join([f"DovetailNode='{name}'", *[f"DovetailNodeClaim='{claim}'" for claim in claims]])
    query = query_of(cluster, f"WorkflowType='{DISRUPT_NODES}' AND ({wanted})")
    return [found.id async for found in client.list_workflows(query, limit=MOST_DISRUPTIONS)]


async def story_of(client: Client, identity: str) -> Story | None:
    """The story of one workflow id; None if there is none."""
    try:
        described = await client.get_workflow_handle(identity).describe()
    except RPCError as error:
        if error.status == RPCStatusCode.NOT_FOUND:
            return None
        raise
    runs, cut = await _runs(client, identity, described.run_id)
    if not runs:
        return None
    story = StoryLines(client.data_converter.payload_converter)
    await decode(client, described.raw_description)
    for run in runs:
        story.read(run)
    running = described.status == WorkflowExecutionStatus.RUNNING
    failing = described.raw_description.pending_workflow_task
    return Story(
        workflow=identity,
        type=described.workflow_type,
        status=described.status.name.lower() if described.status is not None else "unknown",
        started=moment(runs[0].began),
        ended=described.close_time.timestamp() if described.close_time else None,
        phase=story.phase,
        lines=tuple(story.lines),
        now=story.pending(described.raw_description.pending_activities) if running else (),
        stuck=story.task_failure if running and failing.attempt > 1 else "",
        cut=cut,
    )


async def _runs(client: Client, identity: str, last: str) -> tuple[list[Run], bool]:
    """The runs, oldest first, and whether earlier ones were left out."""
    # A claim that was launched long ago is terminated in a run that was started, not continued: the list knows both.
    listed = client.list_workflows(f"WorkflowId = '{identity}'", limit=MOST_RUNS)
    waiting = [last, *[found.run_id async for found in listed]]
    runs: dict[str, Run | None] = {}
    while waiting and sum(run is not None for run in runs.values()) < MOST_RUNS:
        run_id = waiting.pop(0)
        if run_id in runs:
            continue
        run = runs[run_id] = await run_of(client, identity, run_id)
        waiting = [run.began.before, *waiting] if run is not None and run.began.before else waiting
    found = [run for run in runs.values() if run is not None]
    cut = len(found) < len(runs) or any(run_id not in runs for run_id in waiting)
    return sorted(found, key=lambda run: run.began.at), cut


def _kept_story(entry: Entry) -> Story:
    lines = [Line(at=entry.began, text=_begun(entry))]
    if entry.ended is not None:
        said = f": {entry.message}" if entry.message else ""
        lines.append(Line(at=entry.ended, text=f"{entry.outcome}{said}", seconds=entry.ended - entry.began))
    return Story(
        workflow=entry.workflow,
        type=entry.kind,
        status=entry.outcome,
        started=entry.began,
        ended=entry.ended,
        lines=tuple(lines),
    )


def _price(entry: Entry) -> str:
    if entry.price_before is not None and entry.price_after is not None:
        return f"{price_text(entry.price_before)} → {price_text(entry.price_after)}"
    return f"saves {price_text(entry.saved)}" if entry.saved else ""


def _begun(entry: Entry) -> str:
    parts = [f"{entry.kind} of {shown(entry.nodes or entry.claims)}"]
    parts += [f"for {entry.reason}"] if entry.reason else []
    parts += [" ".join(filter(None, (entry.instance_type, entry.capacity_type, entry.zone)))]
    parts += [f"after {plural(len(entry.replacements), 'replacement')}"] if entry.replacements else []
    parts += [plural(entry.pods, "pod")] if entry.pods else []
    parts += [_price(entry)]
    return ", ".join(filter(None, parts))
