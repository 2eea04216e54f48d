"""What one pass does over several tries: what is given up, what is remembered, what is left out."""

from dataclasses import replace

from dovetail.model import names
from dovetail.model.objects.workloads import CsiNode, DaemonSet, Volume, VolumeClaim
from dovetail.model.pods import Expression, VolumeUse
from dovetail.model.scheduling.taints import Taint
from dovetail.placement.settings import PlacementSettings
from tests.placement.builders import (
    a_general_pool,
    a_joined_pair,
    a_shape,
    a_snapshot,
    a_waiting_pod,
    groups,
    near,
    one_of,
    placed,
    spread,
    term,
)

SOFT = (Taint(key="soft", effect="PreferNoSchedule"),)


def test_a_volume_is_stronger_than_a_preference_and_never_given_up() -> None:
    """PLC-55."""
    shape = a_shape(
        volumes=(VolumeUse(claim_name="data"),), preferred_terms=(term(one_of(names.ZONE, "z1"), weight=100),)
    )
    claim = VolumeClaim(name="data", namespace="default", volume_name="v", phase="Bound", bind_completed=True)
    volumes = {"v": Volume(name="v", driver="d", node_terms=(term(one_of(names.ZONE, "z2")),))}
    snapshot = a_snapshot([a_waiting_pod("p", shape=shape)], volume_claims={"default/data": claim}, volumes=volumes)

    (node,) = placed(snapshot).new

    assert node.requirements[names.ZONE].values == {"z2"}


def test_a_pod_that_is_tried_again_has_all_its_preferences_back() -> None:
    """PLC-111: it failed without them as well, and then the pod was placed that it must be near to."""
    shape = a_shape(
        affinity=(near(names.HOSTNAME, app="leader"),), preferred_terms=(term(one_of(names.ZONE, "z3"), weight=1),)
    )
    follower = a_waiting_pod("follower", cpu="2", shape=shape)
    leader = a_waiting_pod("leader", cpu="1", shape=a_shape({"app": "leader"}))

    (node,) = placed(a_snapshot([follower, leader])).new

    assert (len(node.pods), sorted(node.requirements[names.ZONE].values)) == (2, ["z3"])


def test_a_node_keeps_what_a_pod_of_this_pass_required_of_a_label_that_it_lacks() -> None:
    """PLC-148."""
    other_than_a = a_shape(required_terms=(term(Expression(key="team", operator="NotIn", values=("a",))),))
    of_b = a_waiting_pod("b", cpu="1", shape=a_shape(required_terms=(term(one_of("team", "b")),)))

    alone = placed(a_snapshot([of_b], [a_joined_pair("n1")]))
    after = placed(a_snapshot([a_waiting_pod("first", cpu="2", shape=other_than_a), of_b], [a_joined_pair("n1")]))

    assert (list(alone.existing), [pod.name for pod in after.existing["n1"]]) == ([], ["first", "b"])


def test_a_daemon_set_with_resource_claims_takes_no_room_on_new_nodes() -> None:
    """PLC-182e."""
    plain = DaemonSet(name="d", namespace="default", pod=a_waiting_pod("d", cpu="1"))
    claiming = replace(plain, pod=a_waiting_pod("d", cpu="1", shape=a_shape(uses_resource_claims=True)))

    counted, left_out = (
        placed(a_snapshot([a_waiting_pod("p")], daemon_sets={"default/d": daemon})).new[0]
        for daemon in (plain, claiming)
    )

    assert (counted.requests["pods"], left_out.requests["pods"]) == (2, 1)


def test_a_spread_that_does_not_count_its_own_pods_spreads_nothing() -> None:
    """PLC-173, PLT-115."""
    shape = a_shape({"app": "x"}, spread=(spread(names.HOSTNAME, app="another"),))

    assert groups(placed(a_snapshot([a_waiting_pod(f"p{n}", cpu="100m", shape=shape) for n in range(3)]))) == [
        ["p0", "p1", "p2"]
    ]


def test_a_node_with_a_soft_taint_is_used_only_where_some_pool_has_such_a_taint() -> None:
    """PLQ-12: nothing else makes a pod tolerate it, and then only after a new node was tried."""
    node = a_joined_pair("n1", taints=SOFT)
    plain, soft = a_general_pool(requirements=(one_of(names.ZONE, "nowhere"),)), a_general_pool("soft", taints=SOFT)

    without = placed(a_snapshot([a_waiting_pod("p")], [node], pools=[plain]))
    beside = placed(a_snapshot([a_waiting_pod("p")], [node], pools=[plain, soft]))

    assert (list(without.existing), list(beside.existing)) == ([], ["n1"])


def test_selector_requirement_and_preference_on_several_keys_are_all_honoured() -> None:
    """PLT-27."""
    shape = a_shape(
        node_selector=((names.ZONE, "z2"),),
        required_terms=(term(one_of(names.CAPACITY_TYPE, "spot")),),
        preferred_terms=(term(one_of(names.INSTANCE_TYPE, "large", "huge"), weight=1),),
    )

    (node,) = placed(a_snapshot([a_waiting_pod("p", shape=shape)])).new

    found = [sorted(node.requirements[key].values) for key in (names.ZONE, names.CAPACITY_TYPE)]
    assert (found, [item.name for item in node.types]) == ([["z2"], ["spot"]], ["large", "huge"])


def test_a_heavier_pools_minimum_is_lowered_before_a_lighter_pool_is_tried() -> None:
    """PLC-123, PLC-160, PLT-64."""
    minimum = (Expression(key=names.INSTANCE_TYPE, operator="Exists", min_values=9),)
    pools = [a_general_pool("heavy", weight=10, requirements=minimum), a_general_pool("light")]

    (node,) = placed(
        a_snapshot([a_waiting_pod("p")], pools=pools), PlacementSettings(min_values_policy="BestEffort")
    ).new

    assert (node.pool, node.annotations[names.MIN_VALUES_RELAXED]) == ("heavy", "true")


def test_a_spread_waits_for_domains_that_its_pods_cannot_use() -> None:
    """PLQ-5: z2 is only in a pool that the selector rules out, and stays the minimum."""
    pools = [
        a_general_pool("a", requirements=(one_of("team", "a"), one_of(names.ZONE, "z1"))),
        a_general_pool("b", requirements=(one_of("team", "b"), one_of(names.ZONE, "z2"))),
    ]
    shape = a_shape({"app": "x"}, spread=(spread(names.ZONE, app="x"),), node_selector=(("team", "a"),))

    placement = placed(a_snapshot([a_waiting_pod(f"p{n}", shape=shape) for n in range(2)], pools=pools))

    assert (groups(placement), [refused.pod.name for refused in placement.refused]) == ([["p0"]], ["p1"])


def test_volumes_are_counted_on_nodes_that_stand_and_not_on_new_ones() -> None:
    """PLC-84, PLQ-20: how many a new node can attach is not known."""
    pods = [
        a_waiting_pod(f"p{n}", cpu="100m", shape=a_shape(volumes=(VolumeUse(claim_name=f"c{n}"),))) for n in range(3)
    ]
    claims = {
        f"default/c{n}": VolumeClaim(
            name=f"c{n}", namespace="default", volume_name=f"v{n}", phase="Bound", bind_completed=True
        )
        for n in range(3)
    }
    volumes = {f"v{n}": Volume(name=f"v{n}", driver="d") for n in range(3)}
    limits = {"n1": CsiNode(name="n1", limits={"d": 1})}

    placement = placed(
        a_snapshot(pods, [a_joined_pair("n1")], volume_claims=claims, volumes=volumes, csi_nodes=limits),
    )

    assert ([pod.name for pod in placement.existing["n1"]], groups(placement)) == (["p0"], [["p1", "p2"]])
