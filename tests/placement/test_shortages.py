"""A pod whose only offerings are short asks again after a while: one claim, for all that wait (decision 240)."""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from acceptance.karpenter import KARPENTER_PLACEMENT
from dovetail.messages.plans import ProvisioningPlan
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.own.claim_memory import with_memory
from dovetail.model.pods import Pod
from dovetail.model.pools import InstanceType
from dovetail.model.snapshot import Snapshot
from dovetail.placement.provisioning_plan import plan_provisioning
from dovetail.placement.settings import DOVETAIL, PlacementSettings, Profile
from tests.placement.builders import a_joined_pair, a_shape, a_snapshot, a_type, a_waiting_pod

((MARK, ASKS),) = with_memory({}, asks_again=True).items()


def short(each: InstanceType, *, may_be_asked: bool) -> InstanceType:
    """The type, sold out everywhere."""
    change = partial(replace, available=False, may_be_asked=may_be_asked)
    return replace(each, offerings=tuple(change(offering) for offering in each.offerings))


def a_world(*types: InstanceType, pods: Iterable[Pod] = (), claims: Iterable[NodeClaim] = ()) -> Snapshot:
    snapshot = a_snapshot(pods=pods or [a_waiting_pod("a", cpu="3"), a_waiting_pod("b", cpu="3")], types=types)
    return replace(snapshot, claims={claim.name: claim for claim in claims})


def plan_of(snapshot: Snapshot, profile: Profile = DOVETAIL) -> ProvisioningPlan:
    return plan_provisioning(snapshot, PlacementSettings(profile=profile), lambda: False)[0]


LARGE, SMALL = a_type("large", "4", 1.0), a_type("small", "1", 0.1)


def test_one_claim_alone_asks_again_where_pods_have_nowhere_else_to_go() -> None:
    plan = plan_of(a_world(SMALL, short(LARGE, may_be_asked=True)))

    [asking] = plan.proposed
    assert (MARK, ASKS) in asking.annotations
    assert len(asking.pods) == 1
    assert sum(refusal.count for refusal in plan.refusals) == 2


def test_what_was_refused_a_moment_ago_is_not_asked_for() -> None:
    assert plan_of(a_world(SMALL, short(LARGE, may_be_asked=False))).proposed == ()


def test_pods_that_have_another_place_do_not_ask() -> None:
    plan = plan_of(a_world(short(LARGE, may_be_asked=True), a_type("larger", "8", 2.0)))

    assert plan.proposed
    assert all(MARK not in dict(node.annotations) for node in plan.proposed)


def test_while_one_claim_asks_no_other_does() -> None:
    launched = replace(a_joined_pair("n")[1], annotations={MARK: ASKS})
    asks = replace(launched, provider_id="")
    world = [SMALL, short(LARGE, may_be_asked=True)]

    assert plan_of(a_world(*world, claims=[asks])).proposed == ()
    assert len(plan_of(a_world(*world, claims=[launched])).proposed) == 1


def test_a_pod_that_no_offering_would_take_does_not_ask() -> None:
    strange = a_waiting_pod("a", cpu="3", shape=a_shape(node_selector=((names.ZONE, "nowhere"),)))

    assert plan_of(a_world(SMALL, short(LARGE, may_be_asked=True), pods=[strange])).proposed == ()


def test_karpenter_waits_for_the_end_of_a_shortage() -> None:
    assert plan_of(a_world(SMALL, short(LARGE, may_be_asked=True)), KARPENTER_PLACEMENT).proposed == ()
