"""Puts a recorded state into a simulated world: objects as they stand, instances as the cloud held them.

Statuses, deletionTimestamps, finalizers and UIDs are stored as recorded, which no API call could do. An instance whose
Node was deleted during its drain does not join again: its kubelet runs, and a kubelet registers only once.
"""

from pathlib import Path
from typing import Final

import orjson

from acceptance.adopt.recorded_catalogue import recorded_catalogue
from acceptance.adopt.states import State, moved_to
from dovetail.adapters.simulator.cloud.instances import InstanceRow
from dovetail.adapters.simulator.cloud.instances import State as MachineState
from dovetail.adapters.simulator.settings import WorldSettings
from dovetail.model import names
from dovetail.model.values.json import Json
from dovetail.model.values.time import parse_time
from testbed.simulated_world import SimulatedWorld

# The tag by which EKS names an instance's cluster.
CLUSTER_TAG: Final = "eks:eks-cluster-name"
_STATES: Final[dict[str, MachineState]] = {
    "pending": "pending",
    "running": "running",
    "shutting-down": "terminating",
    "terminated": "terminated",
}
_UNREGISTERED: Final = {"key": names.UNREGISTERED_TAINT, "effect": "NoExecute"}


def load(state: State, file: Path, now: float) -> tuple[SimulatedWorld, State]:
    """A new world that holds the state as of now, and the state as it was put there."""
    state = moved_to(state, now)
    clusters = {i["tags"].get(CLUSTER_TAG, "") for i in state.instances}
    world = SimulatedWorld.create(file, WorldSettings(cluster=max(clusters, default="dovetail")))
    world.declare_catalogue(recorded_catalogue())
    for bodies in state.objects.values():
        for body in bodies:
            world.put_raw(body)
    for instance in state.instances:
        world.add_instance(_machine(state, instance, (now, world.settings())))
    return world, state


def _machine(state: State, instance: Json, then: tuple[float, WorldSettings]) -> InstanceRow:
    now, settings = then
    provider_id = f"aws:///{instance['zone']}/{instance['id']}"
    claim = next((c for c in state.every("NodeClaim") if c.get("status", {}).get("providerID") == provider_id), None)
    node = next((n for n in state.every("Node") if n["spec"].get("providerID") == provider_id), None)
    held = _STATES[instance["state"]]
    return InstanceRow(
        id=instance["id"],
        provider_id=provider_id,
        token=None,
        parameters="",
        cluster=instance["tags"].get(CLUSTER_TAG, ""),
        claim_uid="",  # Karpenter tags the claim's name, once it has written the instance down
        claim_name=instance["tags"].get("karpenter.sh/nodeclaim", ""),
        instance_type=instance["type"],
        zone=instance["zone"],
        capacity_type="spot" if instance["spot"] else "on-demand",
        image=instance["image"],
        annotations="{}",
        user_data=orjson.dumps(_user_data(state, claim)).decode(),
        state=held,
        launched=instance["launch"],
        boots=now + settings.delay("boot") if held == "pending" else now,
        joins=int(node is None and not _has_joined(claim)),
        node="" if node is None else node["metadata"]["name"],
        joined=None if node is None else parse_time(node["metadata"]["creationTimestamp"]),
        ends=now + settings.delay("shutdown") if held == "terminating" else None,
    )


def _has_joined(claim: Json | None) -> bool:
    conditions = (claim or {}).get("status", {}).get("conditions") or []
    return any(c["type"] == names.REGISTERED_CONDITION and c["status"] == "True" for c in conditions)


def _user_data(state: State, claim: Json | None) -> Json:
    """What the kubelet was given: its claim's labels and taints, or the pool's where no claim is known."""
    if claim is not None:
        spec, labels = claim["spec"], claim["metadata"]["labels"]
    else:
        template: Json = next((p["spec"]["template"] for p in state.every("NodePool")), {})
        spec, labels = template.get("spec") or {}, (template.get("metadata") or {}).get("labels") or {}
    taints = [*(spec.get("taints") or []), *(spec.get("startupTaints") or [])]
    return {"labels": labels, "taints": [_UNREGISTERED, *taints]}
