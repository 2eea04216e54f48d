"""Launching stops where launches are of no use to the pods that they were for, and for nothing else (PLQ-33)."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest

from dovetail.model import names
from dovetail.model.nodes import Condition, Node, NodeClaim
from dovetail.model.own.claim_memory import memory_of, with_memory
from dovetail.model.pods import Owner, Pod
from dovetail.model.pools import NodePool
from dovetail.model.snapshot import Snapshot
from dovetail.placement.earlier_claims import launch_in_vain
from dovetail.placement.launch_brake import pods_held_back, pools_to_resume, pools_to_stop
from dovetail.placement.place_pods import place
from dovetail.placement.provisioning_plan import plan_provisioning
from dovetail.placement.settings import BrakeSettings, PlacementSettings
from dovetail.rules.brake.unused_launches import (
    BRAKE,
    stop_of,
    stop_text,
    unused_launch,
    whose_pods,
    with_unused_launch,
)
from tests.placement.builders import (
    a_bound_pod,
    a_general_pool,
    a_joined_pair,
    a_shape,
    a_snapshot,
    a_waiting_pod,
    an_index,
    groups,
    placed,
)
from tests.placement.test_earlier_claims import a_joined, an_earlier_claim, with_claims
from worlds.disruption import NOW

WELL_KNOWN = names.WELL_KNOWN_LABELS
PRICED = {names.INSTANCE_TYPE: "huge", names.ZONE: "z1", names.CAPACITY_TYPE: "on-demand"}  # $0.80 an hour


def stopped(snapshot: Snapshot, settings: BrakeSettings | None = None) -> dict[str, str]:
    return {s.pool: s.why for s in pools_to_stop(snapshot, settings or BrakeSettings(), WELL_KNOWN)}


def useless(count: int, pool: str = "default", ready_for: float = 90.0) -> tuple[list[Pod], list[NodeClaim]]:
    """Nodes that have stood for a while, each without the pod that it was launched for, each pod another team's."""
    pods = [a_waiting_pod(f"{pool}-{i}", shape=replace(a_shape(), namespace=f"team-{i}")) for i in range(count)]
    labels = {names.NODE_POOL: pool, **PRICED}
    claims = [
        replace(an_earlier_claim(f"{pool}-{i}", p, ready_for=ready_for), labels=labels) for i, p in enumerate(pods)
    ]
    return pods, claims


def test_ten_nodes_that_took_none_of_their_pods_stop_the_pool() -> None:
    nine, ten = useless(9), useless(10)

    assert not stopped(with_claims(nine[0], *nine[1]))
    assert stopped(with_claims(ten[0], *ten[1])) == {
        "default": "10 of 10 nodes launched within an hour were of no use to the pods they were for"
        " (team-0/Pod default-0, team-1/Pod default-1, team-2/Pod default-2)"
    }


def test_many_claims_for_one_pod_hold_it_alone_before_any_node_is_up() -> None:
    pod = a_waiting_pod("web")
    world = with_claims([pod], *[an_earlier_claim(f"c{i:02}", pod) for i in range(11)])

    assert not stopped(world)
    assert pods_held_back([pod], world, {}, PlacementSettings()).why.keys() == {pod.uid}


def test_dollars_that_no_pending_pod_explains_stop_the_pool() -> None:
    pods, claims = useless(5)  # $4.00 an hour

    assert not stopped(with_claims(pods, *claims), BrakeSettings(launches=0, dollars=4.01))
    assert "$4.00 an hour" in stopped(with_claims(pods, *claims), BrakeSettings(launches=0, dollars=3.99))["default"]


def test_twice_as_much_over_all_pools_stops_each_that_has_a_part_in_it() -> None:
    pools = [a_general_pool(name) for name in ("a", "b", "c", "quiet")]
    found = [useless(8, pool) for pool in ("a", "b", "c")]
    snapshot = with_claims([p for pods, _ in found for p in pods], *[c for _, cs in found for c in cs], pools=pools)

    assert stopped(snapshot).keys() == {"a", "b", "c"}


def ended(count: int) -> NodePool:
    """A pool that remembers so many launches that have ended without their pods."""
    pool = a_general_pool()
    for i in range(count):
        pool = with_unused_launch(pool, unused_launch(f"c{i}", NOW - 60, [f"uid-{i}"]), NOW)
    return pool


def test_nodes_that_are_gone_again_are_remembered_by_their_pool() -> None:
    assert not stopped(a_snapshot(pools=[ended(9)]))
    assert stopped(a_snapshot(pools=[ended(10)]))


def test_a_pool_that_is_stopped_is_not_stopped_again_and_one_resumed_begins_anew() -> None:
    pool = ended(12)
    by = {**pool.annotations, names.LAUNCHES_STOPPED: stop_text(NOW, "enough")}
    anew = {**pool.annotations, names.LAUNCHES_RESUMED: "2023-11-14T22:13:10Z"}

    assert not stopped(a_snapshot(pools=[replace(pool, annotations=by)]))
    assert not stopped(a_snapshot(pools=[replace(pool, annotations=anew)]))


def a_burst(pods: Iterable[Pod], per_node: int) -> Snapshot:
    """A deployment whose nodes are launched, none of them up yet."""
    waiting = list(pods)
    nodes = [waiting[i : i + per_node] for i in range(0, len(waiting), per_node)]
    labels = {names.NODE_POOL: "default", **PRICED}
    return with_claims(waiting, *[replace(an_earlier_claim(f"c{i}", *p), labels=labels) for i, p in enumerate(nodes)])


@pytest.mark.parametrize("per_node", [1, 10])
def test_a_deployment_of_two_thousand_pods_stops_nothing(per_node: int) -> None:
    assert not stopped(a_burst([a_waiting_pod(f"p{i}") for i in range(2000)], per_node))


def test_nodes_that_the_kube_scheduler_is_still_filling_stop_nothing() -> None:
    pods, claims = useless(200, ready_for=50.0)

    assert not stopped(with_claims(pods, *claims))


def test_nodes_whose_pods_are_gone_or_run_elsewhere_stop_nothing() -> None:
    pods, claims = useless(40)
    elsewhere = [replace(p, node_name="n1", unschedulable=False) for p in pods[:20]]

    assert not stopped(with_claims(elsewhere, *claims, nodes=[a_joined_pair("n1")]))


def test_a_wave_of_drift_stops_nothing() -> None:
    """Each new node is for pods that run on an old one, and stays empty until that one has gone. No pod is pending, so
    the claims are not even gone through: each pass asks, and thousands may have been launched within the hour."""

    class Unseen(dict[str, NodeClaim]):
        def values(self) -> Any:
            raise AssertionError("the claims were gone through")

    old = [a_joined_pair(f"old{i}") for i in range(60)]
    pods = [a_bound_pod(f"p{i}", f"old{i}") for i in range(60)]
    new = [a_joined(f"new{i}", pod, ready_for=200.0) for i, pod in enumerate(pods)]

    world = a_snapshot(pods, nodes=[*old, *new])
    assert not stopped(world)
    assert not stopped(replace(world, claims=Unseen(world.claims)))


def test_a_zone_in_which_nothing_comes_up_does_not_stop_the_other_two() -> None:
    pods, claims = useless(20)
    joined: list[tuple[Node, NodeClaim]] = []
    running: list[Pod] = []
    for i in range(40):
        running.append(a_bound_pod(f"r{i}", f"n{i}"))
        joined.append(a_joined(f"n{i}", running[-1], ready_for=100.0))
    made = [(n, replace(c, created=NOW - 200, labels=n.labels)) for n, c in joined]

    assert not stopped(with_claims([*pods, *running], *claims, nodes=made))


def test_a_static_pool_names_no_pods_and_stops_nothing() -> None:
    claims = [replace(an_earlier_claim(f"c{i}"), annotations={names.PLAN: f"p/{i}"}) for i in range(50)]

    assert not stopped(with_claims([], *claims, pools=[a_general_pool(replicas=50)]))


def test_nothing_is_placed_on_new_nodes_of_a_stopped_pool_and_the_reason_is_said() -> None:
    pod = a_waiting_pod("web")
    pool = replace(a_general_pool(), annotations={names.LAUNCHES_STOPPED: stop_text(NOW, "12 of 12 were of no use")})
    alone = place(an_index(a_snapshot([pod], pools=[pool])))
    beside = place(an_index(a_snapshot([pod], pools=[pool, a_general_pool("spare")])))
    standing = place(an_index(a_snapshot([pod], nodes=[a_joined_pair("n1")], pools=[pool])))

    assert not alone.new
    assert [(r.pool, r.reason, r.conflict) for r in alone.refused[0].pools] == [
        (
            "default",
            "launches_stopped",
            "launches are stopped: 12 of 12 were of no use; one more node is tried at 2023-11-14T22:18:20Z",
        )
    ]
    assert [n.pool for n in beside.new] == ["spare"]
    assert standing.existing.keys() == {"n1"}


def test_a_stop_that_a_person_wrote_by_hand_holds() -> None:
    stop = stop_of(replace(a_general_pool(), annotations={names.LAUNCHES_STOPPED: "I look into it"}))

    assert stop is not None
    assert stop.why == "I look into it"


def of_one_owner(pods: Iterable[Pod], team: str = "team") -> list[Pod]:
    owner = Owner(api_version="apps/v1", kind="ReplicaSet", name="stuck", uid="rs-stuck", controller=True)
    return [replace(pod, shape=replace(pod.shape, namespace=team), owners=(owner,)) for pod in pods]


def of_one_namespace(pods: Iterable[Pod]) -> list[Pod]:
    return [replace(pod, shape=replace(pod.shape, namespace="team")) for pod in pods]


@pytest.mark.parametrize(("of", "who"), [(of_one_owner, "team/ReplicaSet stuck"), (of_one_namespace, "namespace team")])
def test_useless_nodes_of_one_user_hold_that_user_alone(of: Callable[[Iterable[Pod]], list[Pod]], who: str) -> None:
    """PLQ-33: a stranger's pod, in the same pool, has its node at once."""
    found, claims = useless(12)
    mine = of(found)
    stranger = a_waiting_pod("stranger", cpu="7", created=NOW)
    [more] = of([a_waiting_pod("more", created=NOW)])
    world = with_claims([*mine, stranger, more], *claims)

    assert not stopped(world)
    placement = placed(world)
    assert groups(placement) == [["stranger"]]
    [why] = [ignored.why for ignored in placement.ignored if ignored.pod.uid == more.uid]
    assert why.startswith(f"nothing is launched for the pods of {who} until 2023-11-14T")
    assert "12 of 12 nodes" in why


def of_teams(pods: Iterable[Pod], *teams: str) -> list[Pod]:
    return [replace(p, shape=replace(p.shape, namespace=teams[i % len(teams)])) for i, p in enumerate(pods)]


def for_each(claims: Iterable[NodeClaim], *pods: Iterable[Pod]) -> list[NodeClaim]:
    """The claims, each made for one pod of each list."""
    return [
        replace(claim, annotations=an_earlier_claim("c", *own).annotations)
        for claim, *own in zip(claims, *pods, strict=True)
    ]


def test_useless_nodes_for_pods_of_two_namespaces_hold_those_two_alone() -> None:
    """PLQ-33: a namespace costs its user nothing, so what two bring about is not the NodePool's fault."""
    found, claims = useless(12)
    others = of_teams([a_waiting_pod(f"other-{i}") for i in range(12)], "team-2")
    both = for_each(claims, found, others)
    world = [*of_teams(found, "team-1"), *others]
    stranger = a_waiting_pod("stranger", cpu="7")

    assert not stopped(with_claims(world, *both))
    assert groups(placed(with_claims([*world, stranger], *both))) == [["stranger"]]


def test_of_no_namespace_more_launches_count_against_a_pool_than_of_the_third() -> None:
    """PLQ-33: nine of each of two, and one of a third by chance, stop nobody."""
    found, claims = useless(19)
    few = with_claims([*of_teams(found[:18], "team-1", "team-2"), *found[18:]], *claims)
    alike = with_claims(of_teams(found[:12], "team-1", "team-2", "team-3"), *claims[:12])
    at_once = for_each(claims[:10], found[:10], found[1:11], found[2:12])

    assert not stopped(few)
    assert stopped(alike)
    assert stopped(with_claims(found, *at_once))  # each in vain for the pods of three


def test_who_names_a_namespace_or_an_owner_cannot_have_a_stranger_held() -> None:
    """PLQ-33: `iiwucoup` and `uejgtcuo` have one CRC-32, and a pod of any namespace may claim any owner's UID."""
    found, claims = useless(12)
    mine = [replace(pod, shape=replace(pod.shape, namespace="iiwucoup")) for pod in found]
    other = a_waiting_pod("other", cpu="7", shape=replace(a_shape(), namespace="uejgtcuo"))
    assert groups(placed(with_claims([*mine, other], *claims))) == [["other"]]

    [owned] = of_one_owner([a_waiting_pod("owned", cpu="7")])
    forged = [replace(pod, owners=owned.owners) for pod in mine]
    assert groups(placed(with_claims([*forged, owned], *claims))) == [["owned"]]


def test_an_owner_s_rest_ends_with_one_more_node_and_doubles_with_each_in_vain() -> None:
    found, claims = useless(11)
    mine = of_one_owner(found)
    more = of_one_owner([a_waiting_pod("a"), a_waiting_pod("b")])
    last = max(claim.created for claim in claims)

    def made(now: float) -> int:
        return len(placed(replace(with_claims([*mine, *more], *claims), now=now)).new)

    assert made(last + 2 * BRAKE.rests.first - 1) == 0
    assert made(last + 2 * BRAKE.rests.first) == 1


@pytest.mark.parametrize("of", [of_one_owner, of_one_namespace])
@pytest.mark.parametrize("why", ["too large", "no such zone", "the API server refuses its claim"])
def test_the_node_that_is_tried_is_for_the_oldest_pod_that_can_have_one(
    of: Callable[[Iterable[Pod]], list[Pod]], why: str
) -> None:
    """PLQ-33: what waits for ever keeps no other pod of its owner or namespace waiting with it."""
    pool = a_general_pool()
    for n, gone in enumerate(of([a_waiting_pod(f"gone-{n}") for n in range(10)])):
        pool = with_unused_launch(pool, unused_launch(f"c{n}", NOW - 400, [gone.uid], whose_pods([gone])), NOW)
    shape = a_shape(node_selector=((names.ZONE, "nowhere"),)) if why == "no such zone" else a_shape()
    old = [
        a_waiting_pod(f"old-{n}", cpu="99" if why == "too large" else "1", created=NOW - 9e5 + n, shape=shape)
        for n in range(2)
    ]
    waiting = of([*old, a_waiting_pod("b", created=NOW - 50), a_waiting_pod("c", cpu="9", created=NOW - 40)])
    stranger = a_waiting_pod("stranger", cpu="7")
    refused = dict.fromkeys([pod.uid for pod in waiting[:2]], "no") if why.startswith("the API") else {}
    world = replace(a_snapshot([*waiting, stranger], pools=[pool]), refused_pods=refused)

    placement = placed(world)

    assert sorted(pod.name for node in placement.new for pod in node.pods) == ["b", "stranger"]
    assert {"c", *([] if not refused else ["old-0", "old-1"])} <= {each.pod.name for each in placement.ignored}
    assert {each.pod.name for each in placement.refused} == ({"old-0", "old-1"} if not refused else set())


def test_a_pod_that_is_tried_has_its_turn_before_the_others_once_a_pass_had_no_time_for_it() -> None:
    """PLQ-23, PLQ-33."""
    pool = a_general_pool()
    for n, gone in enumerate(of_one_owner([a_waiting_pod(f"gone-{n}") for n in range(10)])):
        pool = with_unused_launch(pool, unused_launch(f"c{n}", NOW - 400, [gone.uid], whose_pods([gone])), NOW)
    tried, others = of_one_owner([a_waiting_pod("tried")]), [a_waiting_pod(f"other-{n}", cpu="9") for n in range(30)]
    index = an_index(a_snapshot([*tried, *others], pools=[pool]))

    def late_after_a_short_pass(first: frozenset[str] = frozenset()) -> frozenset[str]:
        looks = iter([False] * 10)
        found = place(index, should_stop=lambda: next(looks, True), first=first)
        late = {each.pod.uid for each in found.refused}
        assert (tried[0] in [pod for node in found.new for pod in node.pods]) == (tried[0].uid not in late)
        return frozenset(late.intersection([tried[0].uid]))

    late = late_after_a_short_pass()
    assert late
    assert not late_after_a_short_pass(late)


def test_an_owner_whose_nodes_are_mostly_of_use_is_not_held() -> None:
    found, claims = useless(10)
    mine = of_one_owner(found)
    [*running] = of_one_owner([a_bound_pod(f"r{i}", f"n{i}") for i in range(11)])
    good = [a_joined(f"n{i}", pod, ready_for=100.0) for i, pod in enumerate(running)]
    world = with_claims([*mine, *running, *of_one_owner([a_waiting_pod("more")])], *claims, nodes=good)

    assert len(placed(world).new) == 1


def test_nodes_that_never_came_up_are_the_pool_s_whoever_they_were_for() -> None:
    pods, claims = useless(10, ready_for=-1.0)
    mine = of_one_owner(pods)
    old = [replace(claim, created=NOW - 400) for claim in claims]
    again = [replace(claim, name=f"{claim.name}-again") for claim in old]

    assert stopped(with_claims(mine, *old, *again)).keys() == {"default"}


def lacking(claims: Iterable[NodeClaim], reason: str, ago: float) -> list[NodeClaim]:
    """Their nodes have joined, and are not initialised for that reason."""
    waits = Condition(type=names.INITIALIZED_CONDITION, status="Unknown", reason=reason, changed=NOW - ago)
    return [replace(each, conditions=(each.conditions[0], waits), created=NOW - ago) for each in claims]


def test_nodes_without_the_resource_that_their_pods_ask_for_hold_the_owner_of_these() -> None:
    """PLQ-33: who asks for what no plugin brings must not stop the pool for the others, standing or ended."""
    found, claims = useless(12)
    mine = of_one_owner(found)
    stranger, [more] = a_waiting_pod("stranger", cpu="7"), of_one_owner([a_waiting_pod("more")])

    for ago, served in ((600.0, ["more", "stranger"]), (1000.0, ["stranger"])):
        world = with_claims([*mine, stranger, more], *lacking(claims, "ResourceNotRegistered", ago))
        assert not stopped(world)
        assert sorted(pod for group in groups(placed(world)) for pod in group) == served

    for reason, blamed in (("ResourceNotRegistered", True), ("StartupTaintsExist", False)):
        launch = launch_in_vain(lacking(claims, reason, 1000.0)[0], {pod.uid: pod for pod in mine}, NOW)
        assert launch is not None
        assert bool(launch.whose.owners) is blamed


@pytest.mark.parametrize("of", [of_one_owner, lambda pods: of_teams(pods, "team", "team-2")])
def test_whose_a_launch_was_is_remembered_after_its_end(of: Callable[[Iterable[Pod]], list[Pod]]) -> None:
    found, claims = useless(20)
    mine = of(found)
    pool = a_general_pool()
    for claim in for_each(claims[:10], found[::2], found[1::2]):
        launch = launch_in_vain(claim, {pod.uid: pod for pod in mine}, NOW)
        assert launch is not None
        pool = with_unused_launch(pool, launch, NOW)
    more = of_one_owner([a_waiting_pod("more")])

    assert not stopped(a_snapshot(more, pools=[pool]))
    assert not placed(a_snapshot(more, pools=[pool])).new
    assert placed(a_snapshot([a_waiting_pod("stranger")], pools=[pool])).new


def a_stopped_pool(ago: float, **annotations: str) -> NodePool:
    return replace(
        a_general_pool(), annotations={names.LAUNCHES_STOPPED: stop_text(NOW - ago, "enough"), **annotations}
    )


def tried(pool: NodePool, *claims: NodeClaim) -> tuple[int, str]:
    """How many nodes a plan proposes for ten pods that need ten, and what the first pod is told."""
    pods = [a_waiting_pod(f"p{i}", cpu="15") for i in range(10)]
    plan, placement = plan_provisioning(with_claims(pods, *claims, pools=[pool]), PlacementSettings(), lambda: False)
    assert all(memory_of(dict(node.annotations)).asks_again for node in plan.proposed)
    return len(plan.proposed), placement.refused[0].pools[0].conflict if placement.refused else ""


def a_trial(**changes: Any) -> NodeClaim:
    claim = replace(an_earlier_claim("trial", **changes), labels={names.NODE_POOL: "default"}, created=NOW - 900)
    return replace(claim, annotations=with_memory(claim.annotations, asks_again=True))


def test_a_stopped_pool_tries_one_node_again_by_itself_and_later_after_each_in_vain() -> None:
    assert tried(a_stopped_pool(BRAKE.rests.first - 10)) == (
        0,
        "launches are stopped: enough; one more node is tried at 2023-11-14T22:13:30Z",
    )
    assert tried(a_stopped_pool(BRAKE.rests.first))[0] == 1
    booting, unused = a_trial(), a_trial(ready_for=800.0)
    assert tried(a_stopped_pool(1000.0), booting) == (0, "launches are stopped: enough")
    assert tried(a_stopped_pool(1000.0), unused)[0] == 1
    second = replace(unused, name="second", created=NOW - 650)
    assert tried(a_stopped_pool(1000.0), unused, second)[0] == 0


def test_a_stop_that_a_person_wrote_is_never_tried() -> None:
    by_hand = replace(a_general_pool(), annotations={names.LAUNCHES_STOPPED: "we move house"})

    assert tried(by_hand) == (0, "launches are stopped: we move house")


def test_a_node_that_was_tried_and_runs_pods_ends_the_stop() -> None:
    pod = a_bound_pod("p", "trial")
    node, claim = a_joined("trial", pod, ready_for=60.0)
    asking = replace(claim, created=NOW - 100, annotations=with_memory(claim.annotations, asks_again=True))

    assert pools_to_resume(a_snapshot([pod], nodes=[(node, asking)], pools=[a_stopped_pool(500.0)])) == ("default",)
    assert pools_to_resume(a_snapshot([], nodes=[(node, asking)], pools=[a_stopped_pool(500.0)])) == ()
    assert pools_to_resume(a_snapshot([pod], nodes=[(node, claim)], pools=[a_stopped_pool(500.0)])) == ()
