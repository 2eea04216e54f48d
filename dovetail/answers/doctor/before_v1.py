"""What clusters still have from Karpenter before v1: nothing reads it any more, and nothing else reports it."""

from typing import Final

from dovetail.answers.doctor.findings import Check, warned
from dovetail.answers.wording import plural, shown
from dovetail.model import names
from dovetail.model.snapshot import Snapshot
from dovetail.ports.inspection import ClusterFacts

NAME: Final = "before v1"
SHOWN: Final = 3
_NODE_CLASS: Final = "write a NodeClass of today in its place, then delete it"
_WAYS: Final = {
    "Provisioner": "write a NodePool in its place, then delete it",
    "Machine": "with a Karpenter of v0.32 to v0.37 it becomes a NodeClaim; delete it if its instance is gone",
    "ConfigMap": "its settings are variables of the worker now (reference/settings.md); then delete it",
}


def old_objects_checks(facts: ClusterFacts) -> tuple[Check, ...]:
    """Old kinds and settings that still exist."""
    return tuple(
        warned(f"{NAME}: {kind}", f"{kind} {name}: nobody reads it", _WAYS.get(kind, _NODE_CLASS))
        for kind, name in sorted(each.split() for each in facts.left_behind)
    )


def old_annotations_checks(snapshot: Snapshot) -> tuple[Check, ...]:
    """Pods and nodes that people believe to be protected and that are not."""
    pods = [f"Pod {pod.name}" for pod in snapshot.pods.values() if names.DO_NOT_EVICT in (pod.annotations or ())]
    nodes = [f"Node {node.name}" for node in snapshot.nodes.values() if names.DO_NOT_CONSOLIDATE in node.annotations]
    kinds = ((names.DO_NOT_EVICT, sorted(pods)), (names.DO_NOT_CONSOLIDATE, sorted(nodes)))
    return tuple(
        warned(
            f"{NAME}: {key.partition('/')[2]}",
            f"{plural(len(found), 'object')} with {key}, which protects nothing: {shown(found, SHOWN)}",
            f'use {names.DO_NOT_DISRUPT}: "true" instead',
        )
        for key, found in kinds
        if found
    )
