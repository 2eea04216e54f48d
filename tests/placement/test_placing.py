"""Where pods go: one rule each."""

import math
from dataclasses import replace

import pytest

from acceptance.karpenter import KARPENTER_PLACEMENT
from dovetail.model import names
from dovetail.model.nodes import Condition
from dovetail.model.pods import Expression, HostPort, Pod, Toleration, VolumeUse
from dovetail.model.pools import DisruptionPolicy
from dovetail.model.scheduling.taints import Taint
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.resources import parse_resources
from dovetail.placement.place_pods import SimulationOptions, place, simulate
from dovetail.placement.prices import adjusted_price
from dovetail.placement.settings import PlacementSettings
from tests.placement.builders import (
    TYPES,
    a_bound_pod,
    a_general_pool,
    a_joined_pair,
    a_shape,
    a_snapshot,
    a_waiting_pod,
    an_index,
    groups,
    near,
    one_of,
    placed,
    spread,
    term,
)
from worlds.disruption import NOW


def test_a_pod_goes_to_an_existing_node_before_a_new_one() -> None:
    """PLC-95 (c)."""
    snapshot = a_snapshot([a_waiting_pod("p")], [a_joined_pair("n1")])

    placement = placed(snapshot)

    assert (list(placement.existing), placement.new) == (["n1"], ())


def test_an_initialised_node_is_tried_before_one_that_still_comes_up() -> None:
    """An initialised node is tried before one that still comes up (PLC-67, PLT-93)."""
    coming = a_joined_pair("a-first-by-name", labels={names.INITIALIZED: "false"})
    snapshot = a_snapshot([a_waiting_pod("p")], [coming, a_joined_pair("z-last-by-name")])

    assert list(placed(snapshot).existing) == ["z-last-by-name"]


def test_a_new_node_lists_every_type_that_holds_its_pods_cheapest_first() -> None:
    """A new node lists every type that holds its pods, cheapest first (PLC-120, PLC-126, PLT-50)."""
    placement = placed(a_snapshot([a_waiting_pod("p", cpu="3")]))

    assert [item.name for item in placement.new[0].types] == ["medium", "large", "huge"]


def test_the_node_draft_with_the_fewest_pods_takes_the_next_pod() -> None:
    """The node draft with the fewest pods takes the next one (PLC-97)."""
    apart = a_shape({"app": "x"}, anti_affinity=(near(names.HOSTNAME, app="x"),))
    big = [a_waiting_pod(f"big-{i}", cpu="2", shape=apart) for i in range(2)]
    small = [a_waiting_pod(f"small-{i}", cpu="100m") for i in range(2)]

    assert groups(placed(a_snapshot([*big, *small]))) == [["big-0", "small-0"], ["big-1", "small-1"]]


def test_the_heaviest_pool_wins_whatever_the_price() -> None:
    """The heaviest pool wins, whatever the price (PLC-13, PLC-160)."""
    pools = [a_general_pool("light", weight=1), a_general_pool("heavy", weight=10), a_general_pool("unweighted")]

    assert [node.pool for node in placed(a_snapshot([a_waiting_pod("p")], pools=pools)).new] == ["heavy"]


def test_without_a_usable_pool_nothing_is_placed_not_even_on_nodes() -> None:
    """PLC-12: not even on existing nodes, and no Event says so of each pod."""
    placement = placed(a_snapshot([a_waiting_pod("p")], [a_joined_pair("n1")], pools=[]))

    (ignored,) = placement.ignored
    assert (placement.existing, ignored.why, ignored.silent) == ({}, "no dynamic nodepools found", True)


def test_a_pod_that_selects_a_zone_gets_a_node_there() -> None:
    """A pod that selects a zone gets a node there (PLC-45, PLT-24)."""
    placement = placed(a_snapshot([a_waiting_pod("p", shape=a_shape(node_selector=((names.ZONE, "z2"),)))]))

    assert placement.new[0].requirements[names.ZONE].values == {"z2"}


def test_a_taint_of_the_pool_keeps_intolerant_pods_away_and_names_itself() -> None:
    """A taint of the pool keeps intolerant pods away and is named (PLC-150, PLT-135)."""
    pool = a_general_pool(taints=(Taint(key="gpu", effect="NoSchedule"),))

    refused = placed(a_snapshot([a_waiting_pod("p")], pools=[pool])).refused[0]

    assert (refused.reasons, "gpu" in refused.pools[0].conflict) == (("taints",), True)


def test_a_startup_taint_blocks_no_pod_until_the_node_is_initialised() -> None:
    """A startup taint blocks no pod until the node is initialised (PLC-81, PLC-65, PLT-92)."""
    startup = (Taint(key="boot", effect="NoSchedule"),)
    coming, claim = a_joined_pair("n1", labels={names.INITIALIZED: "false"}, taints=startup)
    ready, _ = a_joined_pair("n1", taints=startup)
    claim = replace(claim, startup_taints=startup)

    before = placed(a_snapshot([a_waiting_pod("p")], [(coming, claim)]))
    after = placed(a_snapshot([a_waiting_pod("p")], [(ready, claim)]))

    assert (list(before.existing), list(after.existing)) == (["n1"], [])


def test_a_soft_taint_is_given_in_to_after_everything_else() -> None:
    """A PreferNoSchedule taint is tolerated after all else was given up (PLC-108, PLT-14)."""
    pool = a_general_pool(taints=(Taint(key="soft", effect="PreferNoSchedule"),))

    assert groups(placed(a_snapshot([a_waiting_pod("p")], pools=[pool]))) == [["p"]]


def test_two_pods_that_want_one_host_port_get_two_nodes() -> None:
    """Two pods that want one host port get two nodes (PLC-82, PLT-97)."""
    shape = a_shape(host_ports=(HostPort(address="0.0.0.0", port=80, protocol="TCP"),))

    assert groups(placed(a_snapshot([a_waiting_pod("a", shape=shape), a_waiting_pod("b", shape=shape)]))) == [
        ["a"],
        ["b"],
    ]


def test_the_order_among_pods_is_cpu_then_memory_then_age_then_uid() -> None:
    """PLC-89: the oldest of equals gets the only room."""
    node = a_joined_pair("n1", cpu="1")
    pods = [a_waiting_pod("young", created=2.0), a_waiting_pod("old", created=1.0)]

    assert [pod.name for pod in placed(a_snapshot(pods, [node])).existing["n1"]] == ["old"]


def test_pods_spread_over_zones_one_by_one() -> None:
    """Pods spread over zones one by one (PLC-177, PLT-111)."""
    shape = a_shape({"app": "x"}, spread=(spread(names.ZONE, app="x"),))

    placement = placed(a_snapshot([a_waiting_pod(f"p{i}", shape=shape) for i in range(3)]))

    assert sorted(min(node.requirements[names.ZONE].values) for node in placement.new) == ["z1", "z2", "z3"]


def test_existing_pods_count_in_a_spread() -> None:
    """Existing pods count in a spread (PLC-172, PLT-112)."""
    shape = a_shape({"app": "x"}, spread=(spread(names.ZONE, app="x"),))
    bound = a_bound_pod("b", "n1", shape=a_shape({"app": "x"}))
    snapshot = a_snapshot([bound, a_waiting_pod("p", shape=shape)], [a_joined_pair("n1", zone="z1")])

    assert placed(snapshot).new[0].requirements[names.ZONE].values == {"z2"}


def test_a_soft_spread_gives_way_where_only_one_node_is_allowed() -> None:
    """A soft spread gives way where only one node is allowed (PLC-107, PLT-113)."""
    shape = a_shape(
        {"app": "x"}, spread=(spread(names.ZONE, "ScheduleAnyway", app="x"),), node_selector=((names.ZONE, "z1"),)
    )
    bound = [a_bound_pod(f"b{i}", "n1", shape=a_shape({"app": "x"}), cpu="100m") for i in range(3)]
    snapshot = a_snapshot([*bound, a_waiting_pod("p", shape=shape)], [a_joined_pair("n1", zone="z1")])

    assert list(placed(snapshot).existing) == ["n1"]


def test_preferences_are_ignored_when_the_policy_says_so() -> None:
    """Preferences are ignored when the policy says so (PLC-46, PLT-33)."""
    preferred = a_shape(preferred_terms=(term(one_of(names.ZONE, "z3"), weight=10),))
    snapshot = a_snapshot([a_waiting_pod("p", shape=preferred)])

    respected = placed(snapshot).new[0].requirements
    ignored = placed(snapshot, PlacementSettings(preference_policy="Ignore")).new[0].requirements

    assert (sorted(respected[names.ZONE].values), names.ZONE in ignored) == (["z3"], False)


def test_a_later_required_term_is_used_when_the_first_is_impossible() -> None:
    """A later required term is used when the first is impossible (PLC-103, PLT-31)."""
    shape = a_shape(required_terms=(term(one_of(names.ZONE, "nowhere")), term(one_of(names.ZONE, "z2"))))

    assert placed(a_snapshot([a_waiting_pod("p", shape=shape)])).new[0].requirements[names.ZONE].values == {"z2"}


def test_pods_that_repel_each_other_sit_on_different_nodes_in_both_directions() -> None:
    """PLC-180, PLC-181a: the second pod does not hold the term, it is repelled by it."""
    holder = a_waiting_pod("holder", cpu="2", shape=a_shape(anti_affinity=(near(names.HOSTNAME, app="x"),)))
    repelled = a_waiting_pod("repelled", shape=a_shape({"app": "x"}))

    assert groups(placed(a_snapshot([holder, repelled]))) == [["holder"], ["repelled"]]


def _in_both_profiles(snapshot: Snapshot) -> tuple[list[str], list[str]]:
    """The nodes that get pods, as Dovetail decides and as Karpenter does."""
    upstream = PlacementSettings(profile=KARPENTER_PLACEMENT)
    return [*placed(snapshot).existing], [*placed(snapshot, upstream).existing]


def test_a_pod_that_keeps_others_away_may_use_a_node_whose_like_no_pool_offers() -> None:
    """PLC-172, PLC-180, PLC-181a, PLQ-37: where upstream buys a node, or leaves the pod without one."""
    spot = a_general_pool(requirements=(one_of(names.CAPACITY_TYPE, "spot"),))
    pod = a_waiting_pod("p", shape=a_shape({"app": "x"}, anti_affinity=(near(names.CAPACITY_TYPE, app="x"),)))

    assert _in_both_profiles(a_snapshot([pod], [a_joined_pair("n1")], pools=[spot])) == (["n1"], [])


def test_a_pod_that_is_kept_away_may_use_a_node_whose_like_the_other_may_not_have() -> None:
    """PLC-181a, PLQ-37: the one that keeps it away does not tolerate the pool that offers such nodes."""
    pool = a_general_pool(taints=(Taint(key="team", effect="NoSchedule"),))
    holder = a_bound_pod("holder", "n1", shape=a_shape(anti_affinity=(near(names.ZONE, app="x"),)))
    pod = a_waiting_pod("p", shape=a_shape({"app": "x"}))
    nodes = [a_joined_pair("n1", zone="z1"), a_joined_pair("n2", zone="z2")]

    assert _in_both_profiles(a_snapshot([holder, pod], nodes, pools=[pool])) == (["n2"], [])


def test_pods_that_repel_each_other_by_zone_and_by_host_get_one_place_while_no_zone_is_pinned() -> None:
    """PLC-180, PLC-181, PLT-130: that no node draft may take the second pod says nothing about zones for a new one."""
    shape = a_shape({"app": "x"}, anti_affinity=(near(names.ZONE, app="x"), near(names.HOSTNAME, app="x")))

    placement = placed(a_snapshot([a_waiting_pod(f"p{n}", shape=shape) for n in range(3)]))

    assert groups(placement) == [["p0"]]
    assert {refused.pod.name for refused in placement.refused} == {"p1", "p2"}


def test_affinity_to_a_pod_that_comes_later_in_the_queue_is_met_in_the_same_pass() -> None:
    """Affinity to a pod that comes later in the queue is met in the same pass (PLC-92, PLT-131)."""
    follower = a_waiting_pod("follower", cpu="2", shape=a_shape(affinity=(near(names.HOSTNAME, app="leader"),)))
    leader = a_waiting_pod("leader", cpu="1", shape=a_shape({"app": "leader"}))

    assert groups(placed(a_snapshot([follower, leader]))) == [["follower", "leader"]]


def test_affinity_that_no_pod_meets_is_refused_with_its_key() -> None:
    """Affinity that no pod meets is refused with its key (PLC-179)."""
    shape = a_shape(affinity=(near(names.ZONE, app="ghost"),))

    refused = placed(a_snapshot([a_waiting_pod("p", shape=shape)])).refused[0]

    assert (refused.reasons, names.ZONE in refused.pools[0].conflict) == (("pod_affinity",), True)


def test_the_first_of_a_group_pins_one_zone_and_the_others_follow() -> None:
    """PLC-179 with PLQ-6 mended."""
    shape = a_shape({"app": "x"}, affinity=(near(names.ZONE, app="x"),))
    placement = placed(a_snapshot([a_waiting_pod(f"p{i}", cpu="10", shape=shape) for i in range(3)]))

    assert [node.requirements[names.ZONE].values for node in placement.new] == [{"z1"}] * 3


def test_a_limit_of_the_pool_ends_its_growth() -> None:
    """PLC-159, PLC-161, PLT-71: the proposed node is charged with the largest type that it may become."""
    pool = a_general_pool(limits=parse_resources({"cpu": "8"}))
    apart = a_shape({"app": "x"}, anti_affinity=(near(names.HOSTNAME, app="x"),))

    placement = placed(a_snapshot([a_waiting_pod("a", shape=apart), a_waiting_pod("b", shape=apart)], pools=[pool]))

    assert (len(placement.new), [r.reasons for r in placement.refused]) == (1, [("limits",)])


def test_proposed_nodes_count_against_the_limit_of_nodes() -> None:
    """PLQ-1, PLT-73: upstream lets one batch exceed it."""
    pool = a_general_pool(limits={"nodes": 2})
    apart = a_shape({"app": "x"}, anti_affinity=(near(names.HOSTNAME, app="x"),))
    snapshot = a_snapshot([a_waiting_pod(f"p{i}", shape=apart) for i in range(3)], pools=[pool])

    ours, upstream = placed(snapshot), placed(snapshot, PlacementSettings(profile=KARPENTER_PLACEMENT))

    assert (len(ours.new), ours.refused[0].reasons, len(upstream.new)) == (2, ("node_limits",), 3)


def test_a_second_node_is_proposed_rather_than_breaking_a_minimum_of_values() -> None:
    """A second node is proposed rather than breaking a minimum of values (PLC-122, PLT-60)."""
    pool = a_general_pool(requirements=(Expression(key=names.INSTANCE_TYPE, operator="Exists", min_values=3),))

    assert groups(placed(a_snapshot([a_waiting_pod("a", "3"), a_waiting_pod("b", "3")], pools=[pool]))) == [
        ["a"],
        ["b"],
    ]


def test_best_effort_lowers_the_minimum_and_says_so_on_the_proposed_node() -> None:
    """Best effort lowers the minimum and says so on the proposed node (PLC-123, PLC-125, PLT-63)."""
    pool = a_general_pool(requirements=(Expression(key=names.INSTANCE_TYPE, operator="Exists", min_values=9),))
    settings = PlacementSettings(min_values_policy="BestEffort")

    node = placed(a_snapshot([a_waiting_pod("p")], pools=[pool]), settings).new[0]

    assert (node.requirements[names.INSTANCE_TYPE].min_values, node.annotations[names.MIN_VALUES_RELAXED]) == (
        4,
        "true",
    )


def test_a_pod_too_large_for_every_type_is_refused_for_that() -> None:
    """A pod too large for every type is refused for that (PLC-124)."""
    refused = placed(a_snapshot([a_waiting_pod("p", cpu="100")])).refused[0]

    assert (refused.reasons, refused.pools[0].remedy) == (
        ("it_fits",),
        "a larger instance type: the pod asks for cpu 100 of at most 16",
    )


def test_a_pod_with_resource_claims_is_refused_with_upstreams_reason() -> None:
    """A pod with resource claims is refused with the reason of Karpenter (PLC-200)."""
    assert placed(a_snapshot([a_waiting_pod("p", shape=a_shape(uses_resource_claims=True))])).refused[0].reasons == (
        "dra",
    )


def test_when_the_time_is_up_the_pods_not_reached_are_said_to_be_so() -> None:
    """When the time is up, the pods that were not reached are refused as such (PLQ-23, PLF-53)."""
    placement = place(an_index(a_snapshot([a_waiting_pod("p")])), should_stop=lambda: True)

    assert (placement.complete, placement.refused[0].reasons) == (False, ("not_reached",))


class Looks:
    """Says that the time is up after so many looks at the clock."""

    def __init__(self, before: int) -> None:
        self._left = before

    def __call__(self) -> bool:
        self._left -= 1
        return self._left < 0


def test_a_pod_whose_preferences_were_not_all_tried_in_time_is_not_refused_for_them() -> None:
    """PLQ-23: without them it finds a place; the others come before it in the next pass."""
    choosy = a_shape(preferred_terms=tuple(term(one_of(f"k{number}", "v"), weight=1) for number in range(20)))
    snapshot = a_snapshot([a_waiting_pod("choosy", shape=choosy), a_waiting_pod("plain", "500m")])

    cut = place(an_index(snapshot), should_stop=Looks(10))
    alone = place(an_index(a_snapshot([a_waiting_pod("choosy", shape=choosy)])), should_stop=Looks(10))

    assert {each.pod.name: each.reasons for each in cut.refused} == dict.fromkeys(("choosy", "plain"), ("not_reached",))
    assert cut.late == {"uid-plain"}
    assert (alone.complete, alone.refused[0].is_not_reached) == (False, True)
    assert groups(place(an_index(snapshot), should_stop=Looks(100))) == [["choosy", "plain"]]


def test_more_types_than_a_nodeclaim_may_list_are_cut_by_price() -> None:
    """More types than a NodeClaim may list are cut by price (PLC-137)."""
    settings = PlacementSettings(max_types=2)

    assert [t.name for t in placed(a_snapshot([a_waiting_pod("p")]), settings).new[0].types] == ["small", "medium"]


def test_a_simulation_moves_the_pods_of_the_node_that_is_imagined_gone() -> None:
    """A simulation moves the pods of the node that is taken to be gone (PLC-216, PLC-217)."""
    snapshot = a_snapshot([a_bound_pod("b", "n1")], [a_joined_pair("n1"), a_joined_pair("n2")])

    assert list(simulate(an_index(snapshot), frozenset({"n1"})).existing) == ["n2"]


def test_a_simulation_does_not_trust_a_node_that_still_comes_up() -> None:
    """A simulation does not trust a node that still comes up (PLC-219, PLT-190)."""
    coming = a_joined_pair("n2", labels={names.INITIALIZED: "false"})
    snapshot = a_snapshot([a_bound_pod("b", "n1")], [a_joined_pair("n1"), coming])

    placement = simulate(an_index(snapshot), frozenset({"n1"}))

    assert (list(placement.existing), placement.refused[0].reasons) == (["n2"], ("uninitialized_node",))


def test_consolidation_leaves_nodes_alone_that_are_still_filling() -> None:
    """Consolidation leaves nodes alone that are still filling (PLC-91)."""
    pool = a_general_pool(disruption=DisruptionPolicy(consolidate_after=60.0))
    node, claim = a_joined_pair("n2")
    initialized = Condition(type=names.INITIALIZED_CONDITION, status="True", changed=NOW - 600)
    settling = (node, replace(claim, last_pod_event=NOW - 10, conditions=(initialized,)))
    index = an_index(a_snapshot([a_bound_pod("b", "n1")], [a_joined_pair("n1"), settling], pools=[pool]))

    drift = simulate(index, frozenset({"n1"}))
    consolidation = simulate(index, frozenset({"n1"}), options=SimulationOptions(spare_settling_nodes=True))

    assert (list(drift.existing), list(consolidation.existing)) == (["n2"], [])


def test_a_pod_that_was_planned_onto_a_claim_not_launched_is_left_out_but_needs_room() -> None:
    """It has been promised room on that claim; a simulation gives that room to no other pod."""
    pod: Pod = a_waiting_pod("p")
    _, claim = a_joined_pair("coming")
    unlaunched = replace(claim, provider_id="", annotations={names.PLANNED_PODS: pod.uid})
    snapshot = replace(a_snapshot([pod]), claims={unlaunched.name: unlaunched})

    provisioned = placed(snapshot)
    simulated = simulate(an_index(snapshot), frozenset())

    assert (provisioned.new, groups(simulated)) == ((), [["p"]])


def test_a_toleration_alone_adds_no_taint() -> None:
    """A toleration alone adds no taint (PLT-135)."""
    shape = a_shape(tolerations=(Toleration(key="k", operator="Exists"),))

    assert placed(a_snapshot([a_waiting_pod("p", shape=shape)])).new[0].taints == ()


def test_the_same_snapshot_gives_the_same_answer_twice() -> None:
    """The same snapshot gives the same answer twice (PLF-52)."""
    snapshot = a_snapshot([a_waiting_pod(f"p{i}", cpu=f"{i + 1}") for i in range(5)], types=TYPES)

    assert placed(snapshot) == placed(snapshot)


def test_a_pod_whose_volumes_cannot_be_looked_up_is_refused_with_a_reason() -> None:
    """PLC-54, PLQ-13: upstream places it as if it had no volumes."""
    pod = a_waiting_pod("p", shape=a_shape(volumes=(VolumeUse(claim_name="gone"),)))
    snapshot = a_snapshot([])

    (refused,) = place(an_index(snapshot), [pod]).refused
    upstream = place(an_index(snapshot, PlacementSettings(profile=KARPENTER_PLACEMENT)), [pod])

    assert refused.reasons == ("volume_lookup",)
    assert groups(upstream) == [["p"]]


def test_a_relaxed_pod_is_given_back_as_it_came() -> None:
    """PLC-99: no copy, and with the preference that it had to give up."""
    preferred = replace(term(one_of(names.ZONE, "nowhere")), weight=5)
    pod = a_waiting_pod("p", shape=a_shape(preferred_terms=(preferred,)))

    (node,) = placed(a_snapshot([pod])).new

    assert node.pods[0] is pod
    assert pod.shape.preferred_terms == (preferred,)


def test_what_is_left_of_a_node_is_exact_beyond_64_bits() -> None:
    """PLC-66, PLC-77: an extended resource may be any number; one more than is left does not fit."""
    most = 2**70
    node, claim = a_joined_pair("n1")
    node = replace(node, allocatable={**node.allocatable, "example.com/tokens": most})
    taken = a_bound_pod("old", "n1")
    taken = replace(taken, requests={**taken.requests, "example.com/tokens": most - 5})
    for wanted, there in ((5, True), (6, False)):
        pod = a_waiting_pod("p")
        pod = replace(pod, requests={**pod.requests, "example.com/tokens": wanted})

        placement = placed(a_snapshot([taken, pod], [(node, claim)]))

        assert list(placement.existing) == (["n1"] if there else [])


def test_two_nodes_of_one_hostname_count_as_one_host_for_spread() -> None:
    """PLC-172: a pod on either keeps the next one off both."""
    shape = a_shape({"app": "a"}, spread=(spread(names.HOSTNAME, app="a"),))
    twins = [a_joined_pair(name, labels={names.HOSTNAME: "twin"}) for name in ("n1", "n2")]
    there = a_bound_pod("old", "n1", shape=shape)

    placement = placed(a_snapshot([there, a_waiting_pod("p", shape=shape)], twins))

    assert (dict(placement.existing), len(placement.new)) == ({}, 1)


@pytest.mark.parametrize("change", ["9" * 5000, "+" + "9" * 5000, "-" + "9" * 5000, "+" + "9" * 5000 + "%", "-1e999%"])
def test_a_price_of_thousands_of_digits_is_still_a_number(change: str) -> None:
    """PLC-138: an overlay's, also where the price that it changes is nothing."""
    for price in (0.0, 0.1, 1000.0):
        assert 0.0 <= adjusted_price(price, change) < math.inf
