"""What a volume driver calls the zone means the zone, wherever it is written (PLC-33, PLC-51)."""

from dataclasses import replace

import pytest

from dovetail.model import names
from dovetail.model.objects.workloads import StorageClass, Volume, VolumeClaim
from dovetail.model.pods import NodeTerm, PodShape, VolumeUse
from dovetail.model.snapshot import Snapshot
from dovetail.placement.place_pods import pending_pods
from dovetail.placement.settings import PlacementSettings
from tests.placement.builders import (
    a_bound_pod,
    a_general_pool,
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

EBS_ZONE = "topology.ebs.csi.aws.com/zone"
OTHER_NAMES = (EBS_ZONE, "failure-domain.beta.kubernetes.io/zone")
X = {"app": "x"}
USING_DATA = a_shape(volumes=(VolumeUse(claim_name="data"),))


def _with_volume(zone: str, *, bound: bool) -> Snapshot:
    """A pod of a StatefulSet whose volume is in that zone, or whose class allows that zone alone."""
    claim = VolumeClaim(name="data", namespace="default", storage_class="late", phase="Pending")
    if bound:
        claim = replace(claim, volume_name="v", phase="Bound", bind_completed=True)
    return a_snapshot(
        [a_waiting_pod("p", shape=USING_DATA)],
        [a_joined_pair("n1", zone="z1")],
        volume_claims={"default/data": claim},
        volumes={"v": Volume(name="v", driver="ebs.csi.aws.com", node_terms=(term(one_of(EBS_ZONE, zone)),))},
        storage_classes={
            "late": StorageClass(
                name="late", provisioner="ebs.csi.aws.com", immediate=False, topologies=((one_of(EBS_ZONE, zone),),)
            )
        },
    )


@pytest.mark.parametrize("bound", [True, False])
def test_a_pod_gets_a_new_node_in_the_zone_of_its_volume(bound: bool) -> None:
    placement = placed(_with_volume("z2", bound=bound))

    (new,) = placement.new
    assert (placement.refused, list(placement.existing)) == ((), [])
    assert (EBS_ZONE in new.requirements, new.requirements[names.ZONE].values) == (False, frozenset({"z2"}))


@pytest.mark.parametrize("bound", [True, False])
def test_a_node_that_stands_in_the_zone_of_the_volume_is_used(bound: bool) -> None:
    """Also before the driver has written its label on the node."""
    placement = placed(_with_volume("z1", bound=bound))

    assert (placement.new, list(placement.existing)) == ((), ["n1"])


@pytest.mark.parametrize("key", OTHER_NAMES)
@pytest.mark.parametrize("by", ["selector", "affinity"])
def test_a_pod_may_select_the_zone_by_another_name(key: str, by: str) -> None:
    shape = (
        a_shape(node_selector=((key, "z3"),))
        if by == "selector"
        else a_shape(required_terms=(NodeTerm(expressions=(one_of(key, "z3"),)),))
    )
    snapshot = a_snapshot([a_waiting_pod("p", shape=shape)])

    assert pending_pods(snapshot, PlacementSettings()).ignored == ()
    (new,) = placed(snapshot).new
    assert new.requirements[names.ZONE].values == {"z3"}


@pytest.mark.parametrize("key", OTHER_NAMES)
def test_a_pool_may_name_the_zone_by_another_name(key: str) -> None:
    pool = a_general_pool(requirements=(one_of(key, "z2"),))

    (new,) = placed(a_snapshot([a_waiting_pod("p")], pools=[pool])).new
    assert new.requirements[names.ZONE].values == {"z2"}
    asks = a_waiting_pod("q", shape=a_shape(node_selector=((names.ZONE, "z1"),)))
    assert placed(a_snapshot([asks], pools=[pool])).new == ()


@pytest.mark.parametrize("key", OTHER_NAMES)
def test_a_spread_over_another_name_of_the_zone_is_one_over_zones(key: str) -> None:
    """A domain is a zone that a new node could have, and pods count that run in it."""
    shape = a_shape(X, spread=(spread(key, app="x"),))
    bound = [a_bound_pod("b", "n1", shape=a_shape(X))]

    placement = placed(a_snapshot([*bound, a_waiting_pod("p", cpu="8", shape=shape)], [a_joined_pair("n1", zone="z1")]))
    assert [sorted(each.requirements[names.ZONE].values) for each in placement.new] == [["z2"]]

    both = [a_waiting_pod(name, cpu="8", shape=shape) for name in ("p", "q", "r")]
    placement = placed(a_snapshot(both))
    assert sorted(value for each in placement.new for value in each.requirements[names.ZONE].values) == [
        "z1",
        "z2",
        "z3",
    ]


@pytest.mark.parametrize("key", OTHER_NAMES)
@pytest.mark.parametrize(
    ("shape", "zones"),
    [
        (lambda key: a_shape(affinity=(near(key, app="x"),)), ["z2"]),
        (lambda key: a_shape(anti_affinity=(near(key, app="x"),)), ["z1", "z3"]),
    ],
)
def test_affinity_by_another_name_of_the_zone_is_one_by_zones(key: str, shape: object, zones: list[str]) -> None:
    assert callable(shape)
    asked: PodShape = shape(key)
    bound = a_bound_pod("b", "n1", shape=a_shape(X))

    placement = placed(a_snapshot([bound, a_waiting_pod("p", cpu="8", shape=asked)], [a_joined_pair("n1", zone="z2")]))
    assert [sorted(each.requirements[names.ZONE].values) for each in placement.new] == [zones]
