"""GCR-19: what `status` says of a node whose instance is rebooted for a repair, and until when it offers to stop it."""

from pathlib import Path
from typing import Final

import pytest

from dovetail.answers.status.status import status_of
from dovetail.model import names
from dovetail.model.own.claim_memory import with_memory
from testbed.simulated_world import SimulatedWorld
from tests.cli.test_explain_node import OPEN, a_bound_pod, a_managed_node
from tests.cli.worlds import a_ready_pool, a_world, looked

BEGAN: Final = with_memory({names.REBOOT_GRACE: "300s"}, reboots=(1767225600.0,))
CALLED_OFF: Final = {names.REST: "9999999999/1/Empty/cancelled"}
STOP: Final = "dovetail cancel claim-n1 --reason TEXT"


@pytest.mark.parametrize(
    ("marks", "boot", "said"),
    [
        ({}, "boot-1", ("pods leave", "1 pod left", STOP)),
        ({names.CANCEL: "not now"}, "boot-1", ("being called off", "", "")),
        (CALLED_OFF, "boot-1", ("being called off", "", "")),
        ({names.PRE_BOOT_ID: "boot-1"}, "boot-1", ("reboots", "", "")),
        ({names.PRE_BOOT_ID: "boot-1"}, "boot-2", ("comes back", "its node is not ready for pods yet", "")),
    ],
)
async def test_a_reboot_has_steps_of_its_own_and_a_cancel_is_offered_while_it_holds(
    tmp_path: Path, marks: dict[str, str], boot: str, said: tuple[str, str, str]
) -> None:
    world = a_rebooting_world(tmp_path, marks, boot)

    [move] = status_of(await looked(world)).under_way

    assert (move.why, (move.step, move.progress, move.stop)) == ("Unhealthy", said)


@pytest.mark.parametrize(
    ("grace", "pause", "said"),
    [
        (None, "", "waiting for hook mesh (mesh-team)"),
        ("87600h", "", "waiting for hook mesh (mesh-team)"),
        ("1s", "", "1 pod left"),
        (None, "drains", "drains paused for NodePool default until it is resumed, by alice: an incident"),
    ],
)
async def test_what_holds_a_reboot_is_named_as_long_as_it_does(
    tmp_path: Path, grace: str | None, pause: str, said: str
) -> None:
    world = a_rebooting_world(tmp_path, {f"{names.PRE_DRAIN_HOOK}mesh": "mesh-team"}, "boot-1", grace, pause)

    [move] = status_of(await looked(world)).under_way

    assert (move.step, move.progress, move.stop) == ("pods leave", said, STOP)
    assert move.blockers == (() if said == "1 pod left" else (said,))


def a_rebooting_world(
    folder: Path, marks: dict[str, str], boot: str, grace: str | None = None, pause: str = ""
) -> SimulatedWorld:
    """A node whose instance is being rebooted, with one pod."""
    claim, node = a_managed_node()
    claim["metadata"]["annotations"] = {**BEGAN, **marks}
    if grace is not None:
        claim["spec"]["terminationGracePeriod"] = grace
    claim["status"]["conditions"] += [
        {"type": kind, "status": "True", "reason": why, "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        for kind, why in ((names.REBOOTING, "RebootRequested"), (names.DISRUPTION_REASON, "Unhealthy"))
    ]
    node["status"]["nodeInfo"] = {"bootID": boot}
    pool = a_ready_pool(disruption=OPEN)
    if pause:
        said = {names.PAUSED: pause, names.PAUSED_BY: "alice", names.PAUSED_REASON: "an incident"}
        pool["metadata"].setdefault("annotations", {}).update(said)
    return a_world(folder, pool, claim, node, a_bound_pod("web-1", "n1"))
