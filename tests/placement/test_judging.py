"""One object that cannot be judged, or that costs too much, holds up no other pod."""

from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from dovetail.disruption.rounds import never
from dovetail.model import names
from dovetail.model.names import FAKE_POD
from dovetail.model.objects.judging import LONGEST_TEXT, Judging, Unjudged
from dovetail.model.objects.overlays import NodeOverlay
from dovetail.model.objects.workloads import DaemonSet
from dovetail.model.places.placements import Placement
from dovetail.model.pods import Expression, Pod, PodTerm
from dovetail.model.snapshot import Snapshot
from dovetail.placement.answer.explain import Explainer
from dovetail.placement.buffers.verdicts import for_real_pods
from dovetail.placement.constraints.demands import Demand
from dovetail.placement.constraints.preferences import relaxed
from dovetail.placement.facts.within_reason import MOST, within_reason
from dovetail.placement.overlays import overlay
from dovetail.placement.place_pods import Index, place
from dovetail.placement.provisioning_plan import plan_provisioning
from dovetail.placement.search.packing import emptiest_first
from dovetail.placement.settings import PlacementSettings
from tests.placement.builders import (
    TYPES,
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
from tests.placement.test_earlier_claims import an_earlier_claim, with_claims

# What no parser makes and no rule foresees.
IMPOSSIBLE = Expression(key="size", operator="In", values=7)  # type: ignore[arg-type]


def impossible(name: str, **fields: Any) -> Pod:
    """A pod whose preference cannot be evaluated."""
    return a_waiting_pod(name, shape=a_shape(preferred_terms=(term(IMPOSSIBLE, weight=1),)), **fields)


def pods_placed(placement: Placement) -> set[str]:
    return {pod.name for node in placement.new for pod in node.pods}


def named(placement: Placement) -> list[tuple[str, str]]:
    return [(fault.kind, fault.name) for fault in placement.unjudged]


def test_a_pod_that_cannot_be_judged_is_named_and_the_others_are_placed() -> None:
    placement = placed(a_snapshot([a_waiting_pod("good"), impossible("bad"), a_waiting_pod("big", "8")]))

    assert pods_placed(placement) == {"good", "big"}
    assert named(placement) == [("Pod", "default/bad")]
    [ignored] = placement.ignored
    assert ignored.pod.name == "bad" and "cannot be judged" in ignored.why


def test_what_a_relaxed_pod_asks_for_is_judged_too() -> None:
    """Its second preference is looked at when the first has been given up."""
    first, second = term(one_of("colour", "red"), weight=2), term(IMPOSSIBLE, weight=1)
    late = a_waiting_pod("late", shape=a_shape(preferred_terms=(first, second)))

    placement = placed(a_snapshot([late, a_waiting_pod("good")]))

    assert pods_placed(placement) == {"good"}
    [refused] = placement.refused
    assert (refused.pod.name, refused.reasons) == ("late", ("not_judged",))
    assert named(placement) == [("Pod", "default/late")]


def test_a_pod_that_was_set_aside_is_not_tried_again() -> None:
    """Else each success of another pod would let it fail once more."""
    tried: list[str] = []

    def watched(nodes: Any, drafts: Any, demand: Any, pod: Pod) -> Any:
        tried.append(pod.name)
        if pod.name == "bad":
            raise ArithmeticError
        return emptiest_first(nodes, drafts, demand, pod)

    place(Index(a_snapshot([a_waiting_pod("bad", "2"), a_waiting_pod("good")]), PlacementSettings()), packing=watched)

    assert tried == ["bad", "good"]


@pytest.mark.parametrize("kind", ["Node", "NodePool", "DaemonSet"])
def test_another_object_that_cannot_be_judged_is_named_and_the_pods_are_placed(kind: str) -> None:
    fields: dict[str, Any] = {"pools": [a_general_pool(), a_general_pool("odd", requirements=(IMPOSSIBLE,))]}
    if kind == "Node":
        node, claim = a_joined_pair("odd", labels={"karpenter.sh/initialized": "false"})
        fields = {"nodes": [(node, replace(claim, startup_taints=None))]}  # type: ignore[arg-type]
    if kind == "DaemonSet":
        pod = a_waiting_pod("d", shape=a_shape(required_terms=(term(IMPOSSIBLE),)))
        fields = {"daemon_sets": {"default/odd": DaemonSet(name="odd", namespace="default", uid="u", pod=pod)}}
    world = a_snapshot([a_waiting_pod("good")], **fields)
    if kind == "NodePool":
        world = replace(world, catalogues={**world.catalogues, "odd": world.catalogues["default"]})

    placement = placed(world)

    assert pods_placed(placement) == {"good"}
    assert [fault.kind for fault in placement.unjudged] == [kind]
    assert "odd" in placement.unjudged[0].name


def test_a_pod_on_a_leaving_node_that_cannot_be_judged_stops_no_planning() -> None:
    """Its protection cannot be evaluated, and its node leaves."""
    node, claim = a_joined_pair("n1")
    odd = replace(a_waiting_pod("odd"), node_name="n1", phase="Running", unschedulable=False, do_not_disrupt=7)  # type: ignore[arg-type]
    world = a_snapshot([odd, a_waiting_pod("good")], nodes=[(node, replace(claim, deleting_since=1.0))])

    placement = placed(world)

    assert pods_placed(placement) == {"good"}
    assert named(placement) == [("Pod", "default/odd")]


def test_a_fault_is_bounded_whatever_the_object_is_called_and_the_error_says() -> None:
    def fails() -> None:
        raise KeyError("x" * 10**6, 10**10_000)

    fault = Judging().judge(a_waiting_pod("p" * 10**5), "test", fails)

    assert isinstance(fault, Unjudged)
    assert len(fault.name) <= 2 * LONGEST_TEXT and len(fault.message) <= 2 * LONGEST_TEXT


# --- how much one pod may cost


def steps(pod: Pod, **fields: Any) -> int:
    """How often a pod that fits nowhere is tried."""
    tries = count()

    def counted(nodes: Any, drafts: Any, demand: Any, pod: Pod) -> Any:
        next(tries)
        return emptiest_first(nodes, drafts, demand, pod)

    placement = place(Index(a_snapshot([pod]), PlacementSettings()), packing=counted)
    assert [refused.pod for refused in placement.refused] == [pod]
    return next(tries)


TERMS = 5000
NOBODY = near("zone", nobody="at-all")


@pytest.mark.parametrize(
    "fields",
    [
        {"preferred_terms": tuple(term(one_of(f"k{n}", "v"), weight=n % 100) for n in range(TERMS))},
        {"required_terms": tuple(term(one_of(f"k{n}", "v")) for n in range(TERMS))},
        {"preferred_affinity": tuple(replace(NOBODY, topology_key=f"k{n}") for n in range(TERMS))},
        {"preferred_anti_affinity": tuple(replace(NOBODY, topology_key=f"k{n}") for n in range(TERMS))},
        {"spread": tuple(spread(f"k{n}", "ScheduleAnyway") for n in range(TERMS))},
    ],
)
def test_a_pod_with_thousands_of_terms_is_tried_a_hundred_times(fields: dict[str, Any]) -> None:
    assert steps(a_waiting_pod("p", "999", shape=a_shape(**fields))) <= MOST + 2


def test_the_heaviest_preferences_are_the_ones_that_are_kept() -> None:
    terms = tuple(term(one_of(f"k{n}", "v"), weight=n) for n in range(1, 301))
    affinity = tuple(PodTerm(topology_key=f"k{n}", selector=None, weight=n) for n in range(1, 301))

    kept = within_reason(a_shape(preferred_terms=terms, preferred_affinity=affinity))

    assert {t.weight for t in kept.preferred_terms} == set(range(201, 301))
    assert {t.weight for t in kept.preferred_affinity} == set(range(201, 301))
    few = a_shape(preferred_terms=terms[:MOST])
    assert within_reason(few) is few


def test_hard_constraints_are_never_given_up_for_their_number() -> None:
    hard = tuple(spread(f"k{n}") for n in range(300))
    shape = a_shape(spread=(*hard, *[spread(f"s{n}", "ScheduleAnyway") for n in range(300)]))

    kept = within_reason(shape)

    assert [c for c in kept.spread if c.when_unsatisfiable == "DoNotSchedule"] == list(hard)
    assert len(kept.spread) == 300 + MOST
    assert relaxed(kept, prefer_no_schedule=False) is not None


# --- how long a pass may take


def late_after(calls: int) -> Any:
    asked = count(1)
    return lambda: next(asked) > calls


def many(number: int) -> Snapshot:
    """Pods of different sizes, the largest first in the order of a pass."""
    return a_snapshot([a_waiting_pod(f"p{n}", str(16 - n)) for n in range(number)])


def test_a_pass_whose_time_is_up_answers_with_what_it_has_and_says_who_was_not_reached() -> None:
    plan, placement = plan_provisioning(many(6), PlacementSettings(), late_after(3))

    assert pods_placed(placement) == {"p0", "p1", "p2"} and not placement.complete
    assert len(plan.proposed) == len(placement.new) > 0
    assert {r.pod.name: r.reasons for r in placement.refused} == dict.fromkeys(("p3", "p4", "p5"), ("not_reached",))


def test_pods_that_a_pass_did_not_reach_come_first_in_the_next() -> None:
    """Else the same large pods would take all the time of every pass."""
    late = frozenset({"uid-p4", "uid-p5"})

    _, placement = plan_provisioning(many(6), PlacementSettings(), late_after(2), late)

    assert pods_placed(placement) == {"p4", "p5"}


def test_pods_for_which_claims_were_made_before_leave_time_for_those_that_a_pass_did_not_reach() -> None:
    """They are tried on nodes that stand before all others, and may take all the time of every pass."""
    choosy = a_shape(preferred_terms=tuple(term(one_of(f"k{n}", "v"), weight=1) for n in range(20)))
    served = [a_waiting_pod(f"served{n}", shape=choosy) for n in range(3)]
    claims = [an_earlier_claim(name, *served, ready_for=60.0) for name in ("one", "two")]
    snapshot = with_claims([*served, a_waiting_pod("new"), a_waiting_pod("huge", "999")], *claims)

    _, cut = plan_provisioning(snapshot, PlacementSettings(), late_after(10))
    _, following = plan_provisioning(snapshot, PlacementSettings(), late_after(10), cut.late)

    assert (pods_placed(cut), pods_placed(following)) == (set(), {"new"})
    assert {r.pod.name: r.is_not_reached for r in following.refused} == {
        "huge": False,
        **dict.fromkeys(("served0", "served1", "served2"), True),
    }
    _, whole = plan_provisioning(snapshot, PlacementSettings(), never, frozenset({"uid-new", "uid-huge"}))
    assert ([r.pod.name for r in whole.refused], {i.pod.name for i in whole.ignored}) == (
        ["huge"],
        {pod.name for pod in served},
    )


def test_pods_that_a_pass_had_no_time_to_prepare_for_are_reached_by_the_next() -> None:
    """Hundreds of pods that keep unlike ones away: the time is up before the first is tried."""
    unlike = [
        a_waiting_pod(f"p{n}", "2", shape=a_shape(anti_affinity=(near(names.HOSTNAME, **{f"a{n}": "b"}),)))
        for n in range(400)
    ]
    other = replace(a_waiting_pod("good").shape, namespace="other")
    snapshot = a_snapshot([*unlike, replace(a_waiting_pod("good"), shape=other)])

    _, placement = plan_provisioning(snapshot, PlacementSettings(), late_after(3))
    late = frozenset(r.pod.uid for r in placement.refused if r.reasons == ("not_reached",))
    assert (len(late), pods_placed(placement)) == (401, set())

    reached = []
    for _ in range(2):  # the next begins with a few, of each namespace; so does that after it, with others
        before = late
        _, placement = plan_provisioning(snapshot, PlacementSettings(), late_after(6), late)
        late = frozenset(r.pod.uid for r in placement.refused if r.reasons == ("not_reached",))
        reached.append(before - late)
    assert [len(uids) for uids in reached] == [6, 6]
    assert "uid-good" in reached[0]


def test_no_pod_is_prepared_for_once_the_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each may have a hundred terms, and a hundred thousand pods may be waiting."""
    made = count()

    def counted(*given: Any) -> Demand:
        next(made)
        return Demand(*given)

    monkeypatch.setattr("dovetail.placement.constraints.demands.Demand", counted)
    pods = [a_waiting_pod(f"p{n}", "2", shape=a_shape({f"a{n}": "b"})) for n in range(200)]

    placement = place(Index(a_snapshot(pods), PlacementSettings()), should_stop=lambda: True)

    assert {r.reasons for r in placement.refused} == {("not_reached",)} and len(placement.refused) == 200
    assert next(made) < 40


def test_pods_that_are_placed_in_parts_keep_away_from_those_of_earlier_parts() -> None:
    """Terms that are first seen with a later part count the pods that were placed before."""
    apart = a_shape({"app": "x"}, anti_affinity=(near(names.HOSTNAME, app="x"),))
    pods = [a_waiting_pod(f"p{n:02}", shape=a_shape({"app": "x"})) for n in range(20)]
    pods += [a_waiting_pod(f"q{n:02}", shape=apart) for n in range(20)]

    _, placement = plan_provisioning(a_snapshot(pods), PlacementSettings(), never, frozenset(pod.uid for pod in pods))

    assert len(pods_placed(placement)) == 40
    alone = [node for node in placement.new if any(pod.name.startswith("q") for pod in node.pods)]
    assert [len(node.pods) for node in alone] == [1] * 20


def test_a_pod_is_not_relaxed_beyond_the_time() -> None:
    shape = a_shape(preferred_terms=tuple(term(one_of(f"k{n}", "v"), weight=1) for n in range(50)))
    tried = count()

    def counted(nodes: Any, drafts: Any, demand: Any, pod: Pod) -> Any:
        next(tried)
        return emptiest_first(nodes, drafts, demand, pod)

    index = Index(a_snapshot([a_waiting_pod("p", "999", shape=shape)]), PlacementSettings())
    place(index, should_stop=late_after(5), packing=counted)

    assert next(tried) == 5


def test_pods_that_are_alike_give_up_their_preferences_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each form is kept for the next of them, or every pod of a large Deployment would make all of them again."""
    asked = count()

    def counted(*given: Any, **more: Any) -> Any:
        next(asked)
        return relaxed(*given, **more)

    monkeypatch.setattr("dovetail.placement.constraints.demands.relaxed", counted)
    choosy = a_shape(preferred_terms=tuple(term(one_of(f"k{n}", "v"), weight=1) for n in range(20)))

    placement = place(Index(a_snapshot([a_waiting_pod(f"p{n}", shape=choosy) for n in range(50)]), PlacementSettings()))

    assert len(pods_placed(placement)) == 50
    assert next(asked) == 20


def test_pods_that_are_refused_alike_are_explained_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten thousand pods that fit nowhere must not delay the plan for the others."""
    explained = count()
    original = Explainer._pools
    existing = Explainer._existing

    def counted(self: Explainer, *args: Any) -> Any:
        next(explained)
        return original(self, *args)

    def counted_nodes(self: Explainer, *args: Any) -> Any:
        next(explained)
        return existing(self, *args)

    monkeypatch.setattr(Explainer, "_pools", counted)
    monkeypatch.setattr(Explainer, "_existing", counted_nodes)

    placement = placed(
        a_snapshot([replace(a_waiting_pod(f"huge{n}", shape=SHARED), requests=REQUESTS) for n in range(500)])
    )

    assert len(placement.refused) == 500
    assert next(explained) == 2


SHARED = a_shape()
REQUESTS = a_waiting_pod("one", "99").requests


def test_an_overlay_that_cannot_be_judged_is_invalid_and_the_others_are_applied() -> None:
    world = a_snapshot([])
    odd = NodeOverlay(name="odd", requirements=(IMPOSSIBLE,), price="1", weight=2)
    sound = NodeOverlay(name="sound", requirements=(), price="5", weight=1)

    found = overlay((odd, sound), world.pools, world.catalogues)

    assert found.verdicts == {"odd": "invalid", "sound": "applied"}
    assert {o.price for item in found.catalogues["default"].types for o in item.offerings} == {5.0}


def test_no_event_is_about_a_pod_of_a_buffer_that_cannot_be_judged() -> None:
    """It exists nowhere."""
    world = a_snapshot([a_waiting_pod("good"), impossible("real")])
    odd = replace(impossible("virtual"), annotations={FAKE_POD: "true"})
    placement = placed(replace(world, pods={**world.pods, odd.uid: odd}))

    assert named(placement) == [("Pod", "default/real"), ("Pod", "default/virtual")]
    assert named(for_real_pods(placement)) == [("Pod", "default/real")]


def test_a_node_that_no_plan_can_hold_is_left_out_once_and_for_all() -> None:
    """Were it counted as left for the next plan, the next round would follow at once, for ever."""
    vast = replace(TYPES[3], name="vast", capacity={**TYPES[3].capacity, "memory": 10**30})
    odd = replace(a_waiting_pod("odd"), requests={**REQUESTS, "cpu": 10**9, "memory": 10**25})

    plan, placement = plan_provisioning(
        a_snapshot([odd, a_waiting_pod("good", "16")], types=(*TYPES, vast)), PlacementSettings(), lambda: False
    )

    assert [[pod.name for pod in node.pods] for node in plan.proposed] == [["good"]]
    assert not plan.more
    assert named(placement) == [("Pod", "default/odd")]
