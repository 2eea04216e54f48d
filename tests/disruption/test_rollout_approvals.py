"""A step that asks lets the next one begin by an approval of exactly what was shown, and by nothing else."""

from dataclasses import replace
from typing import Final

import pytest

from dovetail.activities.upkeep.time_rules import rollout_status
from dovetail.adapters.kubernetes_json.parsing.rollouts import parse_rollout
from dovetail.adapters.kubernetes_json.rendering.policies import render_rollout
from dovetail.model import names
from dovetail.model.own.claim_memory import Pin, images_of, with_memory
from dovetail.model.own.rollout_approvals import Answered, Approval, Awaits
from dovetail.model.own.rollouts import (
    BEGUN,
    Intent,
    NodesGate,
    Passage,
    PoolNodes,
    Rollout,
    RolloutState,
    RolloutStatus,
    RolloutStrategy,
)
from dovetail.rules.rollout.approvals import digest_of
from dovetail.rules.rollout.moves import looks_again, next_move
from tests.disruption.test_rollouts import FAILS, LINES, MOVES, PASSES, POOL, SEEN, STEPS, a_status, at, letter
from worlds.disruption import HOUR, NOW, a_pair, a_world, condition
from worlds.kept_rollouts import kept, whole, without_none
from worlds.made_claims import launched_by
from worlds.time_rules import with_rules

ASKING: Final = (replace(STEPS[0], approve=HOUR), replace(STEPS[1], approve=HOUR), STEPS[2])
ASKED: Final = Awaits(digest="", since=NOW - 60, expires=NOW + HOUR)
OLD: Final = tuple(f"uid-{n}" for n in range(9))
NODES: Final = PoolNodes(old=9, at_target=1, ready=(NOW,), staying=OLD)


def a_rollout(status: RolloutStatus, approval: Approval | None = None, intent: Intent = Intent.RUN) -> Rollout:
    if status.failure is not None:
        status = replace(status, failure=replace(status.failure, generation=4))
    return Rollout(
        name="r",
        uid="u",
        generation=4,
        created=NOW - 60,
        pool="a",
        steps=ASKING,
        intent=intent,
        status=status,
        approval=approval,
    )


def awaiting(step: str = "canary", state: RolloutState = RolloutState.AWAITING, nodes: PoolNodes = NODES) -> Rollout:
    rollout = a_rollout(a_status(step, state, awaits=ASKED))
    digest = digest_of(rollout, rollout.status, nodes)
    return replace(rollout, status=replace(rollout.status, awaits=replace(ASKED, digest=digest)))


def approved(rollout: Rollout, **other: object) -> Rollout:
    assert rollout.status.awaits is not None
    given = Approval(step=rollout.status.step, digest=rollout.status.awaits.digest, by="alice", at=NOW)
    return replace(rollout, approval=replace(given, **other))  # type: ignore[arg-type]


# Where the step asks, in place of what the table of roll-outs without a question says.
ASKS: Final = {"quarter R": "canary A", "rest R": "quarter A"}


def test_the_story_names_who_approved_and_nobody_whose_approval_was_refused() -> None:
    def looked_at(rollout: Rollout) -> Rollout:
        return kept(replace(rollout, status=next_move(rollout, POOL, NODES, NOW)))

    asked = looked_at(awaiting())
    refused = looked_at(approved(asked, digest="0-0-0-0-0", by="mallory"))
    assert refused.status.answered is not None and refused.status.answered.refused
    without = (replace(ASKING[0], approve=None), *ASKING[1:])  # a person has taken the question off

    def told(rollout: Rollout) -> list[tuple[str, str]]:
        return [(each.result, each.message) for each in looked_at(rollout).status.history if each.ended is not None]

    story = (Passage(step="canary", began=NOW - 60),)
    refused = replace(refused, status=replace(refused.status, history=story))
    assert told(replace(refused, steps=without)) == [("Passed", "")]
    assert told(approved(refused)) == [("Passed", "approved by alice")]


def asking_answer(place: str, seen: str, answer: str) -> str:
    step, _, state = place.rpartition(" ")
    if state not in ("Soaked", "Awaiting", "Paused") or (state == "Soaked" and not SEEN[seen].old):
        return answer
    goes_on = {"canary": "quarter R", "quarter": "rest R"}.get(step)
    if answer != goes_on:
        return answer
    return "=" if state == "Awaiting" else f"{step} {'P' if state == 'Paused' else 'A'}"


@pytest.mark.parametrize(("place", "seen", "answer"), MOVES)
def test_where_steps_ask_each_state_at_each_sight_waits_exactly_where_it_would_go_on(
    place: str, seen: str, answer: str
) -> None:
    awaits = ASKED if place.endswith("Awaiting") else replace(ASKED, generation=4)
    known = replace(at(place), awaits=awaits if place.endswith(("Awaiting", "Paused")) else None)
    found = next_move(a_rollout(known), POOL, SEEN[seen], NOW)

    expected = asking_answer(place, seen, answer)
    expected = f"{known.step} {letter(known.state)}" if expected == "=" else expected
    assert f"{found.step} {letter(found.state)}" == expected
    assert (found.awaits is not None) is (found.state in (RolloutState.AWAITING, RolloutState.PAUSED))


@pytest.mark.parametrize(("place", "seen"), [(place, seen) for place, seen, _ in MOVES])
def test_no_approval_of_something_else_ever_lets_a_step_begin(place: str, seen: str) -> None:
    """In every state at every sight the place is that without an approval, and what became of it is said."""
    awaits = replace(ASKED, generation=4 if place.endswith("Paused") else None)
    known = replace(at(place), awaits=awaits if place.endswith(("Awaiting", "Paused")) else None)
    without = next_move(a_rollout(known), POOL, SEEN[seen], NOW)
    given = Approval(step="canary", digest="0-1-2-3-4", by="alice", at=NOW)
    found = next_move(a_rollout(known, given), POOL, SEEN[seen], NOW)

    assert (found.step, found.state) == (without.step, without.state)
    assert found.answered is not None and found.answered.approval == given and found.answered.refused


def test_the_tables_have_both_states() -> None:
    assert {RolloutState.AWAITING, RolloutState.PAUSED} <= BEGUN
    assert {"canary Awaiting", "canary Paused"} <= {line[0] for line in LINES}


def test_a_soaked_step_asks_shows_what_it_lets_happen_and_goes_on_by_an_approval_of_that() -> None:
    soaked = a_rollout(a_status("canary", RolloutState.SOAKING, until=NOW))
    asked = next_move(soaked, POOL, NODES, NOW)

    assert (asked.step, asked.state, asked.until) == ("canary", RolloutState.AWAITING, None)
    assert asked.awaits is not None and (asked.awaits.since, asked.awaits.expires) == (NOW, NOW + HOUR)
    assert asked.awaits.shows == "step quarter: from 1 to 25%, 2 more of 10 nodes are replaced"
    assert next_move(replace(soaked, status=asked), POOL, NODES, NOW + 60) == asked
    assert NOW + HOUR in looks_again(asked, RolloutStrategy(), NOW)

    given = approved(replace(soaked, status=asked))
    went = next_move(given, POOL, NODES, NOW + 60)
    assert (went.step, went.state, went.awaits) == ("quarter", RolloutState.REPLACING, None)
    assert went.answered == Answered(approval=given.approval)  # type: ignore[arg-type]


def test_an_approval_is_judged_once() -> None:
    rollout = approved(awaiting())
    went = next_move(rollout, POOL, NODES, NOW)
    assert next_move(replace(rollout, status=went), POOL, NODES, NOW + 1).answered == went.answered

    again = replace(rollout.status, answered=went.answered)  # the same question once more, after nodes were lost
    assert next_move(replace(rollout, status=again), POOL, NODES, NOW).state == RolloutState.AWAITING
    anew = replace(rollout, status=again, approval=replace(rollout.approval, at=NOW + 1))  # type: ignore[type-var]
    assert next_move(anew, POOL, NODES, NOW).step == "quarter"


@pytest.mark.parametrize("fraction", ["", ".4", ".417", ".417000123"])
def test_it_is_judged_once_too_where_it_was_written_with_a_part_of_a_second(fraction: str) -> None:
    """As JavaScript and Go write moments; what is remembered of it has whole seconds. Else one that was refused while a
    gate was silent would let the step begin hours later, when the gate answers and the person is asleep."""
    asked = approved(awaiting())
    silent = whole(replace(asked, status=replace(asked.status, gate=NodesGate())))
    silent["spec"]["approval"]["at"] = silent["spec"]["approval"]["at"].replace("Z", f"{fraction}Z")
    refused = next_move(parse_rollout(silent), POOL, NODES, NOW)
    assert refused.answered is not None and "gate nodes is Unknown" in refused.answered.refused

    answers = without_none(render_rollout(asked, replace(refused, gate=PASSES)))
    found = next_move(parse_rollout({**silent, "status": answers}), POOL, NODES, NOW + 600)

    assert (found.step, found.state, found.answered) == ("canary", RolloutState.AWAITING, refused.answered)


@pytest.mark.parametrize("held", [Intent.PAUSE, Intent.ABORT, "fault"])
def test_while_a_person_holds_the_roll_out_its_approval_waits(held: str) -> None:
    rollout = approved(awaiting())
    holds = replace(rollout, fault="spec: none", steps=()) if held == "fault" else replace(rollout, intent=Intent(held))
    found = next_move(holds, POOL, NODES, NOW)

    assert (found.step, found.state, found.answered) == ("canary", RolloutState.AWAITING, None)
    assert next_move(replace(rollout, status=found), POOL, NODES, NOW).step == "quarter"


def refusal(rollout: Rollout, nodes: PoolNodes = NODES, now: float = NOW) -> str:
    found = next_move(rollout, POOL, nodes, now)
    assert found.answered is not None
    assert found.step != "rest" and not (found.step == "quarter" and rollout.status.step == "canary")
    return found.answered.refused


def test_each_refusal_says_what_has_changed() -> None:
    given = approved(awaiting())
    other_nodes = replace(NODES, staying=OLD[:-1], old=8)
    assert (
        refusal(given, replace(NODES, newest_old=NOW))
        == "it is of another target: what is rolled out has changed since"
    )
    assert refusal(replace(given, uid="another")).startswith("it is of another target")
    assert refusal(given, other_nodes).startswith("other nodes are concerned")
    assert refusal(replace(given, steps=(ASKING[0], replace(ASKING[1], to="50%"), ASKING[2]))).startswith(
        "the steps to come have changed"
    )
    assert (
        refusal(replace(given, status=replace(given.status, gate=FAILS))) == "gate nodes is Failing: pods are not ready"
    )
    assert refusal(replace(given, status=replace(given.status, gate=NodesGate()))).startswith("gate nodes is Unknown")
    assert refusal(given, replace(NODES, ready=())) == "nodes at the target are not ready any more"
    assert refusal(approved(awaiting(), digest="41be")).startswith("its digest is not the one that is asked for")
    assert refusal(given, now=NOW + HOUR).startswith("the question has expired at 2023-11-14T23:13:20Z")
    assert (
        refusal(approved(awaiting(), step="quarter"))
        == "it is for step quarter: the roll-out is Awaiting at step canary"
    )
    late = approved(awaiting("quarter", nodes=SEEN["three"]), step="canary")
    assert refusal(late, SEEN["three"]) == "it comes too late for step canary: the roll-out is Awaiting at step quarter"
    soaking = replace(given, status=replace(given.status, state=RolloutState.SOAKING, until=NOW + 60))
    assert refusal(soaking) == "nothing was asked for: the roll-out was Soaking at step canary"
    asked_anew = replace(given.status, awaits=replace(ASKED, since=NOW - 1))
    assert refusal(replace(given, status=asked_anew)).startswith("it has been asked anew since")


def test_where_nobody_answers_in_time_it_is_paused_until_somebody_writes_its_intent_anew() -> None:
    rollout = awaiting()
    paused = next_move(rollout, POOL, NODES, NOW + HOUR)
    assert (paused.step, paused.state) == ("canary", RolloutState.PAUSED)
    rollout = replace(rollout, status=paused)
    assert next_move(rollout, POOL, NODES, NOW + 2 * HOUR) == paused

    late = replace(approved(rollout), generation=5)
    refused = next_move(late, POOL, NODES, NOW + 2 * HOUR)
    assert refused.state == RolloutState.PAUSED
    assert refused.answered is not None and refused.answered.refused.startswith("the question has expired")
    late = replace(late, status=refused)
    assert next_move(late, POOL, NODES, NOW + 2 * HOUR) == refused

    asked = next_move(replace(late, generation=7), POOL, NODES, NOW + 3 * HOUR)
    assert asked.state == RolloutState.AWAITING
    assert asked.awaits is not None and asked.awaits.expires == NOW + 4 * HOUR


def test_nobody_is_asked_where_nothing_is_left_to_do_or_somebody_promotes() -> None:
    soaked = a_rollout(a_status("quarter", RolloutState.SOAKING, until=NOW))
    assert next_move(soaked, POOL, SEEN["all"], NOW).step == "rest"
    promoted = replace(awaiting(), intent=Intent.PROMOTE)
    found = next_move(promoted, POOL, NODES, NOW)
    assert (found.step, found.state, found.awaits) == ("rest", RolloutState.REPLACING, None)


def test_that_the_last_node_of_before_leaves_answers_nothing() -> None:
    """It is interrupted as the canary has soaked or while a person is asked, and pods get a node as before instead."""
    drifted = condition(names.DRIFTED, reason="ImageDrift")
    first, second = (a_pair(name, also=(drifted,), claim={"image_id": "image-1"}) for name in ("first", "second"))
    new = a_pair("new", claim={"created": NOW + 60, "image_id": "image-2"})
    leaving = replace(second, claim=replace(second.claim, deleting_since=NOW + 700.0))
    stable = a_pair("stable", also=(drifted,), claim={"created": NOW + 800, "image_id": "image-1"})
    stable = replace(stable, claim=replace(stable.claim, annotations=with_memory({}, roll_out=Pin(how="stable"))))

    for at_soaked in (leaving, second):
        rollout = a_rollout(RolloutStatus())
        sights = ((first, second), (new, second), (new, at_soaked), (new, leaving), (new,), (new, stable))
        for seen, minute in zip(sights, (0, 2, 12, 13, 14, 15), strict=True):
            now = NOW + 60 * minute
            world = with_rules(replace(a_world(seen, pools=[POOL]), now=now), rollout)
            rollout = kept(replace(rollout, status=rollout_status(rollout, world, now)))
            assert rollout.status.step == "canary"
        assert rollout.status.state == RolloutState.AWAITING
        assert rollout.status.awaits is not None and rollout.status.awaits.since == NOW + 720


def test_in_a_pool_without_nodes_no_step_passes_and_launches_take_the_image_of_before() -> None:
    """Its pods end at night; those of the morning must not all get an image that nobody has tried."""
    drifted = condition(names.DRIFTED, reason="ImageDrift")
    old = [a_pair(f"old{n}", also=(drifted,), claim={"image_id": "image-1"}) for n in range(4)]
    rollout = replace(a_rollout(RolloutStatus()), launches_stable=True)
    for minute in range(0, 600, 5):
        now = NOW + 60 * minute
        world = with_rules(replace(a_world(old if minute < 10 else [], pools=[POOL]), now=now), rollout)
        rollout = kept(replace(rollout, status=rollout_status(rollout, world, now)))

    assert (rollout.status.step, rollout.status.state) == ("canary", RolloutState.REPLACING)
    assert [each.words for each in images_of(launched_by(rollout.pin("provisioned")))] == ["image-1=m8"]
