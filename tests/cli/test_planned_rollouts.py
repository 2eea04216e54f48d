"""`plan -f` and `forecast` count with roll-outs: the steps that a policy would make of a change, and their times."""

import copy
import time
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest

from dovetail.answers.change.answer import ChangeAnswer
from dovetail.answers.change.text import change_markdown, change_text
from dovetail.cli.main import main
from dovetail.model import names
from dovetail.model.values.json import Json
from testbed.simulated_world import SimulatedWorld
from tests.adapters.simulator.manifests import a_node_class
from tests.cli.test_forecast import forecast, of_kind
from tests.cli.test_planned_changes import DAY, a_fleet, hashed, labelled, planned
from tests.cli.test_rollout import a_rollout
from tests.cli.worlds import CLUSTER

ASKS: Final = {"expiresAfter": "24h"}


def a_policy(*steps: Json, **more: Any) -> Json:
    made = steps or (
        {"name": "canary", "to": "1", "soak": "30m"},
        {"name": "half", "to": "50%", "soak": "1h", "approve": ASKS},
        {"name": "rest", "to": "100%", "soak": "10m"},
    )
    spec = {"nodePoolSelector": {}, "rollout": {"when": {"drifted": "2"}, "steps": list(made)}, **more}
    return {
        "apiVersion": "dovetail.sh/v1alpha1",
        "kind": "DisruptionPolicy",
        "metadata": {"name": "careful"},
        "spec": spec,
    }


def moment(text: str | None) -> datetime:
    assert text is not None
    return datetime.fromisoformat(text)


async def changed(folder: Path, policy: Json, count: int = 6, ahead: float = 30 * DAY) -> ChangeAnswer:
    world, pool = a_fleet(folder, count, policy)
    return await planned(world, labelled(pool), ahead=ahead)


async def test_a_change_goes_by_the_steps_of_the_policy_each_after_the_soak_of_the_one_before(tmp_path: Path) -> None:
    """DIQ-37."""
    answer = await changed(tmp_path, a_policy())

    [rollout] = answer.rollouts
    assert rollout.name.startswith("default-") and rollout.is_new and rollout.policy == "careful"
    canary, half, rest = rollout.steps
    assert [(step.name, step.to, step.nodes) for step in rollout.steps] == [
        ("canary", "1", 1),
        ("half", "50%", 3),
        ("rest", "100%", 6),
    ]
    assert [wave.nodes for wave in answer.waves] == [1, 2, 3], "no more than the step, however much the budget allows"
    assert [step.goes for step in rollout.steps] == [wave.begins for wave in answer.waves]
    for step, wave, soak in zip(rollout.steps, answer.waves, (30, 60, 10), strict=True):
        assert moment(step.ready) >= moment(wave.ends)
        assert 0 <= (moment(step.soaked) - moment(step.ready)).total_seconds() - 60 * soak <= 1
    assert moment(half.begins) == moment(canary.soaked) and moment(rest.begins) == moment(half.soaked)
    assert (canary.expires, half.asks) == (None, True)
    assert moment(half.expires) == moment(half.soaked) + timedelta(days=1)
    assert rest.complete == rest.soaked and not answer.left_behind


async def test_the_steps_are_said_with_their_times_and_what_comes_after_a_question_at_the_earliest(
    tmp_path: Path,
) -> None:
    answer = await changed(tmp_path, a_policy())

    [rollout], text = answer.rollouts, change_text(answer)
    canary, half, rest = rollout.steps
    head = (
        f"NodeRollout {rollout.name} is made of it by DisruptionPolicy careful and goes by 3 steps, if its gates pass:"
    )
    asked, ends = "then a person is asked, for 1d", f"soaks until {rest.soaked}, complete {rest.complete}"
    said = (
        head,
        f"canary, to 1 (1 node): from {canary.goes}, ready about {canary.ready}, soaks until {canary.soaked}",
        f"half, to 50% (3 nodes): from {half.goes}, ready about {half.ready}, soaks until {half.soaked}, {asked}",
        f"rest, to 100% (6 nodes): from {rest.goes} at the earliest, ready about {rest.ready}, {ends}",
    )
    lines = [line.strip() for line in text.splitlines()]
    assert lines[(at := lines.index(head)) : at + 4] == list(said)
    assert f"- {head}" in change_markdown(answer)
    assert "waves of at most 3 nodes by the budgets and roll-outs" in text


async def test_windows_hold_a_step_and_not_its_soak(tmp_path: Path) -> None:
    hour = (time.gmtime().tm_hour + 12) % 24
    night = {"from": f"{hour:02}:00", "to": f"{hour:02}:30", "reasons": ["Drifted"]}
    answer = await changed(tmp_path, a_policy(allow=[night]))

    [rollout] = answer.rollouts
    days = [moment(step.goes) for step in rollout.steps]
    assert [(each.hour, each.minute) for each in days] == [(hour, 0)] * 3
    assert [later - before for before, later in pairwise(days)] == [timedelta(days=1)] * 2
    assert moment(rollout.steps[1].begins) < days[1], "it may begin by the roll-out when the soak is over"


async def test_where_the_time_ends_before_the_soak_the_rest_is_left_behind(tmp_path: Path) -> None:
    answer = await changed(tmp_path, a_policy(), ahead=1200.0)

    [rollout] = answer.rollouts
    assert [(step.name, step.complete) for step in rollout.steps] == [("canary", None)]
    assert len(answer.staying) == 5 and answer.left_behind
    assert {node.stays.reason for node in answer.staying if node.stays} == {"RolloutHolds"}


async def test_fewer_nodes_than_make_a_roll_out_go_by_budgets_after_a_minute(tmp_path: Path) -> None:
    answer = await changed(tmp_path, a_policy(), count=1)

    assert answer.rollouts == () and [wave.nodes for wave in answer.waves] == [1]
    assert moment(answer.waves[0].begins) - moment(answer.at) >= timedelta(minutes=1)


def a_running(intent: str = "Run", **step: Any) -> Json:
    """A person's roll-out of a target that is another now."""
    found = copy.deepcopy(a_rollout())
    found["spec"] |= {"intent": intent}
    found["status"]["conditions"] = []
    found["status"]["step"] |= step
    return found


async def test_a_roll_out_that_is_there_takes_the_new_target_from_its_first_step(tmp_path: Path) -> None:
    world, pool = a_fleet(tmp_path, 4, a_running())
    answer = await planned(world, labelled(pool))

    [rollout] = answer.rollouts
    assert (rollout.name, rollout.is_new, [step.name for step in rollout.steps]) == (
        "new-image",
        False,
        ["canary", "rest"],
    )
    assert "NodeRollout new-image goes by 2 steps, if its gates pass:" in change_text(answer)
    assert [wave.nodes for wave in answer.waves] == [1, 3]


async def test_another_image_of_a_nodeclass_goes_by_the_same_steps(tmp_path: Path) -> None:
    world, _ = a_fleet(tmp_path, 4, a_policy())
    for claim in world.objects("NodeClaim"):
        claim["status"]["imageID"] = "image-1"
        claim["metadata"]["annotations"]["embedded.dovetail.sh/class-hash"] = "44136fa355b3678a"
        world.put_raw(claim)

    answer = await planned(world, a_node_class(image="image-2"))

    assert [node.why for node in answer.nodes] == ["ImageDrift"] * 4
    assert [[step.name for step in rollout.steps] for rollout in answer.rollouts] == [["canary", "half", "rest"]]
    assert [wave.nodes for wave in answer.waves] == [1, 1, 2]


async def test_one_that_is_paused_lets_none_of_its_nodes_go(tmp_path: Path) -> None:
    world, pool = a_fleet(tmp_path, 4, a_running("Pause"))
    answer = await planned(world, labelled(pool))

    assert answer.waves == () and len(answer.staying) == 4


def drifted(world: SimulatedWorld) -> None:
    """The NodePool has been changed already."""
    pool = world.objects("NodePool")[0]
    pool["spec"]["template"]["metadata"] = {"labels": {"tier": "web"}}
    world.put_raw(hashed(pool))


@pytest.mark.parametrize(("asks", "waves"), [(False, 2), (True, 1)])
async def test_a_forecast_takes_nobody_to_answer_and_names_each_step_and_the_end_of_the_question(
    tmp_path: Path, asks: bool, waves: int
) -> None:
    """DIQ-37."""
    canary = {"name": "canary", "to": "1", "soak": "30m"} | ({"approve": ASKS} if asks else {})
    world, _ = a_fleet(tmp_path, 4, a_policy(canary, {"name": "rest", "to": "100%"}))
    drifted(world)

    answer = await forecast(world, 2 * DAY)

    [soaked, *then] = [text.partition(": ")[2] or text.split()[-1] for text in of_kind(answer, "rollout")]
    assert soaked == "step canary has soaked"
    assert then == (
        [
            "a person is asked before what comes after step canary",
            "nobody has approved what comes after step canary, and it is Paused",
        ]
        if asks
        else ["step rest may begin, to 100%", "complete"]
    )
    assert len(of_kind(answer, "wave")) == waves
    assert [stay.reason for stay in answer.staying] == (["RolloutHolds"] * 3 if asks else [])


def test_explain_node_says_with_which_step_a_drifted_node_goes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """DIQ-37."""
    soaks = {"state": "Soaking", "since": "2026-05-01T00:00:00Z", "until": "2126-05-01T00:00:00Z"}
    world, _ = a_fleet(tmp_path, 3, a_running(**soaks))
    drifted(world)
    [pool], [first, *others] = world.objects("NodePool"), world.objects("NodeClaim")
    stamps = pool["metadata"]["annotations"]
    first["metadata"]["annotations"] = stamps
    begun = {"nodePoolHash": stamps[names.NODE_POOL_HASH], "begun": "2126-04-30T00:00:00Z"}
    world.patch("NodeRollout", "new-image", {"status": {"target": begun}}, "status")
    for claim in others:
        condition = {"type": names.DRIFTED, "status": "True", "reason": "NodePoolDrifted", "message": ""}
        claim["status"]["conditions"].append({**condition, "lastTransitionTime": "2026-05-01T00:00:00Z"})
    for claim in (first, *others):
        world.put_raw(claim)

    place = ("--local", "--cluster", CLUSTER, "--world", str(world.file))
    assert main(["explain", "node", "n3", *place]) == 0
    said = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("  roll-out  "))
    assert said.startswith(
        "  roll-out  it goes with step rest (2 of 2) of NodeRollout new-image at the earliest, which "
    )
    assert "waits for the end of the soak of step canary, until 2126-05-01T00:00:00Z" in said
    assert main(["explain", "node", "n1", *place]) == 0
    assert "roll-out" not in capsys.readouterr().out, "it is at the target"
