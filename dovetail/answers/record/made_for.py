"""For which pods nodes were made, and which nodes were made for a pod.

A claim of ours names its pods while it exists. For claims that are gone the Scheduler's histories are read: its plans
name the pods, and a launch does not. Only questions about a pod cost this much: each run of the Scheduler within the
period is read.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from temporalio.client import Client

from dovetail.answers.record.decoding import decode, typed
from dovetail.answers.record.entries import Entries, Entry, Period, moment_text, read_matching
from dovetail.answers.record.facts import Run, Step, run_of
from dovetail.answers.wording import plural, shown
from dovetail.messages.plans import name_of
from dovetail.messages.requests import CreateRequest
from dovetail.messages.workflow_ids import claim_owner_id, disruption_id, scheduler_id
from dovetail.messages.workflow_types import DISRUPT_NODES
from dovetail.model.places.kept_places import kept_by, planned_pods
from dovetail.model.pods import Pod
from dovetail.model.snapshot import Snapshot
from dovetail.workflows.converter import UnreadablePayload

MOST_RUNS: Final = 300  # of the Scheduler; if pods wait all day a run lasts for minutes
MOST_DISRUPTIONS: Final = 1000
BACK_SECONDS: Final = 86400.0  # as far as `dovetail log` looks by itself


async def with_pods(client: Client, cluster: str, period: Period, found: Entries) -> Entries:
    """The same entries, with the pods that launches were made for. Runs that Temporal has deleted are counted, and
    their launches stay without pods."""
    plans = await read_plans(client, cluster, period)
    entries = tuple(
        replace(entry, pod_names=plans.pods[entry.claims[0]])
        if entry.kind == "launch" and entry.claims and entry.claims[0] in plans.pods
        else entry
        for entry in found.entries
    )
    return replace(found, entries=entries, cut=found.cut or plans.cut, forgotten=found.forgotten + plans.forgotten)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plans:
    """The pods of each NodeClaim that the Scheduler has asked for. `cut`: it has more runs than were read; `forgotten`:
    runs that the retention has deleted meanwhile."""

    pods: Mapping[str, tuple[str, ...]]
    cut: bool = False
    forgotten: int = 0


async def read_plans(client: Client, cluster: str, period: Period) -> Plans:
    within = f"(ExecutionStatus = 'Running' OR CloseTime >= '{moment_text(period.since)}')"
    if period.until is not None:
        within += f" AND StartTime <= '{moment_text(period.until)}'"
    query = f"WorkflowId = '{scheduler_id(cluster)}' AND {within}"
    listed = [each async for each in client.list_workflows(query, limit=MOST_RUNS + 1)]
    pods: dict[str, tuple[str, ...]] = {}
    forgotten = 0
    for each in listed[:MOST_RUNS]:
        run = await run_of(client, each.id, each.run_id, decoded=False)
        forgotten += run is None
        pods.update(await pods_of_claims(client, run) if run is not None else {})
    return Plans(pods=pods, cut=len(listed) > MOST_RUNS, forgotten=forgotten)


async def pods_of_claims(client: Client, run: Run) -> dict[str, tuple[str, ...]]:
    """The pods of each NodeClaim that a run asked for; its payloads are still encoded."""
    asked = run.asked("create_node_claims")
    await decode(client, *[value for step in asked for value in step.given])
    return dict(pair for step in asked for pair in _pairs(client, step))


def _pairs(client: Client, step: Step) -> Iterator[tuple[str, tuple[str, ...]]]:
    request = typed(client.data_converter.payload_converter, step.given, CreateRequest)
    for position, made in enumerate(request.proposed):
        name = name_of(made, request.plan_id, request.index(position))
        yield name, tuple(sorted(f"{pod.namespace}/{pod.name}" for pod in made.pods))


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """What one claim was made for. `pods`: how many; `here`: those still on its node, `beside`: how many others are."""

    claim: str
    plan: str
    pods: int
    here: tuple[str, ...]
    beside: int = 0

    def disruption(self, cluster: str) -> str:
        """The workflow that it was launched for, if it was a plan of disruption."""
        return disruption_id(cluster, self.plan)

    @property
    def text(self) -> str:
        if not self.pods:
            return f"{self.claim} was made without a pod that waited"
        made = f"{self.claim} was made for {plural(self.pods, 'pod')}"
        if self.here:
            return f"{made}; still there: {shown(self.here, 3)}"
        others = plural(self.beside, "other pod")
        return f"{made}; none of them is there: evicted ones come back under other names (now there: {others})"


def origins_of(snapshot: Snapshot, claims: Iterable[str]) -> tuple[Origin, ...]:
    """The origins of existing claims that carry one; claims not made by Dovetail do not."""
    found = [snapshot.claims[name] for name in claims if name in snapshot.claims]
    origins = []
    for claim in found:
        wanted = planned_pods(claim)
        pods = [snapshot.pods[uid] for uid in wanted if uid in snapshot.pods]
        here = sorted(pod.key for pod in pods if pod.node_name == claim.node_name)
        there = sum(1 for pod in snapshot.pods.values() if claim.node_name and pod.node_name == claim.node_name)
        if claim.plan:
            beside = there - len(here)
            origins.append(Origin(claim=claim.name, plan=claim.plan, pods=len(wanted), here=tuple(here), beside=beside))
    return tuple(origins)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trail:
    """What is known of a pod. `places`: Nodes and NodeClaims whose stories are the pod's too; `workflows`: others that
    name it."""

    places: tuple[str, ...] = ()
    workflows: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


async def trail_of(client: Client, cluster: str, name: str, snapshot: Snapshot | None, now: float) -> Trail:
    """The trail of the pod with that namespace and name; a deleted pod is found by what was made for it."""
    pod = None if snapshot is None else next((each for each in snapshot.pods.values() if each.key == name), None)
    here = () if pod is None or snapshot is None else _places(pod, snapshot)
    period = Period(since=now - BACK_SECONDS)
    try:
        plans = await read_plans(client, cluster, period)
        moves = await _disruptions(client, cluster, name, period)
    except UnreadablePayload as error:
        return Trail(places=here, notes=(*_whereabouts(name, pod), f"what was made for it is not known: {error}"))
    claims = sorted(claim for claim, pods in plans.pods.items() if name in pods)
    notes = list(_whereabouts(name, pod)) if here or claims or moves or pod is not None else []
    notes += [f"made for it within the last day: NodeClaim {shown(claims)}"] if claims else []
    notes += [f"{each.workflow} ({each.reason} of {shown(each.nodes)}) made a node for it" for each in moves]
    workflows = [*[each.workflow for each in moves], *[claim_owner_id(cluster, claim) for claim in claims]]
    return Trail(places=here, workflows=tuple(dict.fromkeys(workflows)), notes=tuple(notes))


def _whereabouts(name: str, pod: Pod | None) -> tuple[str, ...]:
    if pod is None:
        return (f"{name}: no such pod is there now",)
    return (f"{name} runs on {pod.node_name}" if pod.node_name else f"{name} is on no node yet",)


def _places(pod: Pod, snapshot: Snapshot) -> tuple[str, ...]:
    """Its node, or the claim that keeps a place for it; and the claims that were made for it."""
    keeps = None if pod.node_name else kept_by(pod, snapshot)
    made = sorted(claim.name for claim in snapshot.claims.values() if pod.uid in planned_pods(claim))
    found = [*([pod.node_name] if pod.node_name else []), *([keeps.name] if keeps is not None else []), *made]
    return tuple(dict.fromkeys(found))


async def _disruptions(client: Client, cluster: str, name: str, period: Period) -> list[Entry]:
    condition = f"{period.query} AND WorkflowType = '{DISRUPT_NODES}'"
    found = await read_matching(client, cluster, condition, MOST_DISRUPTIONS)
    return [entry for entry in found.entries if name in entry.pod_names]
