"""Lives of a NodePool as somebody has told of them: each went wrong before, and none of its parts alone shows it."""

import random
from dataclasses import replace
from typing import Any, Final

import pytest

from dovetail.model import names
from dovetail.model.own.policies import Freeze, Policy, TimeRules
from dovetail.model.own.rollouts import Intent, Rollout, RolloutPlan, RolloutState, RolloutStep
from tests.disruption.lives.pool_life import POOL
from tests.disruption.lives.stories import grown
from tests.disruption.lives.truth import HOUR, JudgedLife

CANARY: Final = RolloutStep(name="canary", to="1", soak=600.0)
HALF: Final = RolloutStep(name="half", to="50%", soak=3600.0)
REST: Final = RolloutStep(name="rest", to="100%")


async def a_life(nodes: int = 8, steps: tuple[RolloutStep, ...] = (CANARY, REST), **plan: Any) -> JudgedLife:
    """A pool whose changes reach one node first, ten minutes before the others."""
    rules = TimeRules(policies={"careful": Policy(name="careful", rollout=RolloutPlan(steps=steps, **plan))})
    life = JudgedLife(chosen=random.Random(1), rules=rules, steps=steps)
    life.add_pods("web", nodes * 4)
    await grown(life)
    return life


def state(life: JudgedLife) -> tuple[str, RolloutState]:
    assert life.rollout is not None
    return life.rollout.status.step, life.rollout.status.state


def stalled(life: JudgedLife) -> str:
    assert life.rollout is not None
    found = next(each for each in life.rollout.status.conditions if each.type == "Stalled")
    return f"{found.status} {found.reason}: {found.message}"


async def test_a_node_that_somebody_deletes_takes_no_canarys_place_however_long_its_drain_is_held() -> None:
    life = await a_life()
    life.change("image-2")
    await life.beat(60.0)
    node = max(life.world.nodes)
    await life.leave(node, held_for=24 * HOUR)
    await life.live(2 * HOUR)

    assert len(life.at_target()) == len(life.world.claims) - 1
    assert state(life) == ("rest", RolloutState.REPLACING)  # it says when no node of before is left
    assert stalled(life).startswith("True NoProgress: no node has come to the target since ")
    assert f"{node} is still leaving" in stalled(life)


async def test_after_how_long_without_one_more_node_it_is_stalled_is_for_people_to_say() -> None:
    life = await a_life(stands_for=1200.0)
    life.change("image-2")
    await life.beat(60.0)
    await life.leave(max(life.world.nodes), held_for=24 * HOUR)
    while len(life.at_target()) < len(life.world.claims) - 1 or life.flights:
        await life.beat(60.0)
    await life.live(1000.0)
    assert stalled(life).startswith("False")
    await life.live(400.0)

    assert stalled(life).startswith("True NoProgress: ")


async def test_a_node_that_leaves_before_anybody_asked_whether_it_has_drifted_is_no_canary() -> None:
    life = await a_life()
    await life.leave(min(life.world.nodes), held_for=24 * HOUR)
    life.change("image-2")
    while not life.at_target():
        await life.beat(60.0)

    assert state(life) == ("canary", RolloutState.REPLACING)


async def test_a_node_that_leaves_before_anybody_asked_is_no_proof_that_the_next_change_is_taken_back() -> None:
    life = await a_life(steps=(replace(CANARY, soak=900.0), HALF, REST))
    await life.leave(min(life.world.nodes), held_for=24 * HOUR)
    life.change("image-2")
    while not life.rollout:
        await life.beat(60.0)
    life.order(Intent.PROMOTE)
    while state(life) != ("rest", RolloutState.REPLACING):
        await life.beat(60.0)
    life.change("image-3")
    while state(life)[0] != "canary":
        await life.beat(60.0)
    while state(life)[0] == "canary":
        await life.beat(60.0)

    assert state(life) == ("half", RolloutState.REPLACING)


async def test_while_a_freeze_holds_it_a_roll_out_is_not_stalled_and_names_it() -> None:
    life = await a_life()
    life.change("image-2")
    await life.live(300.0)
    rules = life.world.rules
    frozen = Freeze(name="peak", begins=None, until=life.now + 9 * HOUR, what=frozenset({"disruption"}), reason="peak")
    life.world.rules = replace(rules, freezes={"peak": frozen})
    life.people.add("Freeze")
    await life.live(3 * HOUR)

    assert state(life) == ("rest", RolloutState.REPLACING)
    assert stalled(life).startswith("False Freeze: ") and "peak" in stalled(life)


async def test_once_the_last_step_is_permitted_pods_get_nodes_that_need_not_be_made_again() -> None:
    life = await a_life(launches_stable=True)
    life.change("image-2")
    while state(life)[0] != "rest" if life.rollout else True:
        await life.beat(60.0)
    life.add_pods("more", 8)
    await life.live(HOUR)

    assert state(life) == ("rest", RolloutState.COMPLETE)
    assert set(life.image_of.values()) == {"image-1", "image-2"}
    assert sum(image == "image-1" for image in life.image_of.values()) == len(life.image_of) // 2 - 1


async def test_a_change_that_is_taken_back_needs_no_canary() -> None:
    life = await a_life(nodes=12)
    life.change("image-2")
    await life.live(900.0)
    life.change("image-1")
    changed = life.now
    while any(image == "image-2" for image in map(life.image_on, life.world.claims)):
        await life.beat(60.0)

    assert life.now - changed < 1200.0


async def test_a_node_that_drifts_by_itself_sends_no_roll_out_to_its_first_step_and_no_refused_target_on() -> None:
    life = await a_life(steps=(CANARY, HALF, REST), rolls_back=True)
    life.change("image-2")
    while len(life.at_target()) < 4:
        await life.beat(60.0)
    await life.live(300.0)
    life.odd[life.at_target()[0].uid] = "CapacityReservationDrift"
    begun = life.rollout.status.begun if life.rollout else 0.0
    life.bad.add("image-2")
    await life.live(600.0)
    assert life.rollout is not None and life.rollout.status.begun == begun
    life.blind = True
    await life.live(HOUR)
    life.blind = False
    await life.live(HOUR)

    assert state(life)[1] == RolloutState.FAILED
    life.judge_the_end()


async def test_what_is_complete_is_written_no_more_whoever_comes_and_goes() -> None:
    life = await a_life()
    life.change("image-2")
    await life.live(2 * HOUR)
    assert state(life) == ("rest", RolloutState.COMPLETE)
    written = len(life.written)
    life.add_pods("more", 8)
    await life.leave(min(life.world.nodes))
    await life.live(2 * HOUR)

    assert len(life.written) == written


async def test_where_nobody_has_looked_at_pods_for_half_an_hour_no_further_node_begins() -> None:
    life = await a_life()
    life.change("image-2")
    while not life.rollout or state(life)[0] != "rest":
        await life.beat(30.0)
    for flight in list(life.flights):
        await life.undo(flight)
    life.away = True
    life.world.clock += 1800.0
    flights = len(life.flights)
    await life.decide()

    assert len(life.flights) == flights


@pytest.mark.parametrize("reason", ["RequirementsDrifted", "SubnetDrift", "CapacityReservationDrift"])
async def test_the_last_node_of_before_that_drifts_by_itself_does_not_take_the_way_back_from_the_others(
    reason: str,
) -> None:
    life = await a_life(steps=(CANARY, HALF, REST), rolls_back=True, launches_stable=True)
    life.change("image-2")
    while len(life.at_target()) < 4:
        await life.beat(60.0)
    await life.live(600.0)
    last, *others = [claim for claim in life.world.claims.values() if life.image_of[claim.uid] == "image-1"]
    for claim in others:
        await life.leave(claim.name)
    life.odd[last.uid] = reason
    await life.beat(60.0)
    life.bad.add("image-2")
    await life.live(3 * HOUR)

    assert state(life)[1] == RolloutState.FAILED
    life.judge_the_end()
    assert "image-2" not in {life.image_of[claim.uid] for claim in life.world.claims.values()}


async def test_a_node_of_the_refused_image_that_has_drifted_by_itself_is_taken_back_too() -> None:
    life = await a_life(steps=(CANARY, HALF, REST))
    life.change("image-2")
    while len(life.at_target()) < 4:
        await life.beat(60.0)
    life.bad.add("image-2")
    while state(life)[1] != RolloutState.JUDGING:
        await life.beat(30.0)
    odd = life.at_target()[0]
    life.odd[odd.uid] = "SubnetDrift"
    while not life.world.claims[odd.name].is_true(names.DRIFTED):
        await life.beat(300.0)
    life.order(Intent.ROLL_BACK)
    await life.live(3 * HOUR)

    assert state(life)[1] == RolloutState.FAILED
    assert {life.image_of[claim.uid] for claim in life.world.claims.values()} == {"image-1"}


async def test_a_node_whose_type_is_no_longer_sold_does_not_take_the_way_back_from_the_others() -> None:
    life = await a_life(steps=(CANARY, HALF, REST), rolls_back=True)
    life.change("image-2")
    while len(life.at_target()) < 4:
        await life.beat(60.0)
    await life.live(300.0)
    stragglers = [claim for claim in life.world.claims.values() if life.image_of[claim.uid] == "image-1"]
    life.odd |= {claim.uid: "InstanceTypeNotFound" for claim in stragglers}
    life.bad.add("image-2")
    await life.live(3 * HOUR)

    assert state(life)[1] == RolloutState.FAILED
    life.judge_the_end()


async def test_a_failing_canary_that_drifts_by_itself_is_evidence_still_and_no_other_node_gets_its_image() -> None:
    life = await a_life()
    life.bad.add("image-2")
    life.change("image-2")
    while not life.rollout or state(life)[1] != RolloutState.JUDGING:
        await life.beat(60.0)
    [canary] = life.at_target()
    life.odd[canary.uid] = "CapacityReservationDrift"
    while not life.world.claims[canary.name].is_true(names.DRIFTED):
        await life.beat(300.0)
    await life.live(2 * HOUR)

    assert state(life) == ("canary", RolloutState.JUDGING)
    assert stalled(life).startswith("True GateFails: ")
    assert [name for name in life.world.claims if life.image_on(name) == "image-2"] == [canary.name]


async def test_a_roll_out_that_waits_for_a_change_is_not_used_up_by_a_node_that_drifts_by_itself() -> None:
    life = await a_life()
    life.world.rules = TimeRules()
    life.objects.put(Rollout(name="mine", uid="mine", generation=1, pool=POOL, steps=(CANARY, REST)))
    await life.beat(60.0)
    node = min(life.world.claims)
    life.odd[life.world.claims[node].uid] = "RequirementsDrifted"
    await life.live(2 * HOUR)
    assert node not in life.world.claims
    assert state(life) == ("", RolloutState.WAITING)

    life.bad.add("image-2")
    life.change("image-2")
    await life.live(3 * HOUR)
    assert state(life) == ("canary", RolloutState.JUDGING)
    assert len(life.at_target()) == 1
