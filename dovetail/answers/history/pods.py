"""Where a pod is, and what made nodes for it: by the cluster, and the plans and disruptions of the last day."""

from dataclasses import dataclass
from typing import Final

from temporalio.client import Client

from dovetail.answers.record.entries import Entry, Period, read_matching
from dovetail.answers.record.planned import planned_pods
from dovetail.answers.wording import shown
from dovetail.messages.workflow_ids import claim_owner_id
from dovetail.messages.workflow_types import DISRUPT_NODES
from dovetail.model.kept_places import kept_by
from dovetail.model.kept_places import planned_pods as promised_pods
from dovetail.model.pods import Pod
from dovetail.model.snapshot import Snapshot
from dovetail.workflows.converter import UnreadablePayload

BACK_SECONDS: Final = 86400.0  # as far as `dovetail log` looks by itself
MOST: Final = 1000  # disruptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Trail:
    """What is known of a pod. `places`: Nodes and NodeClaims whose stories are its own; `workflows`: others that name
    it."""

    places: tuple[str, ...] = ()
    workflows: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


async def trail_of(client: Client, cluster: str, name: str, snapshot: Snapshot | None, now: float) -> Trail:
    """Of the pod of that namespace and name; one that is gone is found by what was made for it."""
    pod = None if snapshot is None else next((each for each in snapshot.pods.values() if each.key == name), None)
    here = () if pod is None or snapshot is None else _places(pod, snapshot)
    period = Period(since=now - BACK_SECONDS)
    try:
        claims = await _claims(client, cluster, name, period)
        moves = await _disruptions(client, cluster, name, period)
    except UnreadablePayload as error:
        return Trail(places=here, notes=(*_whereabouts(name, pod), f"what was made for it is not known: {error}"))
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
    made = sorted(claim.name for claim in snapshot.claims.values() if pod.uid in promised_pods(claim))
    found = [*([pod.node_name] if pod.node_name else []), *([keeps.name] if keeps is not None else []), *made]
    return tuple(dict.fromkeys(found))


async def _claims(client: Client, cluster: str, name: str, period: Period) -> list[str]:
    """NodeClaims that were created for it while it waited."""
    planned = await planned_pods(client, cluster, period)
    return sorted(claim for claim, pods in planned.pods.items() if name in pods)


async def _disruptions(client: Client, cluster: str, name: str, period: Period) -> list[Entry]:
    """Those that made a replacement for it."""
    condition = f"{period.query} AND WorkflowType = '{DISRUPT_NODES}'"
    found = await read_matching(client, cluster, condition, MOST)
    return [entry for entry in found.entries if name in entry.pod_names]
