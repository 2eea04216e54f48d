"""The generated faults leave no step out: what LaunchNode and TerminateNode call is killed, repeated, failed."""

import re

from dovetail.workflows.launch_node import LaunchNode
from dovetail.workflows.terminate_node import TerminateNode
from tests.faults.catalogue import DISRUPT, EVERYTHING, LAUNCH, LEAVE
from tests.replay.fingerprints import fingerprint_of

# Publishes a notice and does nothing else: killed or repeated, it publishes once more.
NOTICES_ONLY = {"publish"}

# Where a node came without its taint; `await_joined`, which has the same wait in it, is struck. So is the drain, which
# does without `await_detached` where no volume is attached, and the end of the instance, which releases the claim. A
# claim that is given up deletes itself, which the lives of failed launches go through.
SELDOM = {"await_initialized", "await_detached", "release_claim", "delete_claim"}


def steps_of(workflow: type) -> set[str]:
    """The activities that its source calls."""
    calls = [call for found in fingerprint_of(workflow).values() for call in found]
    return {m.group(1) for call in calls if (m := re.fullmatch(r"execute_activity_method\(\w+\.(\w+)\)", call))}


def test_every_step_of_a_launch_and_of_a_termination_has_its_faults() -> None:
    called = steps_of(LaunchNode) | steps_of(TerminateNode)

    assert called - NOTICES_ONLY - SELDOM - {*LAUNCH, *LEAVE, *DISRUPT} == set()
    assert {"launch_instance", "drain_node", "release_claim"} <= called


def test_every_step_is_struck_before_after_and_in_workflow_code_with_and_without_its_database() -> None:
    struck = {(kill.point, kill.lose_database) for life in EVERYTHING.values() for kill in life.kills}

    for step in (*LAUNCH, *LEAVE):
        for moment in ("before", "after", "calls"):
            assert {(f"{moment}:{step}", lost) for lost in (False, True)} <= struck, (moment, step)
