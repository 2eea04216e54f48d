"""Where a node of one NodePool may be replaced by one of another, and where a roll-out keeps it in its own."""

from dataclasses import replace
from typing import Any, Final

import pytest

from acceptance.karpenter import KARPENTER
from dovetail.disruption.choose import NothingToDo, choose
from dovetail.disruption.explain import explain_node
from dovetail.disruption.rounds import never
from dovetail.disruption.settings import DisruptionSettings
from dovetail.messages.plans import DisruptionPlan
from dovetail.model import names
from dovetail.model.own.rollouts import Rollout, RolloutState
from dovetail.model.pods import Expression
from dovetail.model.snapshot import Snapshot
from dovetail.rules.brake.breakers import Breaker, Happened, with_breaker
from tests.disruption.test_roll_back import going_back
from tests.disruption.test_rollouts import a_rollout, a_status
from worlds.disruption import HOUR, NOW, a_pair, a_pod, a_pool, a_world, condition
from worlds.time_rules import with_rules

OTHER: Final = a_pool("b", weight=100, hash="2", consolidate_after=None)
WAITS: Final = a_rollout(a_status("", RolloutState.WAITING))
ASKED: Final = {names.REPLACE: "by hand"}


def two_pools(*rules: Rollout, drifted: str = "a", a: dict[str, Any] | None = None) -> Snapshot:
    """Three full nodes of NodePool a and three of b, which has more weight and as many types; one of them drifts."""
    pools = [replace(a_pool(hash="2", consolidate_after=None), **(a or {})), OTHER]
    pairs = [
        a_pair(f"{pool}{n}", pool=pool, also=(condition(names.DRIFTED, reason="AMIDrift"),) if pool == drifted else ())
        for pool in "ab"
        for n in range(3)
    ]
    return with_rules(a_world(pairs, [a_pod(f"{pool}{n}", cpu="6") for pool in "ab" for n in range(3)], pools), *rules)


def entered(world: Snapshot, settings: DisruptionSettings | None = None) -> list[tuple[str, str]]:
    """Each node that leaves, with the NodePool of its replacement."""
    choice = choose(world, settings or DisruptionSettings(), never)
    assert isinstance(choice, DisruptionPlan), choice
    return [(c.targets[0].node, each.pool) for c in choice.commands for each in c.replacements]


def of_pool(rollout: Rollout, pool: str) -> Rollout:
    return replace(rollout, pool=pool, name=f"r-{pool}", uid=pool)


def test_without_a_roll_out_the_pool_of_most_weight_is_entered() -> None:
    assert entered(two_pools()) == [("a0", "b"), ("a1", "b"), ("a2", "b")]


@pytest.mark.parametrize("both", [False, True])
def test_a_canary_is_replaced_in_its_own_pool_where_its_roll_out_counts_it(both: bool) -> None:
    """DIQ-37: in another NodePool the replacement would be at the target, and the roll-out would never see it."""
    rules = [a_rollout(), *([of_pool(WAITS, "b")] if both else [])]

    assert entered(two_pools(*rules)) == [("a0", "a")]
    assert entered(two_pools(*rules), replace(DisruptionSettings(), profile=KARPENTER)) == [("a0", "a")]


@pytest.mark.parametrize(
    ("rollout", "pool"),
    [(a_rollout(), "b"), (going_back(), "b"), (WAITS, "a"), (a_rollout(a_status("rest", RolloutState.COMPLETE)), "a")],
)
def test_nodes_of_another_pool_do_not_enter_one_that_rolls_out(rollout: Rollout, pool: str) -> None:
    """DIQ-37: they would be at the target beyond the step. While it waits for a change they are as welcome as ever."""
    world = two_pools(rollout, drifted="b", a={"weight": 1000})

    assert [each for each in entered(world) if each[0] > "b"] == [("b0", pool), ("b1", pool), ("b2", pool)]


def test_what_is_taken_back_stays_in_its_pool_whose_image_of_before_is_known() -> None:
    """DIQ-38: another NodePool would launch the image that is refused."""
    world = two_pools(going_back(), drifted="")
    assert entered(world) == [("a0", "a"), ("a1", "a"), ("a2", "a")]

    asked = {name: replace(each, annotations=ASKED) for name, each in world.claims.items() if name == "claim-a1"}
    assert entered(replace(world, claims={**world.claims, **asked})) == [("a1", "a")]
    assert entered(with_rules(replace(world, claims={**world.claims, **asked}))) == [("a1", "b")]


def test_where_its_own_pool_has_no_room_for_it_a_node_waits_and_says_so() -> None:
    """DIQ-37."""
    small = a_pool(requirements=(Expression(key=names.INSTANCE_TYPE, operator="In", values=("m2",)),)).template
    world = two_pools(a_rollout(), a={"template": small})

    assert isinstance(choose(world, DisruptionSettings(), never), NothingToDo)
    (why,) = [each.message for each in explain_node(world, DisruptionSettings(), "a0").passed_over]
    assert why.startswith("Not all pods would schedule, default/") and "karpenter.sh/nodepool In [a]" in why
    assert why.endswith("; by a NodeRollout or an open breaker no node of NodePool b may replace it now")


@pytest.mark.parametrize("due", [False, True])
def test_a_pool_whose_breaker_is_open_is_entered_by_none_but_its_own_try(due: bool) -> None:
    """DIQ-43: the failures are remembered by the NodePool whose replacements failed, not by that of the nodes."""
    failed = NOW - (2 * HOUR if due else 300)
    breaker = Breaker(reason="Drifted", failures=(Happened(failed, "0000000a"),), opened=failed)
    world = two_pools()
    pools = {**world.pools, "b": with_breaker(world.pools["b"], breaker)}

    assert entered(replace(world, pools=pools)) == [("a0", "a"), ("a1", "a"), ("a2", "a")]
    other = {**world.pools, "b": with_breaker(world.pools["b"], replace(breaker, reason="Expired"))}
    assert entered(replace(world, pools=other)) == [("a0", "b"), ("a1", "b"), ("a2", "b")]
    own = replace(two_pools(drifted="b"), pools=pools)
    assert isinstance(choose(own, DisruptionSettings(), never), DisruptionPlan) == due
    assert not due or entered(own) == [("b0", "b")]


def consolidated(*rules: Rollout, b: Breaker | None = None, a: Breaker | None = None) -> Snapshot:
    """Nodes of NodePool a that are larger than their pods need, beside NodePool b, which has more weight."""
    pools = [a_pool(hash="2"), replace(OTHER, name="b")]
    for place, breaker in enumerate((a, b)):
        pools[place] = pools[place] if breaker is None else with_breaker(pools[place], breaker)
    return with_rules(a_world([a_pair("a0", claim={"image_id": "image-1"})], [a_pod("a0", cpu="1500m")], pools), *rules)


def test_consolidation_does_not_enter_a_pool_whose_breaker_is_open_for_it() -> None:
    """DIQ-43: nor where another NodePool would launch the image that the node's own refuses."""
    breaker = Breaker(reason="Underutilized", failures=(Happened(NOW - 300, "0000000a"),), opened=NOW - 300)
    assert entered(consolidated()) == [("a0", "b")]
    assert entered(consolidated(b=replace(breaker, reason="Drifted"))) == [("a0", "b")]
    due = replace(breaker, failures=(Happened(NOW - 2 * HOUR, "0000000a"),), opened=NOW - 2 * HOUR)
    for world in (*(consolidated(b=each) for each in (breaker, due)), consolidated(going_back())):
        assert isinstance(choose(world, DisruptionSettings(), never), NothingToDo)
        said = " ".join(each.message for each in explain_node(world, DisruptionSettings(), "a0").passed_over)
        assert "by a NodeRollout or an open breaker no node of NodePool b may replace it now" in said
    assert isinstance(choose(consolidated(a=breaker), DisruptionSettings(), never), NothingToDo), (
        "its own is held as ever"
    )
    assert entered(consolidated(a=due)) == [("a0", "b")], "and tries once"


def test_like_pods_of_two_pools_are_each_judged_by_their_own() -> None:
    """DIQ-37: that one NodePool had no room for such a pod says nothing of the next."""
    small = a_pool(requirements=(Expression(key=names.INSTANCE_TYPE, operator="In", values=("m2",)),)).template
    rest = a_rollout(a_status("rest"))
    world = two_pools(rest, of_pool(rest, "b"), a={"template": small})
    drifted = {
        name: replace(each, conditions=(*each.conditions, condition(names.DRIFTED, changed=NOW - 5)))
        for name, each in world.claims.items()
        if name.startswith("claim-b")
    }

    assert entered(replace(world, claims={**world.claims, **drifted})) == [("b0", "b"), ("b1", "b"), ("b2", "b")]
