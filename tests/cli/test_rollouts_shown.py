"""What `status`, `top` and the page say of roll-outs: how far each is, what it waits for, what a person may type."""

from dataclasses import replace
from typing import Final

import pytest

from dovetail.answers.rollouts.answer import RolloutShown
from dovetail.answers.rollouts.standing import awaited_step, shown_of
from dovetail.answers.rollouts.text import one_line, progress_bar, rollouts_block
from dovetail.answers.shown.screen import Screen
from dovetail.answers.status.answer import Allowed, Need, PoolStatus, Use
from dovetail.answers.status.rollouts import rollout_needs, rollouts_shown
from dovetail.disruption.settings import DisruptionSettings
from dovetail.model.own.openings import Window
from dovetail.model.own.policies import Freeze, Policy
from dovetail.model.own.rollout_approvals import Awaits
from dovetail.model.own.rollouts import (
    Intent,
    NodesGate,
    Rollout,
    RolloutFailure,
    RolloutPlan,
    RolloutState,
    RolloutStep,
)
from dovetail.model.values.time import format_time
from tests.disruption.test_rollouts import FAILS, a_rollout, a_status, rolling_out
from worlds.disruption import HOUR, NOW, a_pod, condition
from worlds.time_rules import with_rules

SHOWS: Final = "step rest: from 25% to 100%, 6 more of 9 nodes are replaced"
ASKS: Final = a_rollout(
    a_status(
        "quarter",
        RolloutState.AWAITING,
        awaits=Awaits(digest="d", since=NOW - 60, expires=NOW + HOUR, shows=SHOWS),
    )
)
ABORTED: Final = a_rollout(
    a_status(conditions=(replace(condition("Stalled"), reason="Aborted", message="its nodes are held"),)),
    Intent.ABORT,
)
NIGHT: Final = Policy(name="p", deny=(Window(start=0, end=0),))


def shown(rollout: Rollout, at_target: int = 0, *rules: Policy | Freeze) -> RolloutShown:
    [found] = rollouts_shown(with_rules(rolling_out(9 - at_target, at_target), rollout, *rules))
    return found


@pytest.mark.parametrize(
    ("rollout", "at_target", "state", "waits_for", "command"),
    [
        (a_rollout(), 0, "Replacing", "1 node to begin", "pause"),
        (a_rollout(a_status("quarter")), 3, "Replacing", "its next look", "pause"),
        (
            a_rollout(a_status(state=RolloutState.SOAKING, until=NOW + 600)),
            1,
            "Soaking",
            "the end of the soak of step canary",
            "pause",
        ),
        (a_rollout(a_status(state=RolloutState.SOAKING, until=NOW - 1)), 1, "Soaking", "its next look", "pause"),
        (
            a_rollout(a_status(state=RolloutState.SOAKING, until=NOW - 1, gate=NodesGate())),
            1,
            "Soaking",
            "its gate nodes: nothing is known yet",
            "pause",
        ),
        (
            a_rollout(a_status(state=RolloutState.SOAKING, until=NOW + 600, gate=FAILS)),
            1,
            "Soaking",
            "pods are not ready",
            "abort",
        ),
        (a_rollout(a_status(state=RolloutState.JUDGING)), 1, "Judging", "the nodes at its target to be ready", "abort"),
        (ASKS, 3, "Awaiting", f"a person's approval: {SHOWS}", "approve"),
        (
            a_rollout(a_status("quarter", RolloutState.PAUSED)),
            3,
            "Paused",
            "somebody to have it asked again: nobody approved step quarter in time",
            "resume",
        ),
        (a_rollout(intent=Intent.PAUSE), 0, "Paused", "somebody to resume it: its intent is Pause", "resume"),
        (ABORTED, 0, "Aborted", "somebody to resume it: its intent is Abort", "resume"),
        (
            a_rollout(a_status(state=RolloutState.ROLLING_BACK)),
            2,
            "RollingBack",
            "2 nodes at its target to leave",
            "pause",
        ),
        (
            a_rollout(
                a_status(state=RolloutState.FAILED, failure=RolloutFailure(generation=1, message="web is not ready"))
            ),
            0,
            "Failed",
            "another target, or somebody to try this one again: web is not ready",
            "resume",
        ),
        (
            a_rollout(fault="spec.steps: none"),
            0,
            "NotUnderstood",
            "somebody to put right what cannot be understood: spec.steps: none",
            "status",
        ),
    ],
)
def test_in_each_state_it_says_for_what_it_waits_and_what_lets_it_go_on(
    rollout: Rollout, at_target: int, state: str, waits_for: str, command: str
) -> None:
    """DIQ-37."""
    found = shown(rollout, at_target)

    assert (found.state, found.waits_for) == (state, waits_for)
    assert found.commands == (f"dovetail rollout {command} r",)
    assert (found.total, found.target) == (9, at_target)


def test_every_state_that_is_news_has_words() -> None:
    for state in RolloutState:
        found = rollouts_shown(with_rules(rolling_out(9), a_rollout(a_status(state=state))))
        quiet = state in (RolloutState.WAITING, RolloutState.COMPLETE)
        assert (len(found), [each.waits_for for each in found if not each.waits_for]) == (0 if quiet else 1, [])


@pytest.mark.parametrize(
    ("rule", "waits_for", "until"),
    [
        (NIGHT, "a window to open: Drifted may not begin for NodePool a", None),
        (
            Freeze(name="f", until=NOW + HOUR, what=frozenset({"disruption"})),
            "the end of a Freeze: ",
            NOW + HOUR,
        ),
    ],
)
def test_what_holds_its_nodes_although_the_step_lets_them_begin_is_named(
    rule: Policy | Freeze, waits_for: str, until: float | None
) -> None:
    found = shown(a_rollout(), 0, rule)

    assert found.waits_for.startswith(waits_for) and found.until == until
    soaking = a_rollout(a_status(state=RolloutState.SOAKING, until=NOW + 600))
    assert shown(soaking, 1, rule).waits_for.startswith("the end of the soak"), "a soak goes on"


def test_a_budget_is_named_where_nothing_else_holds_it() -> None:
    use = Use(used=0, room=0)
    may_go = (Allowed(reason="Drifted", left=0, allowed=0, why_not="budget 0"),)
    pool = PoolStatus(name="a", nodes=9, price=0, cpu=use, memory=use, drifted=9, may_go=may_go)

    [found] = rollouts_shown(with_rules(rolling_out(9), a_rollout()), [pool])
    assert found.waits_for == "its NodePool's budget: budget 0"


@pytest.mark.parametrize(
    ("kept", "step", "words"),
    [
        (9, "canary", "1 node to begin; 9 nodes kept, old0: "),
        (8, "canary", "1 node to begin"),  # another one may go
        (8, "quarter", "3 nodes to begin; 8 nodes kept, "),  # and one is too few
        (1, "quarter", "3 nodes to begin"),
    ],
)
def test_nodes_that_keep_themselves_are_named_where_too_few_others_may_begin(kept: int, step: str, words: str) -> None:
    cluster = rolling_out(9)
    names = sorted(cluster.nodes)
    pods = [replace(a_pod(name, cpu="1"), do_not_disrupt="true") for name in names[:kept]]
    world = replace(cluster, pods={pod.uid: pod for pod in pods})
    [found] = rollouts_shown(with_rules(world, a_rollout(a_status(step))), (), DisruptionSettings())

    assert found.waits_for.startswith(words) and ("kept" in found.waits_for) == ("kept" in words)
    if "kept" in words:
        assert f"{names[0]}: " in found.waits_for and f" and {kept - 3} more" in found.waits_for


def test_steps_are_done_now_or_to_come_and_count_nodes_of_now() -> None:
    found = shown(a_rollout(a_status("quarter")), 1)
    assert [(step.name, step.nodes, step.place) for step in found.steps] == [
        ("canary", 1, "done"),
        ("quarter", 3, "now"),
        ("rest", 9, "to come"),
    ]
    complete = shown_of(a_rollout(a_status("rest", RolloutState.COMPLETE)), rolling_out(0, 9))
    assert {step.place for step in complete.steps} == {"done"} and complete.is_over


@pytest.mark.parametrize(
    ("rollout", "needs"),
    [
        (a_rollout(), None),
        (a_rollout(a_status(state=RolloutState.COMPLETE)), None),
        (ASKS, (f"waits for an approval: {SHOWS}", "dovetail rollout approve r")),
        (replace(ASKS, intent=Intent.PAUSE), None),
        (ABORTED, ("Aborted: its nodes are held", "dovetail rollout resume r")),
        (replace(ABORTED, intent=Intent.RUN), ("Aborted: its nodes are held", "dovetail rollout status r")),
    ],
)
def test_what_asks_or_stands_still_needs_a_person_with_the_command_that_answers_it(
    rollout: Rollout, needs: tuple[str, str] | None
) -> None:
    """DIQ-37."""
    found: list[Need] = list(rollout_needs(with_rules(rolling_out(9), rollout)))

    assert [(need.about, need.what, need.command, need.pool) for need in found] == (
        [] if needs is None else [("NodeRollout r", *needs, "a")]
    )


def test_two_policies_with_a_roll_out_for_one_pool_need_a_person() -> None:
    plan = RolloutPlan(steps=(RolloutStep(name="all", to="100%"),))
    policies = (Policy(name="p", rollout=plan), Policy(name="q", rollout=plan))

    [need] = rollout_needs(with_rules(rolling_out(9), *policies))
    assert (need.about, need.pool) == ("NodePool a", "a")
    assert need.what.startswith("DisruptionPolicies p and q each have a roll-out")


SOAKS: Final = a_rollout(a_status(state=RolloutState.SOAKING, until=NOW + 600))
HELD: Final = a_status(state=RolloutState.FAILED, failure=RolloutFailure(generation=1, message="web fails"))
GOES: Final = "of NodeRollout r at the earliest, which waits for"
SOAK_ENDS: Final = f"the end of the soak of step canary, until {format_time(NOW + 600)} (in 10m)"
ANSWER: Final = f"a person's approval: {SHOWS}, until {format_time(NOW + HOUR)} (in 1h)"
AGAIN: Final = "another target, or somebody to try this one again: web fails"


@pytest.mark.parametrize(
    ("rollout", "at_target", "says"),
    [
        (SOAKS, 1, f"it goes with step quarter (2 of 3) {GOES} {SOAK_ENDS}"),
        (ASKS, 3, f"it goes with step rest (3 of 3) {GOES} {ANSWER}"),
        (a_rollout(), 0, f"it goes with step canary (1 of 3) {GOES} 1 node to begin"),
        (a_rollout(HELD), 0, f"NodeRollout r keeps it, Failed, and waits for {AGAIN}"),
        (a_rollout(a_status("rest", RolloutState.COMPLETE)), 0, ""),
    ],
)
def test_a_node_that_waits_for_a_step_says_for_which_and_for_what_that_waits(
    rollout: Rollout, at_target: int, says: str
) -> None:
    """DIQ-37."""
    world = with_rules(rolling_out(9 - at_target, at_target), rollout)

    assert awaited_step(world, world.claims["claim-old0"]) == says
    if at_target:
        assert awaited_step(world, world.claims["claim-new0"]) == "", "it has not drifted"


@pytest.mark.parametrize(
    ("total", "target", "leaving", "bar"),
    [
        (40, 10, 2, "▇▇▇▇▇▒░░░░░░░░░░░░░░"),
        (40, 39, 0, "▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇░"),
        (40, 40, 0, "▇" * 20),
        (1000, 0, 1, "▒" + "░" * 19),
        (0, 0, 0, "░" * 20),
    ],
)
def test_the_bar_is_full_only_when_the_last_node_is_there(total: int, target: int, leaving: int, bar: str) -> None:
    found = RolloutShown(name="r", pool="a", state="Replacing", total=total, target=target, leaving=leaving)
    assert progress_bar(found) == bar


@pytest.mark.parametrize("width", [40, 80, 120])
def test_its_lines_fit_the_screen_but_commands_stand_whole(width: int) -> None:
    lines = rollouts_block((shown(ASKS, 3),), NOW, Screen(width=width))

    assert "  dovetail rollout approve r" in lines
    assert [line for line in lines if len(line) > width] == []
    whole = " ".join(" ".join(lines).split())
    assert "✓ canary 1" in whole and "▸ quarter 3" in whole and f"until {format_time(NOW + HOUR)} (in 1h)" in whole


def test_one_line_has_the_command_before_what_a_narrow_screen_cuts() -> None:
    words = "▇▇▇░░░░░░░ 3/9, step quarter (2 of 3), Awaiting · dovetail rollout approve r, waits for a person's"
    assert one_line(shown(ASKS, 3), NOW).startswith(words)
