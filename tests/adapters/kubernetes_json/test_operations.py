"""A change of a Node names its parts, and each part is guarded by what it was decided on (PLM-8)."""

from dataclasses import replace

from dovetail.adapters.kubernetes_json.rendering.operations import node_operations
from dovetail.model.nodes import Node
from dovetail.model.pods import Owner
from dovetail.model.scheduling.taints import Taint
from dovetail.ports.objects import MetadataChange

OUT = Taint(key="example.com/out", effect="NoExecute")
FIRST = Taint(key="karpenter.sh/unregistered", effect="NoExecute")
MARK = Taint(key="karpenter.sh/disrupted", effect="NoSchedule")
NODE = Node(
    name="n",
    uid="u",
    resource_version="5",
    labels={"a": "1"},
    taints=(FIRST, OUT),
    finalizers=("x",),
    capacity={},
    allocatable={},
)
SAME = [
    {"op": "test", "path": "/metadata/uid", "value": "u"},
    {"op": "test", "path": "/metadata/deletionTimestamp", "value": None},
]


def test_a_taint_that_stays_is_not_written_and_one_that_goes_is_named() -> None:
    """Written back it would lose the time from which evictions count."""
    assert node_operations(NODE, MetadataChange(), (OUT, MARK)) == [
        *SAME,
        {"op": "test", "path": "/spec/taints/0/key", "value": FIRST.key},
        {"op": "test", "path": "/spec/taints/0/effect", "value": FIRST.effect},
        {"op": "remove", "path": "/spec/taints/0"},
        {"op": "add", "path": "/spec/taints/-", "value": {"key": MARK.key, "effect": MARK.effect}},
    ]


def test_labels_are_set_where_they_are_as_they_were_seen() -> None:
    change = MetadataChange(labels={"a": None, "b/c": "2", "never": None}, annotations={"k": "v"})
    assert node_operations(NODE, change, None) == [
        *SAME,
        {"op": "test", "path": "/metadata/labels/a", "value": "1"},
        {"op": "remove", "path": "/metadata/labels/a"},
        {"op": "test", "path": "/metadata/labels/b~1c", "value": None},
        {"op": "add", "path": "/metadata/labels/b~1c", "value": "2"},
        {"op": "test", "path": "/metadata/annotations", "value": None},
        {"op": "add", "path": "/metadata/annotations", "value": {"k": "v"}},
    ]


def test_finalizers_and_owners_are_lists_that_must_be_as_they_were() -> None:
    owner = Owner(api_version="v1", kind="Node", name="o", uid="o")
    reference = {"apiVersion": "v1", "kind": "Node", "name": "o", "uid": "o", "blockOwnerDeletion": True}
    change = MetadataChange(finalizers=("x", "y"), add_owner=owner)
    finalizers = [
        {"op": "test", "path": "/metadata/finalizers", "value": ["x"]},
        {"op": "add", "path": "/metadata/finalizers", "value": ["x", "y"]},
    ]
    assert node_operations(NODE, change, None) == [
        *SAME,
        *finalizers,
        {"op": "test", "path": "/metadata/ownerReferences", "value": None},
        {"op": "add", "path": "/metadata/ownerReferences", "value": [reference]},
    ]
    owned = replace(NODE, owners=(replace(owner, uid="other"),))
    last = {"op": "add", "path": "/metadata/ownerReferences/-", "value": reference}
    assert node_operations(owned, change, None) == [*SAME, *finalizers, last]
    assert node_operations(replace(NODE, owners=(owner,)), change, None) == [*SAME, *finalizers]


def test_what_begins_to_leave_is_no_longer_what_was_decided_on() -> None:
    leaving = replace(NODE, taints=(), deleting_since=1.0)
    assert node_operations(leaving, MetadataChange(), (MARK,)) == [
        SAME[0],
        {"op": "test", "path": "/spec/taints", "value": None},
        {"op": "add", "path": "/spec/taints", "value": [{"key": MARK.key, "effect": MARK.effect}]},
    ]
