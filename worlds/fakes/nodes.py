"""NodeClaims and Nodes, with the versions, conflicts, finalizers and UIDs of the API server."""

import dataclasses
from dataclasses import replace
from typing import Any, TypeVar

from dovetail.model.names import PLAN
from dovetail.model.nodes import Condition, Node, NodeClaim
from dovetail.model.scheduling.taints import Taint
from dovetail.ports.failures import Conflict, NotReadable, Taken
from dovetail.ports.objects import ClaimStatus, MetadataChange, NewClaim
from worlds.fakes.world import World

AnyObject = TypeVar("AnyObject", Node, NodeClaim)


def _patched(world: World, kept: dict[str, AnyObject], one: AnyObject, fields: dict[str, Any]) -> AnyObject | None:
    live = kept.get(one.name)
    if live is None or live.uid != one.uid:
        return None
    if live.resource_version != one.resource_version:
        world.ledger.append(f"conflict {one.name}")
        raise Conflict(one.name, "the object has been modified")
    changed = replace(live, **fields, resource_version=world.version())
    if changed.deleting_since is not None and not changed.finalizers:
        del kept[one.name]
        return changed
    kept[one.name] = changed
    return changed


def _metadata(live: Node | NodeClaim, change: MetadataChange) -> dict[str, Any]:
    labels = {**live.labels, **change.labels}
    annotations = {**live.annotations, **change.annotations}
    fields: dict[str, Any] = {
        "labels": {key: value for key, value in labels.items() if value is not None},
        "annotations": {key: value for key, value in annotations.items() if value is not None},
    }
    if change.finalizers is not None:
        fields["finalizers"] = change.finalizers
    if change.add_owner is not None:
        fields["owners"] = (*live.owners, change.add_owner)
    return fields


def _deleted(world: World, kept: dict[str, AnyObject], name: str, uid: str) -> int:
    live = kept.get(name)
    if live is None or live.uid != uid:
        return 0
    if not live.finalizers:
        del kept[name]
        return 0
    if live.deleting_since is None:
        kept[name] = replace(live, deleting_since=world.clock, resource_version=world.version())
    return int(kept[name].resource_version)


class FakeClaims:
    """NodeClaims."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def create(self, claim: NewClaim) -> NodeClaim:
        self.world.ledger.append(f"create claim {claim.name}")
        known = self.world.claims.get(claim.name)
        if known is not None:
            if known.annotations.get(PLAN) != claim.annotations.get(PLAN):
                raise Taken(claim.name, "made by someone else")
            return known
        fields = {one.name: getattr(claim, one.name) for one in dataclasses.fields(claim) if one.name != "owner"}
        owners = () if claim.owner is None else (claim.owner,)
        made = NodeClaim(
            **fields, uid=f"uid-{claim.name}", created=self.world.clock, owners=owners, capacity={}, allocatable={}
        )
        self.world.put(made)
        return self.world.claims[claim.name]

    async def may_create(self, claim: NewClaim) -> None:
        self.world.ledger.append(f"judge claim {claim.name}")

    async def read(self, name: str) -> NodeClaim | None:
        self.world.ledger.append(f"get claim {name}")
        self._parse(name)
        return self.world.claims.get(name)

    def _parse(self, name: str) -> None:
        """Every answer is parsed, that of a write as well."""
        if name in self.world.unreadable and name in self.world.claims:
            raise NotReadable(f"NodeClaim/{name}", "spec.requirements: not a list")

    def answered(self, name: str) -> NodeClaim | None:
        return None

    async def patch(self, claim: NodeClaim, change: MetadataChange) -> NodeClaim | None:
        self.world.ledger.append(f"patch claim {claim.name}")
        self._parse(claim.name)
        return _patched(self.world, self.world.claims, claim, _metadata(claim, change))

    async def annotated_by(self, name: str, annotation: str) -> str:
        return "kubectl-annotate"

    async def patch_status(self, claim: NodeClaim, status: ClaimStatus) -> NodeClaim | None:
        self.world.ledger.append(f"patch status {claim.name}")
        self._parse(claim.name)
        plain = ("provider_id", "image_id", "node_name", "capacity", "allocatable", "conditions", "last_pod_event")
        given = {name: getattr(status, name) for name in plain}
        fields = {name: value for name, value in given.items() if value is not None}
        return _patched(self.world, self.world.claims, claim, fields)

    async def delete(self, name: str, uid: str) -> int:
        self.world.ledger.append(f"delete claim {name}")
        return _deleted(self.world, self.world.claims, name, uid)


class FakeNodes:
    """Nodes."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def read(self, name: str) -> Node | None:
        self.world.ledger.append(f"get node {name}")
        if name in self.world.unreadable and name in self.world.nodes:
            raise NotReadable(f"Node/{name}", "spec.taints: not a list")
        return self.world.nodes.get(name)

    async def list_by_provider_id(self, provider_id: str) -> tuple[Node, ...]:
        found = self.world.nodes.values()
        return tuple(node for node in found if node.provider_id == provider_id)

    async def patch(self, node: Node, change: MetadataChange, taints: tuple[Taint, ...] | None = None) -> Node | None:
        self.world.ledger.append(f"patch node {node.name}")
        fields = _metadata(node, change)
        if taints is not None:
            fields["taints"] = taints
        return _patched(self.world, self.world.nodes, node, fields)

    async def set_conditions(self, node: Node, conditions: tuple[Condition, ...]) -> None:
        said = " ".join(f"{each.type}={each.status}" for each in conditions)
        self.world.ledger.append(f"node {node.name} says {said}")
        live = self.world.nodes.get(node.name)
        if live is not None and live.uid == node.uid:
            merged = {each.type: each for each in (*live.conditions, *conditions)}
            self.world.put(replace(live, conditions=tuple(merged.values())))

    async def delete(self, name: str, uid: str) -> int:
        self.world.ledger.append(f"delete node {name}")
        return _deleted(self.world, self.world.nodes, name, uid)
