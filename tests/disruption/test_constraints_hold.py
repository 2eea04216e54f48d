"""What pods ask of each other holds wherever a simulation sends them (DIT-100, DIS-82)."""

from dataclasses import replace
from typing import Any

import pytest

from acceptance.karpenter import KARPENTER
from dovetail.disruption.choose import choose
from dovetail.disruption.profiles import DOVETAIL, Profile
from dovetail.disruption.rounds import never
from dovetail.disruption.settings import DisruptionSettings
from dovetail.messages.plans import DisruptionPlan
from dovetail.model import names
from dovetail.model.pods import Expression, LabelSelector, PodTerm, SpreadConstraint
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.resources import parse_resources
from worlds.disruption import ON_DEMAND_ONLY, TYPES, a_pair, a_pod, a_pool, a_world

EACH_OTHER = LabelSelector(expressions=(Expression(key="app", operator="In", values=("x",)),))


def spread(key: str) -> dict[str, Any]:
    constraint = SpreadConstraint(topology_key=key, max_skew=1, when_unsatisfiable="DoNotSchedule", selector=EACH_OTHER)
    return {"spread": (constraint,)}


def apart(key: str) -> dict[str, Any]:
    return {"anti_affinity": (PodTerm(topology_key=key, selector=EACH_OTHER, namespaces=("default",)),)}


ALONE: tuple[dict[str, Any], ...] = (
    {},
    spread(names.ZONE),
    spread(names.HOSTNAME),
    apart(names.ZONE),
    apart(names.HOSTNAME),
)
NAMES = ("nothing", "spread-zone", "spread-host", "apart-zone", "apart-host")


def is_anything_disrupted(world: Snapshot, profile: Profile = DOVETAIL) -> bool:
    return isinstance(choose(world, DisruptionSettings(profile=profile), never), DisruptionPlan)


@pytest.mark.parametrize("asked", ALONE, ids=NAMES)
def test_pods_do_not_come_together_on_nodes_that_stand(asked: dict[str, Any]) -> None:
    """Each of two nodes has room for the pods of the other, and the third, which would suit, has none."""
    pairs = [a_pair("n1", zone="z1"), a_pair("n2", zone="z2"), a_pair("full", zone="z1")]
    pods = [a_pod("n1", "2", shape=asked), a_pod("n2", "2", shape=asked), a_pod("full", "7", labels={"app": "other"})]

    assert is_anything_disrupted(a_world(pairs, pods, types=TYPES[2:3])) is (not asked)


@pytest.mark.parametrize("asked", ALONE, ids=NAMES)
def test_pods_that_stay_apart_on_another_node_let_theirs_go(asked: dict[str, Any]) -> None:
    """The same with room on the third node."""
    pairs = [a_pair("n1", zone="z1"), a_pair("n2", zone="z2"), a_pair("third", zone="z1")]
    pods = [a_pod("n1", "2", shape=asked), a_pod("n2", "2", shape=asked), a_pod("third", "1", labels={"app": "other"})]

    assert is_anything_disrupted(a_world(pairs, pods, types=TYPES[2:3]))


@pytest.mark.parametrize("asked", [{}, spread(names.ZONE), apart(names.ZONE)], ids=["nothing", "spread", "apart"])
def test_no_new_node_brings_them_together(asked: dict[str, Any]) -> None:
    """A cheaper node could be had only in the zone that has such a pod: the other zone's NodePool is at its limit."""
    left, right = (Expression(key=names.ZONE, operator="In", values=(zone,)) for zone in ("z1", "z2"))
    pools = [
        a_pool("left", requirements=(*ON_DEMAND_ONLY, left), limits=parse_resources({"cpu": "1"})),
        a_pool("right", requirements=(*ON_DEMAND_ONLY, right)),
    ]
    pairs = [a_pair("dear", "m16", "left", zone="z1"), a_pair("n2", "m2", "right", zone="z2")]
    pods = [
        a_pod("dear", "1", shape=asked),
        a_pod("n2", "1", shape=asked),
        a_pod("n2", "1", labels={"app": "other"}, shape={"node_selector": ((names.HOSTNAME, "n2"),)}),
    ]

    assert is_anything_disrupted(a_world(pairs, pods, pools=pools)) is (not asked)


@pytest.mark.parametrize("profile", [DOVETAIL, KARPENTER], ids=["dovetail", "karpenter"])
@pytest.mark.parametrize("asked", [{}, apart("rack")], ids=["nothing", "apart"])
def test_a_pod_that_keeps_others_away_moves_to_a_place_that_no_pool_offers(
    asked: dict[str, Any], profile: Profile
) -> None:
    """PLQ-37: upstream's simulation knows of no rack where it could be."""
    pairs = [a_pair(name, also=(names.CONSOLIDATABLE,)) for name in ("n1", "n2")]
    pairs = [replace(p, node=replace(p.node, labels={**p.node.labels, "rack": p.node.name})) for p in pairs]
    stays = {"node_selector": ((names.HOSTNAME, "n2"),)}
    pods = [a_pod("n1", "2", shape=asked), a_pod("n2", "2", labels={"app": "other"}, shape=stays)]

    found = is_anything_disrupted(a_world(pairs, pods, types=TYPES[2:3]), profile)
    assert found is (not asked or profile is DOVETAIL)
