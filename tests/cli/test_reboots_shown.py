"""GCR-19: what `status` says of a node whose instance is rebooted for a repair, and until when it offers to stop it."""

from pathlib import Path
from typing import Final

import pytest

from dovetail.answers.status.status import status_of
from dovetail.model import names
from dovetail.model.own.claim_memory import with_memory
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
    claim, node = a_managed_node()
    claim["metadata"]["annotations"] = {**BEGAN, **marks}
    claim["status"]["conditions"] += [
        {"type": kind, "status": "True", "reason": why, "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        for kind, why in ((names.REBOOTING, "RebootRequested"), (names.DISRUPTION_REASON, "Unhealthy"))
    ]
    node["status"]["nodeInfo"] = {"bootID": boot}
    world = a_world(tmp_path, a_ready_pool(disruption=OPEN), claim, node, a_bound_pod("web-1", "n1"))

    [move] = status_of(await looked(world)).under_way

    assert (move.why, (move.step, move.progress, move.stop)) == ("Unhealthy", said)
