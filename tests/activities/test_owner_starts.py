"""The steps that create and delete claims start their workflows, and do their own work where that fails."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode
from temporalio.testing import ActivityEnvironment

from dovetail.activities.disruption.delete_claim import DeleteClaims
from dovetail.activities.provisioning.create_node_claims import CreateNodeClaims
from dovetail.activities.shared.owner_starts import OwnerStarts
from dovetail.messages.outcomes import CreateOutcome, StepOutcome
from dovetail.messages.requests import CreateRequest, DeleteRequest, DeletesRequest
from dovetail.messages.workflow_ids import claim_owner_id
from dovetail.messages.workflow_types import LAUNCH_NODE, TERMINATE_NODE
from dovetail.model.names import OWNER
from tests.activities.test_creating_claims import NODE, POOL
from tests.activities.test_gated_orders import OnePool
from tests.lifecycle.objects import a_joined_claim, a_joined_node, target_of
from worlds.disruption import a_claim
from worlds.fakes import FakeClaims, FakeNotices, World, create_ties, delete_ports, returned_moves

FAILURES = (
    None,
    WorkflowAlreadyStartedError("id", "type"),
    RPCError("it is busy", RPCStatusCode.RESOURCE_EXHAUSTED, b""),
)


@dataclass
class Starts:
    """A client that remembers what it is to start."""

    failure: Exception | None = None
    started: list[tuple[str, str, str]] = field(default_factory=list)

    async def start_workflow(self, kind: str, given: Any, **how: Any) -> None:
        self.started.append((kind, how["id"], given.claim.uid))
        if self.failure is not None:
            raise self.failure


async def ran(client: Starts, step: Any, request: object) -> Any:
    place = ActivityEnvironment(client=client)  # type: ignore[arg-type]  # a step asks nothing else of it
    return await place.run(step, request)


@pytest.mark.parametrize("failure", FAILURES)
async def test_each_claim_that_is_made_gets_its_launch(failure: Exception | None) -> None:
    """As children of the Scheduler they were started twenty at a time, one part after the other."""
    world, client = World(), Starts(failure)
    ties = create_ties(world, owners=OwnerStarts("c"))
    step = CreateNodeClaims(FakeClaims(world), OnePool(POOL), FakeNotices(world), world.now, ties)
    request = CreateRequest(plan_id="p", proposed=(NODE,) * 3, type_lists=((),))

    outcome: CreateOutcome = await ran(client, step.create_node_claims, request)

    assert outcome.owned and len(outcome.claims) == 3
    wanted = [(LAUNCH_NODE, claim_owner_id("c", claim.name), claim.uid) for claim in outcome.claims]
    assert sorted(client.started) == sorted(wanted)


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("failure", FAILURES)
async def test_what_a_plan_deletes_gets_its_termination(failure: Exception | None, several: bool) -> None:
    world, client = World(), Starts(failure)
    world.put(a_joined_claim(annotations={OWNER: ActivityEnvironment.default_info().workflow_id}), a_joined_node())
    target = target_of(a_joined_claim(), a_joined_node())
    step = DeleteClaims(delete_ports(world), OwnerStarts("c"), returned_moves(world))
    one = DeleteRequest(name=target.claim, uid=target.claim_uid, target=target)

    outcome: StepOutcome = await (
        ran(client, step.delete_claims, DeletesRequest(targets=(target,), reason="Empty"))
        if several
        else ran(client, step.delete_claim, one)
    )

    assert outcome.owned and world.claims[target.claim].deleting_since is not None
    assert client.started == [(TERMINATE_NODE, claim_owner_id("c", target.claim), target.claim_uid)]


async def test_a_launch_that_gives_its_own_claim_up_starts_nothing() -> None:
    """It goes on as the termination itself, under the same id."""
    world, client = World(), Starts()
    world.put(a_claim())
    step = DeleteClaims(delete_ports(world), OwnerStarts("c"), returned_moves(world))

    outcome: StepOutcome = await ran(client, step.delete_claim, DeleteRequest(name="pool-1", uid="uid-pool-1"))

    assert (outcome.owned, client.started) == (False, [])
