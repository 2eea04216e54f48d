"""Movements: a decision that is quicker than the stamp knows of the pods that have just gone (DIS-163, DIS-167)."""

from dataclasses import replace
from itertools import islice
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from dovetail.disruption.nodes import pod_movements
from dovetail.disruption.nodes.pod_movements import LivingPods, Movements
from dovetail.disruption.upkeep.conditions import judge_consolidatable
from dovetail.disruption.upkeep.timers import STAMP_EVERY
from dovetail.model.nodes import NodeClaim
from dovetail.model.pods import Pod
from dovetail.model.snapshot import Snapshot
from worlds.disruption import NOW, a_pair, a_pod, a_world

OLD = NOW - 600.0


def a_stamped_node(now: float, stamp: float | None, *pods: str) -> Snapshot:
    """One node with these pods, its claim stamped then."""
    pair = a_pair("n")
    there = [replace(a_pod("n", name=name), uid=name) for name in pods]
    world = a_world([replace(pair, claim=replace(pair.claim, last_pod_event=stamp))], there)
    return replace(world, now=now)


def claim_in(snapshot: Snapshot) -> NodeClaim:
    [claim] = snapshot.claims.values()
    return claim


def test_pods_that_have_just_left_start_the_quiet_time_before_it_is_stamped() -> None:
    seen = Movements()
    seen.seen(a_stamped_node(NOW, OLD, "a", "b"))

    later = seen.seen(a_stamped_node(NOW + 1, OLD))

    assert claim_in(later).last_pod_event == NOW + 1
    again = seen.seen(a_stamped_node(NOW + 2, OLD))
    assert claim_in(again).last_pod_event == NOW + 1, "and it is not forgotten while the stamp is on its way"


def test_a_node_whose_pods_have_just_gone_is_not_quiet() -> None:
    seen, before, after = Movements(), a_stamped_node(NOW, OLD, "a"), a_stamped_node(NOW + 1, OLD)
    [found] = after.pools.values()
    pool = replace(found, disruption=replace(found.disruption, consolidate_after=30.0))
    assert judge_consolidatable(claim_in(after), pool, after.now).verdict == "set", "by the stamp alone it is"
    seen.seen(before)

    judged = judge_consolidatable(claim_in(seen.seen(after)), pool, after.now)

    assert (judged.verdict, judged.look_again) == ("clear", NOW + 31)


def test_the_stamp_counts_as_soon_as_it_is_there() -> None:
    seen = Movements()
    seen.seen(a_stamped_node(NOW, OLD, "a"))
    seen.seen(a_stamped_node(NOW + 1, OLD))

    assert claim_in(seen.seen(a_stamped_node(NOW + 2, NOW + 0.5))).last_pod_event == NOW + 0.5
    assert claim_in(seen.seen(a_stamped_node(NOW + 3, OLD))).last_pod_event == OLD, (
        "what was stamped is not changed again"
    )


def test_a_process_that_has_not_looked_for_long_believes_the_stamp() -> None:
    """Another worker has planned meanwhile; dating the movement now would hold the node back once more."""
    seen = Movements()
    seen.seen(a_stamped_node(NOW, OLD, "a"))

    assert claim_in(seen.seen(a_stamped_node(NOW + 300, NOW + 100))).last_pod_event == NOW + 100
    assert claim_in(seen.seen(a_stamped_node(NOW + 301, NOW + 100))).last_pod_event == NOW + 100


def test_what_is_too_close_to_a_stamp_is_left_out_as_stamps_leave_it_out() -> None:
    seen, stamp = Movements(), NOW - STAMP_EVERY / 2
    seen.seen(a_stamped_node(NOW, stamp, "a", "b"))

    assert claim_in(seen.seen(a_stamped_node(NOW + 1, stamp, "a"))).last_pod_event == stamp


def test_a_restart_moves_nothing() -> None:
    assert claim_in(Movements().seen(a_stamped_node(NOW, OLD))).last_pod_event == OLD


def test_pods_that_are_bound_to_no_node_move_no_claim_that_has_none() -> None:
    """LIF-81."""
    seen = Movements()
    for now, pods in ((NOW, []), (NOW + 1, [replace(a_pod("", name="waiting"), uid="waiting")])):
        found = a_stamped_node(now, OLD)
        claim = replace(claim_in(found), node_name="")
        after = seen.seen(replace(found, claims={claim.name: claim}, pods={pod.uid: pod for pod in pods}))

    assert claim_in(after).last_pod_event == OLD


_POD = st.tuples(st.sampled_from("abcd"), st.sampled_from(("", "n", "m")), st.sampled_from(("Running", "Succeeded")))


@given(st.lists(st.lists(_POD, unique_by=lambda each: each[0]), max_size=6))
def test_living_pods_followed_from_look_to_look_are_those_of_the_last_alone(looks: list[list[tuple[str, ...]]]) -> None:
    """Also a set that has not changed is the same object, by which upkeep knows that no pod has moved."""
    known: dict[tuple[str, ...], Pod] = {}
    followed = LivingPods()
    for pods in looks:
        found = {
            uid: known.setdefault((uid, node, phase), replace(a_pod(node, name=uid), uid=uid, phase=phase))
            for uid, node, phase in pods
        }
        snapshot = replace(a_stamped_node(NOW, OLD), pods=found)
        before, now = followed._by_node, followed.of(snapshot)

        assert now == LivingPods().of(snapshot)
        assert all(now[node] is uids for node, uids in before.items() if now.get(node) == uids)


@given(st.data())
def test_pods_that_are_taken_up_in_parts_are_those_that_are_taken_up_at_once(data: st.DataObject) -> None:
    """Whatever was done of the parts when something changed once more."""
    together, by_parts = LivingPods(), LivingPods()
    for _ in range(3):
        number = data.draw(st.integers(0, 8))
        pods = {f"p{each}": replace(a_pod("n", name=f"p{each}"), uid=f"p{each}") for each in range(number)}
        moved = {uid: replace(pod, node_name=data.draw(st.sampled_from(["n", "m", ""]))) for uid, pod in pods.items()}
        snapshot = replace(a_world([a_pair("n")], []), pods=moved)
        with patch.object(pod_movements, "PART", data.draw(st.integers(1, 4))):
            for _ in islice(by_parts.catch_up(snapshot), data.draw(st.integers(0, 9))):
                pass
        if data.draw(st.booleans()):
            assert by_parts.of(snapshot) == together.of(snapshot)
    assert by_parts.of(snapshot) == together.of(snapshot)
