"""PLC-25, PLC-26, PLC-52, PLC-84: what the volumes of a pod ask for."""

from dataclasses import replace

import pytest

from dovetail.model import names
from dovetail.model.pods import VolumeUse
from dovetail.model.snapshot import Snapshot
from dovetail.model.workloads import CsiNode, StorageClass, Volume, VolumeClaim
from dovetail.placement.place_pods import pending_pods
from dovetail.placement.settings import PlacementSettings
from tests.placement.builders import a_bound_pod, a_node, a_pod, a_shape, a_snapshot, one_of, placed, term

UNBOUND = VolumeClaim(name="data", namespace="default", storage_class="late", phase="Pending")
BOUND = VolumeClaim(name="data", namespace="default", volume_name="v", phase="Bound", bind_completed=True)
CLASSES = {
    "late": StorageClass(name="late", provisioner="d", immediate=False),
    "now": StorageClass(name="now", provisioner="d", immediate=True),
}
VOLUME = Volume(name="v", driver="d")
USING_DATA = a_shape(volumes=(VolumeUse(claim_name="data"),))


def _with(claims: dict[str, VolumeClaim], volume: Volume = VOLUME) -> Snapshot:
    pod = a_pod("p", shape=USING_DATA)
    return a_snapshot([pod], volume_claims=claims, volumes={volume.name: volume}, storage_classes=CLASSES)


@pytest.mark.parametrize(
    ("claim", "volume", "fault"),
    [
        (UNBOUND, VOLUME, ""),
        (BOUND, VOLUME, ""),
        (replace(BOUND, storage_class=""), VOLUME, ""),
        (replace(BOUND, storage_class="gone"), VOLUME, ""),
        (replace(UNBOUND, deleting=True), VOLUME, "volume claim is being deleted"),
        (replace(BOUND, phase="Lost"), VOLUME, "volume claim has lost its volume"),
        (replace(BOUND, volume_name="w"), VOLUME, "volume w is missing or being deleted"),
        (BOUND, replace(VOLUME, deleting=True), "volume v is missing or being deleted"),
        (replace(BOUND, bind_completed=False), VOLUME, "volume claim is not completely bound"),
        (replace(UNBOUND, storage_class=""), VOLUME, "unbound volume claim must define a storage class"),
        (replace(UNBOUND, storage_class="gone"), VOLUME, "storage class gone not found"),
        (replace(UNBOUND, storage_class="now"), VOLUME, "unbound volume claim with binding mode Immediate"),
    ],
)
def test_a_claim_that_cannot_be_mounted_keeps_its_pod_out(claim: VolumeClaim, volume: Volume, fault: str) -> None:
    """PLC-25, PLC-26: a bound claim needs no class."""
    ignored = pending_pods(_with({"default/data": claim}, volume), PlacementSettings()).ignored

    assert [each.why for each in ignored] == ([f"default/data: {fault}"] if fault else [])


def test_a_claim_that_is_missing_keeps_its_pod_out() -> None:
    """PLC-25."""
    (ignored,) = pending_pods(_with({}), PlacementSettings()).ignored

    assert ignored.why == "volume claim default/data not found"


def test_of_two_volumes_only_the_places_where_both_can_be_are_tried() -> None:
    """PLC-52: places that contradict each other would suit a node whose zone is not known."""
    terms = {
        "v": (term(one_of(names.ZONE, "z1")), term(one_of(names.ZONE, "z2"))),
        "w": (term(one_of(names.ZONE, "z2")),),
    }
    volumes = {name: Volume(name=name, driver="d", node_terms=terms[name]) for name in terms}
    claims = {f"default/{name}": replace(BOUND, name=name, volume_name=name) for name in terms}
    pod = a_pod("p", shape=a_shape(volumes=tuple(VolumeUse(claim_name=name) for name in terms)))
    node, claim = a_node("n1")
    unknown = {key: value for key, value in node.labels.items() if key != names.ZONE}
    nowhere = (replace(node, labels=unknown), replace(claim, labels=unknown))

    placement = placed(a_snapshot([pod], [nowhere], volume_claims=claims, volumes=volumes))

    (new,) = placement.new
    assert (list(placement.existing), sorted(new.requirements[names.ZONE].values)) == ([], ["z2"])


@pytest.mark.parametrize(("limit", "existing"), [(1, {"n1": ["p"]}), (0, {})])
def test_a_claim_that_two_pods_share_is_attached_once(limit: int, existing: dict[str, list[str]]) -> None:
    """PLC-84."""
    pods = [a_bound_pod("first", "n1", shape=USING_DATA), a_pod("p", shape=USING_DATA)]
    snapshot = a_snapshot(
        pods,
        [a_node("n1")],
        volume_claims={"default/data": BOUND},
        volumes={"v": VOLUME},
        csi_nodes={"n1": CsiNode(name="n1", limits={"d": limit})},
    )

    found = placed(snapshot).existing
    assert {name: [pod.name for pod in pods] for name, pods in found.items()} == existing
