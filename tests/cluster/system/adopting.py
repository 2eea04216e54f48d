"""Puts a state that Karpenter left in mid-flight onto real servers, and looks whether it has come to rest.

What the API server fills in itself (UIDs, versions, moments of creation) is left to it and references follow; what a
controller would have adopted anyway is adopted by it. Instances get ids of their own, and every mention of them
follows. A kubelet joins only once its recorded Node stands.
"""

import asyncio
import json
import time
from dataclasses import replace
from typing import Any, Final, cast

from acceptance.adopt.bystanders import without_startup_taints
from acceptance.adopt.looking import Look, unrest
from acceptance.adopt.states import State, moved_to
from acceptance.traffic.paths import collection_of
from dovetail.model import names
from dovetail.model.values.json import Json
from worlds.cluster.ground import Ground
from worlds.cluster.objects import BUDGETS, KUBELET

_FILLED_IN: Final = (
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "ownerReferences",
    "managedFields",
)


def path_of(body: Json) -> str:
    """Where the object lives."""
    return f"{collection_of(body)}/{body['metadata']['name']}"


async def put_up(ground: Ground, recorded: State) -> State:
    """Objects and instances as recorded; no worker runs meanwhile. The state with the names that it has here."""
    state = moved_to(recorded, time.time())
    shown = [await _instance(ground, each) for each in state.instances]
    for body in state.every("EC2NodeClass"):
        await set_class(ground, body)
    state = _renamed(state, shown, await _of_this_cluster(ground, state))
    uids: dict[str, str] = {}
    for kind in ("NodePool", "NodeClaim", "Node", "PodDisruptionBudget", "Pod", "ReplicaSet", "Deployment"):
        for body in state.every(kind):
            uids[body["metadata"]["uid"]] = await _create(ground, body, uids)
    for each, instance in zip(state.instances, shown, strict=True):
        await _bring(ground, state, each, instance["id"])
    for kind in ("NodeClaim", "Node", "Pod"):
        for body in state.every(kind):
            if "deletionTimestamp" in body["metadata"]:
                await ground.api.delete(path_of(body))
    return state


async def set_class(ground: Ground, body: Json) -> None:
    """The class with this specification and nothing else in it, or all its nodes would have drifted."""
    name = body["metadata"]["name"]
    there = (await ground.api.get(path_of(body))).body.get("spec") or {}
    spec = {**dict.fromkeys(there), **body["spec"]}
    await ground.apply(
        {"apiVersion": body["apiVersion"], "kind": body["kind"], "metadata": {"name": name}, "spec": spec}
    )


async def _of_this_cluster(ground: Ground, state: State) -> dict[str, str]:
    """What is another in this cluster although the class is the same: its hash, which speaks of the API server's
    certificates, and its profile's name, which speaks of its UID. As the worker before us has written them down."""
    pairs: list[tuple[str, str]] = []
    for body in state.every("EC2NodeClass"):
        here = (await ground.api.get(path_of(body))).body
        pairs += [(_hash(body), _hash(here)), (_profile(body), _profile(here))]
    return {recorded: here for recorded, here in pairs if recorded and here}


def _hash(body: Json) -> str:
    return str((body["metadata"].get("annotations") or {}).get("karpenter.k8s.aws/ec2nodeclass-hash") or "")


def _profile(body: Json) -> str:
    return str((body.get("status") or {}).get("instanceProfile") or "")


async def _instance(ground: Ground, recorded: Json) -> Json:
    """An instance that nothing in this cluster has asked for; it joins later."""
    given = {
        "type": recorded["type"],
        "zone": recorded["zone"],
        "subnet": recorded["subnet"],
        "image": recorded["image"],
        "tags": recorded["tags"],
        "securityGroups": recorded["sgs"],
        "spot": recorded["spot"],
        "age": max(0.0, time.time() - recorded["launch"]),
    }
    return cast(Json, await asyncio.to_thread(ground.cloud.control, "POST", "instances", given))


def _renamed(state: State, shown: list[Json], others: dict[str, str]) -> State:
    """Every mention of an instance, of its node's name and of those others as they are here."""
    text = json.dumps({"objects": state.objects, "instances": state.instances})
    for there, here in others.items():
        text = text.replace(there, here)
    for each, instance in zip(state.instances, shown, strict=True):
        text = text.replace(each["id"], f"<{instance['id']}>")
        text = text.replace(f"ip-10-1-0-{int(each['id'][2:], 16)}.us-west-2", f"<{instance['nodeName']}>.us-west-2")
    for instance in shown:
        text = text.replace(f"<{instance['id']}>", instance["id"])
        text = text.replace(f"<{instance['nodeName']}>.us-west-2.compute.internal", instance["nodeName"])
    found = json.loads(text)
    return replace(state, objects=found["objects"], instances=found["instances"])


def _metadata(body: Json) -> Json:
    return {key: value for key, value in body["metadata"].items() if key not in _FILLED_IN}


async def _create(ground: Ground, body: Json, uids: dict[str, str]) -> str:
    """The object and its status; its UID here. Pods and ReplicaSets are adopted by their controllers."""
    kind, metadata = body["kind"], _metadata(body)
    owners = [{**o, "uid": uids[o["uid"]]} for o in body["metadata"].get("ownerReferences") or () if o["uid"] in uids]
    if owners and kind in ("NodeClaim", "Node"):
        metadata["ownerReferences"] = owners
    if kind == "Node":
        metadata["labels"] = {**metadata.get("labels", {}), KUBELET: "alive"}
    made = await ground.api.post(collection_of(body), {**body, "metadata": metadata})
    assert made.status == 201, f"{kind} {metadata['name']}: {made.status} {made.text[:300]}"
    if kind in ("NodeClaim", "Node") and body.get("status"):  # a pod's is its kubelet's to say
        answer = await ground.api.patch(f"{path_of(body)}/status", {"status": body["status"]})
        assert answer.status == 200, f"the status of {kind} {metadata['name']}: {answer.status} {answer.text[:300]}"
    return str(made.body["metadata"]["uid"])


async def _bring(ground: Ground, state: State, recorded: Json, identity: str) -> None:
    """The instance into the state that it was in: joined, about to join, on its way out, or gone."""
    change: Json = {}
    if recorded["state"] in ("terminated", "shutting-down"):
        change["state"] = recorded["state"]
    has_node = any(node["spec"].get("providerID", "").endswith(identity) for node in state.every("Node"))
    if has_node or recorded["state"] in ("running", "pending"):
        change = {"joinsIn": 0.0 if has_node else 1.0, **change}
    await asyncio.to_thread(ground.cloud.control, "PATCH", f"instances/{identity}", change)


async def others_move(ground: Ground) -> None:
    """What owns a startup taint takes it off, once the node is ready."""
    claims = {(c.get("status") or {}).get("providerID"): c for c in await ground.claims()}
    for node in await ground.objects("Node"):
        claim = claims.get(node["spec"].get("providerID"))
        conditions = (node.get("status") or {}).get("conditions") or []
        ready = any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
        if claim is None or not ready:
            continue
        left = without_startup_taints(node, claim)
        if left is not None:
            version = {"resourceVersion": node["metadata"]["resourceVersion"]}
            change = {"metadata": version, "spec": {"taints": left or None}}
            answer = await ground.api.patch(f"/api/v1/nodes/{node['metadata']['name']}", change)
            assert answer.status in (200, 404, 409), answer.text  # another writer was first: look again


async def lift_budgets(ground: Ground) -> None:
    """The owner of a budget that allows nothing takes it away."""
    for budget in (await ground.api.get(BUDGETS)).body.get("items") or []:
        if budget["spec"].get("maxUnavailable") == 0:
            await ground.api.delete(f"{BUDGETS}/{budget['metadata']['name']}")


async def still_moving(ground: Ground) -> list[str]:
    """What is still under way, in words."""
    instances = [_ShownInstance(each) for each in await ground.instances() if each["state"] != "terminated"]
    return unrest(
        Look(
            pools=await ground.objects("NodePool"),
            claims=await ground.claims(),
            nodes=await ground.nodes(),
            pods=await ground.objects("Pod"),
            deployments=await ground.objects("Deployment"),
            instances=cast(Any, instances),
        )
    )


class _ShownInstance:
    """An instance as `unrest` asks for it."""

    def __init__(self, shown: Json) -> None:
        self.id, self.state, self.provider_id = shown["id"], shown["state"], shown["providerID"]


def claims_of(state: State) -> dict[str, Json]:
    """The state's NodeClaims by name."""
    return {claim["metadata"]["name"]: claim for claim in state.every("NodeClaim")}


def is_marked(claim: Json) -> bool:
    """Whether a disruption had begun with it, or a cause for one stood on it."""
    conditions = (claim.get("status") or {}).get("conditions") or []
    causes = (names.DISRUPTION_REASON, names.DRIFTED)
    return any(c["type"] in causes and c["status"] == "True" for c in conditions)
