"""LIF-20 to LIF-43: what a Node must say, what keeps it from being initialised, and for how long a claim may wait."""

from dataclasses import replace
from typing import Any

import pytest

from dovetail.lifecycle.initialization import blocker
from dovetail.lifecycle.liveness import launch_overdue, registration_overdue
from dovetail.lifecycle.registration import NodeChange, came_unmarked, registered
from dovetail.model import names
from dovetail.model.pods import Owner
from dovetail.model.scheduling.devices import NodeChoice, ResourceSlice
from dovetail.model.scheduling.taints import Taint
from tests.lifecycle.objects import a_joined_claim, a_joined_node, is_now
from worlds.disruption import UNREGISTERED, a_claim, a_node

DEDICATED = Taint(key="dedicated", value="gpu", effect="NoSchedule")
INIT = Taint(key="init", effect="NoSchedule")


def test_registration_is_one_change_that_makes_the_node_the_claims() -> None:
    """LIF-23, LIF-25, BEH-54."""
    claim = a_claim(
        labels={names.NODE_POOL: "pool", "team": "a"},
        annotations={"note": "x", names.OWNER: "w", names.LAUNCH_REQUEST: "{}", names.PLAN: "p/0"},
        taints=(DEDICATED,),
        startup_taints=(INIT,),
    )

    change = registered(claim, a_node(labels={"team": "b"}, finalizers=("other/finalizer",)))

    assert change == NodeChange(
        labels={names.NODE_POOL: "pool", names.REGISTERED: "true", "team": "a"},
        annotations={"note": "x"},
        finalizers=("other/finalizer", names.TERMINATION_FINALIZER),
        add_owner=Owner(api_version="karpenter.sh/v1", kind="NodeClaim", name=claim.name, uid=claim.uid),
        taints=(DEDICATED, INIT),
    )


def test_a_registered_node_is_left_as_it_is() -> None:
    """LIF-29, BEH-57: a start-up taint that its owner lifted does not come back."""
    claim = a_claim(labels={}, startup_taints=(INIT,))
    owner = Owner(api_version="karpenter.sh/v1", kind="NodeClaim", name=claim.name, uid=claim.uid)

    assert registered(claim, a_joined_node(owners=(owner,))).is_empty()


def test_what_workflows_keep_on_a_claim_does_not_come_to_its_node() -> None:
    """LIF-23: everything else does, and what the node has already is no change."""
    ours = dict.fromkeys(
        (
            names.LAUNCH_REQUEST,
            names.OWNER,
            names.PLAN,
            names.PLANNED_BUFFERS,
            names.PLANNED_PODS,
            names.REGISTRATION_HOOK,
        ),
        "x",
    )
    claim = a_claim(annotations={**ours, "note": "x", "kept": "y"})

    assert registered(claim, a_node(annotations={"kept": "y", "note": "before"})).annotations == {"note": "x"}


@pytest.mark.parametrize(
    ("owner", "finalizers"),
    [({"uid": "of an older claim"}, ()), ({"kind": "NodePool"}, ()), ({"api_version": "karpenter.sh/v1beta1"}, ())],
)
def test_another_owner_is_not_the_claim(owner: dict[str, Any], finalizers: tuple[str, ...]) -> None:
    """LIF-23: by kind, version and UID; a node that has lost only our finalizer gets that back."""
    claim = a_claim()
    mine = Owner(api_version="karpenter.sh/v1", kind="NodeClaim", name=claim.name, uid=claim.uid)

    change = registered(claim, a_joined_node(owners=(replace(mine, **owner),), finalizers=finalizers))

    assert (change.add_owner, change.finalizers) == (mine, (names.TERMINATION_FINALIZER,))
    assert registered(claim, a_joined_node(owners=(mine,))).add_owner is None


def test_only_the_unregistered_taint_of_its_own_effect_is_taken_off() -> None:
    """LIF-25, API-34: by key and effect."""
    other = replace(UNREGISTERED, effect="NoSchedule")

    assert registered(a_claim(), a_node(taints=(UNREGISTERED, other))).taints == (other,)


def test_taints_of_one_key_and_two_effects_both_come_to_the_node() -> None:
    """LIF-23."""
    twin = replace(DEDICATED, effect="NoExecute")
    node = a_node(taints=(DEDICATED,))

    assert registered(a_claim(taints=(DEDICATED, twin)), node).taints == (DEDICATED, twin)


@pytest.mark.parametrize(("value", "taints"), [("true", ()), ("false", (DEDICATED,))])
def test_taints_are_not_synchronised_where_the_node_says_so(value: str, taints: tuple[Taint, ...]) -> None:
    """LIF-23, LIF-29, BEH-56: the unregistered taint goes all the same."""
    node = a_node(labels={names.DO_NOT_SYNC_TAINTS: value})

    assert registered(a_claim(taints=(DEDICATED,)), node).taints == taints


def test_a_taint_that_the_node_has_with_another_value_is_not_added_twice() -> None:
    """LIF-23: by key and effect."""
    node = a_node(taints=(UNREGISTERED, replace(DEDICATED, value="cpu")))

    assert registered(a_claim(taints=(DEDICATED,)), node).taints == (replace(DEDICATED, value="cpu"),)


def test_a_node_without_taint_and_label_is_reported() -> None:
    """LIF-22, BEH-55."""
    assert came_unmarked(a_node(taints=()))
    assert not came_unmarked(a_node())
    assert not came_unmarked(a_joined_node())


def test_a_node_that_has_everything_is_initialised() -> None:
    """LIF-38."""
    assert blocker(a_joined_claim(), (a_joined_node(),)) is None


BLOCKED = {
    "NodeNotFound": (),
    "NodeNotReady": (a_joined_node(conditions=()),),
    "StartupTaintsExist": (a_joined_node(taints=(INIT,)),),
    "KnownEphemeralTaintsExist": (a_joined_node(taints=(Taint(key="readiness.k8s.io/cni", effect="NoSchedule"),)),),
    "ResourceNotRegistered": (a_joined_node(allocatable={"cpu": 10**9, "pods": 0}),),
}


@pytest.mark.parametrize("reason", sorted(BLOCKED))
def test_what_is_missing_is_named(reason: str) -> None:
    """LIF-31 to LIF-35, BEH-60."""
    claim = a_joined_claim(startup_taints=(INIT,))

    found = blocker(claim, BLOCKED[reason])

    assert found is not None
    assert found[0] == reason


def test_a_driver_that_was_promised_must_publish_a_whole_pool_unless_devices_are_ignored() -> None:
    """LIF-36, LIF-37, BEH-61."""
    claim, nodes = a_joined_claim(annotations={names.DEVICE_DRIVERS: "a.example.com"}), (a_joined_node(),)
    of_a = ResourceSlice(name="s", driver="a.example.com", pool="n", generation=1, count=1, nodes=NodeChoice())

    assert blocker(claim, nodes) is None
    for slices in ((), (replace(of_a, count=2),), (of_a, replace(of_a, generation=2, count=2))):
        why = blocker(claim, nodes, slices)
        assert why == ("DRADriverPoolsNotPublished", 'Driver "a.example.com" has not published its devices')
    assert blocker(claim, nodes, (of_a,)) is None


def test_two_nodes_are_as_bad_as_none() -> None:
    """A claim with two nodes is not initialised, as if it had none (LIF-31)."""
    found = blocker(a_joined_claim(), (a_joined_node("a"), a_joined_node("b")))

    assert found == ("NodeNotFound", "Node not registered with cluster")


def test_a_taint_is_named_as_it_is_written() -> None:
    """LIF-33."""
    claim = a_joined_claim(startup_taints=(DEDICATED,))

    assert blocker(claim, (a_joined_node(taints=(DEDICATED,)),)) == (
        "StartupTaintsExist",
        'StartupTaint "dedicated=gpu:NoSchedule" still exists',
    )


def test_an_unreachable_taint_without_execution_is_ephemeral_and_with_it_is_not() -> None:
    """API-34."""
    for effect, expected in (("NoSchedule", "KnownEphemeralTaintsExist"), ("NoExecute", None)):
        node = a_joined_node(taints=(Taint(key="node.kubernetes.io/unreachable", effect=effect),))
        found = blocker(a_joined_claim(), (node,))
        assert (found and found[0]) == expected


@pytest.mark.parametrize(
    ("key", "effects"),
    [
        ("node.kubernetes.io/not-ready", ("NoSchedule", "NoExecute")),
        ("node.kubernetes.io/unreachable", ("NoSchedule",)),
        ("node.cloudprovider.kubernetes.io/uninitialized", ("NoSchedule",)),
        (names.UNREGISTERED_TAINT, ("NoExecute",)),
        ("readiness.k8s.io/network", ("NoSchedule", "PreferNoSchedule", "NoExecute")),
        ("dedicated", ()),
    ],
)
def test_each_ephemeral_taint_holds_initialization_under_its_own_effects(key: str, effects: tuple[str, ...]) -> None:
    """LIF-34, API-34: by key and effect; the same key with another effect is a taint like any other."""
    for effect in ("NoSchedule", "PreferNoSchedule", "NoExecute"):
        found = blocker(a_joined_claim(), (a_joined_node(taints=(Taint(key=key, effect=effect),)),))
        expected = ("KnownEphemeralTaintsExist", f'KnownEphemeralTaint "{key}:{effect}" still exists')
        assert found == (expected if effect in effects else None)


def test_a_kubelet_that_says_no_or_nothing_is_not_ready() -> None:
    """LIF-32: only True is ready."""
    for status in ("False", "Unknown"):
        node = a_joined_node(conditions=(is_now(names.READY, status),))
        assert blocker(a_joined_claim(), (node,)) == ("NodeNotReady", "Node status is NotReady")


def test_a_resource_that_was_not_asked_for_is_not_missed() -> None:
    """LIF-35: an amount of zero asks for nothing; what was asked for is named."""
    node = a_joined_node(allocatable={"cpu": 10**9})

    assert blocker(a_joined_claim(requests={"cpu": 1, "gpu": 0}), (node,)) is None
    assert blocker(a_joined_claim(requests={"cpu": 1, "gpu": 1}), (node,)) == (
        "ResourceNotRegistered",
        'Resource "gpu" was requested but not registered',
    )


def test_a_start_up_taint_is_known_by_key_and_effect() -> None:
    """LIF-33: another effect of that key, or another key, holds nothing."""
    claim = a_joined_claim(startup_taints=(INIT,))
    others = (replace(INIT, effect="NoExecute"), replace(INIT, key="other"))

    assert blocker(claim, (a_joined_node(taints=others),)) is None
    assert blocker(claim, (a_joined_node(taints=(*others, replace(INIT, value="x"))),)) is not None


def test_a_launch_may_take_five_minutes() -> None:
    """LIF-41, the boundary included."""
    claim = a_claim(created=1000.0)

    assert [launch_overdue(claim, now) for now in (1299.9, 1300.0)] == [False, True]


def test_the_clock_of_a_launch_is_the_conditions_not_the_creation() -> None:
    """BEH-65."""
    claim = a_claim(created=1000.0, conditions=(is_now(names.LAUNCHED, "Unknown", changed=1200.0),))

    assert [launch_overdue(claim, now) for now in (1400.0, 1500.0)] == [False, True]


def test_registration_may_take_fifteen_minutes_from_the_creation() -> None:
    """LIF-43: launch time included."""
    claim = a_claim(created=1000.0, conditions=(is_now(names.LAUNCHED, changed=1200.0),))

    assert [registration_overdue(claim, now) for now in (1899.9, 1900.0)] == [False, True]


def test_a_registered_claim_is_never_overdue() -> None:
    """LIF-40."""
    assert not registration_overdue(a_joined_claim(), 10**9)
