"""The zone that a pending pod is bound to before anything is placed (PLC-231, PLC-232, PLT-161)."""

from typing import Any

import pytest

from dovetail.model import names
from dovetail.model.objects.workloads import StorageClass, Volume, VolumeClaim
from dovetail.model.pods import Expression, PodShape, VolumeUse
from tests.placement.builders import (
    a_bound_pod,
    a_joined_pair,
    a_shape,
    a_snapshot,
    a_waiting_pod,
    near,
    one_of,
    placed,
    spread,
    term,
)

NOT_Z1 = Expression(key=names.ZONE, operator="NotIn", values=("z1",))
IN_Z2 = VolumeClaim(name="in-z2", namespace="default", volume_name="v", phase="Bound", bind_completed=True)
Z2 = Volume(name="v", driver="d", node_terms=(term(one_of(names.ZONE, "z2")),))
ANYWHERE = VolumeClaim(name="anywhere", namespace="default", storage_class="late")
LATE = StorageClass(name="late", provisioner="d", immediate=False)
IN_Z2_OR_A_RACK = VolumeClaim(name="either", namespace="default", volume_name="w", phase="Bound", bind_completed=True)
Z2_OR_A_RACK = Volume(name="w", driver="d", node_terms=(*Z2.node_terms, term(one_of("rack", "r1"))))
VOLUMES: dict[str, Any] = {
    "volume_claims": {"default/in-z2": IN_Z2, "default/anywhere": ANYWHERE, "default/either": IN_Z2_OR_A_RACK},
    "volumes": {"v": Z2, "w": Z2_OR_A_RACK},
    "storage_classes": {"late": LATE},
}
CASES = {
    "nothing is said": (a_shape(), "flexible"),
    "its selector names one": (a_shape(node_selector=((names.ZONE, "z3"),)), "z3"),
    "its selector names one that is nowhere": (a_shape(node_selector=((names.ZONE, "z9"),)), "none"),
    "its term lists two": (a_shape(required_terms=(term(one_of(names.ZONE, "z1", "z2")),)), "flexible"),
    "its term excludes one": (a_shape(required_terms=(term(NOT_Z1),)), "flexible"),
    "its volume is there": (a_shape(volumes=(VolumeUse(claim_name="in-z2"),)), "z2"),
    "its volume is nowhere yet": (a_shape(volumes=(VolumeUse(claim_name="anywhere"),)), "flexible"),
    "its volume is there or in a rack of any": (a_shape(volumes=(VolumeUse(claim_name="either"),)), "flexible"),
    "volume and selector agree on one": (
        a_shape(required_terms=(term(one_of(names.ZONE, "z1", "z2")),), volumes=(VolumeUse(claim_name="in-z2"),)),
        "z2",
    ),
    "volume and selector disagree": (
        a_shape(node_selector=((names.ZONE, "z1"),), volumes=(VolumeUse(claim_name="in-z2"),)),
        "none",
    ),
    "who it must be near to is in one": (a_shape(affinity=(near(names.ZONE, app="there"),)), "z1"),
    "who it must be near to is nowhere": (a_shape(affinity=(near(names.ZONE, app="gone"),)), "none"),
    "who it keeps away from is in one of three": (a_shape(anti_affinity=(near(names.ZONE, app="there"),)), "flexible"),
    "its spread leaves two": (a_shape({"app": "there"}, spread=(spread(names.ZONE, app="there"),)), "flexible"),
    "its spread leaves one of two": (
        a_shape(
            {"app": "there"},
            required_terms=(term(one_of(names.ZONE, "z1", "z2")),),
            spread=(spread(names.ZONE, app="there"),),
        ),
        "z2",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_pending_pod_counts_for_the_zone_that_it_is_bound_to(name: str) -> None:
    """PLC-232: of its selector, its volumes and its own groups, whatever says anything."""
    shape, zone = CASES[name]
    there = a_bound_pod("there", "n1", shape=a_shape({"app": "there"}))
    snapshot = a_snapshot(
        [there, a_waiting_pod("p", shape=shape)], [a_joined_pair("n1", zone="z1", cpu="1")], **VOLUMES
    )

    assert placed(snapshot).by_zone == {zone: 1}


def test_whom_others_keep_away_is_not_bound_by_that() -> None:
    """PLC-232: only the pod's own groups count."""
    repelling = a_bound_pod("b", "n1", shape=a_shape(anti_affinity=(near(names.ZONE, app="x"),)))
    shape = a_shape({"app": "x"}, required_terms=(term(one_of(names.ZONE, "z1", "z2")),))
    snapshot = a_snapshot([repelling, a_waiting_pod("p", shape=shape)], [a_joined_pair("n1", zone="z1")])

    assert placed(snapshot).by_zone == {"flexible": 1}


def test_pods_are_counted_and_those_that_run_are_not() -> None:
    """PLC-231: a pod of a leaving node needs room and is not pending."""
    node, claim = a_joined_pair("n1")
    bound: PodShape = a_shape(node_selector=((names.ZONE, "z1"),))
    pods = [
        a_bound_pod("moves", "n1", shape=bound),
        *(a_waiting_pod(f"p{i}") for i in range(3)),
        a_waiting_pod("q", shape=bound),
    ]
    snapshot = a_snapshot(pods, [(node, claim)], disrupting=frozenset({claim.name}))

    assert placed(snapshot).by_zone == {"flexible": 3, "z1": 1}
