"""The Events about pods that leave with their node, and about the volumes that hold it (EVT-1, EVT-2, EVT-4, EVT-9 to
EVT-11)."""

from dataclasses import replace
from typing import Any

import pytest

from dovetail.model.objects.workloads import VolumeAttachment
from tests.activities.test_draining import DEPARTURE, START, Stage, new_stage
from tests.lifecycle.objects import a_web_pod


def said(stage: Stage, reason: str) -> list[str]:
    return [notice.message for notice in stage.world.notices if notice.reason == reason]


async def test_a_timed_protection_says_until_when_and_when_it_is_over() -> None:
    """EVT-10, EVT-11, BEH-118, BEH-120: and then the pod is evicted."""
    stage = new_stage()
    stage.holds(a_web_pod(started=START - 60.0, do_not_disrupt="2m"))

    await stage.run()

    assert set(said(stage, "DoNotDisruptUntil")) == {"Not to be disrupted until 1970-01-01T00:17:40Z"}
    assert said(stage, "DoNotDisruptGracePeriodElapsed")
    assert stage.world.clock >= START + 60.0
    assert stage.evictions() == ["web-1"]


@pytest.mark.parametrize("lasting", [{"do_not_disrupt": "true"}, {"do_not_disrupt": "2m", "started": None}])
async def test_a_lasting_protection_says_nothing(lasting: dict[str, Any]) -> None:
    """EVT-10: `true` has no end that could be named, nor has a time that does not run yet."""
    stage = new_stage()
    pod = a_web_pod(**lasting)
    stage.holds(pod)
    stage.world.at(START + 30.0, lambda: stage.world.kill(pod))

    await stage.run()

    assert stage.world.said() <= {"FailedDraining"}


async def test_force_names_the_seconds_granted_and_those_of_the_pod_itself() -> None:
    """EVT-2."""
    stage = new_stage()
    stage.holds(a_web_pod(grace_seconds=600))

    await stage.run(deadline=START + 40.5)

    assert "granted 40 seconds of grace-period" in said(stage, "Disrupted")[0]
    assert "600 seconds" in said(stage, "Disrupted")[0]


async def test_of_many_attachments_five_are_named_and_the_others_counted() -> None:
    """EVT-4."""
    stage = new_stage()
    for number in range(8):
        stage.world.attachments[str(number)] = VolumeAttachment(
            name=f"attachment-{number}", node_name="node-1", volume_name=f"pv-{number}"
        )
    stage.world.at(START + 5.0, stage.world.attachments.clear)

    await stage.detach.await_detached(replace(DEPARTURE))

    [message, *_] = said(stage, "AwaitingVolumeDetachment")
    assert [f"attachment-{number}" in message for number in range(8)] == [True] * 5 + [False] * 3
    assert message.endswith("and 3 other(s)")
