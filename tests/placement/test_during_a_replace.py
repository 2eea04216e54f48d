"""What provisioning plans while a disruption replaces a node: nothing for its pods, and nothing that has room there."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from dovetail.lifecycle.unplanned_claims import with_unplanned_as_nodes
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.pods import Pod
from dovetail.model.scheduling.taints import Taint
from dovetail.model.snapshot import Snapshot
from dovetail.placement.provisioning_plan import plan_provisioning
from dovetail.placement.settings import PlacementSettings
from dovetail.placement.triggers import asking
from tests.placement.builders import a_bound_pod, a_joined_pair, a_snapshot, a_waiting_pod
from worlds.disruption import NOW

DISRUPTED = Taint(key="karpenter.sh/disrupted", effect="NoSchedule")
RUNNING = a_bound_pod("running", "old", cpu="2")


def being_replaced(*waiting: Pod, by: Iterable[NodeClaim] = ()) -> Snapshot:
    """A node that a disruption has marked and tainted, with its pod."""
    node, claim = a_joined_pair("old")
    marked = replace(claim, annotations={names.OWNER: "c/disrupt/p1"})
    world = a_snapshot([RUNNING, *waiting], [(replace(node, taints=(DISRUPTED,)), marked)])
    return replace(world, claims={**world.claims, **{one.name: one for one in by}})


def a_replacement(launched: bool) -> NodeClaim:
    """The claim that was made for the pod; it has a size once it is launched, and no Node yet."""
    _, claim = a_joined_pair("new")
    labels = {key: value for key, value in claim.labels.items() if key not in (names.REGISTERED, names.INITIALIZED)}
    made = {names.PLAN: "p1/0", names.PLANNED_PODS: RUNNING.uid}
    claim = replace(claim, labels=labels, annotations=made, created=NOW - 5, requests=RUNNING.requests)
    return claim if launched else replace(claim, provider_id="", capacity={}, allocatable={})


def planned(world: Snapshot) -> list[list[str]]:
    """The pods of each node that provisioning would make."""
    plan, _ = plan_provisioning(with_unplanned_as_nodes(world), PlacementSettings(), lambda: False)
    return [[pod.name for pod in node.pods] for node in plan.proposed]


@pytest.mark.parametrize("made", [(), (a_replacement(launched=False),), (a_replacement(launched=True),)])
def test_nothing_is_planned_for_the_pods_of_a_node_that_is_being_replaced(made: tuple[NodeClaim, ...]) -> None:
    """DIT-4: neither while the claim is being created, however long that takes, nor once it is there."""
    world = being_replaced(by=made)

    assert (asking(world).all, planned(world)) == (frozenset(), [])


def test_the_pods_of_a_node_that_leaves_without_a_replacement_are_planned_for() -> None:
    """DIT-4: what the rule does not hold back."""
    world = being_replaced()
    leaving = {name: replace(claim, deleting_since=NOW - 1) for name, claim in world.claims.items()}

    assert planned(replace(world, claims=leaving)) == [["running"]]


@pytest.mark.parametrize("launched", [False, True])
def test_a_pod_that_comes_during_a_replace_goes_to_the_replacement(launched: bool) -> None:
    """DIT-101: there is no third node."""
    pod = a_waiting_pod("pending")
    world = being_replaced(pod, by=[a_replacement(launched)])

    assert (sorted(asking(world).all), planned(world)) == ([pod.uid], [])
    assert planned(being_replaced(pod)) == [["pending"]]  # the taint keeps it off the node that leaves
