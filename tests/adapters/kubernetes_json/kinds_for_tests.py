"""A few kinds with the plainest parsers there can be, so that the cache is tested without the real ones."""

from dataclasses import dataclass
from typing import Any, Final

from dovetail.adapters.kubernetes_json.parsing.errors import UnreadableObject
from dovetail.adapters.kubernetes_json.store import Kind


@dataclass(frozen=True, slots=True)
class Thing:
    """An object: its names, and where it stands."""

    name: str
    uid: str
    resource_version: str
    place: str


def parse_thing(raw: dict[str, Any]) -> Thing:
    """Objects whose place is "nowhere" are unreadable."""
    meta, place = raw["metadata"], raw["spec"].get("place", "")
    if place == "nowhere":
        raise UnreadableObject("Thing", meta["name"], "spec.place", "there is no such place")
    return Thing(meta["name"], meta["uid"], meta["resourceVersion"], place)


def a_thing(name: str, version: int, place: str = "", *, uid: str = "", namespace: str = "") -> dict[str, Any]:
    """The JSON of one."""
    meta = {"name": name, "uid": uid or f"uid-{name}", "resourceVersion": str(version)}
    if namespace:
        meta["namespace"] = namespace
    return {"metadata": meta, "spec": {"place": place}}


def place_of(thing: Thing) -> str:
    """The indexed property."""
    return thing.place


NODE: Final = Kind("Node", "/api/v1/nodes", parse_thing, snapshot_field="nodes", index=place_of)
POD: Final = Kind("Pod", "/api/v1/pods", parse_thing, snapshot_field="pods", by_uid=True, index=place_of)
SERVICE: Final = Kind("Service", "/api/v1/services", parse_thing, snapshot_field="selector_sources", shares_field=True)
REPLICA_SET: Final = Kind(
    "ReplicaSet", "/apis/apps/v1/replicasets", parse_thing, snapshot_field="selector_sources", shares_field=True
)
NODE_CLASS: Final = Kind("EC2NodeClass", "/apis/karpenter.k8s.aws/v1/ec2nodeclasses", dict, optional=True)

ALL: Final = (NODE, POD, SERVICE, REPLICA_SET, NODE_CLASS)
