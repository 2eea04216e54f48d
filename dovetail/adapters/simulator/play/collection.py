"""The garbage collector, the pod collector and the controller that detaches volumes.

An object whose owners (by UID) are all gone is deleted, its finalizers honoured; a pod on a node that no longer exists
is removed at once, because no kubelet is left to end it.
"""

from dovetail.adapters.simulator.api_server import objects
from dovetail.adapters.simulator.play.tick import Tick, is_deleting
from dovetail.model.values.json import Json

GARBAGE = "garbage-collector"
POD_GARBAGE = "pod-garbage-collector"
ATTACHMENTS = "attach-detach-controller"


def collect_orphans(tick: Tick) -> None:
    """Delete what is owned only by objects that are gone."""
    there = {body["metadata"]["uid"] for body in tick.mirror.all()}
    cluster = tick.cluster(GARBAGE)
    orphans = [body for body in tick.mirror.all() if not is_deleting(body) and _is_orphan(body, there)]
    for body in sorted(orphans, key=lambda b: (str(b["kind"]), objects.key_of(b))):
        cluster.delete(body["kind"], objects.key_of(body), body["metadata"]["uid"])


def _is_orphan(body: Json, there: set[str]) -> bool:
    owners = body["metadata"].get("ownerReferences")
    return bool(owners) and not any(o.get("uid") in there for o in owners)


def collect_pods(tick: Tick) -> None:
    """Remove the pods of nodes that are gone."""
    nodes = {node["metadata"]["name"] for node in tick.mirror.every("Node")}
    cluster = tick.cluster(POD_GARBAGE)
    for pod in tick.mirror.every("Pod"):
        node = pod.get("spec", {}).get("nodeName")
        if node and node not in nodes:
            cluster.delete("Pod", objects.key_of(pod), pod["metadata"]["uid"], 0)


def detach_volumes(tick: Tick) -> None:
    """Remove attachments whose volume no pod on the node uses any more, and those of nodes that are gone."""
    attachments = tick.mirror.every("VolumeAttachment")
    if not attachments:
        return
    nodes = {node["metadata"]["name"] for node in tick.mirror.every("Node")}
    used = {(node, volume) for pod in tick.mirror.every("Pod") for node, volume in _volumes_of(tick, pod)}
    cluster = tick.cluster(ATTACHMENTS)
    for attachment in attachments:
        node = attachment["spec"].get("nodeName")
        volume = (attachment["spec"].get("source") or {}).get("persistentVolumeName")
        if is_deleting(attachment):
            continue  # a driver has still to detach it
        if node not in nodes or (volume and (node, volume) not in used):
            cluster.delete("VolumeAttachment", objects.key_of(attachment), attachment["metadata"]["uid"])


def _volumes_of(tick: Tick, pod: Json) -> list[tuple[str, str]]:
    node, metadata = pod.get("spec", {}).get("nodeName"), pod["metadata"]
    found = []
    for volume in (pod.get("spec", {}).get("volumes") or []) if node else []:
        name = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        if not name and "ephemeral" in volume:
            name = f"{metadata['name']}-{volume['name']}"
        claim = tick.mirror.get("PersistentVolumeClaim", f"{metadata['namespace']}/{name}") if name else None
        if claim is not None:
            found.append((str(node), str((claim.get("spec") or {}).get("volumeName") or "")))
    return found
