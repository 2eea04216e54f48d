"""Claims that no plan of ours made: each is a node with room for what it asked for."""

from dataclasses import replace

import pytest

from dovetail.lifecycle.unplanned_claims import unplanned_claims, with_unplanned_as_nodes
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.pods import Expression
from dovetail.model.snapshot import Snapshot
from tests.lifecycle.objects import a_joined_claim, a_web_pod, is_now
from worlds.disruption import a_claim, a_node

REQUESTS = {"cpu": 1_500_000_000, "pods": 1}


def a_snapshot(claim: NodeClaim) -> Snapshot:
    return Snapshot(now=0.0, claims={claim.name: claim})


def test_a_predecessors_claim_holds_what_it_asked_for() -> None:
    """STA-3, DIS-15: its pods are written nowhere; planned for again, they would get two nodes."""
    single = Expression(key=names.ZONE, operator="In", values=("zone-a",))
    open_ = Expression(key=names.INSTANCE_TYPE, operator="In", values=("m5.large", "m5.xlarge"))
    claim = replace(a_claim(), requests=REQUESTS, requirements=(single, open_))

    sized = with_unplanned_as_nodes(a_snapshot(claim)).claims[claim.name]

    assert (dict(sized.allocatable), dict(sized.capacity)) == (REQUESTS, REQUESTS)
    assert sized.provider_id
    assert sized.labels == {**claim.labels, names.ZONE: "zone-a"}


@pytest.mark.parametrize(
    "claim",
    [
        a_joined_claim(),  # it has a size of its own
        replace(a_claim(), provider_id="aws:///zone/i-1"),
        replace(a_claim(), conditions=(is_now(names.LAUNCHED),)),
        replace(a_claim(), deleting_since=1.0),
        replace(a_claim(), annotations={names.PLAN: "p/0"}),  # ours: it names its pods
    ],
)
def test_all_others_are_left_as_they_are(claim: NodeClaim) -> None:
    snapshot = a_snapshot(claim)

    assert unplanned_claims(snapshot) == ()
    assert with_unplanned_as_nodes(snapshot) is snapshot


def test_a_claim_of_ours_has_room_for_the_pod_that_took_the_place_of_one_of_its_pods() -> None:
    """A pod that is evicted from a leaving node comes back under another UID, before its claim is launched."""
    claim = replace(a_claim(), requests=REQUESTS, annotations={names.PLAN: "p/0", names.PLANNED_PODS: "uid-gone"})

    sized = with_unplanned_as_nodes(a_snapshot(claim)).claims[claim.name]

    assert dict(sized.allocatable) == REQUESTS
    buffers = replace(claim, annotations={**claim.annotations, names.PLANNED_BUFFERS: "b=1"})
    assert not with_unplanned_as_nodes(a_snapshot(buffers)).claims[claim.name].allocatable


@pytest.mark.parametrize("where", ["", "standing", "deleted", "disrupted"])
def test_a_claim_of_ours_has_room_again_once_its_pod_runs_on_another_node(where: str) -> None:
    """Of many pods that suit many new nodes the kube-scheduler binds each to the first that comes: the pod for which
    that one was launched has its room on the claim of the other, and needs no third one."""
    coming = replace(a_claim(), requests=REQUESTS, annotations={names.PLAN: "p/0", names.PLANNED_PODS: "uid-pod"})
    other = a_joined_claim("other")
    node = a_node(other.node_name, provider_id=other.provider_id, deleting_since=1.0 if where == "deleted" else None)
    pod = a_web_pod("pod", node_name=node.name if where else "")
    world = Snapshot(
        now=0.0,
        claims={coming.name: coming, other.name: other},
        nodes={node.name: node},
        pods={pod.uid: pod},
        disrupting=frozenset({other.name} if where == "disrupted" else ()),
    )

    has_room = bool(with_unplanned_as_nodes(world).claims[coming.name].allocatable)

    assert has_room == (where == "standing")


def test_claims_of_another_provider_and_all_other_claims_stay_as_they_are() -> None:
    """PLM-1: nothing of ours stands for what another provider launches."""
    ours, theirs = a_claim("ours"), a_claim("theirs", node_class=replace(a_claim().node_class, group="other.cloud"))
    world = Snapshot(
        now=0.0,
        claims={"ours": ours, "theirs": theirs},
        supported_node_classes=frozenset({("karpenter.k8s.aws", "EC2NodeClass")}),
    )

    found = with_unplanned_as_nodes(world).claims

    assert (unplanned_claims(world), found["theirs"]) == ((ours,), theirs)


def test_a_requirement_that_excludes_one_value_is_no_label() -> None:
    """Only In with one value says what the node will be."""
    without = Expression(key=names.ZONE, operator="NotIn", values=("zone-a",))
    claim = replace(a_claim(), requirements=(without,))

    assert with_unplanned_as_nodes(a_snapshot(claim)).claims[claim.name].labels == claim.labels


@pytest.mark.parametrize(
    ("fields", "room"),
    [({}, False), ({"phase": "Succeeded"}, True), ({"phase": "Failed"}, True)],
)
def test_a_claim_of_ours_has_room_once_one_of_its_pods_has_ended(fields: dict[str, str], room: bool) -> None:
    """A pod that still waits, or runs elsewhere by now, is planned for by its own name."""
    claim = replace(a_claim(), requests=REQUESTS, annotations={names.PLAN: "p/0", names.PLANNED_PODS: "uid-web-1"})
    pod = a_web_pod(**{"phase": "Pending", "node_name": "", **fields})

    def sized(claim: NodeClaim) -> bool:
        world = replace(a_snapshot(claim), pods={pod.uid: pod})
        return bool(with_unplanned_as_nodes(world).claims[claim.name].allocatable)

    assert sized(claim) is room
    assert not sized(replace(claim, deleting_since=1.0))
    assert not sized(replace(claim, provider_id="aws:///zone/i-1"))
