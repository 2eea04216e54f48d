"""What needs an owner or an end, and which instances and claims are orphans (TRM-4, TRM-10, LIF-60, GCR-1 to GCR-6)."""

from dataclasses import replace
from typing import Any

import pytest

from dovetail.lifecycle.launch_requests import GroupShare, LaunchRequest, request_text
from dovetail.lifecycle.unfinished import (
    LaunchedInstance,
    collect,
    deserted,
    expired,
    is_mass,
    lost_everything,
    marks,
    never_initialized,
    next_expiry,
    orphans,
    owners,
    releases,
    seen_for,
    too_many,
    unclaimed,
    vanished,
    without_node,
)
from dovetail.messages.orders import StartOwner, StartRelease, TakeOffMark, TerminateOrphan
from dovetail.messages.subjects import ClaimRef
from dovetail.model import names
from dovetail.model.nodes import Condition, Node, NodeClaim, NodeClassRef
from dovetail.model.objects.unreadable import Unreadable
from dovetail.model.pods import Pod
from dovetail.model.pools import ClaimTemplate, NodePool
from dovetail.model.snapshot import Snapshot
from dovetail.termination.leaving import LEAVING_TAINT
from tests.lifecycle.objects import DAEMON, a_joined_claim, a_joined_node, a_snapshot, a_web_pod, is_now
from worlds.disruption import a_claim

REF = ClaimRef(name="pool-1", uid="uid-pool-1", pool="pool")
CLASS_LABEL = "karpenter.k8s.aws/ec2nodeclass"
OTHER = NodeClassRef(group="other.cloud", kind="OtherClass", name="default")
NOW = 2000.0
SILENT = (Condition(type=names.READY, status="Unknown"),)
LAUNCHED = LaunchedInstance(provider_id="aws:///zone/i-1", claim_uid="uid-pool-1", launched=0.0)


def a_managed_node(name: str = "node-1", **fields: Any) -> Node:
    return a_joined_node(name, labels={CLASS_LABEL: "default", names.NODE_POOL: "pool"}, **fields)


def everything(snapshot: Snapshot) -> tuple[object, ...]:
    return (*owners(snapshot), *releases(snapshot), *deserted(snapshot), *expired(snapshot), *marks(snapshot))


def test_a_finished_cluster_needs_nothing() -> None:
    assert everything(a_snapshot(a_joined_claim(), a_managed_node())) == ()


@pytest.mark.parametrize(
    ("claim", "workflow"),
    [
        (a_claim(), "LaunchNode"),
        (a_claim(conditions=(is_now(names.LAUNCHED), is_now(names.REGISTERED_CONDITION))), "LaunchNode"),
        (a_claim(deleting_since=NOW), "TerminateNode"),
        (a_joined_claim(deleting_since=NOW), "TerminateNode"),
    ],
)
def test_an_unfinished_claim_needs_its_workflow(claim: NodeClaim, workflow: str) -> None:
    """The sweep; a lost signal and a lost database are one case."""
    assert owners(a_snapshot(claim)) == (StartOwner(claim=REF, workflow_type=workflow, node=claim.node_name),)


def test_a_claim_without_our_finalizer_needs_no_termination() -> None:
    """LIF-50."""
    assert owners(a_snapshot(a_claim(deleting_since=NOW, finalizers=("other/one",)))) == ()


def test_claims_and_nodes_of_another_provider_are_left_alone() -> None:
    """PLM-1, PLM-2, LIF-60, BEH-4."""
    fields: dict[str, Any] = {"node_class": OTHER, "expire_after": 1.0, "annotations": {names.OWNER: "x"}}
    node = a_joined_node(labels={"other.cloud/otherclass": "default"}, deleting_since=NOW, provider_id="other:///1")

    assert everything(a_snapshot(a_claim("a", deleting_since=NOW, **fields), a_claim("b", **fields), node)) == ()


def test_a_deleted_node_deletes_its_claim() -> None:
    """TRM-4, BEH-5, BEH-123."""
    snapshot = a_snapshot(a_joined_claim(), a_managed_node(deleting_since=NOW))

    assert [(order.claim, order.reason) for order in deserted(snapshot)] == [(REF, "node_deleted")]
    assert releases(snapshot) == ()


@pytest.mark.parametrize(
    ("claim", "node"),
    [
        (a_joined_claim(), a_managed_node(deleting_since=NOW, finalizers=())),
        (a_joined_claim(node_class=OTHER), a_managed_node(deleting_since=NOW)),
        (a_joined_claim(deleting_since=NOW), a_managed_node(deleting_since=NOW)),
    ],
    ids=["the node is not held by us", "the claim is another provider's", "the claim is being deleted already"],
)
def test_a_deleted_node_deletes_no_claim_that_is_not_its_to_delete(claim: NodeClaim, node: Node) -> None:
    """TRM-2, TRM-4."""
    assert deserted(a_snapshot(claim, node)) == ()


def test_a_claim_whose_node_has_joined_and_is_gone_has_none() -> None:
    """TRM-4: deleted, and its finalizer taken off by hand."""
    [order] = without_node(a_snapshot(a_joined_claim()))

    assert (order.claim, order.reason, order.message) == (REF, "node_deleted", "its Node node-1 is gone")


@pytest.mark.parametrize(
    "world",
    [
        a_snapshot(a_joined_claim(), a_managed_node()),
        a_snapshot(a_joined_claim(), a_managed_node(provider_id="")),
        replace(
            a_snapshot(a_joined_claim()),
            unreadable=(Unreadable(kind="Node", name="node-1", field="spec.taints", message="not a list"),),
        ),
        replace(a_snapshot(a_joined_claim()), stale=frozenset({"Node"})),
        a_snapshot(a_joined_claim(), now=1059.0),
        a_snapshot(a_claim(provider_id="aws:///zone/i-1", conditions=(is_now(names.LAUNCHED),))),
        a_snapshot(a_joined_claim(deleting_since=NOW)),
        a_snapshot(a_joined_claim(node_class=OTHER)),
    ],
    ids=["there", "made anew", "unreadable", "not watched", "just registered", "not registered", "leaves", "not ours"],
)
def test_a_node_that_may_be_there_is_not_gone(world: Snapshot) -> None:
    """TRM-4."""
    assert without_node(world) == ()


def test_a_deleted_node_without_a_claim_is_released() -> None:
    """TRM-10, BEH-2."""
    assert releases(a_snapshot(a_managed_node(deleting_since=NOW))) == (StartRelease(node="node-1", uid="uid-node-1"),)


def test_a_deleted_node_with_two_claims_has_none() -> None:
    """TRM-3, BEH-3: and neither claim is deleted for it."""
    snapshot = a_snapshot(a_joined_claim("a"), a_joined_claim("b"), a_managed_node(deleting_since=NOW))

    assert (len(releases(snapshot)), deserted(snapshot)) == (1, ())


def test_an_empty_provider_id_matches_nothing() -> None:
    """PLM-3."""
    snapshot = a_snapshot(a_claim(), a_managed_node(provider_id="", deleting_since=NOW))

    assert (len(releases(snapshot)), deserted(snapshot)) == (1, ())


@pytest.mark.parametrize("node", [a_managed_node(), a_managed_node(deleting_since=NOW, finalizers=())])
def test_a_node_that_is_not_leaving_or_not_held_by_us_is_left_alone(node: Node) -> None:
    """TRM-1, TRM-2."""
    assert releases(a_snapshot(node)) == ()


def test_a_claim_expires_at_the_moment_and_not_before() -> None:
    """LIF-60, BEH-80: also before it is registered (LIF-62)."""
    claim = a_claim(created=1000.0, expire_after=1000.0)
    early, due = a_snapshot(claim, now=1999.9), a_snapshot(claim, now=2000.0)

    assert (expired(early), next_expiry(early)) == ((), 2000.0)
    assert [(order.claim, order.reason) for order in expired(due)] == [(REF, "expired")]
    assert next_expiry(due) is None


def test_a_claim_that_never_expires_or_is_leaving_is_kept() -> None:
    """LIF-60."""
    leaving = a_claim("gone", created=0.0, expire_after=1.0, deleting_since=NOW)

    assert expired(a_snapshot(a_claim(expire_after=None), leaving)) == ()


@pytest.mark.parametrize(
    ("fields", "left"),
    [
        ({}, True),
        ({"termination_grace": 600.0}, True),
        ({"termination_grace": 60.0}, False),  # too short for a node to start
        ({"termination_grace": 300.0, "created": 500.0}, False),  # expired 500 s ago: its pods would be gone by now
        ({"conditions": ()}, False),  # no node that a replacement could stand in for
    ],
)
def test_a_pool_may_ask_for_a_replacement_before_expiry(fields: dict[str, Any], left: bool) -> None:
    """Ours: dovetail.sh/replace-first; the disruption launches the replacement, and there is an end to waiting."""
    claim = a_joined_claim(**{"created": 900.0, "expire_after": 1000.0, **fields})
    template = ClaimTemplate(node_class=claim.node_class)
    pool = NodePool(name="pool", template=template, annotations={names.REPLACE_FIRST: "true"})
    world = replace(a_snapshot(claim), pools={"pool": pool})

    assert (expired(world) == ()) is left
    assert len(expired(replace(world, pools={}))) == 1


def test_a_claim_may_ask_for_a_replacement_for_itself() -> None:
    """Ours: the annotation on the claim alone; without a pool no replacement could be launched."""
    claim = a_joined_claim(created=900.0, expire_after=1000.0, annotations={names.REPLACE_FIRST: "true"})
    pool = NodePool(name="pool", template=ClaimTemplate(node_class=claim.node_class))
    world = replace(a_snapshot(claim), pools={"pool": pool})

    assert expired(world) == ()
    assert expired(replace(world, pools={"pool": replace(pool, replicas=1)})) == ()
    assert len(expired(replace(world, pools={}))) == 1


def test_a_mark_is_named_with_its_owner() -> None:
    claim = a_joined_claim(annotations={names.OWNER: "c/disrupt/1"})

    assert marks(a_snapshot(claim)) == (TakeOffMark(claim=REF, owner="c/disrupt/1"),)


def test_a_deleted_claim_keeps_its_mark() -> None:
    """STA-20: termination owns the taint."""
    claim = a_joined_claim(annotations={names.OWNER: "c/disrupt/1"}, deleting_since=NOW)

    assert marks(a_snapshot(claim, a_managed_node(taints=(LEAVING_TAINT,)))) == ()


@pytest.mark.parametrize(
    "objects",
    [
        (a_joined_claim(), a_managed_node(taints=(LEAVING_TAINT,))),
        (a_joined_claim(conditions=(*a_joined_claim().conditions, is_now(names.DISRUPTION_REASON))), a_managed_node()),
        (a_joined_claim(annotations={names.TERMINATION_DEADLINE: "2026-01-01T00:00:00Z"}), a_managed_node()),
    ],
)
def test_a_mark_that_karpenter_left_behind_is_found(objects: tuple[NodeClaim | Node, ...]) -> None:
    """DUR-26: taken over from a process that was stopped in between; it names no owner."""
    assert marks(a_snapshot(*objects)) == (TakeOffMark(claim=REF, owner=""),)


@pytest.mark.parametrize(
    "node", [a_managed_node(conditions=SILENT), a_managed_node("other", provider_id="aws:///zone/i-2")]
)
def test_a_claim_whose_instance_is_gone_is_deleted(node: Node) -> None:
    """GCR-2, GCR-3, BEH-82, BEH-83."""
    (order,) = vanished(a_snapshot(a_joined_claim(), node), [])

    assert (order.claim, order.reason) == (REF, "garbage_collected")


@pytest.mark.parametrize(
    ("claim", "node", "listed"),
    [
        (a_joined_claim(), a_managed_node(conditions=SILENT), [LAUNCHED]),
        (a_joined_claim(), a_managed_node(), []),
        (a_claim(provider_id="aws:///zone/i-1", conditions=(is_now(names.LAUNCHED),)), a_managed_node("x"), []),
        (a_joined_claim(deleting_since=NOW), a_managed_node(conditions=SILENT), []),
        (a_joined_claim(node_class=OTHER), a_managed_node(conditions=SILENT), []),
    ],
)
def test_other_claims_are_kept(claim: NodeClaim, node: Node, listed: list[LaunchedInstance]) -> None:
    """GCR-2, GCR-3, BEH-82: listed; its kubelet is alive; not registered; leaving; not ours."""
    assert vanished(a_snapshot(claim, node), listed) == ()


def test_an_instance_without_a_claim_is_terminated_when_it_is_seen_again() -> None:
    """GCR-6."""
    found = orphans(a_snapshot(), [LAUNCHED])

    assert collect(found, frozenset()) == ()
    assert collect(found, frozenset({LAUNCHED.provider_id})) == (
        TerminateOrphan(provider_id="aws:///zone/i-1", claim_uid="uid-pool-1"),
    )


def test_an_instance_launched_just_before_the_first_look_goes_at_the_second() -> None:
    """A launch that a predecessor did not write down is gone within two minutes: looks are a minute apart, so the
    first one counts although the instance is too young then."""
    young = LaunchedInstance(provider_id="i", launched=NOW - 1.0)

    first = unclaimed(a_snapshot(), [young])
    later = replace(a_snapshot(), now=NOW + 60.0)

    assert orphans(a_snapshot(), [young]) == ()
    assert collect(orphans(later, [young]), frozenset(i.provider_id for i in first)) == (
        TerminateOrphan(provider_id="i", claim_uid=""),
    )


@pytest.mark.parametrize(
    ("claims", "instance"),
    [
        ((a_claim(),), LAUNCHED),  # launched, and not written down yet
        ((a_joined_claim(uid="other"),), LAUNCHED),  # launched by Karpenter, which sets no tag of ours
        ((), LaunchedInstance(provider_id="i", launched=NOW - 30.0)),
    ],
)
def test_instances_with_a_claim_and_young_ones_are_left_alone(
    claims: tuple[NodeClaim, ...], instance: LaunchedInstance
) -> None:
    """GCR-6."""
    assert orphans(a_snapshot(*claims), [instance]) == ()


def test_the_instances_of_a_group_wait_for_its_last_claim_that_has_none_written_down() -> None:
    """Which is whose, only the group's own call says."""
    share = GroupShare(group="g", number=1, size=2, first="pool-2", first_uid="u", generation=1)
    text = request_text(LaunchRequest(generation=1, request="r", share=share))
    waiting = a_claim(annotations={names.LAUNCH_REQUEST: text})
    instance, another = [LaunchedInstance(provider_id="i", group=group) for group in ("g", "another")]

    assert orphans(a_snapshot(waiting), [instance, another]) == (another,)
    assert orphans(a_snapshot(replace(waiting, provider_id="j")), [instance]) == (instance,)


@pytest.mark.parametrize(
    ("found", "of", "mass"), [(0, 0, False), (1, 1, True), (1, 2, True), (1, 3, False), (2, 3, True)]
)
def test_half_of_all_are_a_mass(found: int, of: int, mass: bool) -> None:
    assert is_mass(found, of) is mass


@pytest.mark.parametrize(("found", "listed", "stopped"), [(3, 3, False), (4, 4, True), (5, 50, False), (6, 50, True)])
def test_many_orphans_at_once_stop_the_collection(found: int, listed: int, stopped: bool) -> None:
    """More than three and more than a tenth: a backup was restored, or a tag is wrong."""
    assert too_many(found, listed) is stopped


@pytest.mark.parametrize(
    ("claim", "node"),
    [
        ({}, {"finalizers": ("other/one",)}),  # its Node is not held by us
        ({"deleting_since": NOW}, {}),  # leaving already
        ({"node_class": OTHER}, {}),
        ({"provider_id": "aws:///zone/i-2"}, {}),  # another instance's
    ],
)
def test_a_deleted_node_deletes_no_other_claim(claim: dict[str, Any], node: dict[str, Any]) -> None:
    """TRM-1, TRM-4, PLM-1: only the living claim of ours, and only for a node that carries our finalizer."""
    leaving = a_managed_node(**{"deleting_since": NOW, **node})

    assert deserted(a_snapshot(a_joined_claim(**claim), leaving)) == ()
    assert len(deserted(a_snapshot(a_joined_claim(), a_managed_node(deleting_since=NOW)))) == 1


def test_a_claim_that_never_registered_is_left_to_its_time_limit() -> None:
    """GCR-2: without a node, its instance not listed yet; once it is registered it goes."""
    launched = a_claim(provider_id="aws:///zone/i-1", conditions=(is_now(names.LAUNCHED),))
    registered = replace(launched, conditions=(*launched.conditions, is_now(names.REGISTERED_CONDITION)))

    assert vanished(a_snapshot(launched), []) == ()
    assert len(vanished(a_snapshot(registered), [])) == 1


def test_a_node_that_says_nothing_of_its_kubelet_is_silent() -> None:
    """GCR-3: no Ready condition keeps no claim, nor does the Ready node of another instance."""
    nodes = (a_managed_node(conditions=()), a_managed_node("other", provider_id="aws:///zone/i-2"))

    assert len(vanished(a_snapshot(a_joined_claim(), *nodes), [])) == 1


def test_of_several_expiries_the_next_is_waited_for() -> None:
    """LIF-60: the earliest that is still to come."""
    moments = (NOW - 1, NOW + 50, NOW + 10)
    claims = [a_claim(f"c{at}", created=at - 100, expire_after=100.0) for at in moments]

    assert next_expiry(a_snapshot(*claims)) == NOW + 10
    assert [order.claim.name for order in expired(a_snapshot(*claims))] == [f"c{NOW - 1}"]


def test_a_pool_that_asks_for_nothing_expires_its_claims_by_force() -> None:
    """LIF-61: without the annotation no replacement comes first."""
    claim = a_joined_claim(created=900.0, expire_after=1000.0)
    pool = NodePool(name="pool", template=ClaimTemplate(node_class=claim.node_class))

    assert len(expired(replace(a_snapshot(claim), pools={"pool": pool}))) == 1


@pytest.mark.parametrize(
    ("grace", "now", "left"),
    [(120.0, 2000.0, True), (119.0, 2000.0, False), (300.0, 2199.0, True), (300.0, 2200.0, False)],
)
def test_a_replacement_is_waited_for_until_the_grace_is_over(grace: float, now: float, left: bool) -> None:
    """LIF-61: ours; the boundaries of a grace that is too short for a node to start, and of one that has run out."""
    claim = a_joined_claim(created=900.0, expire_after=1000.0, termination_grace=grace)
    template = ClaimTemplate(node_class=claim.node_class)
    pool = NodePool(name="pool", template=template, annotations={names.REPLACE_FIRST: "true"})

    assert (expired(replace(a_snapshot(claim, now=now), pools={"pool": pool})) == ()) is left


def test_an_instance_is_known_by_its_claims_id_or_while_that_is_missing_by_its_uid() -> None:
    """GCR-6: a claim with another instance does not stand for a second one that carries its UID."""
    second = LaunchedInstance(provider_id="aws:///zone/i-2", claim_uid="uid-pool-1")
    nameless = LaunchedInstance(provider_id="", claim_uid="uid of nobody")

    assert unclaimed(a_snapshot(a_joined_claim()), [LAUNCHED, second]) == (second,)
    assert unclaimed(a_snapshot(a_claim()), [LAUNCHED, nameless]) == (nameless,)


def test_a_cluster_is_empty_only_without_pools_and_without_claims() -> None:
    """GCR-6: either alone says that somebody asked for the instances that are found."""
    pool = NodePool(name="pool", template=ClaimTemplate(node_class=OTHER))

    assert lost_everything(a_snapshot(a_managed_node()))
    assert not lost_everything(a_snapshot(a_claim()))
    assert not lost_everything(replace(a_snapshot(), pools={"pool": pool}))


def test_what_is_to_be_seen_for_a_while_has_been_seen_for_all_of_it() -> None:
    """GCR-6: the boundary included."""
    assert seen_for({"a": 100.0, "b": 100.1, "c": 200.0}, 160.0, 60.0) == {"a"}


def test_a_node_is_managed_by_the_label_of_any_class_that_the_cloud_knows() -> None:
    """PLM-2, TRM-10: a cloud may know several kinds."""
    several = frozenset({("karpenter.k8s.aws", "EC2NodeClass"), ("karpenter.kwok.sh", "KWOKNodeClass")})
    world = replace(a_snapshot(a_managed_node(deleting_since=NOW)), supported_node_classes=several)

    assert len(releases(world)) == 1


def not_ready(**annotations: str) -> NodeClaim:
    """Made for web-1, registered at 1000, and without the resource that it asks for."""
    waits = is_now(
        names.INITIALIZED_CONDITION, "Unknown", reason="ResourceNotRegistered", message='Resource "gpu" was requested'
    )
    done = (is_now(names.LAUNCHED), is_now(names.REGISTERED_CONDITION), waits)
    return a_joined_claim(conditions=done, annotations={names.PLANNED_PODS: "uid-web-1", **annotations})


def given_up(now: float, *pods: Pod, claim: NodeClaim | None = None) -> list[tuple[str, str]]:
    world = a_snapshot(claim or not_ready(), a_managed_node(), now=now)
    world = replace(world, pods={pod.uid: pod for pod in pods})
    return [(order.reason, order.message) for order in never_initialized(world, ["pool-1"])]


def test_an_empty_node_that_is_never_initialised_is_given_up_once_nobody_waits_for_it() -> None:
    """LIF-83: and after 45 minutes, where one waits: on another it may run."""
    gone = [("never_initialized", 'Resource "gpu" was requested')]
    waiting = a_web_pod("web-1", node_name="", phase="Pending")
    agent = a_web_pod("agent", owners=(DAEMON,))

    assert given_up(1000.0 + 899.0) == []
    assert given_up(1000.0 + 900.0, agent) == gone
    assert given_up(1000.0 + 900.0, waiting) == []
    assert given_up(1000.0 + 2700.0, waiting) == gone


def test_a_buffer_s_node_that_is_never_initialised_is_given_up_too() -> None:
    """LIF-83."""
    of_a_buffer = replace(not_ready(), annotations={names.PLANNED_BUFFERS: "buffer-spare=1"})

    assert given_up(1000.0 + 899.0, claim=of_a_buffer) == []
    assert [reason for reason, _ in given_up(1000.0 + 900.0, claim=of_a_buffer)] == ["never_initialized"]


@pytest.mark.parametrize("fields", [{}, {"deleting_since": 1500.0}, {"phase": "Pending"}])
def test_a_node_on_which_somebody_s_pod_is_stays_however_long_it_is_not_initialised(fields: dict[str, Any]) -> None:
    """LIF-83."""
    assert given_up(90000.0, a_web_pod("other", **fields)) == []


def test_a_node_that_is_not_initialised_stays_if_a_person_keeps_it_or_made_it_or_it_is_a_static_pool_s() -> None:
    """LIF-83: somebody may look for the cause on it."""
    of_nobody = replace(not_ready(), annotations={})

    assert given_up(90000.0, claim=not_ready(**{names.DO_NOT_DISRUPT: "true"})) == []
    assert given_up(90000.0, claim=of_nobody) == []
    assert given_up(90000.0, claim=a_joined_claim(annotations={names.PLANNED_PODS: "uid-web-1"})) == []
