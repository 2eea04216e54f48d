"""A change of a Node as operations of a JSON patch, each part guarded by what it was decided on.

A joining kubelet writes its Node several times a second, so a version that was just seen is mostly old; but it writes
other parts than we do. So the parts that we change must be as they were seen, and the Node must be the same one and not
have begun to leave; anything else may have changed. Taints that stay are not written, and so keep the times from which
the node lifecycle controller counts evictions.
"""

from collections.abc import Iterator, Mapping

from dovetail.adapters.kubernetes_json.rendering import fields
from dovetail.model.nodes import Node
from dovetail.model.scheduling.taints import Taint
from dovetail.model.values.json import Json
from dovetail.ports.objects import MetadataChange


def node_operations(node: Node, change: MetadataChange, taints: tuple[Taint, ...] | None) -> list[Json]:
    """The operations, tests first for each part. `taints`: the complete new list; None leaves them."""
    return [
        _test("/metadata/uid", node.uid),
        *([_test("/metadata/deletionTimestamp", None)] if node.deleting_since is None else []),
        *_entries("/metadata/labels", node.labels, change.labels),
        *_entries("/metadata/annotations", node.annotations, change.annotations),
        *_finalizers(node, change),
        *_owners(node, change),
        *(_taints(node.taints, taints) if taints is not None else ()),
    ]


def _test(path: str, value: object) -> Json:
    return {"op": "test", "path": path, "value": value}


def _add(path: str, value: object) -> Json:
    return {"op": "add", "path": path, "value": value}


def _entries(path: str, standing: Mapping[str, str], wanted: Mapping[str, str | None]) -> Iterator[Json]:
    wanted = {key: value for key, value in wanted.items() if value is not None or key in standing}
    if wanted and not standing:
        yield from (_test(path, None), _add(path, dict(wanted)))
        return
    for key, value in wanted.items():
        place = f"{path}/{key.replace('~', '~0').replace('/', '~1')}"
        yield _test(place, standing.get(key))
        yield {"op": "remove", "path": place} if value is None else _add(place, value)


def _finalizers(node: Node, change: MetadataChange) -> Iterator[Json]:
    if change.finalizers is not None and change.finalizers != node.finalizers:
        yield _test("/metadata/finalizers", list(node.finalizers) or None)
        yield _add("/metadata/finalizers", list(change.finalizers))


def _owners(node: Node, change: MetadataChange) -> Iterator[Json]:
    added = change.add_owner
    if added is None or any(owner.uid == added.uid for owner in node.owners):
        return
    if node.owners:
        yield _add("/metadata/ownerReferences/-", fields.owner(added))
        return
    yield _test("/metadata/ownerReferences", None)
    yield _add("/metadata/ownerReferences", [fields.owner(added)])


def _taints(standing: tuple[Taint, ...], wanted: tuple[Taint, ...]) -> Iterator[Json]:
    for place, taint in reversed(list(enumerate(standing))):
        if taint not in wanted:
            yield _test(f"/spec/taints/{place}/key", taint.key)
            yield _test(f"/spec/taints/{place}/effect", taint.effect)
            yield {"op": "remove", "path": f"/spec/taints/{place}"}
    added = [fields.taint(taint) for taint in wanted if taint not in standing]
    if added and not standing:
        yield from (_test("/spec/taints", None), _add("/spec/taints", added))
        return
    yield from (_add("/spec/taints/-", taint) for taint in added)
