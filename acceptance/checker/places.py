"""The places of an answer: new claims and existing nodes, each with what it offers and who is on it.

Used by the checker only: turns the recorded notation into places that can be judged alike.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from acceptance.checker.values import ANYTHING, Allowed, amounts, by_key, pod_amounts

Raw = Mapping[str, Any]
HOSTNAME = "kubernetes.io/hostname"


@dataclass(eq=False)
class Place:
    """A node, existing or new."""

    name: str
    taints: list[Raw]
    requirements: dict[str, Allowed]
    new: bool
    claim: Raw | None = None
    pool: str = ""
    room: dict[str, Fraction] = field(default_factory=dict)
    bound: list[Raw] = field(default_factory=list)
    placed: list[Raw] = field(default_factory=list)

    def values(self, key: str) -> frozenset[str] | None:
        """The values that the node may have for a key; None if that is open."""
        if key == HOSTNAME and self.new:
            return frozenset((self.name,))
        return self.requirements.get(key, ANYTHING).finite()

    @property
    def pods(self) -> list[Raw]:
        """Everybody on it."""
        return [*self.bound, *self.placed]


class World:
    """A recorded input, indexed."""

    def __init__(self, given: Raw) -> None:
        self.given = given
        self.pools = {p["metadata"]["name"]: p for p in given.get("nodePools") or ()}
        lists = given.get("instanceTypes") or {}
        self.types = {
            pool: {entry["name"]: entry for entry in lists.get(pool, lists.get("*", []))} for pool in self.pools
        }
        self.pods = {p["metadata"]["name"]: p for p in given.get("pods") or ()}
        self.namespaces = {n["metadata"]["name"]: n for n in given.get("namespaces") or ()}
        self.nodes = {n["metadata"]["name"]: n for n in given.get("nodes") or ()}
        self.claims = {c["metadata"]["name"]: c for c in given.get("nodeClaims") or ()}
        self.by_provider = {c["status"].get("providerID"): c for c in self.claims.values() if c.get("status")}

    def bound_to(self, node: str) -> list[Raw]:
        """The live pods of a node."""
        return [
            pod
            for pod in self.pods.values()
            if pod["spec"].get("nodeName") == node
            and (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")
        ]

    def existing(self, name: str) -> Place:
        """An existing node by its own name, or by its claim's while it has not joined."""
        node = self.nodes.get(name)
        claim = self.claims.get(name)
        if node is not None:
            claim = self.by_provider.get(node["spec"].get("providerID"))
        elif claim is not None:
            node = next(
                (n for n in self.nodes.values() if n["spec"].get("providerID") == claim["status"].get("providerID")),
                None,
            )
        speaker = self.nodes.get(name) or claim
        assert speaker is not None, f"{name} is no node and no claim"
        labels = dict(speaker["metadata"].get("labels") or {})
        labels.setdefault(HOSTNAME, name)
        initialized = claim is None or labels.get("karpenter.sh/initialized") == "true"
        taints = list((speaker.get("spec") or {}).get("taints") or ())
        startup = ((claim or {}).get("spec") or {}).get("startupTaints") or ()
        if not initialized:
            taints = [t for t in taints if not any(t["key"] == s["key"] for s in startup) and not _passes(t)]
        room = amounts((node or {}).get("status", {}).get("allocatable"))
        if not initialized and claim is not None:
            for resource, amount in amounts(claim["status"].get("allocatable")).items():
                if not room.get(resource):
                    room[resource] = amount
        place = Place(
            name=name,
            taints=taints,
            requirements=by_key({"key": k, "operator": "In", "values": [v]} for k, v in labels.items()),
            new=False,
            pool=labels.get("karpenter.sh/nodepool", ""),
            room=room,
        )
        if node is not None:
            place.bound = self.bound_to(node["metadata"]["name"])
        for pod in place.bound:
            for resource, amount in pod_amounts(pod["spec"]).items():
                place.room[resource] = place.room.get(resource, Fraction(0)) - amount
        return place

    def places(self, answer: Raw) -> list[Place]:
        """All places of an answer, and the existing nodes that nobody was put on."""
        found = []
        for number, claim in enumerate(answer["newNodeClaims"]):
            pool = self.pools[claim["nodePool"]]
            place = Place(
                name=f"new-{number}",
                taints=list(pool["spec"]["template"]["spec"].get("taints") or ()),
                requirements=by_key(claim["requirements"]),
                new=True,
                claim=claim,
                pool=claim["nodePool"],
            )
            place.placed = [self.pods[name] for name in claim["pods"]]
            found.append(place)
        for name in {*answer["existing"], *self.nodes}:
            place = self.existing(name)
            place.placed = [self.pods[pod] for pod in answer["existing"].get(name, ())]
            found.append(place)
        return found


def _passes(taint: Raw) -> bool:
    """Taints that go away by themselves while a node comes up."""
    key, effect = taint["key"], taint.get("effect")
    return key.startswith("readiness.k8s.io/") or (key, effect) in (
        ("node.kubernetes.io/not-ready", "NoSchedule"),
        ("node.kubernetes.io/not-ready", "NoExecute"),
        ("node.kubernetes.io/unreachable", "NoSchedule"),
        ("node.cloudprovider.kubernetes.io/uninitialized", "NoSchedule"),
        ("karpenter.sh/unregistered", "NoExecute"),
    )
