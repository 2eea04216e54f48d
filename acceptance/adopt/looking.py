"""The cluster as it stands at one look: what is still under way, and what must never be seen.

`unrest` is empty when there is nothing left to do; the runner waits until it has stayed so. Each reason is something
that stands on an object or in the cloud. A step that is due always leaves one, so a moment between two steps is not
taken for quiet.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from acceptance.adopt.states import State
from dovetail.adapters.simulator.cloud.instances import InstanceRow
from dovetail.model import names
from dovetail.model.values.durations import parse_nanoseconds
from dovetail.model.values.json import Json
from dovetail.model.values.time import parse_time
from testbed.simulated_world import SimulatedWorld


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """Objects and instances of one moment."""

    pools: list[Json]
    claims: list[Json]
    nodes: list[Json]
    pods: list[Json]
    deployments: list[Json]
    instances: list[InstanceRow]  # those that are not gone


def look_at(world: SimulatedWorld) -> Look:
    """The cluster as it stands now."""
    return Look(
        pools=world.objects("NodePool"),
        claims=world.objects("NodeClaim"),
        nodes=world.objects("Node"),
        pods=world.objects("Pod"),
        deployments=world.objects("Deployment"),
        instances=world.live_instances(),
    )


def without_expiring(look: Look, state: State, now: float) -> Look:
    """The cluster without the claims that have expired since the takeover, and their nodes and instances.

    Where nodes live for 30 s one is always leaving; those that were leaving before the takeover must be gone.
    """
    before = {c["metadata"]["uid"] for c in state.every("NodeClaim") if is_deleting(c)}
    expiring = {
        provider_id(c)
        for c in look.claims
        if is_deleting(c) and c["metadata"]["uid"] not in before and _has_expired(c, now)
    }
    return replace(
        look,
        claims=[c for c in look.claims if provider_id(c) not in expiring or not provider_id(c)],
        nodes=[n for n in look.nodes if n["spec"].get("providerID") not in expiring],
        instances=[i for i in look.instances if i.provider_id not in expiring],
        pods=[p for p in look.pods if not is_deleting(p)],
    )


def _has_expired(claim: Json, now: float) -> bool:
    lifetime = claim["spec"].get("expireAfter", "Never")
    born = parse_time(claim["metadata"]["creationTimestamp"])
    return lifetime != "Never" and now - born >= parse_nanoseconds(lifetime) / 1e9


def unrest(look: Look) -> list[str]:
    """What is still under way, in words; empty when all is quiet."""
    return [*_claims(look), *_nodes(look), *_instances(look), *_pods(look), *_empty(look)]


def _claims(look: Look) -> Iterator[str]:
    for claim in look.claims:
        name = claim["metadata"]["name"]
        if is_deleting(claim):
            yield f"NodeClaim {name} is being deleted"
        elif not is_true(claim, names.INITIALIZED_CONDITION):
            yield f"NodeClaim {name} is not initialised"
        elif is_true(claim, names.DRIFTED):
            yield f"NodeClaim {name} has drifted"
        if names.OWNER in annotations(claim) or is_true(claim, names.DISRUPTION_REASON):
            yield f"NodeClaim {name} is marked"
        if names.REBOOT_GRACE in annotations(claim) or is_true(claim, names.REBOOTING):
            yield f"NodeClaim {name} is being rebooted"
        if names.TERMINATION_DEADLINE in annotations(claim) and not is_deleting(claim):
            yield f"NodeClaim {name} has a deadline without being deleted"


def _nodes(look: Look) -> Iterator[str]:
    claimed = {provider_id(c) for c in look.claims}
    for node in look.nodes:
        name = node["metadata"]["name"]
        if is_deleting(node):
            yield f"Node {name} is being deleted"
        if node["spec"].get("providerID") not in claimed:
            yield f"Node {name} has no NodeClaim"
        if any(t["key"] in (names.DISRUPTED_TAINT, names.REBOOTING_TAINT) for t in node["spec"].get("taints") or []):
            yield f"Node {name} is tainted as disrupted"


def _instances(look: Look) -> Iterator[str]:
    running = {i.provider_id for i in look.instances if i.state == "running"}
    claimed = {provider_id(c) for c in look.claims}
    for instance in look.instances:
        if instance.state != "running":
            yield f"instance {instance.id} is {instance.state}"
        elif instance.provider_id not in claimed:
            yield f"instance {instance.id} has no NodeClaim"
    for claim in look.claims:
        if provider_id(claim) not in running:
            yield f"NodeClaim {claim['metadata']['name']} has no running instance"


def _pods(look: Look) -> Iterator[str]:
    """Without any pool nothing can run; the pods wait for a person to make one."""
    for pod in look.pods:
        if is_deleting(pod):
            yield f"Pod {pod['metadata']['name']} is leaving"
    if not look.pools:
        return
    for deployment in look.deployments:
        wanted, ready = deployment["spec"].get("replicas", 1), deployment.get("status", {}).get("readyReplicas", 0)
        if ready != wanted:
            yield f"{ready} of {wanted} pods of {deployment['metadata']['name']} run"


def _empty(look: Look) -> Iterator[str]:
    """An empty node of a pool that consolidates has yet to leave: without this, a plan that is dropped again and again
    would look like quiet."""
    if not any((p["spec"].get("disruption") or {}).get("consolidateAfter", "0s") != "Never" for p in look.pools):
        return
    used = {pod["spec"].get("nodeName") for pod in look.pods}
    for claim in look.claims:
        node = claim.get("status", {}).get("nodeName")
        if is_true(claim, names.INITIALIZED_CONDITION) and node not in used:
            yield f"Node {node} is empty"


def disrupted_now(look: Look) -> int:
    """How many nodes count against a budget because of a mark; not one whose instance is shutting down."""
    return sum(is_true(c, names.DISRUPTION_REASON) and not is_true(c, names.INSTANCE_TERMINATING) for c in look.claims)


def allowance(look: Look) -> int:
    """What the strictest budget without a schedule allows."""
    amounts = [
        budget.get("nodes", "10%")
        for pool in look.pools
        for budget in (pool["spec"].get("disruption") or {}).get("budgets") or [{"nodes": "10%"}]
        if "schedule" not in budget
    ]
    whole = len(look.claims)
    shares = [math.ceil(int(a[:-1]) * whole / 100) if a.endswith("%") else int(a) for a in amounts]
    return min(shares, default=whole)


def is_deleting(body: Json) -> bool:
    """Deleted, and held by finalizers or by a grace."""
    return "deletionTimestamp" in body["metadata"]


def is_true(body: Json, kind: str) -> bool:
    """Whether that condition is True."""
    conditions = body.get("status", {}).get("conditions") or []
    return any(c["type"] == kind and c["status"] == "True" for c in conditions)


def annotations(body: Json) -> dict[str, str]:
    """The annotations."""
    return body["metadata"].get("annotations") or {}


def provider_id(claim: Json) -> str:
    """The instance that a claim names."""
    return str(claim.get("status", {}).get("providerID") or "")
