"""await_marked: how long the Scheduler waits for the marks of what it has started."""

import asyncio
from dataclasses import replace
from typing import Any, cast

import pytest
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionRequest, DescribeWorkflowExecutionResponse
from temporalio.client import Client
from temporalio.testing import ActivityEnvironment

from dovetail.activities.disruption.await_progress import AwaitProgress
from dovetail.activities.shared.writes.known_claims import KnownClaims
from dovetail.messages.states import AwaitedMark
from dovetail.messages.subjects import ClaimRef
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.scheduling.taints import Taint
from tests.lifecycle.objects import a_joined_claim, a_joined_node
from worlds.fakes import FakeClaims, FakeLookups, World
from worlds.fakes.descriptions import running_as

OWNER = "c/disrupt/plan"
BOTH = AwaitedMark(workflow_id=OWNER, claims=(ClaimRef(name="a", uid="a"), ClaimRef(name="b", uid="b")))


class Disruption:
    """A workflow that runs, and says where it is."""

    def __init__(self, phase: str) -> None:
        self.phase, self.asked = phase, 0
        self.namespace, self.workflow_service = "default", self

    def get_workflow_handle(self, workflow_id: str) -> "Disruption":
        assert workflow_id == OWNER
        return self

    async def query(self, name: str, **options: Any) -> str:
        assert name == "status"
        self.asked += 1
        return self.phase

    async def describe_workflow_execution(
        self, request: DescribeWorkflowExecutionRequest, *, retry: bool
    ) -> DescribeWorkflowExecutionResponse:
        assert request.execution.workflow_id == OWNER
        return running_as("DisruptNodes")


class View(FakeLookups):
    """A cache that is never behind, whose changes are looked for often."""

    def revision(self) -> int:
        return 0

    async def changed(self, after: int) -> int:
        await asyncio.sleep(0.01)
        return after


def a_target(world: World, name: str, *, marked: bool, **fields: Any) -> None:
    provider = f"cloud:///{name}"
    annotations = {names.OWNER: OWNER} if marked else {}
    claim: NodeClaim = replace(a_joined_claim(name), uid=name, provider_id=provider, annotations=annotations, **fields)
    taints = (Taint(key=names.DISRUPTED_TAINT, effect="NoSchedule"),) if marked else ()
    world.put(claim, replace(a_joined_node(f"node-{name}"), provider_id=provider, taints=taints))


async def waited(world: World, disruption: Disruption) -> list[str] | None:
    """The claim with the newest mark that was seen, which stands for the older ones; None where it still waits."""
    view: Any = View(world)
    step = AwaitProgress(view, KnownClaims(view, FakeClaims(world)), world.now)
    environment = ActivityEnvironment(client=cast(Client, disruption))
    try:
        async with asyncio.timeout(0.5):
            outcome = await environment.run(step.await_marked, (BOTH,))
    except TimeoutError:
        return None
    return sorted(write.name for write in outcome.writes if write.kind == "NodeClaim")


async def test_all_marks_are_awaited() -> None:
    world = World()
    a_target(world, "a", marked=True)
    a_target(world, "b", marked=False)

    assert await waited(world, Disruption("marking")) is None
    a_target(world, "b", marked=True)
    assert await waited(world, Disruption("marking")) == ["b"]


@pytest.mark.parametrize(("phase", "seen"), [("draining", ["a"]), ("marking", None)])
async def test_a_target_that_was_refused_delays_nothing_once_the_others_leave(
    phase: str, seen: list[str] | None
) -> None:
    """DIS-145: a plain delete goes on with what could be marked; its drain may take hours."""
    world, disruption = World(), Disruption(phase)
    a_target(world, "a", marked=True, deleting_since=1.0)
    a_target(world, "b", marked=False)

    assert await waited(world, disruption) == seen
    assert disruption.asked


async def test_no_workflow_is_asked_while_nothing_leaves() -> None:
    world, disruption = World(), Disruption("marking")
    a_target(world, "a", marked=True)
    a_target(world, "b", marked=False)

    assert await waited(world, disruption) is None
    assert not disruption.asked


async def test_a_target_that_is_gone_before_its_mark_was_seen_delays_nothing() -> None:
    """A hundred that leave at once keep the questions waiting, and the workflow of one may run on for long."""
    world = World()
    a_target(world, "b", marked=True)

    assert await waited(world, Disruption("marking")) == ["b"]
    world.claims.pop("b")
    assert await waited(world, Disruption("marking")) == []
