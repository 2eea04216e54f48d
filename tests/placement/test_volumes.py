"""PLC-25, PLC-26, PLC-52, PLC-84: what the volumes of a pod ask for."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from acceptance.karpenter import KARPENTER_PLACEMENT
from dovetail.adapters.kubernetes_json.parsing.workloads import parse_volume_claim
from dovetail.model import names
from dovetail.model.objects.workloads import CsiNode, StorageClass, Volume, VolumeClaim
from dovetail.model.pods import Expression, VolumeUse
from dovetail.model.scheduling.requirements import RequirementSet
from dovetail.model.snapshot import Snapshot
from dovetail.placement.constraints import volumes
from dovetail.placement.constraints.volumes import MOST_ALTERNATIVES, TooManyAlternatives, volume_alternatives
from dovetail.placement.place_pods import Index, pending_pods, simulate
from dovetail.placement.settings import PlacementSettings
from tests.placement.builders import (
    a_bound_pod,
    a_joined_pair,
    a_shape,
    a_snapshot,
    a_waiting_pod,
    near,
    one_of,
    placed,
    term,
)
from worlds.disruption import NOW

UNBOUND = VolumeClaim(name="data", namespace="default", storage_class="late", phase="Pending")
BOUND = VolumeClaim(name="data", namespace="default", volume_name="v", phase="Bound", bind_completed=True)
CLASSES = {
    "late": StorageClass(name="late", provisioner="d", immediate=False),
    "now": StorageClass(name="now", provisioner="d", immediate=True),
}
VOLUME = Volume(name="v", driver="d")
USING_DATA = a_shape(volumes=(VolumeUse(claim_name="data"),))


def _with(claims: dict[str, VolumeClaim], volume: Volume = VOLUME) -> Snapshot:
    pod = a_waiting_pod("p", shape=USING_DATA)
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


def _selected(node: str) -> dict[str, VolumeClaim]:
    """The pod's claim as the kube-scheduler leaves it when it has chosen a node and the volume is not there yet."""
    annotations = {"volume.kubernetes.io/selected-node": node}
    claim = {
        "metadata": {"name": "data", "namespace": "default", "annotations": annotations},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "late"},
        "status": {"phase": "Pending"},
    }
    return {"default/data": parse_volume_claim(claim)}


def test_no_node_is_made_for_a_pod_whose_volume_is_to_be_made_for_another() -> None:
    """PLQ-68: the kube-scheduler would bind it to no other."""
    placement = placed(_with(_selected("gone")))

    assert placement.new == ()
    [refused] = placement.refused[0].pools
    assert (refused.reason, refused.conflict) == ("volume_requirements", "kubernetes.io/hostname In [gone]")


def test_a_pod_goes_to_the_node_that_its_volume_is_to_be_made_for() -> None:
    """PLQ-68: by the Node's name, whatever its label of the hostname says."""
    nodes = [a_joined_pair("n1"), a_joined_pair("n2", labels={names.HOSTNAME: "host-2"})]
    world = a_snapshot(
        [a_waiting_pod("p", shape=USING_DATA)], nodes, volume_claims=_selected("n2"), storage_classes=CLASSES
    )

    assert placed(world).existing.keys() == {"n2"}


def test_which_node_a_volume_was_made_for_means_nothing_once_it_is_there() -> None:
    """PLQ-68: the annotation stays for good."""
    made = replace(_selected("gone")["default/data"], volume_name="v", phase="Bound", bind_completed=True)

    assert len(placed(_with({"default/data": made})).new) == 1


def test_of_two_volumes_only_the_places_where_both_can_be_are_tried() -> None:
    """PLC-52: places that contradict each other would suit a node whose zone is not known."""
    terms = {
        "v": (term(one_of(names.ZONE, "z1")), term(one_of(names.ZONE, "z2"))),
        "w": (term(one_of(names.ZONE, "z2")),),
    }
    volumes = {name: Volume(name=name, driver="d", node_terms=terms[name]) for name in terms}
    claims = {f"default/{name}": replace(BOUND, name=name, volume_name=name) for name in terms}
    pod = a_waiting_pod("p", shape=a_shape(volumes=tuple(VolumeUse(claim_name=name) for name in terms)))
    node, claim = a_joined_pair("n1")
    unknown = {key: value for key, value in node.labels.items() if key != names.ZONE}
    nowhere = (replace(node, labels=unknown), replace(claim, labels=unknown))

    placement = placed(a_snapshot([pod], [nowhere], volume_claims=claims, volumes=volumes))

    (new,) = placement.new
    assert (list(placement.existing), sorted(new.requirements[names.ZONE].values)) == ([], ["z2"])


def _many_volumes(topologies: Sequence[tuple[tuple[Expression, ...], ...]]) -> Snapshot:
    """A pod with a volume of each of these classes, and one beside it with the first volume alone."""
    uses = tuple(VolumeUse(claim_name=f"v{i}") for i in range(len(topologies)))
    classes = [
        StorageClass(name=f"c{i}", provisioner="d", immediate=False, topologies=terms)
        for i, terms in enumerate(topologies)
    ]
    claims = [VolumeClaim(name=f"v{i}", namespace="default", storage_class=f"c{i}") for i in range(len(topologies))]
    return a_snapshot(
        [a_waiting_pod("many", shape=a_shape(volumes=uses)), a_waiting_pod("one", shape=a_shape(volumes=uses[:1]))],
        volume_claims={f"default/{claim.name}": claim for claim in claims},
        storage_classes={each.name: each for each in classes},
    )


def test_twice_as_many_volumes_make_no_more_places_to_try() -> None:
    """PLC-52: of a class whose terms overlap each volume would double them."""
    overlapping = ((one_of(names.ZONE, "z1", "z2"),), (one_of(names.ZONE, "z2", "z3"),))

    found = {}
    for count in (2, 20, 40):
        snapshot = _many_volumes([overlapping] * count)
        alternatives = volume_alternatives(snapshot.pods["uid-many"], snapshot)
        found[count] = [set(alternative[names.ZONE].values) for alternative in alternatives]

    assert found == {count: [{"z1", "z2"}, {"z2", "z3"}] for count in (2, 20, 40)}
    assert placed(_many_volumes([overlapping] * 20)).refused == ()


def test_places_that_are_asked_for_again_are_not_put_together_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """PLC-52: of 24 volumes of two StorageClasses, two lists of places meet, and not 24."""
    of_zones = tuple((one_of(names.ZONE, f"z{i}"),) for i in range(9))
    of_disks = ((one_of("disk", "fast"),), (one_of("disk", "slow"),))
    snapshot = _many_volumes([of_zones, of_disks])
    again = _many_volumes([of_zones, of_disks] * 12)
    met: list[int] = []
    folded = volumes._folded

    def counted(present: list[RequirementSet], added: list[RequirementSet]) -> list[RequirementSet]:
        met.append(len(added))
        return folded(present, added)

    monkeypatch.setattr(volumes, "_folded", counted)

    found = volume_alternatives(again.pods["uid-many"], again)

    assert met == [9, 2]
    assert found == volume_alternatives(snapshot.pods["uid-many"], snapshot)
    assert len(found) == 18


def test_volumes_that_agree_nowhere_make_no_more_places_to_try() -> None:
    """PLC-52: all pairs would be kept, and triple with each volume."""
    zones = [((one_of(names.ZONE, "z1"),), (one_of(names.ZONE, "z2"),)), ((one_of(names.ZONE, "z3"),),)]
    snapshot = _many_volumes(zones * 10)

    assert len(volume_alternatives(snapshot.pods["uid-many"], snapshot)) == 1
    placement = placed(snapshot)
    assert [refused.pod.name for refused in placement.refused] == ["many"]


def test_a_pod_whose_volumes_can_be_in_too_many_places_is_refused_alone() -> None:
    own_keys = [((one_of(f"example.com/k{i}", "a"),), (one_of(f"example.com/k{i}", "b"),)) for i in range(20)]
    snapshot = _many_volumes(own_keys)

    with pytest.raises(TooManyAlternatives):
        volume_alternatives(snapshot.pods["uid-many"], snapshot)
    (ignored,) = pending_pods(snapshot, PlacementSettings()).ignored
    assert (ignored.pod.name, ignored.silent) == ("many", False)
    assert ignored.why.startswith(f"its volumes can be together in more than {MOST_ALTERNATIVES} ways: example.com/k0")


def test_a_pod_whose_volumes_can_be_in_too_many_places_stops_no_simulation() -> None:
    """It runs on a node that might go, and cannot be moved; the pod beside it can."""
    own_keys = [((one_of(f"example.com/k{i}", "a"),), (one_of(f"example.com/k{i}", "b"),)) for i in range(20)]
    many = _many_volumes(own_keys)
    uses = many.pods["uid-many"].shape
    pods = [a_bound_pod("many", "n1", shape=uses), a_bound_pod("plain", "n1")]
    snapshot = a_snapshot(
        pods, [a_joined_pair("n1")], volume_claims=many.volume_claims, storage_classes=many.storage_classes
    )

    found = simulate(Index(snapshot, PlacementSettings()), frozenset({"n1"}))

    assert [(refused.pod.name, refused.reasons) for refused in found.refused] == [("many", ("not_judged",))]
    assert [[pod.name for pod in node.pods] for node in found.new] == [["plain"]]


@pytest.mark.parametrize(("limit", "existing"), [(1, {"n1": ["p"]}), (0, {})])
def test_a_claim_that_two_pods_share_is_attached_once(limit: int, existing: dict[str, list[str]]) -> None:
    """PLC-84."""
    pods = [a_bound_pod("first", "n1", shape=USING_DATA), a_waiting_pod("p", shape=USING_DATA)]
    snapshot = a_snapshot(
        pods,
        [a_joined_pair("n1")],
        volume_claims={"default/data": BOUND},
        volumes={"v": VOLUME},
        csi_nodes={"n1": CsiNode(name="n1", limits={"d": limit})},
    )

    found = placed(snapshot).existing
    assert {name: [pod.name for pod in pods] for name, pods in found.items()} == existing


@pytest.mark.parametrize("user", ["nobody", "running", "deleting", "ended"])
def test_of_pods_that_share_a_claim_for_one_pod_one_gets_a_node(user: str) -> None:
    """PLQ-64: twelve replicas with one claim and anti-affinity made eleven nodes of no use."""
    claim = replace(UNBOUND, single_pod=True)
    apart = a_shape({"app": "x"}, volumes=USING_DATA.volumes, anti_affinity=(near(names.HOSTNAME, app="x"),))
    pods = [a_waiting_pod(f"p{n:02}", shape=apart) for n in range(12)]
    runs = a_bound_pod("runs", "n1", shape=USING_DATA)
    states = {"deleting": replace(runs, deleting_since=NOW), "ended": replace(runs, phase="Succeeded"), "running": runs}
    pods += [states[user]] if user in states else []
    snapshot = a_snapshot(
        [*pods, a_waiting_pod("good", cpu="8")],
        [a_joined_pair("n1")],
        volume_claims={"default/data": claim},
        storage_classes=CLASSES,
    )

    first = () if user == "running" else ("p00",)
    placement = placed(snapshot)
    places = [node.pods for node in placement.new] + list(placement.existing.values())
    assert {pod.name for pods_of_one in places for pod in pods_of_one} == {"good", *first}
    has_it = "runs" if user == "running" else "p00"
    why = f"volume claim default/data is for one pod at a time, and pod default/{has_it} has it"
    assert [(pod.pod.name, pod.why) for pod in placement.ignored] == [(f"p{n:02}", why) for n in range(len(first), 12)]

    as_karpenter = pending_pods(snapshot, PlacementSettings(profile=KARPENTER_PLACEMENT))
    assert len(as_karpenter.pending) == 13


@pytest.mark.parametrize("modes", [["ReadWriteOncePod"], ["ReadWriteOnce"], None])
def test_the_access_mode_of_a_claim_says_whether_it_is_for_one_pod(modes: list[str] | None) -> None:
    raw = {"metadata": {"name": "data", "namespace": "default"}, "spec": {"accessModes": modes}}

    assert parse_volume_claim(raw).single_pod == (modes == ["ReadWriteOncePod"])
