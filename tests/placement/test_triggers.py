"""What asks for a provisioning round (PLC-1): pods, buffers, and room that has come or gone."""

from dataclasses import replace
from typing import Any

from dovetail.model import names
from dovetail.model.pods import Owner, Pod
from dovetail.model.snapshot import Snapshot
from dovetail.placement.triggers import AGAIN_SECONDS, BUFFERS_AGAIN_SECONDS, Tried, asking
from tests.placement.buffer_worlds import a_buffer, a_source, with_buffers
from tests.placement.builders import a_bound_pod, a_joined_pair, a_snapshot, a_waiting_pod
from worlds.disruption import NOW


def a_world(*pods: str, bound: tuple[str, ...] = (), replicas: int = 2) -> Snapshot:
    """Pending pods, pods on n1, and a buffer."""
    all_pods = [*map(a_waiting_pod, pods), *[a_bound_pod(name, "n1") for name in bound]]
    return a_snapshot(all_pods, [a_joined_pair("n1")], **with_buffers(a_buffer(replicas=replicas)))


def test_a_buffer_asks_for_a_round_as_a_pending_pod_does() -> None:
    """A buffer asks for a round as a pending pod does (PLC-1)."""
    found = asking(a_world("web"))
    assert [sorted(part) for part in (found.pods, found.buffers)] == [["uid-web"], ["buffer-spare"]]
    assert found.all == found.pods | found.buffers


def test_a_buffer_that_asks_for_nothing_or_has_its_claims_opens_no_window() -> None:
    """PLC-1: nor one that cannot be resolved."""
    world = a_world()
    _, claim = a_joined_pair("n2")
    coming = replace(claim, provider_id="", annotations={names.PLANNED_BUFFERS: "buffer-spare=2"})
    lost = a_snapshot(**with_buffers(a_buffer(template="nowhere")))
    assert asking(a_world(replicas=0)).all == asking(lost).all == frozenset()
    assert asking(replace(world, claims={**world.claims, coming.name: coming})).all == frozenset()


def test_where_only_buffers_ask_they_are_tried_again_after_thirty_seconds() -> None:
    """PLC-1: a virtual pod never stops being pending, and must not keep the planner busy."""
    assert asking(a_world("web")).again_after() == AGAIN_SECONDS == 10.0
    assert asking(a_world()).again_after() == BUFFERS_AGAIN_SECONDS == 30.0
    assert Tried().again_after() == 0.0


def test_a_pod_that_comes_or_goes_where_a_buffer_has_its_room_asks_again_at_once() -> None:
    """PLC-1: a change wakes the decision; a pod that waits for its scheduler changes nothing."""
    before = asking(a_world(bound=("one",))).room
    assert asking(a_world("waits", bound=("one",))).room == before
    assert asking(a_world(bound=("one", "two"))).room != before
    assert asking(a_world()).room != before


def test_without_buffers_bound_pods_do_not_matter() -> None:
    bound, free = a_snapshot([a_bound_pod("one", "n1")], [a_joined_pair("n1")]), a_snapshot([], [a_joined_pair("n1")])
    assert asking(bound).room == asking(free).room


def test_a_template_or_a_size_that_changes_asks_again() -> None:
    """A template or a size that changes asks again (PLC-1)."""
    world = a_world()
    other = {"default/small": a_source(cpu="2", generation=2)}
    rooms = [asking(w).room for w in (world, a_world(replicas=3), replace(world, pod_templates=other))]
    assert len(set(rooms)) == 3


def a_leaving_node(*pods: Pod, **fields: Any) -> Snapshot:
    node, claim = a_joined_pair("n1")
    return a_snapshot(pods, [(node, replace(claim, node_name="n1", deleting_since=NOW))], **fields)


def test_the_pods_of_a_leaving_node_ask_for_a_round_and_again_after_ten_seconds() -> None:
    """PLC-1: at a spot warning the new node is launched at once, not when the last pod has been evicted."""
    found = asking(a_leaving_node(a_bound_pod("web", "n1")))

    assert found.all == found.leaving == {"uid-web"}
    assert found.again_after() == AGAIN_SECONDS


def test_a_node_object_that_is_being_deleted_asks_too() -> None:
    node, claim = a_joined_pair("n1")
    world = a_snapshot([a_bound_pod("web", "n1")], [(replace(node, deleting_since=NOW), claim)])

    assert asking(world).leaving == {"uid-web"}


def test_pods_that_need_no_room_when_their_node_leaves_do_not_ask() -> None:
    """PLC-30: neither those of DaemonSets, nor those that have ended or may not be evicted."""
    daemon = Owner(api_version="apps/v1", kind="DaemonSet", name="d", uid="d", controller=True)
    pods = (
        replace(a_bound_pod("daemon", "n1"), owners=(daemon,)),
        replace(a_bound_pod("over", "n1"), phase="Succeeded"),
        replace(a_bound_pod("protected", "n1"), do_not_disrupt="true"),
    )

    assert asking(a_leaving_node(*pods)).all == frozenset()


def test_a_pod_of_a_leaving_node_for_which_a_claim_was_made_does_not_ask() -> None:
    """The replacement of a disruption, or the claim of the pass before."""
    world = a_leaving_node(a_bound_pod("web", "n1"))
    _, other = a_joined_pair("n2")
    made = replace(other, provider_id="", annotations={names.PLANNED_PODS: "uid-web"})

    assert asking(replace(world, claims={**world.claims, made.name: made})).all == frozenset()
