"""The parts of every written object: taints, conditions, owner references, amounts, metadata.

Only what a change names is rendered, so that fields of other writers are not rewritten (PLM-8: re-serialising another
writer's quantities would change them). A merge patch keeps a map's missing keys, so a key to be removed is set to null.
"""

from collections.abc import Iterable

from dovetail.model.nodes import Condition, NodeClassRef
from dovetail.model.pods import Expression, Owner
from dovetail.model.scheduling.taints import Taint
from dovetail.model.values.durations import format_seconds
from dovetail.model.values.json import Json
from dovetail.model.values.resources import Resources, format_resources
from dovetail.model.values.time import format_time
from dovetail.ports.objects import MetadataChange


def duration(seconds: float | None) -> str:
    """A duration that may be Never, which is None (API-8)."""
    return "Never" if seconds is None else format_seconds(seconds)


def taint(value: Taint) -> Json:
    """One taint; an empty value is left out."""
    return {"key": value.key, "effect": value.effect, **({"value": value.value} if value.value else {})}


def expression(value: Expression) -> Json:
    rendered: Json = {"key": value.key, "operator": value.operator}
    if value.values:
        rendered["values"] = list(value.values)
    if value.min_values is not None:
        rendered["minValues"] = value.min_values
    return rendered


def owner(value: Owner) -> Json:
    """One owner reference; all of ours block their owner's deletion in the foreground (LIF-1, LIF-23)."""
    rendered: Json = {
        "apiVersion": value.api_version,
        "kind": value.kind,
        "name": value.name,
        "uid": value.uid,
        "blockOwnerDeletion": True,
    }
    return {**rendered, "controller": True} if value.controller else rendered


def node_class(value: NodeClassRef) -> Json:
    """spec.nodeClassRef."""
    return {"group": value.group, "kind": value.kind, "name": value.name}


def condition(value: Condition) -> Json:
    rendered: Json = {
        "type": value.type,
        "status": value.status,
        "reason": value.reason,
        "message": value.message,
        "lastTransitionTime": format_time(value.changed),
    }
    return {**rendered, "observedGeneration": value.generation} if value.generation else rendered


def conditions(values: Iterable[Condition]) -> list[Json]:
    """status.conditions, in the order given (PLM-7)."""
    return [condition(value) for value in values]


def node_conditions(values: Iterable[Condition]) -> list[Json]:
    """Conditions of a Node, each with the time of its last look."""
    return [{**condition(value), "lastHeartbeatTime": format_time(value.changed)} for value in values]


def amounts(new: Resources, old: Resources | None) -> dict[str, str | None]:
    """A resource list in place of an old one."""
    return {**dict.fromkeys(set(old or {}) - set(new)), **format_resources(new)}


def metadata(change: MetadataChange, owners: list[Json]) -> Json:
    """metadata of a merge patch. `owners`: the owner references that the object has now, unchanged."""
    rendered: Json = {}
    for name, entries in (("labels", change.labels), ("annotations", change.annotations)):
        if entries:
            rendered[name] = dict(entries)
    if change.finalizers is not None:
        rendered["finalizers"] = list(change.finalizers)
    if change.add_owner is not None and all(o.get("uid") != change.add_owner.uid for o in owners):
        rendered["ownerReferences"] = [*owners, owner(change.add_owner)]
    return rendered
