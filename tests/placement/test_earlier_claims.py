"""A pod is given no second node while its claim may still become its node, and no third one for an hour (PLQ-32)."""

from dataclasses import replace
from typing import Any

import pytest

from dovetail.model import names
from dovetail.model.nodes import Condition, Node, NodeClaim
from dovetail.model.pods import HostPort, Owner, Pod, PodShape
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.resources import parse_resources
from dovetail.placement.earlier_claims import earlier_claims
from dovetail.rules.brake.unused_launches import unused_launch, with_unused_launch
from tests.placement.builders import (
    CLASS,
    a_bound_pod,
    a_general_pool,
    a_joined_pair,
    a_shape,
    a_snapshot,
    a_waiting_pod,
    groups,
    near,
    placed,
    spread,
)
from worlds.disruption import NOW, a_claim

TINY = parse_resources({"cpu": "100m", "memory": "1Gi", "pods": "110"})


def an_earlier_claim(
    name: str, *pods: Pod, room: dict[str, int] | None = None, ready_for: float = -1.0, **f: Any
) -> NodeClaim:
    """A launched claim that was made for these pods; initialised that long ago."""
    conditions = [Condition(type=names.LAUNCHED, status="True", changed=NOW - 100)]
    if ready_for >= 0:
        conditions.append(Condition(type=names.INITIALIZED_CONDITION, status="True", changed=NOW - ready_for))
    return a_claim(
        name,
        uid="",
        resource_version="",
        generation=0,
        finalizers=(),
        labels={names.NODE_POOL: "default"},
        annotations={names.PLAN: f"{name}/0", names.PLANNED_PODS: ",".join(pod.uid for pod in pods)},
        node_class=CLASS,
        requests={},
        provider_id=f.pop("provider_id", f"p://{name}"),
        capacity=room or TINY,
        allocatable=room or TINY,
        conditions=tuple(conditions),
        created=NOW - 100,
        **f,
    )


def a_joined(name: str, *pods: Pod, ready_for: float, room: dict[str, int] | None = None) -> tuple[Node, NodeClaim]:
    """The same with its node."""
    node, _ = a_joined_pair(name)
    claim = an_earlier_claim(f"claim-{name}", *pods, provider_id=node.provider_id, ready_for=ready_for, room=room)
    return replace(node, allocatable=room or TINY, capacity=room or TINY), replace(claim, node_name=name)


def with_claims(pods: list[Pod], *claims: NodeClaim, **more: Any) -> Snapshot:
    snapshot = a_snapshot(pods, **more)
    return replace(snapshot, claims={**snapshot.claims, **{c.name: c for c in claims}})


def test_a_pod_is_given_no_second_node_while_its_claim_comes_up_too_small() -> None:
    pod = a_waiting_pod("web")
    placement = placed(with_claims([pod], an_earlier_claim("one", pod)))

    assert not placement.new
    assert [(i.pod.uid, i.silent) for i in placement.ignored] == [(pod.uid, True)]
    assert "NodeClaim one was made for it" in placement.ignored[0].why


def test_another_pod_of_the_same_size_is_given_one_at_once() -> None:
    pod, other = a_waiting_pod("web"), a_waiting_pod("late")

    assert groups(placed(with_claims([pod, other], an_earlier_claim("one", pod)))) == [["late"]]


def test_a_pod_keeps_the_room_of_its_claim_against_larger_pods_of_the_same_pass() -> None:
    pod, large = a_waiting_pod("web"), a_waiting_pod("large", cpu="2")
    room = parse_resources({"cpu": "2", "memory": "8Gi", "pods": "110"})

    assert groups(placed(with_claims([pod, large], an_earlier_claim("one", pod, room=room)))) == [["large"]]


@pytest.mark.parametrize(
    ("fields", "nodes"),
    [
        ({"deleting_since": NOW - 1}, 1),  # it failed: another one, at once
        ({"ready_for": 5.0}, 0),  # the kube-scheduler may still bind it
        ({"ready_for": 11.0}, 1),  # it has refused
    ],
)
def test_a_second_node_follows_once_the_first_cannot_become_its_node(fields: dict[str, Any], nodes: int) -> None:
    pod = a_waiting_pod("web")

    assert len(placed(with_claims([pod], an_earlier_claim("one", pod, **fields))).new) == nodes


def test_a_third_node_does_not_follow_and_an_event_says_so() -> None:
    pod = a_waiting_pod("web")
    placement = placed(
        with_claims([pod], an_earlier_claim("one", pod, ready_for=60.0), an_earlier_claim("two", pod, ready_for=30.0))
    )

    assert not placement.new
    assert not placement.ignored[0].silent
    assert "2 NodeClaims were made for it" in placement.ignored[0].why


@pytest.mark.parametrize(
    ("fields", "nodes"),
    [
        ({}, 1),  # taken away before it joined
        ({"ready_for": 5.0}, 1),  # taken away before the kube-scheduler had tried it
        ({"ready_for": 30.0}, 0),  # it stood, and the pod was not bound
        ({"created": NOW - 400}, 0),  # it never joined
        ({"owned": True}, 0),  # it was given up because it stood empty
    ],
)
def test_claims_that_were_taken_away_before_their_node_could_be_tried_do_not_count(
    fields: dict[str, Any], nodes: int
) -> None:
    """AWS ends the instances, or a person deletes the claims: the pod gets its third node at once."""
    pod = a_waiting_pod("web")
    fields = dict(fields)
    owned, created = fields.pop("owned", False), fields.pop("created", NOW - 100)
    claims = [
        replace(an_earlier_claim(name, pod, deleting_since=NOW - 1, **fields), created=created)
        for name in ("one", "two")
    ]
    if owned:
        owner = {names.OWNER: "dovetail/disruption/1"}
        claims = [replace(c, annotations={**c.annotations, **owner}) for c in claims]

    assert len(placed(with_claims([pod], *claims)).new) == nodes


def test_a_pod_that_gets_no_further_node_is_still_placed_on_one_that_stands() -> None:
    pod = a_waiting_pod("web")
    claims = (an_earlier_claim("one", pod, ready_for=60.0), an_earlier_claim("two", pod, ready_for=30.0))
    placement = placed(with_claims([pod], *claims, nodes=[a_joined_pair("wide")]))

    assert {name: [p.name for p in pods] for name, pods in placement.existing.items()} == {"wide": ["web"]}


def test_claims_that_have_ended_count_for_an_hour() -> None:
    pod = a_waiting_pod("web")

    def nodes(age: float) -> int:
        pool = with_unused_launch(a_general_pool(), unused_launch("one", NOW - age, [pod.uid]), NOW - age)
        return len(placed(with_claims([pod], an_earlier_claim("two", pod, ready_for=30.0), pools=[pool])).new)

    assert (nodes(60.0), nodes(3700.0)) == (0, 1)


def test_what_was_launched_before_a_person_resumed_the_pool_does_not_count() -> None:
    pod = a_waiting_pod("web")
    claims = (an_earlier_claim("one", pod, ready_for=60.0), an_earlier_claim("two", pod, ready_for=30.0))
    pool = replace(a_general_pool(), annotations={names.LAUNCHES_RESUMED: "2023-11-14T22:13:10Z"})  # ten seconds ago

    assert len(placed(with_claims([pod], *claims, pools=[pool])).new) == 1


def test_a_pod_whose_room_others_have_taken_is_given_another_node_at_once() -> None:
    pod = a_waiting_pod("web", cpu="3")
    stranger = a_bound_pod("stranger", "n1", cpu="2")
    room = parse_resources({"cpu": "4", "memory": "16Gi", "pods": "110"})
    held = [a_joined(f"n{i}", pod, ready_for=2.0, room=room) for i in (1, 2, 3)]
    strangers = [replace(stranger, name=f"s{i}", uid=f"s{i}", node_name=f"n{i}") for i in (1, 2, 3)]

    assert groups(placed(a_snapshot([pod, *strangers], nodes=held))) == [["web"]]


@pytest.mark.parametrize("ready_for", [-1.0, 2.0])
def test_a_pod_whose_room_is_still_there_waits_for_it_whoever_has_taken_what_was_left_over(ready_for: float) -> None:
    pods = [a_waiting_pod("web", cpu="2"), a_waiting_pod("apart", cpu="500m")]
    room = parse_resources({"cpu": "4", "memory": "16Gi", "pods": "110"})
    node, claim = a_joined("n1", *pods, ready_for=ready_for, room=room)
    strangers = [a_bound_pod("one", "n1", cpu="700m"), a_bound_pod("other", "n1", cpu="700m")]
    snapshot = a_snapshot([*pods, *strangers], nodes=[(node, claim)])

    found = earlier_claims(snapshot, pods, {"n1": strangers}, most=2)

    assert found.awaited == {pod.uid: claim.name for pod in pods}


DAEMON = Owner(api_version="apps/v1", kind="DaemonSet", name="d", uid="uid-d", controller=True)
APART = a_shape({"app": "x"}, anti_affinity=(near(names.HOSTNAME, app="x"),))
SPREAD = a_shape({"app": "x"}, spread=(spread(names.HOSTNAME, app="x"),))
ONE_PORT = a_shape(host_ports=(HostPort(address="", port=80, protocol="TCP"),))
LIKED = a_shape({"app": "x"}, preferred_anti_affinity=(near(names.HOSTNAME, app="x"),))


@pytest.mark.parametrize(("shape", "nodes"), [(APART, 1), (SPREAD, 1), (ONE_PORT, 1), (LIKED, 0), (a_shape(), 0)])
def test_a_pod_that_its_twins_keep_off_its_nodes_is_given_another_one_at_once(shape: PodShape, nodes: int) -> None:
    """The kube-scheduler binds whichever of them it tries first, and there is room for one by one of them only."""
    pod = a_waiting_pod("web", cpu="900m", shape=shape)
    room = parse_resources({"cpu": "4", "memory": "16Gi", "pods": "110"})
    held = [a_joined(f"n{i}", pod, ready_for=60.0, room=room) for i in (1, 2)]
    twins = [a_bound_pod(f"t{i}", f"n{i}", cpu="900m", shape=shape) for i in (1, 2)]

    placement = placed(a_snapshot([pod, *twins], nodes=held))

    assert (len(placement.new), len(placement.existing)) == (nodes, 1 - nodes)


@pytest.mark.parametrize("also", [(), ("agent",)])
def test_a_pod_that_its_twins_keep_off_the_zone_of_its_empty_nodes_is_given_one_elsewhere_at_once(
    also: tuple[str, ...],
) -> None:
    """A spread over zones asks about nodes that were not made for it, and DaemonSets' pods take nobody's room."""
    shape = a_shape({"app": "x"}, spread=(spread(names.ZONE, app="x"),))
    pod, room = a_waiting_pod("web", shape=shape), parse_resources({"cpu": "4", "memory": "16Gi", "pods": "110"})
    held = [a_joined(f"n{i}", pod, ready_for=60.0, room=room) for i in (1, 2)]
    agents = [replace(a_bound_pod(f"{name}{i}", f"n{i}"), owners=(DAEMON,)) for name in also for i in (1, 2)]
    full = [a_joined_pair(f"full{zone}", zone=f"z{zone}", cpu="4") for zone in (1, 2, 3)]
    others = [a_bound_pod(f"other{zone}", f"full{zone}", cpu="3500m") for zone in (1, 2, 3)]
    twin = a_bound_pod("twin", "full1", cpu="500m", shape=shape)

    [node] = placed(a_snapshot([pod, *agents, *others, twin], nodes=[*held, *full])).new
    assert node.requirements[names.ZONE].values <= {"z2", "z3"}
    assert not placed(a_snapshot([pod, *agents, *others], nodes=[*held, *full])).new  # its nodes take it


def test_a_pod_whose_room_was_taken_four_times_is_said_to_have_lost_it() -> None:
    pod = a_waiting_pod("web", cpu="900m", shape=APART)
    room = parse_resources({"cpu": "4", "memory": "16Gi", "pods": "110"})
    held = [a_joined(f"n{i}", pod, ready_for=60.0, room=room) for i in range(4)]
    twins = [a_bound_pod(f"t{i}", f"n{i}", cpu="900m", shape=APART) for i in range(4)]

    [waits] = placed(a_snapshot([pod, *twins], nodes=held)).ignored

    assert waits.why == (
        "4 NodeClaims were made for it within an hour and it runs on none of their nodes, so no further one is made: "
        "other pods have its room on 4 of them"
    )


def test_a_node_that_would_not_hold_the_pod_even_alone_counts_whoever_runs_there() -> None:
    pod = a_waiting_pod("web", cpu="3")
    room = parse_resources({"cpu": "2", "memory": "16Gi", "pods": "110"})
    held = [a_joined(f"n{i}", pod, ready_for=30.0, room=room) for i in (1, 2)]
    strangers = [a_bound_pod(f"s{i}", f"n{i}", cpu="100m") for i in (1, 2)]

    assert not placed(a_snapshot([pod, *strangers], nodes=held)).new


def test_a_pod_of_a_leaving_node_waits_for_the_claim_that_is_made_for_it() -> None:
    pod = a_bound_pod("web", "old", cpu="3")
    node, claim = a_joined_pair("old")
    leaving = (node, replace(claim, deleting_since=NOW - 5))
    unlaunched = an_earlier_claim("one", pod, provider_id="")

    assert len(placed(a_snapshot([pod], nodes=[leaving])).new) == 1
    assert not placed(with_claims([pod], unlaunched, nodes=[leaving])).new


def test_an_annotation_that_is_spoilt_counts_as_none() -> None:
    pod = a_waiting_pod("web")
    pool = replace(
        a_general_pool(), annotations={names.UNUSED_LAUNCHES: "[{]=@,,x@y=z", names.LAUNCHES_RESUMED: "yesterday"}
    )

    assert len(placed(with_claims([pod], an_earlier_claim("two", pod, ready_for=30.0), pools=[pool])).new) == 1
