"""What a provisioning round publishes and counts (PLC-225 to PLC-228, PLC-231, PLC-236)."""

from dataclasses import replace
from typing import get_args

import pytest

from dovetail.model import names
from dovetail.model.objects.workloads import DaemonSet
from dovetail.model.places.placements import EmptyPool, IgnoredPod, Placement, PoolRefusal, Reason, RefusedPod
from dovetail.model.pods import Pod
from dovetail.model.pools import InstanceType, NodePool
from dovetail.model.scheduling.taints import Taint
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.resources import parse_resources
from dovetail.notices.notice import Notice
from dovetail.notices.placements import placement_notices
from dovetail.telemetry.metrics.karpenters import provisioning as deciding_metrics
from dovetail.telemetry.metrics.karpenters.pod_times import PodTimes
from dovetail.telemetry.metrics.karpenters.provisioning import Decisions
from dovetail.telemetry.metrics.ours.faults import Faults
from tests.placement import builders
from tests.placement.builders import a_general_pool, a_joined_pair, a_shape, a_waiting_pod, placed
from worlds.disruption import sold_out
from worlds.fakes import on_duty

POOL = a_general_pool()


def a_snapshot() -> Snapshot:
    node, claim = a_joined_pair("n1")
    return Snapshot(now=0.0, nodes={node.name: node}, claims={claim.name: claim}, pools={POOL.name: POOL})


def a_refusal(name: str, reason: str = "taints") -> RefusedPod:
    return RefusedPod(pod=a_waiting_pod(name), pools=(PoolRefusal(pool="default", reason=reason, conflict=""),))  # type: ignore[arg-type]


def test_the_notice_about_a_pod_that_a_standing_node_will_take_names_node_and_claim() -> None:
    """PLC-225."""
    snapshot = a_snapshot()
    (claim,) = snapshot.claims

    published = list(placement_notices(snapshot, Placement(existing={"n1": (a_waiting_pod("p"),)})))

    assert [(n.kind, n.name, n.reason, n.type, n.message) for n in published] == [
        ("Pod", "p", "Nominated", "Normal", f"Pod should schedule on: nodeclaim/{claim}, node/n1")
    ]


def test_a_pod_that_moves_from_a_leaving_node_is_not_nominated() -> None:
    """PLC-225: only pods that wait for a node get the notice."""
    moving = replace(a_waiting_pod("p"), node_name="n0")
    assert list(placement_notices(a_snapshot(), Placement(existing={"n1": (moving,)}))) == []


def test_notices_say_why_a_pod_is_refused_or_ignored_and_nothing_of_one_that_waits() -> None:
    """PLC-226, PLC-186, PLC-21."""
    placement = Placement(
        refused=(a_refusal("p"), a_refusal("waits", "reserved_offering")),
        ignored=(
            IgnoredPod(pod=a_waiting_pod("i"), why="bad label"),
            IgnoredPod(pod=a_waiting_pod("s"), why="x", silent=True),
        ),
    )
    published = [(n.name, n.reason, n.type, n.window) for n in placement_notices(a_snapshot(), placement)]
    assert published == [("p", "FailedScheduling", "Warning", 300.0), ("i", "FailedScheduling", "Warning", 300.0)]


def message(reason: str, conflict: str, cpu: int = 10**9) -> str:
    pod = replace(a_waiting_pod("p"), requests={"cpu": cpu, "pods": 1})
    refusal = PoolRefusal(pool="default", reason=reason, conflict=conflict)  # type: ignore[arg-type]
    (notice,) = placement_notices(a_snapshot(), Placement(refused=(RefusedPod(pod=pod, pools=(refusal,)),)))
    return notice.message


def test_the_event_says_in_upstreams_words_why_no_pool_takes_the_pod() -> None:
    """PLC-124, PLC-226: what people search for, and never a name of the closed list."""
    asked = 'requirements=a In [b], resources={"cpu":"1"}'
    said = message("it_fits", asked)
    assert said == (
        f'Failed to schedule pod, incompatible with nodepool "default", no instance type has enough resources, {asked}'
    )
    assert message("taints", "did not tolerate taint a=b:NoSchedule").endswith(
        ", did not tolerate taint a=b:NoSchedule"
    )
    assert message("it_fits", asked, cpu=10**15).endswith("(CPU request >= 1 Million, m vs M typo?)")
    assert "typo" not in message("it_offering", asked, cpu=10**15)


def test_every_reason_about_instance_types_has_its_own_words() -> None:
    reasons = [reason for reason in get_args(Reason) if reason.startswith("it_")]
    said = {message(reason, "") for reason in reasons}
    assert len(said) == len(reasons) == 11
    assert all("no instance type" in each for each in said)


@pytest.mark.parametrize(("because", "ending"), [(False, "types"), (True, "due to minValues incompatibility")])
def test_a_pool_without_types_gets_a_notice(because: bool, ending: str) -> None:
    """PLC-60, PLC-227."""
    (notice,) = placement_notices(
        a_snapshot(), Placement(empty_pools=(EmptyPool(pool="default", because_of_min_values=because),))
    )
    assert (notice.kind, notice.uid, notice.reason, notice.window) == (
        "NodePool",
        POOL.uid,
        "NoCompatibleInstanceTypes",
        60.0,
    )
    assert notice.message.endswith(ending)


def test_a_pool_whose_daemon_sets_leave_no_room_gets_one_notice_for_all_pods() -> None:
    """Said again when it is about others, however many pods wait."""

    def said(pods: int, *daemon_sets: str) -> Notice:
        refusal = PoolRefusal(pool="default", reason="it_fits", daemon_sets=daemon_sets)
        refused = tuple(RefusedPod(pod=a_waiting_pod(f"p{n}"), pools=(refusal,)) for n in range(pods))
        found = placement_notices(a_snapshot(), Placement(refused=refused))
        (notice,) = [each for each in found if each.kind == "NodePool"]
        return notice

    one, many = said(1, "ops/a"), said(3, "ops/a")
    assert (one.name, one.uid, one.type, one.reason) == ("default", POOL.uid, "Warning", "DaemonSetsLeaveNoRoom")
    assert one.message == ("No instance type holds pod default/p0 beside DaemonSets ops/a; without these some would")
    assert "3 pods, default/p0 among them," in many.message
    assert one.distinct == many.distinct != said(1, "ops/a", "ops/b").distinct
    assert said(1, *(f"ops/{n:02}" for n in range(12))).message.count("ops/") == 10


def test_a_daemon_set_that_no_type_of_a_pool_holds_gets_a_notice() -> None:
    """PLQ-69: its author reads it there; nobody else's pods wait."""
    shape = replace(a_shape(), namespace="ops")
    item = DaemonSet(name="big", namespace="ops", uid="uid-big", pod=a_waiting_pod("big", cpu="99", shape=shape))
    world = builders.a_snapshot(
        [a_waiting_pod("p")], daemon_sets={"ops/big": item}, pools=[a_general_pool("a"), a_general_pool("b")]
    )

    placement = placed(world)
    [notice] = [each for each in placement_notices(world, placement) if each.kind == "DaemonSet"]
    assert len(placement.new) == 1
    assert (notice.namespace, notice.name, notice.uid, notice.reason) == ("ops", "big", "uid-big", "FitsNoInstanceType")
    assert "NodePools b, a holds its pod" in notice.message


SMALL, LARGE = builders.TYPES[0], builders.TYPES[2]
FULL = "no subnet of its EC2NodeClass has a free address there"
NO_IMAGE = "no image of its EC2NodeClass starts on it"
WITHOUT_IMAGE = replace(LARGE, unsuited=NO_IMAGE, offerings=tuple(replace(o, available=False) for o in LARGE.offerings))
WITHOUT_PRICE = replace(LARGE, offerings=tuple(replace(o, available=False, unpriced=True) for o in LARGE.offerings))
ON_LARGE = a_shape(node_selector=((names.INSTANCE_TYPE, "large"),))
TWO_TYPES = replace(builders.one_of(names.INSTANCE_TYPE, "small", "large"), min_values=2)


def _said_of(pod: Pod, types: tuple[InstanceType, ...], *pools: NodePool) -> str:
    world = builders.a_snapshot([pod], types=types, pools=pools or None)
    [notice] = [each for each in placement_notices(world, placed(world)) if each.kind == "Pod"]
    return notice.message


@pytest.mark.parametrize(
    ("large", "says"),
    [
        (sold_out(LARGE), "the cloud has run out of large on-demand in z1"),
        (sold_out(LARGE, closed=FULL), FULL),
        (WITHOUT_IMAGE, f"{NO_IMAGE}: large"),
        (WITHOUT_PRICE, "no price of it is known: large"),
    ],
)
def test_a_pod_is_told_why_the_type_that_would_hold_it_is_not_to_be_had(large: InstanceType, says: str) -> None:
    """PLC-124: beside another type that is for sale, where that is all there is, and where limits or minValues need
    it."""
    short = "no instance type has the required offering"
    for pod in (a_waiting_pod("p", shape=ON_LARGE), a_waiting_pod("p", cpu="6")):
        said = _said_of(pod, (SMALL, large))
        assert short in said and says in said
        assert says in _said_of(pod, (large,))
    assert says not in _said_of(a_waiting_pod("p", cpu="99"), (SMALL, large)) or not large.unsuited
    two = _said_of(a_waiting_pod("p"), (SMALL, large), a_general_pool(requirements=(TWO_TYPES,)))
    assert says in two
    huge_left = (large, builders.TYPES[3])
    assert says in _said_of(a_waiting_pod("p"), huge_left, a_general_pool(limits=parse_resources({"cpu": "8"})))
    beyond = _said_of(a_waiting_pod("p"), huge_left, a_general_pool(limits=parse_resources({"cpu": "4"})))
    assert says not in beyond


def test_a_pod_is_told_of_nothing_that_would_not_suit_it() -> None:
    """PLC-124: the type is judged, not only the zone, and a pool that would not take the pod anyway says nothing."""
    arm = a_waiting_pod("p", shape=a_shape(node_selector=((names.ARCH, "arm64"),)))
    full = sold_out(LARGE, closed=FULL)

    for types in ((SMALL, full), (full,)):
        assert FULL not in _said_of(arm, types)
    taint = Taint(key="k", value="v", effect="NoSchedule")
    zonal = builders.one_of(names.ZONE, "z1")
    tainted, empty = a_general_pool("b", taints=(taint,)), a_general_pool("a", requirements=(zonal,))
    types = (sold_out(SMALL, "z1", closed=FULL), sold_out(LARGE, "z1", closed=FULL))
    assert FULL in _said_of(a_waiting_pod("p"), types, tainted, empty)
    both = a_general_pool("a", requirements=(zonal,), taints=(taint,))
    assert FULL not in _said_of(a_waiting_pod("p"), types, tainted, both)


def test_a_pod_that_must_be_beside_a_daemon_set_is_told_of_a_shortage_of_its_types() -> None:
    """PLQ-66, PLQ-69."""
    agent = a_waiting_pod("d", shape=replace(ON_LARGE, labels={"app": "agent"}))
    item = DaemonSet(name="d", namespace="default", uid="d", pod=agent)
    beside = a_shape(affinity=(builders.near(names.HOSTNAME, app="agent"),))
    world = builders.a_snapshot(
        [a_waiting_pod("p", shape=beside)], daemon_sets={"default/d": item}, types=(SMALL, sold_out(LARGE))
    )
    [notice] = placement_notices(world, placed(world))
    assert "the cloud has run out of large on-demand in z1" in notice.message
    assert "does not run on nodes of the pool" not in notice.message


@pytest.mark.parametrize(("asks", "pod"), [("14", "1"), ("1.5", "7")])
def test_a_shortage_of_the_types_that_hold_a_daemon_set_says_nothing_of_it(asks: str, pod: str) -> None:
    """PLQ-69: what stands on it and on the NodePool for an hour is for their authors to fix."""
    types = (*builders.TYPES[:3], sold_out(builders.TYPES[3]))
    item = DaemonSet(name="big", namespace="default", uid="uid-big", pod=a_waiting_pod("big", cpu=asks))
    world = builders.a_snapshot([a_waiting_pod("p", cpu=pod)], daemon_sets={"default/big": item}, types=types)

    [notice] = placement_notices(world, placed(world))
    assert (notice.kind, notice.reason) == ("Pod", "FailedScheduling")
    assert "the cloud has run out of huge on-demand in z1" in notice.message


def test_a_pods_wait_for_a_decision_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """PLC-2, PLC-236: from when it was first seen to the first decision, however often it is decided about."""
    seen: list[tuple[str, float]] = []
    monkeypatch.setattr(deciding_metrics, "observe", lambda name, seconds, labels: seen.append((name, seconds)))
    decisions = Decisions(faults=Faults(), times=PodTimes(duties=on_duty()))

    for now in (100.0, 110.0):
        decisions.acknowledge({"uid-p"}, now)
        decisions.acknowledge({"uid-p"}, now + 1.0)
        decisions.record(Placement(refused=(a_refusal("p"),)), 0.5, now + 2.0)

    waits = [seconds for name, seconds in seen if name == "pods_scheduling_decision_duration_seconds"]
    rounds = [seconds for name, seconds in seen if name == "scheduler_scheduling_duration_seconds"]
    assert (waits, rounds) == ([2.0], [0.5, 0.5])


def test_a_pod_that_is_pending_again_later_waits_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """PLC-236."""
    seen: list[float] = []
    monkeypatch.setattr(
        deciding_metrics, "observe", lambda name, s, labels: seen.append(s) if "pods_" in name else None
    )
    decisions = Decisions(faults=Faults(), times=PodTimes(duties=on_duty()))

    decisions.acknowledge({"uid-p"}, 100.0)
    decisions.record(Placement(refused=(a_refusal("p"),)), 0.5, 101.0)
    decisions.acknowledge(set(), 110.0)
    decisions.acknowledge({"uid-p"}, 200.0)
    decisions.record(Placement(refused=(a_refusal("p"),)), 0.5, 205.0)

    assert seen == [1.0, 5.0]


def test_a_round_sets_its_gauges(monkeypatch: pytest.MonkeyPatch) -> None:
    """PLC-228, PLC-231, PLC-234: those that wait for a reservation are not unschedulable."""
    found: dict[str, float] = {}
    took: list[tuple[str, float]] = []

    class Gauge:
        def __init__(self, name: str) -> None:
            self.name = name

        def set(self, value: float, labels: dict[str, str] | None = None) -> None:
            found[f"{self.name} {(labels or {}).get('zone', '')}".strip()] = value

    monkeypatch.setattr(deciding_metrics, "gauge", Gauge)
    monkeypatch.setattr(deciding_metrics, "observe", lambda name, seconds, labels: took.append((name, seconds)))
    placement = Placement(
        refused=(a_refusal("p"), a_refusal("waits", "reserved_offering")),
        ignored=(IgnoredPod(pod=a_waiting_pod("i"), why="bad label"),),
        by_zone={"flexible": 3, "z1": 2},
    )
    decisions = Decisions(faults=Faults(), times=PodTimes(duties=on_duty()))

    decisions.record(placement, 0.5, 1.0)

    by_zone = "scheduler_pending_pods_by_effective_zone_count"
    both = {"scheduler_unschedulable_pods_count": 1, "scheduler_ignored_pods_count": 1}
    assert found == {**both, f"{by_zone} flexible": 3, f"{by_zone} z1": 2}

    decisions.record(replace(placement, by_zone={"flexible": 1}), 0.5, 2.0)

    assert found == {**both, f"{by_zone} flexible": 1, f"{by_zone} z1": 0}
    assert took == [("scheduler_scheduling_duration_seconds", 0.5)] * 2
