"""GCR-19: a reboot that a person, a hook or a Freeze calls off, before the cloud is asked and after it."""

from dataclasses import replace
from typing import Any, cast

import pytest
from temporalio.testing import ActivityEnvironment

from dovetail.activities.upkeep.cancels import CancelUpkeep
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.own.claim_memory import memory_of, with_memory
from dovetail.model.own.policies import Freeze
from dovetail.model.snapshot import Snapshot
from dovetail.ports.failures import Conflict, Retryable
from tests.activities.test_rebooting import PAUSED, WELL, Scene, cut_after
from tests.placement.builders import a_bound_pod
from worlds.fakes.nodes import FakeClaims


async def asked_to_stop(scene: Scene, when: str = "annotation") -> None:
    """A person cancels, a Freeze undoes, or a hook denies it; the upkeep looks once."""
    freezes = {}
    if when == "freeze":
        named = Freeze(name="peak", begins=0.0, until=1e9, what=frozenset({"disruption"}), undoes=True, reason="peak")
        freezes = {"peak": named}
    else:
        said = {names.CANCEL: "training runs", names.CANCEL_BY: "ann"}
        hook = {f"{names.PRE_DRAIN_HOOK}mesh": "deny: a backup runs"}
        written = hook if when == "hook" else said
        scene.world.put(replace(scene.claim, annotations={**scene.claim.annotations, **written}))
    snapshot = Snapshot(now=scene.world.clock, claims=dict(scene.world.claims), freezes=freezes)
    for _ in range(2):
        found = await CancelUpkeep("c", FakeClaims(scene.world), scene.notices, scene.world.now).look(snapshot)
        for write in found.due:
            await ActivityEnvironment().run(cast(Any, write))
        snapshot = replace(snapshot, claims=dict(scene.world.claims))


def becomes_needless(scene: Scene, change: str) -> None:
    """The node is well, a person keeps it from repair, or repair is switched off."""
    scene.wanted = change != "switched off"
    if change == "well":
        scene.world.put(replace(scene.node, conditions=(WELL,)))
    elif change == "kept":
        scene.world.put(replace(scene.node, annotations={names.DO_NOT_REPAIR: "true"}))


@pytest.mark.parametrize("when", ["annotation", "freeze", "hook"])
@pytest.mark.parametrize("silent", [0.0, 7200.0])
async def test_a_reboot_that_is_called_off_before_the_cloud_is_asked_opens_the_node(when: str, silent: float) -> None:
    """Also where no worker looks until the rest is over; and it counts as no reboot."""
    scene = Scene(a_bound_pod("p", "n", do_not_disrupt="true"))
    assert await scene.step() == "its pods are leaving"

    await asked_to_stop(scene, when)
    await scene.world.pause(silent)
    assert await scene.step() == "called off"

    assert (scene.calls, scene.node.taints, list(scene.world.pods)) == ([], (), ["uid-p"])
    assert scene.said[:2] == ("False", "RebootCalledOff") and scene.claim.deleting_since is None
    assert scene.claim.condition(names.DISRUPTION_REASON) is None
    assert not {names.REBOOT_GRACE, names.PRE_BOOT_ID, names.CANCEL} & set(scene.claim.annotations)
    assert memory_of(scene.claim.annotations).reboots == ()
    events = [notice.reason for notice in scene.world.notices if notice.reason.startswith("DisruptionCancel")]
    assert events == ([] if when == "hook" else ["DisruptionCancelled"])


@pytest.mark.parametrize("change", ["well", "kept", "switched off"])
@pytest.mark.parametrize("what", ["a hook", "a pause", "its pods"])
async def test_a_reboot_that_was_held_is_called_off_where_it_is_not_meant_any_more(what: str, change: str) -> None:
    """However long it was held, and whether what holds it is there still."""
    hook = {f"{names.PRE_DRAIN_HOOK}mesh": "mesh-team"} if what == "a hook" else {}
    scene = Scene(a_bound_pod("p", "n", do_not_disrupt="true"), annotations=hook)
    scene.world.system = PAUSED if what == "a pause" else None
    for _ in range(4):
        await scene.step()
    assert scene.claim.is_rebooting

    becomes_needless(scene, change)
    assert await scene.step() == "called off"

    assert (scene.calls, scene.node.taints, list(scene.world.pods)) == ([], (), ["uid-p"])
    assert scene.said[:2] == ("False", "RebootCalledOff") and scene.claim.deleting_since is None
    assert memory_of(scene.claim.annotations).reboots == ()


@pytest.mark.parametrize("change", ["well", "kept"])
async def test_a_reboot_that_is_not_meant_any_more_as_its_last_pod_leaves_asks_the_cloud_nothing(change: str) -> None:
    scene = Scene(a_bound_pod("p", "n"))
    scene.world.at(scene.world.clock + 2.0, lambda: becomes_needless(scene, change))

    await scene.until("called off")

    assert (scene.calls, scene.node.taints, scene.said[0]) == ([], (), "False")


async def test_a_reboot_that_is_called_off_as_the_boot_id_is_written_asks_the_cloud_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = Scene(a_bound_pod("p", "n"))
    patch = FakeClaims.patch

    async def cancelled_meanwhile(claims: FakeClaims, claim: NodeClaim, change: Any) -> Any:
        if names.PRE_BOOT_ID in change.annotations and names.CANCEL not in scene.claim.annotations:
            asked = {**scene.claim.annotations, names.CANCEL: "training runs"}
            scene.world.put(replace(scene.claim, annotations=asked))
            raise Conflict("NodeClaim/a", "changed", current=scene.claim)
        return await patch(claims, claim, change)

    with monkeypatch.context() as patched:
        patched.setattr(FakeClaims, "patch", cancelled_meanwhile)
        await scene.until("called off")

    assert (scene.calls, scene.node.taints, scene.said[0]) == ([], (), "False")


async def test_a_cancel_after_the_cloud_was_asked_is_too_late() -> None:
    scene = Scene(a_bound_pod("p", "n"))
    await scene.until("the cloud reboots it")

    await asked_to_stop(scene)

    assert names.CANCEL not in scene.claim.annotations and names.REST not in scene.claim.annotations
    assert ("DisruptionCancelTooLate", "Its instance is being rebooted already: training runs (by ann)") in [
        (notice.reason, notice.message) for notice in scene.world.notices
    ]
    scene.booted()
    assert await scene.step() == "rebooted"


@pytest.mark.parametrize("writes", [1, 2])
async def test_killed_after_any_write_a_reboot_that_is_called_off_leaves_nothing_behind(writes: int) -> None:
    """An earlier reboot still counts."""
    scene = Scene(a_bound_pod("p", "n", do_not_disrupt="true"), annotations=with_memory({}, reboots=(500.0,)))
    await scene.step()
    await asked_to_stop(scene)
    undo = cut_after(scene, writes)
    try:
        with pytest.raises(Retryable):
            await scene.step()
        while scene.claim.is_rebooting:
            await scene.step()
    finally:
        undo()

    assert (scene.said[:2], scene.calls, scene.node.taints) == (("False", "RebootCalledOff"), [], ())
    assert memory_of(scene.claim.annotations).reboots == (500.0,)
