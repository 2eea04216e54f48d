"""CapacityBuffers: what room they ask for (PLC-211, PLC-212) and what a pass makes of it (PLC-29, PLC-213, PLC-214;
PLT-171)."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from dovetail.model import names
from dovetail.model.nodes import Condition, Node, NodeClaim
from dovetail.model.objects.buffers import WorkloadRef
from dovetail.model.objects.judging import Judging
from dovetail.model.pods import Pod
from dovetail.model.pools import NodePool
from dovetail.model.scheduling.taints import Taint
from dovetail.model.values.resources import parse_resources
from dovetail.placement.buffers.status import judged_status
from dovetail.placement.buffers.verdicts import for_real_pods, verdicts, why_held
from dovetail.placement.buffers.virtual_pods import (
    MOST_OF_ALL,
    MOST_PODS,
    Resolved,
    Unresolved,
    buffer_of,
    resolutions,
    resolve,
    virtual_pods,
)
from dovetail.placement.earlier_claims import in_vain_for_buffers
from dovetail.placement.proposals import proposed_nodes
from dovetail.rules.brake.unused_launches import unused_launch, whose_pods, with_unused_launch
from tests.placement.buffer_worlds import DEPLOYMENT, a_buffer, a_source, a_template, with_buffers
from tests.placement.builders import a_general_pool, a_joined_pair, a_snapshot, a_waiting_pod, an_index, groups, placed
from worlds.disruption import NOW


def asked_for(of: int = 0, **fields: Any) -> int:
    """For how many pods a buffer asks for room; `of`: replicas of the workload that it follows, if any."""
    where: dict[str, Any] = {"workload": DEPLOYMENT} if of else {"replicas": None}
    buffer = a_buffer(**where | fields)
    found = resolve(buffer, a_snapshot(**with_buffers(buffer, Deployment=a_source(of))))
    assert isinstance(found, Resolved)
    return found.replicas


@pytest.mark.parametrize(
    ("fields", "count"),
    [
        ({"replicas": 3}, 3),
        ({"replicas": 0}, 0),
        ({}, 0),
        ({"limits": {"cpu": "2500m"}}, 2),
        ({"limits": {"cpu": "10", "memory": "3Gi"}}, 3),
        ({"limits": {"example.com/gpu": "3"}}, 0),
        ({"limits": {"example.com/gpu": "3"}, "replicas": 5}, 5),
        ({"limits": {"cpu": "2"}, "replicas": 5}, 2),
        ({"limits": {"cpu": "9"}, "replicas": 5}, 5),
        ({"limits": {"cpu": "500m"}, "replicas": 5}, 0),
        ({"limits": {"pods": "1"}, "replicas": 5}, 5),
    ],
)
def test_a_buffer_asks_for_its_replicas_within_its_limits(fields: dict[str, Any], count: int) -> None:
    """PLC-211: the limits alone where no size is given; only resources that the pods ask for count."""
    limits = parse_resources(fields.get("limits"))
    assert asked_for(**fields | {"limits": limits}) == count


@pytest.mark.parametrize(
    ("replicas", "fields", "count"),
    [
        (10, {"percentage": 20}, 2),
        (11, {"percentage": 20}, 3),
        (1, {"percentage": 1}, 1),
        (10, {"percentage": 0}, 0),
        (10, {"percentage": 300}, 30),
        (10, {"percentage": 20, "replicas": 5}, 5),
        (10, {"percentage": 80, "replicas": 5}, 8),
        (10, {"percentage": 80, "limits": {"cpu": 3 * 10**9}}, 3),
    ],
)
def test_a_percentage_is_of_the_workload_and_rounded_up(replicas: int, fields: dict[str, Any], count: int) -> None:
    """The greater of the two that are asked for (PLC-211)."""
    assert asked_for(replicas, **fields) == count


@pytest.mark.parametrize(("limits", "count"), [({}, 0), ({"cpu": 4 * 10**9}, 4)])
def test_a_percentage_of_no_replicas_is_no_size(limits: dict[str, int], count: int) -> None:
    """A percentage of no replicas is no size (PLC-211)."""
    buffer = a_buffer(workload=DEPLOYMENT, percentage=50, limits=limits)
    found = resolve(buffer, a_snapshot(**with_buffers(buffer, Deployment=a_source(0))))
    assert isinstance(found, Resolved) and found.replicas == count


@pytest.mark.parametrize("kind", ["StatefulSet", "ReplicaSet"])
def test_other_workloads_are_followed_too(kind: str) -> None:
    """Other workloads are followed too (PLC-211)."""
    buffer = a_buffer(workload=WorkloadRef(kind=kind, name="web"), percentage=50)
    found = resolve(buffer, a_snapshot(**with_buffers(buffer, cpu="1", **{kind: a_source(4)})))
    assert isinstance(found, Resolved) and found.replicas == 2


@pytest.mark.parametrize(
    ("fields", "reason", "message"),
    [
        (
            {"template": "large", "replicas": 1},
            "PodTemplateNotFound",
            'spec.podTemplateRef: PodTemplate "large" does not exist in namespace default',
        ),
        (
            {"workload": DEPLOYMENT},
            "ScalableRefNotFound",
            'spec.scalableRef: Deployment "web" does not exist in namespace default',
        ),
        (
            {"workload": WorkloadRef(group="batch", kind="Job", name="web")},
            "ResolutionFailed",
            'spec.scalableRef: Job "web" is none of Deployment, StatefulSet, ReplicaSet of the group apps',
        ),
        ({"template": ""}, "ResolutionFailed", "spec: neither podTemplateRef nor scalableRef is set"),
        ({"fault": "spec.limits: not a quantity: 'much'"}, "ResolutionFailed", "spec.limits: not a quantity: 'much'"),
        (
            {"replicas": 10_001},
            "ResolutionFailed",
            f"spec: 10001 pods are more than the {MOST_PODS} that a buffer may have",
        ),
    ],
)
def test_what_cannot_be_resolved_is_said_by_object_and_field(fields: dict[str, Any], reason: str, message: str) -> None:
    """PLC-211; the others go on."""
    bad, good = a_buffer("bad", **fields), a_buffer("good", replicas=2)
    world = a_snapshot(**with_buffers(bad, good))

    assert resolve(bad, world) == Unresolved(reason=reason, message=message)  # type: ignore[arg-type]
    assert [pod.name for pod in virtual_pods(world).pending] == ["capacity-buffer-good-1", "capacity-buffer-good-2"]


def test_the_many_buffers_of_one_namespace_leave_the_others_their_room() -> None:
    """PLC-211: a hundred buffers made a million pods, in every pass and every answer."""
    of_many = [a_buffer(f"many-{number:03}", namespace="greedy", replicas=MOST_PODS) for number in range(100)]
    others = [a_buffer("first", namespace="a", replicas=3), a_buffer("last", namespace="z", replicas=MOST_PODS)]
    templates = {f"{namespace}/small": a_source() for namespace in ("a", "greedy", "z")}
    world = a_snapshot([a_waiting_pod("real")], **with_buffers(*of_many, *others) | {"pod_templates": templates})

    made = Counter(buffer_of(pod) for pod in virtual_pods(world).pending)
    found = {buffer.key: each for buffer, each in resolutions(world, "placement", Judging())}

    assert sum(made.values()) <= MOST_OF_ALL < 100 * MOST_PODS
    assert (made["a/first"], made["z/last"], made["greedy/many-000"]) == (3, MOST_PODS, MOST_PODS)
    beyond = found["greedy/many-099"]
    assert isinstance(beyond, Unresolved) and beyond.reason == "ResolutionFailed"
    assert beyond.message == (
        "spec: with these 10000 pods all buffers would ask for more than 50000; "
        "namespaces come in turn, by what they have so far"
    )


def test_a_template_that_cannot_be_read_is_named_with_its_fault() -> None:
    """A template that cannot be read is named with its fault (PLC-211)."""
    buffer = a_buffer()
    world = a_snapshot(
        **with_buffers(buffer) | {"pod_templates": {"default/small": a_source(pod=None, fault="no spec")}}
    )
    found = resolve(buffer, world)
    assert isinstance(found, Unresolved)
    assert found.message == 'spec.podTemplateRef: PodTemplate "small" cannot be read: no spec'


def test_virtual_pods_are_the_template_with_names_uids_and_annotations_of_the_buffer() -> None:
    """Virtual pods are the template with names, UIDs and annotations of the buffer (PLC-212, PLT-171)."""
    pods = virtual_pods(a_snapshot(**with_buffers(a_buffer(replicas=2)))).pending

    assert [(p.namespace, p.name, p.uid) for p in pods] == [
        ("default", "capacity-buffer-spare-1", "buffer-spare-1"),
        ("default", "capacity-buffer-spare-2", "buffer-spare-2"),
    ]
    assert pods[0].annotations == {
        "karpenter.sh/capacity-buffer-fake-pod": "true",
        "karpenter.sh/capacity-buffer-name": "spare",
        "karpenter.sh/capacity-buffer-namespace": "default",
    }
    assert (pods[0].unschedulable, pods[0].priority, pods[0].node_name) == (True, -(2**31), "")
    assert (pods[0].shape.labels, pods[0].requests) == ({"app": "web"}, a_template().requests)
    assert pods[0].shape is pods[1].shape


@pytest.mark.parametrize("fields", [{"strategy": "example.com/asleep"}, {"deleting": True}])
def test_a_buffer_of_another_strategy_or_one_that_goes_asks_for_nothing(fields: dict[str, Any]) -> None:
    assert virtual_pods(a_snapshot(**with_buffers(a_buffer(**fields)))).pending == ()


def test_virtual_pods_make_new_nodes_beside_pending_pods() -> None:
    """Virtual pods make new nodes beside pending pods (PLC-29, PLC-213)."""
    world = a_snapshot([a_waiting_pod("real", "3")], **with_buffers(a_buffer(replicas=1)))

    assert groups(placed(world)) == [["capacity-buffer-spare-1", "real"]]


def test_a_resource_that_only_buffers_ask_for_is_counted() -> None:
    """PLC-29: a node without it is no place."""
    template = a_template(requests={**a_template().requests, "example.com/gpu": 1})
    fields = with_buffers(a_buffer()) | {"pod_templates": {"default/small": a_source(pod=template)}}

    result = placed(a_snapshot(nodes=[a_joined_pair("n1", cpu="8")], **fields))

    assert (dict(result.existing), result.new, len(result.refused)) == ({}, (), 3)


@pytest.mark.parametrize(
    ("cpu", "replicas", "nodes", "verdict"),
    [
        ("1", 3, ["4"], "FitsExistingCapacity"),
        ("1", 5, ["4"], "RequiresNewCapacity"),
        ("1", 1, [], "RequiresNewCapacity"),
        ("99", 1, ["4"], "RequiresNewCapacity"),
        ("1", 0, ["4"], None),
    ],
)
def test_a_buffer_fits_where_all_its_room_stands(
    cpu: str, replicas: int, nodes: list[str], verdict: str | None
) -> None:
    """PLC-214, PLT-171: any pod on a new claim, or refused, needs new capacity; of no pods nothing is said."""
    pairs = [a_joined_pair(f"n{number}", cpu=size) for number, size in enumerate(nodes)]
    world = a_snapshot(nodes=pairs, **with_buffers(a_buffer(replicas=replicas), cpu=cpu))

    assert verdicts(world, placed(world)).get("default/spare") == verdict


def test_each_buffer_is_judged_for_itself() -> None:
    """Each buffer is judged by itself (PLC-214)."""
    world = a_snapshot(
        nodes=[a_joined_pair("n1", cpu="2")], **with_buffers(a_buffer("one", replicas=2), a_buffer("two"))
    )

    assert verdicts(world, placed(world)) == {
        "default/one": "FitsExistingCapacity",
        "default/two": "RequiresNewCapacity",
    }


def test_where_no_pool_is_usable_nothing_is_seen_of_a_buffer() -> None:
    """Where no pool is usable, a buffer gets no verdict (PLC-12, PLC-214)."""
    world = a_snapshot(pools=[], nodes=[a_joined_pair("n1")], **with_buffers(a_buffer()))

    assert verdicts(world, placed(world)) == {}
    assert for_real_pods(placed(world)).ignored == ()


def test_real_pods_are_nominated_counted_and_reported_as_if_there_were_no_buffer() -> None:
    """PLC-213, PLT-171: filtered from nominations, errors and mappings."""
    pending = [a_waiting_pod("fits"), a_waiting_pod("large", "99")]
    world = a_snapshot(
        pending, [a_joined_pair("n1", cpu="1"), a_joined_pair("n2", cpu="1")], **with_buffers(a_buffer(replicas=2))
    )

    whole, result = placed(world), for_real_pods(placed(world))

    assert [len(pods) for pods in whole.existing.values()] == [1, 1]
    assert {name: [p.name for p in pods] for name, pods in result.existing.items()} == {"n1": ["fits"]}
    assert result.nominated == ("n1",)
    assert [r.pod.name for r in result.refused] == ["large"]
    assert [node.pods for node in result.new] == [()]


def test_a_plan_counts_virtual_pods_and_names_real_ones() -> None:
    """PLC-213: a plan of a thousand virtual pods is as long as one of ten."""
    world = a_snapshot([a_waiting_pod("real")], **with_buffers(a_buffer(replicas=4)))

    (node,), _ = proposed_nodes(placed(world).new, an_index(world).settings.well_known)

    assert ([pod.name for pod in node.pods], node.buffers) == (["real"], (("buffer-spare", 4),))


def test_virtual_pods_that_a_claim_on_its_way_is_for_are_promised_room() -> None:
    """the next round leaves them out; a simulation counts them."""
    _, claim = a_joined_pair("n1")
    coming = replace(claim, provider_id="", annotations={names.PLANNED_BUFFERS: "buffer-spare=2,other=7"})
    world = replace(a_snapshot(**with_buffers(a_buffer(replicas=3))), claims={claim.name: coming})

    waiting = an_index(world).waiting()

    assert [pod.name for pod in waiting.pending] == ["capacity-buffer-spare-1"]
    assert [pod.name for pod in waiting.promised] == ["capacity-buffer-spare-2", "capacity-buffer-spare-3"]
    assert verdicts(world, placed(world)) == {"default/spare": "RequiresNewCapacity"}


UNEXPECTED = Taint(key="example.com/stays", value="x", effect="NoSchedule")  # no plan knows that nodes get it


def a_node_made_for_the_buffer(name: str, ago: float = 60.0, **fields: Any) -> tuple[Node, NodeClaim]:
    """It has come up, and an agent has put a taint on it."""
    ready = (Condition(type=names.READY, status="True"),)
    node, claim = a_joined_pair(name, **{"taints": (UNEXPECTED,), "conditions": ready} | fields)
    up = Condition(type=names.INITIALIZED_CONDITION, status="True", changed=NOW - ago)
    return node, replace(
        claim, created=NOW - ago, annotations={names.PLANNED_BUFFERS: "buffer-spare=1"}, conditions=(up,)
    )


def test_a_buffer_whose_nodes_take_none_of_its_pods_gets_no_third_one_and_its_status_says_why() -> None:
    """PLQ-32: as a pod gets none; a node each second followed, which nothing stopped."""
    one, two = (a_node_made_for_the_buffer(name) for name in ("n1", "n2"))
    asking = with_buffers(a_buffer(replicas=1))
    held = a_snapshot(nodes=[one, two], **asking)

    assert len(placed(a_snapshot(nodes=[one], **asking)).new) == 1
    assert placed(held).new == ()
    assert verdicts(held, placed(held)) == {"default/spare": "RequiresNewCapacity"}
    assert why_held(placed(held))["default/spare"].startswith(
        "2 nodes that were made for it within an hour stand empty"
    )
    status = judged_status(a_buffer(), "RequiresNewCapacity", NOW, why_held(placed(held))["default/spare"])
    assert "what its pods ask for and what the nodes have do not agree" in status.conditions[-1].message


def leaving(of: tuple[Node, NodeClaim], **marks: Any) -> tuple[Node, NodeClaim]:
    """As a disruption has marked it."""
    disrupted = Taint(key=names.DISRUPTED_TAINT, effect="NoSchedule")
    node, claim = of
    marked = {**claim.annotations, names.OWNER: "c/disrupt/1"}
    return replace(node, taints=(*node.taints, disrupted)), replace(claim, annotations=marked, **marks)


def a_pool_that_remembers(*claims: str) -> NodePool:
    pool = a_general_pool()
    for claim in claims:
        launch = unused_launch(claim, NOW - 60.0, ["buffer-spare"], whose_pods([a_waiting_pod("virtual")]))
        pool = with_unused_launch(pool, launch, NOW)
    return pool


@pytest.mark.parametrize(
    ("stand", "leave", "gone", "made"),
    [(1, 1, 0, 0), (0, 2, 0, 0), (1, 0, 1, 0), (0, 0, 2, 0), (0, 0, 1, 1), (0, 1, 0, 1)],
)
def test_nodes_that_were_of_no_use_to_a_buffer_count_as_they_leave_and_once_they_have_gone(
    stand: int, leave: int, gone: int, made: int
) -> None:
    """PLQ-32: each time that they were taken away as empty two new ones followed."""
    nodes = [a_node_made_for_the_buffer(f"n{n}") for n in range(stand)]
    left = [leaving(a_node_made_for_the_buffer(f"l{n}"), deleting_since=NOW - 1.0) for n in range(leave)]
    pool = a_pool_that_remembers(*(f"gone{n}" for n in range(gone)), *(claim.name for _, claim in left))
    world = a_snapshot(nodes=[*nodes, *left], pools=[pool], **with_buffers(a_buffer(replicas=1)))

    placement = placed(world)

    assert len(placement.new) == made
    assert made or "of them have gone" in why_held(placement)["default/spare"] or not gone


def test_a_node_that_is_taken_away_although_a_buffer_s_pods_fit_on_it_proves_nothing() -> None:
    """PLQ-32: others had room for them."""
    nodes = [leaving(a_node_made_for_the_buffer(f"n{n}", taints=())) for n in range(3)]

    assert len(placed(a_snapshot(nodes=nodes, **with_buffers(a_buffer(replicas=1)))).new) == 1


@pytest.mark.parametrize(
    ("pair", "in_vain"),
    [
        (leaving(a_node_made_for_the_buffer("n1")), True),
        (leaving(a_node_made_for_the_buffer("n1", taints=())), False),
        (leaving(a_node_made_for_the_buffer("n1", taints=(), cpu="0.5")), True),
        (leaving(a_node_made_for_the_buffer("n1", ago=5.0)), False),
    ],
    ids=["does not suit them", "would take them", "too small", "just up"],
)
def test_what_its_pool_remembers_of_a_buffer_s_node_that_begins_to_leave(
    pair: tuple[Node, NodeClaim], in_vain: bool
) -> None:
    """PLQ-32."""
    world = a_snapshot(nodes=[pair], **with_buffers(a_buffer(replicas=1)))

    assert list(in_vain_for_buffers(pair[1], world)) == (["buffer-spare"] if in_vain else [])
    assert in_vain_for_buffers(pair[1], a_snapshot(nodes=[pair])) == {}  # the buffer is gone


@pytest.mark.parametrize(("after", "in_vain"), [(299.0, False), (900.0, True)])
def test_a_node_that_never_came_up_was_of_no_use_to_its_buffer(after: float, in_vain: bool) -> None:
    """PLQ-32, LIF-83: a new one followed every quarter of an hour."""
    node, claim = a_node_made_for_the_buffer("n1", ago=after)
    claim = replace(claim, conditions=(), deleting_since=NOW)
    world = a_snapshot(nodes=[(node, claim)], **with_buffers(a_buffer(replicas=1)))

    assert list(in_vain_for_buffers(claim, world)) == (["buffer-spare"] if in_vain else [])


@pytest.mark.parametrize(
    ("of_second", "pods"),
    [
        ({"ago": 3601.0}, []),
        ({"unschedulable": True}, []),
        ({"conditions": (Condition(type=names.READY, status="False"),)}, []),
        ({}, [a_waiting_pod("real", node_name="n2")]),
        ({"taints": ()}, [a_waiting_pod("real", cpu="4", node_name="n2")]),
    ],
    ids=["an hour ago", "cordoned", "not ready", "used in spite of it", "its room was taken"],
)
def test_a_buffer_goes_on_where_its_nodes_prove_nothing(of_second: dict[str, Any], pods: list[Pod]) -> None:
    """PLQ-32."""
    pairs = [a_node_made_for_the_buffer("n1"), a_node_made_for_the_buffer("n2", **of_second)]

    assert len(placed(a_snapshot(pods, pairs, **with_buffers(a_buffer(replicas=1)))).new) == 1


def never_joined(*claims: str) -> dict[str, Any]:
    """A pool that remembers these claims for the buffer, which ended a moment ago."""
    pool = a_general_pool()
    for claim in claims:
        pool = with_unused_launch(pool, unused_launch(claim, NOW - 1.0, ["buffer-spare"]), NOW)
    return {"pools": [pool]}


def test_a_buffer_whose_nodes_never_join_gets_no_third_one_within_the_hour_and_its_status_says_why() -> None:
    """PLQ-32."""
    asking = with_buffers(a_buffer(replicas=1))
    held = a_snapshot(**asking, **never_joined("c1", "c2"))

    assert len(placed(a_snapshot(**asking, **never_joined("c1"))).new) == 1
    assert placed(held).new == ()
    assert why_held(placed(held))["default/spare"].startswith(
        "2 nodes that were made for it within an hour were of no use to it, and 2 of them have gone"
    )


def test_a_buffer_of_which_a_node_has_come_up_gets_another_for_those_that_never_joined() -> None:
    """PLQ-32: two of a hundred say nothing of the others."""
    pair = a_node_made_for_the_buffer("n1", taints=())
    world = a_snapshot(nodes=[pair], **with_buffers(a_buffer(replicas=9)), **never_joined("c1", "c2"))

    assert placed(world).new


def test_the_nodes_of_a_large_buffer_are_full_and_prove_nothing() -> None:
    """PLQ-32: what is asked for beyond them gets further ones."""
    pairs = [a_node_made_for_the_buffer(name, taints=()) for name in ("n1", "n2", "n3")]

    assert len(placed(a_snapshot(nodes=pairs, **with_buffers(a_buffer(replicas=20)))).new) > 0


def test_real_pods_of_the_same_size_go_first() -> None:
    """Of the room that stands, pods that exist take theirs before pods that do not."""
    late = a_waiting_pod("late", created=NOW - 1)
    world = a_snapshot([late], [a_joined_pair("n1", cpu="1")], **with_buffers(a_buffer(replicas=1)))

    assert [p.name for p in placed(world).existing["n1"]] == ["late"]
